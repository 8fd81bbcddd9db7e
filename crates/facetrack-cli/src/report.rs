// SPDX-License-Identifier: MPL-2.0
//! `facetrack report`: sums up a tracking file on one screen.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use facetrack::printable::Line;
use serde::Deserialize;

use crate::{plot, size};

/// The parts of the dense JSON that the report needs.
#[derive(Debug, Deserialize)]
struct Track {
    metadata: Metadata,
    frames: Vec<Frame>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    fps: f64,
    tracking_engine: String,
}

#[derive(Debug, Deserialize)]
struct Frame {
    tracked_objects: Vec<Face>,
}

#[derive(Debug, Deserialize)]
struct Face {
    id: String,
    blendshapes: Option<BTreeMap<String, f32>>,
}

/// Sums up the tracking file at `path`, and draws `blendshape` over time; `elapsed` is what the run
/// took.
///
/// # Errors
/// When it can't be read, or is not one.
pub fn of_file(
    path: &Path,
    blendshape: &str,
    elapsed: Option<Duration>,
) -> Result<String, Box<dyn Error>> {
    let shown = path.display();
    let text = fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let track: Track = serde_json::from_slice(&text).map_err(|error| {
        format!("{shown} is not a tracking file in trackjsonsink's dense format: {error}")
    })?;
    Ok(format!(
        "{}  file     {} ({})\n\n{}",
        summary(&track, elapsed),
        Line(fs::canonicalize(path)?.display()),
        size::human(text.len() as u64),
        picture(&track, blendshape)
    ))
}

fn summary(track: &Track, elapsed: Option<Duration>) -> String {
    let (fps, engine) = (track.metadata.fps, &track.metadata.tracking_engine);
    let frames = track.frames.len();
    let has_face = |frame: &&Frame| !frame.tracked_objects.is_empty();
    let with_face = track.frames.iter().filter(has_face).count();
    let faces = frames_of_each_face(track).len();
    let engine = Line(engine);
    let mut out = format!(
        "  engine   {engine}\n  frames   {frames} at {fps:.3} fps\n  \
        faces    {faces}, in {with_face} of {frames} frames\n"
    );
    if let Some(elapsed) = elapsed.filter(|elapsed| !elapsed.is_zero()) {
        let seconds = elapsed.as_secs_f64();
        let speed = frames as f64 / seconds;
        out += &format!("  speed    {speed:.1} fps ({seconds:.2} s from start to end)\n");
    }
    out
}

fn picture(track: &Track, blendshape: &str) -> String {
    let Some(face) = most_seen(track) else {
        return "  No face to draw.\n".to_owned();
    };
    let frames = track.frames.iter();
    let samples: Vec<_> = frames.map(|frame| value(frame, face, blendshape)).collect();
    if samples.iter().all(Option::is_none) {
        return format!("  {blendshape} was not measured.\n");
    }
    let fps = track.metadata.fps;
    let seconds = if fps > 0.0 {
        samples.len() as f64 / fps
    } else {
        0.0
    };
    let curve = plot::curve(&samples, seconds);
    format!("  {blendshape} of {face} over time\n{curve}")
}

fn value(frame: &Frame, face: &str, blendshape: &str) -> Option<f32> {
    let mut faces = frame.tracked_objects.iter();
    let face = faces.find(|object| object.id == face)?;
    face.blendshapes.as_ref()?.get(blendshape).copied()
}

/// The face that is in most frames, the first of several.
fn most_seen(track: &Track) -> Option<&str> {
    // Of several maxima the last one counts.
    let frames = frames_of_each_face(track).into_iter().rev();
    frames.max_by_key(|(_, count)| *count).map(|(id, _)| id)
}

fn frames_of_each_face(track: &Track) -> BTreeMap<&str, usize> {
    let mut frames = BTreeMap::new();
    for face in track.frames.iter().flat_map(|frame| &frame.tracked_objects) {
        *frames.entry(face.id.as_str()).or_default() += 1;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACK: &str = r#"{"metadata":{"video_path":"","total_frames":3,"fps":25.0,"tracking_engine":"mediapipe"},"frames":[
{"frame":1,"tracked_objects":[]},
{"frame":2,"tracked_objects":[{"id":"obj_2","blendshapes":null},{"id":"obj_1","blendshapes":{"jawOpen":0.5}}]},
{"frame":3,"tracked_objects":[{"id":"obj_1","blendshapes":{"jawOpen":0.25}}]}
]}"#;

    fn report(track: &str, elapsed: Option<Duration>) -> Result<String, Box<dyn Error>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("track.json");
        fs::write(&path, track).unwrap();
        of_file(&path, "jawOpen", elapsed)
    }

    #[test]
    fn counts_frames_faces_and_speed() {
        let text = report(TRACK, Some(Duration::from_millis(1500))).unwrap();
        for line in [
            "  engine   mediapipe\n",
            "  frames   3 at 25.000 fps\n",
            "  faces    2, in 2 of 3 frames\n",
            "  speed    2.0 fps (1.50 s from start to end)\n",
            "  jawOpen of obj_1 over time\n",
        ] {
            assert!(text.contains(line), "{line:?} not in\n{text}");
        }
        assert!(text.contains("/track.json ("), "{text}");
        assert!(text.contains("   0.5 ┤ █\n"), "{text}");
    }

    #[test]
    fn a_track_without_faces_or_blendshapes_says_so() {
        let none = r#"{"metadata":{"fps":0.0,"tracking_engine":"mediapipe"},"frames":[{"frame":1,"tracked_objects":[]}]}"#;
        assert!(report(none, None).unwrap().ends_with("No face to draw.\n"));
        let bare = none.replace("[]", r#"[{"id":"obj_1"}]"#);
        let text = report(&bare, None).unwrap();
        assert!(text.ends_with("jawOpen was not measured.\n"), "{text}");
        assert!(!text.contains("speed"), "{text}");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let error = report("{}", None).unwrap_err().to_string();
        assert!(
            error.contains("track.json is not a tracking file"),
            "{error}"
        );
        let error = of_file(Path::new("/no/such.json"), "jawOpen", None).unwrap_err();
        assert!(error.to_string().starts_with("/no/such.json:"), "{error}");
    }
}
