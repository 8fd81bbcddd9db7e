// SPDX-License-Identifier: MPL-2.0
//! `facetrack report`: sums up a tracking file on one screen.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Duration;

use facetrack::printable::Line;

use crate::faces::{self, Rows};
use crate::table::Cell;
use crate::{plot, size};

/// A record, as far as the report needs it.
struct Track {
    engine: String,
    fps: Option<f64>,
    frames: usize,
    with_face: usize,
    faces: BTreeMap<String, Face>,
}

/// A face.
struct Face {
    /// Number of frames that have it.
    frames: usize,
    /// The blendshape in each frame, where it was measured.
    samples: Vec<Option<f32>>,
}

/// Sums up the record at `path`, and draws `blendshape` over time; `elapsed` is what the run took.
///
/// # Errors
/// Returns an error if the file can't be read, or is not a record.
pub(crate) fn of_file(
    path: &Path,
    blendshape: &str,
    elapsed: Option<Duration>,
) -> Result<String, Box<dyn Error>> {
    let track = Track::read(path, blendshape);
    let track = track.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(format!(
        "{}  file     {} ({})\n\n{}",
        track.summary(elapsed),
        Line(fs::canonicalize(path)?.display()),
        size::human(fs::metadata(path)?.len()),
        track.picture(blendshape)
    ))
}

impl Track {
    fn read(path: &Path, blendshape: &str) -> Result<Self, String> {
        let mut replay = faces::open(path)?;
        let names = ["id".to_owned(), format!("blendshapes.{blendshape}")];
        let columns: Result<Vec<_>, _> = names.iter().map(|name| faces::column(name)).collect();
        let rows = Rows::new(&columns?);
        let mut track = Self {
            engine: replay.engine().to_owned(),
            fps: replay.fps(),
            frames: replay.frames().len(),
            with_face: 0,
            faces: BTreeMap::new(),
        };
        for place in 0..track.frames {
            let faces = rows.frame(&mut replay, place)?.faces;
            track.with_face += usize::from(!faces.is_empty());
            faces.iter().for_each(|face| track.add(place, &face.cells));
        }
        Ok(track)
    }

    fn add(&mut self, place: usize, row: &[Cell]) {
        let [Cell::Text(id), value] = row else {
            return;
        };
        let face = self.faces.entry(id.clone()).or_insert_with(|| Face {
            frames: 0,
            samples: vec![None; self.frames],
        });
        face.frames += 1;
        if let Cell::Double(value) = value {
            face.samples[place] = Some(*value as f32);
        }
    }

    fn summary(&self, elapsed: Option<Duration>) -> String {
        let Self {
            frames, with_face, ..
        } = self;
        let mut out = format!(
            "  engine   {}\n  frames   {frames} at {:.3} fps\n  \
            faces    {}, in {with_face} of {frames} frames\n",
            Line(&self.engine),
            self.fps.unwrap_or_default(),
            self.faces.len()
        );
        if let Some(elapsed) = elapsed.filter(|elapsed| !elapsed.is_zero()) {
            let seconds = elapsed.as_secs_f64();
            let speed = *frames as f64 / seconds;
            out += &format!("  speed    {speed:.1} fps ({seconds:.2} s from start to end)\n");
        }
        out
    }

    /// The blendshape of the face that is in most frames, the first of several.
    fn picture(&self, blendshape: &str) -> String {
        // Of several maxima the last one counts.
        let most_seen = self.faces.iter().rev().max_by_key(|(_, face)| face.frames);
        let Some((id, face)) = most_seen else {
            return "  No face to draw.\n".to_owned();
        };
        if face.samples.iter().all(Option::is_none) {
            return format!("  {blendshape} was not measured.\n");
        }
        let seconds = self.fps.map_or(0.0, |fps| self.frames as f64 / fps);
        let curve = plot::curve(&face.samples, seconds);
        format!("  {blendshape} of {id} over time\n{curve}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: &str = r#""centroid_x":3,"centroid_y":3,"bbox_xmin":1,"bbox_ymin":1,"bbox_width":4,"bbox_height":4,"confidence":0.5"#;

    fn track(fps: f64, frames: &[&[(&str, &str)]]) -> String {
        let face = |(id, blendshapes): &(&str, &str)| {
            format!(r#"{{"id":"{id}",{FACE},"blendshapes":{blendshapes}}}"#)
        };
        let frames = std::iter::zip(1.., frames).map(|(number, faces)| {
            let faces: Vec<_> = faces.iter().map(face).collect();
            format!(
                r#"{{"frame":{number},"tracked_objects":[{}]}}"#,
                faces.join(",")
            )
        });
        let frames: Vec<_> = frames.collect();
        format!(
            r#"{{"metadata":{{"fps":{fps:?},"tracking_engine":"mediapipe"}},"frames":[{}]}}"#,
            frames.join(",")
        )
    }

    fn report(track: &str, elapsed: Option<Duration>) -> Result<String, Box<dyn Error>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("track.json");
        fs::write(&path, track).unwrap();
        of_file(&path, "jawOpen", elapsed)
    }

    #[test]
    fn counts_frames_faces_and_speed() {
        let frames: [&[_]; 3] = [
            &[],
            &[("obj_2", "null"), ("obj_1", r#"{"jawOpen":0.5}"#)],
            &[("obj_1", r#"{"jawOpen":0.25}"#)],
        ];
        let track = track(25.0, &frames);
        let text = report(&track, Some(Duration::from_millis(1500))).unwrap();
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
        let none = report(&track(0.0, &[&[]]), None).unwrap();
        assert!(none.ends_with("No face to draw.\n"), "{none}");
        let bare = track(0.0, &[&[("obj_1", "null")]]);
        let text = report(&bare, None).unwrap();
        assert!(text.ends_with("jawOpen was not measured.\n"), "{text}");
        assert!(!text.contains("speed"), "{text}");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let error = report("{}", None).unwrap_err().to_string();
        assert!(error.contains("track.json: line 1"), "{error}");
        let error = of_file(Path::new("/no/such.json"), "jawOpen", None).unwrap_err();
        assert!(error.to_string().starts_with("/no/such.json:"), "{error}");
    }
}
