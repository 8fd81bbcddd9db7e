// SPDX-License-Identifier: MPL-2.0
//! Runs every engine on one frame.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use facetrack::engine::{self, EngineConfig, EngineError, EngineKind, Frame};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack_assets::locate::NotFound;
use facetrack_assets::manifest::{self, FileKind};
use facetrack_remedies::{FETCH, KEEP_TELEMETRY_OFF, fetch_command, protect};

use super::finding::Finding;
use crate::{places, program};

/// Size of the frame, px: the size of the sample clip.
const WIDTH: usize = 640;
const HEIGHT: usize = 360;

/// The frame that the engines analyse.
struct Picture {
    rgb: Vec<u8>,
    /// Number of faces in it.
    faces: usize,
    name: &'static str,
}

/// Results of one run.
struct Outcome {
    loading: Duration,
    frame: Duration,
    faces: usize,
}

/// Runs each engine once.
pub(super) fn engines() -> Vec<(EngineKind, Finding)> {
    let picture = sample().unwrap_or_else(grey);
    EngineKind::ALL
        .into_iter()
        .map(|kind| (kind, judge(kind, &picture, run(kind, &picture))))
        .collect()
}

fn judge(kind: EngineKind, picture: &Picture, outcome: Result<Outcome, EngineError>) -> Finding {
    let name = kind.name();
    let outcome = match outcome {
        Ok(outcome) => outcome,
        // Packs are fetched only on request.
        Err(EngineError::Model(ModelError::Missing(NotFound::Pack { .. }))) => {
            return Finding::note(format!("{name}: no pack, see the models above"));
        }
        Err(EngineError::Model(ModelError::Replaceable(library))) => {
            return Finding::bad(format!("{name}: {library}"), protect(&library));
        }
        Err(EngineError::Model(error @ ModelError::Telemetry { .. })) => {
            return Finding::bad(format!("{name}: {error}"), KEEP_TELEMETRY_OFF);
        }
        Err(error) => return Finding::bad(format!("{name}: {error}"), remedy(kind)),
    };
    let told = format!(
        "{name}: loaded in {} ms, {} in {:.1} ms, faces: {}",
        outcome.loading.as_millis(),
        picture.name,
        outcome.frame.as_secs_f64() * 1000.0,
        outcome.faces
    );
    if !kind.entry().is_synthetic && outcome.faces != picture.faces {
        let told = format!("{told} instead of {}", picture.faces);
        return Finding::bad(told, FETCH);
    }
    Finding::good(told)
}

fn remedy(kind: EngineKind) -> String {
    let model = manifest::manifest().family(kind.name()).next();
    model.map_or_else(|| FETCH.to_owned(), fetch_command)
}

fn run(kind: EngineKind, picture: &Picture) -> Result<Outcome, EngineError> {
    let start = Instant::now();
    let config = EngineConfig {
        paths: places::search_paths(),
        ..EngineConfig::default()
    };
    let mut engine = engine::load(kind, &config)?;
    let loading = start.elapsed();
    let image = ImageView::rgb(WIDTH, HEIGHT, &picture.rgb)
        .map_err(|error| EngineError::Frame(error.to_string()))?;
    let start = Instant::now();
    let time = Duration::ZERO;
    let faces = engine.look(&Frame { image, time }, &kind.thresholds())?;
    Ok(Outcome {
        loading,
        frame: start.elapsed(),
        faces: faces.len(),
    })
}

/// The first frame of the sample clip, where it can be decoded.
fn sample() -> Option<Picture> {
    let clip = places::fetched(places::file(FileKind::Sample)?)?;
    let folder = tempfile::tempdir().ok()?;
    let raw = folder.path().join("frame.rgb");
    let mut decode = Command::new("gst-launch-1.0");
    decode
        .args(["-q", "filesrc"])
        .arg(format!("location={}", clip.display()))
        .args("! decodebin ! videoconvert ! videoscale !".split(' '))
        .arg(format!(
            "video/x-raw,format=RGB,width={WIDTH},height={HEIGHT}"
        ))
        .args(["!", "identity", "eos-after=1", "!", "filesink"])
        .arg(format!("location={}", raw.display()));
    program::output(&mut decode).ok()?;
    let rgb = fs::read(raw).ok()?;
    Some(Picture {
        rgb: rgb.get(..WIDTH * HEIGHT * 3)?.to_vec(),
        faces: 1,
        name: "a frame of the sample clip",
    })
}

fn grey() -> Picture {
    Picture {
        rgb: vec![128; WIDTH * HEIGHT * 3],
        faces: 0,
        name: "a grey frame (no sample clip, or it can't be decoded)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_that_looks_at_pixels_has_to_see_what_is_there() {
        for kind in EngineKind::ALL {
            for (there, seen, is_right) in
                [(1, 1, true), (1, 0, false), (1, 2, false), (0, 0, true)]
            {
                let picture = Picture {
                    faces: there,
                    ..grey()
                };
                let outcome = Outcome {
                    loading: Duration::ZERO,
                    frame: Duration::ZERO,
                    faces: seen,
                };
                let finding = judge(kind, &picture, Ok(outcome));
                let is_right = is_right || kind.entry().is_synthetic;
                assert_eq!(finding.is_bad(), !is_right, "{finding}");
            }
        }
    }
}
