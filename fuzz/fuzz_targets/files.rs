// SPDX-License-Identifier: MPL-2.0
//! Small files, each of one format.

use std::str::from_utf8;

use facetrack::engine::scripted::Script;
use facetrack::engine::{EngineConfig, Frame, RunningMode, Thresholds, scripted};
use facetrack::fuzzing;
use facetrack::image::ImageView;
use facetrack::observation::{Landmark, LandmarkScheme, Landmarks};
use facetrack::record::container::Extent;
use facetrack_assets::manifest::Manifest;

use crate::shared::{told, within};

/// Memory for a text: a number of two bytes takes a hundred times as many.
fn text_memory(data: &[u8]) -> usize {
    (16 << 20) + 256 * data.len()
}

pub fn manifest(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let manifest = within(text_memory(data), || text.parse::<Manifest>());
    if let Some(manifest) = told(manifest, &["line"]) {
        for file in manifest.usable() {
            assert!(manifest.known(&file.name).is_some());
            assert!(file.place().ends_with(&file.name));
        }
    }
}

pub fn calibration(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let read = within(text_memory(data), || fuzzing::calibration(text));
    if let Some(written) = told(read, &["calibration"]) {
        assert_eq!(fuzzing::calibration(&written).as_ref(), Ok(&written));
    }
}

pub fn script(data: &[u8]) {
    let Ok(text) = from_utf8(data) else { return };
    let config = EngineConfig {
        script: Some(text.to_owned()),
        running_mode: RunningMode::Video,
        ..EngineConfig::default()
    };
    let script = within(text_memory(data), || Script::of(&config));
    // These wait, panic or end the process, as intended.
    let is_run = !["slow", "panic", "die"]
        .iter()
        .any(|verb| text.contains(verb));
    if told(script, &["script"]).is_some() && is_run {
        run(&config);
    }
}

/// Runs a script on some frames.
fn run(config: &EngineConfig) {
    let mut engine = scripted::load(config).expect("the script was read");
    let pixels = [0; 3 * 8 * 4];
    for number in 1..4 {
        let image = ImageView::rgb(8, 4, &pixels).expect("a frame");
        let time = std::time::Duration::from_millis(40 * number);
        let frame = Frame { image, time };
        let found = engine.finder.find(&frame, &Thresholds::DEFAULT);
        for face in found.into_iter().flat_map(|found| found.faces) {
            assert_eq!(face.confidence, Some(0.9));
        }
    }
}

pub fn container(data: &[u8]) {
    let found = data.len() as u64;
    let read = fuzzing::extent(data).expect("memory can be read");
    if let Extent::Cut {
        promised,
        found: own,
    } = read
    {
        assert!(own == found && promised > found, "{promised} of {found}");
    }
    let movie = fuzzing::movie(data).expect("memory can be read");
    let period = movie.and_then(|movie| movie.period);
    assert!(period.is_none_or(|period| period.is_finite() && period > 0.0));
}

pub fn haar(data: &[u8]) {
    const SIDE: usize = 48;
    let noise = |i: usize| (i * i * 31 % 251) as u8;
    let luma: Vec<u8> = (0..SIDE * SIDE).map(noise).collect();
    let faces = within(text_memory(data) + (64 << 20), || {
        fuzzing::cascade(data, &luma, [SIDE; 2])
    });
    let faces = told(faces, &[]).unwrap_or_default();
    for [x, y, width, height] in faces {
        let side = 0..=SIDE as i32;
        assert!(width > 0 && height > 0);
        assert!(
            [x, y, x + width, y + height]
                .iter()
                .all(|edge| side.contains(edge))
        );
    }
}

pub fn geometry(data: &[u8]) {
    let points = (0..LandmarkScheme::MediaPipe478.count()).map(|i| {
        let angle = i as f32 / 10.0;
        Landmark {
            x: 320.0 + i as f32 / 4.0 * angle.cos(),
            y: 240.0 + i as f32 / 4.0 * angle.sin(),
            z: 20.0 * (3.0 * angle).sin(),
        }
    });
    let landmarks = Landmarks::new(LandmarkScheme::MediaPipe478, points.collect());
    let pose = within(text_memory(data), || {
        fuzzing::head_pose(data, &landmarks, (640, 480))
    });
    if let Some(Some(pose)) = told(pose, &[]) {
        let values = pose.matrix.as_flattened();
        assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
    }
}
