// SPDX-License-Identifier: MPL-2.0
//! The engine of OpenCV's cascade classifier against recorded answers of OpenCV
//! (`golden/haar.json`), and what it does with cascades, settings and frames that can't be used.

use crate::common::drawn;
use crate::common::engine as installed;

use std::path::{Path, PathBuf};
use std::time::Duration;

use drawn::{Face, draw};
use facetrack::engine::opencv::haar::Search;
use facetrack::engine::{Engine, EngineConfig, EngineError, EngineKind, Frame, Thresholds};
use facetrack::image::{Colorimetry, ImageView, PixelFormat, Plane};
use facetrack::model::ModelError;
use installed::{engine, load};
use serde::Deserialize;

const GOLDEN: &str = include_str!("../../../../tests/golden/haar.json");

/// A cascade of random features, upright and tilted, in stumps and trees.
const SMALL_CASCADE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/golden/haar_small.xml"
);

#[derive(Deserialize)]
struct Golden {
    scenes: Vec<Scene>,
}

#[derive(Deserialize)]
struct Scene {
    width: usize,
    height: usize,
    faces: Vec<Face>,
    pixel_sum: u64,
    found: Vec<Found>,
}

/// OpenCV's results.
#[derive(Deserialize)]
struct Found {
    cascade: String,
    scale_factor: f64,
    min_neighbors: usize,
    min_size: usize,
    max_size: usize,
    boxes: Vec<[f32; 4]>,
}

impl Found {
    fn config(&self) -> EngineConfig {
        EngineConfig {
            model: (self.cascade == "small").then(|| SMALL_CASCADE.into()),
            opencv_haar: Search {
                scale_factor: self.scale_factor,
                min_neighbors: self.min_neighbors,
                min_size: self.min_size,
                max_size: Some(self.max_size).filter(|size| *size > 0),
            },
            ..EngineConfig::default()
        }
    }
}

fn golden() -> Golden {
    serde_json::from_str(GOLDEN).expect("the goldens")
}

fn haar(config: &EngineConfig) -> Option<Engine> {
    engine(EngineKind::OpenCvHaar, config)
}

fn small_cascade(haar: Search) -> EngineConfig {
    EngineConfig {
        model: Some(SMALL_CASCADE.into()),
        opencv_haar: haar,
        ..EngineConfig::default()
    }
}

fn boxes(engine: &mut Engine, image: ImageView<'_>) -> Vec<[f32; 4]> {
    let time = Duration::ZERO;
    let frame = Frame { image, time };
    let found = engine.finder.find(&frame, &Thresholds::DEFAULT);
    let found = found.expect("a frame");
    found
        .faces
        .into_iter()
        .map(|face| {
            assert_eq!(face.confidence, Some(1.0));
            [face.bbox.x, face.bbox.y, face.bbox.width, face.bbox.height]
        })
        .collect()
}

#[test]
fn drawn_faces_are_found_where_opencv_finds_them() {
    for scene in golden().scenes {
        let (width, height) = (scene.width, scene.height);
        let pixels = draw(width, height, &scene.faces);
        let sum: u64 = pixels.iter().copied().map(u64::from).sum();
        assert_eq!(sum, scene.pixel_sum, "the drawing is the generator's");
        for found in &scene.found {
            let Some(mut engine) = haar(&found.config()) else {
                continue;
            };
            let image = ImageView::rgb(width, height, &pixels).unwrap();
            let boxes = boxes(&mut engine, image);
            let search = found.config().opencv_haar;
            assert_eq!(boxes, found.boxes, "{width}×{height} {search:?}");
        }
    }
}

#[test]
fn the_largest_faces_are_left_where_their_number_is_limited() {
    let scene = golden().scenes.remove(0);
    let found = &scene.found[6];
    let pixels = draw(scene.width, scene.height, &scene.faces);
    let limited = |max_faces| {
        let config = EngineConfig {
            max_faces,
            ..found.config()
        };
        let mut engine = haar(&config).expect("the small cascade is always there");
        let image = ImageView::rgb(scene.width, scene.height, &pixels).unwrap();
        boxes(&mut engine, image)
    };
    let all = limited(None);
    assert_eq!(all, found.boxes);
    assert_eq!(limited(Some(all.len())), all);
    let area = |b: &[f32; 4]| b[2] * b[3];
    let mut largest: Vec<f32> = all.iter().map(area).collect();
    largest.sort_by(|a, b| b.total_cmp(a));
    let some: Vec<f32> = limited(Some(5)).iter().map(area).collect();
    assert_eq!(some, largest[..5]);
}

#[test]
fn grey_frames_are_searched_as_color_frames_of_the_same_brightness() {
    let scene = golden().scenes.remove(1);
    let (width, height) = (scene.width, scene.height);
    let color = draw(width, height, &scene.faces);
    let gray: Vec<u8> = color.chunks_exact(3).map(|pixel| pixel[1]).collect();
    let rgb: Vec<u8> = gray.iter().flat_map(|level| [*level; 3]).collect();
    let mut engine = haar(&small_cascade(Search::default())).expect("the small cascade");
    let expected = boxes(&mut engine, ImageView::rgb(width, height, &rgb).unwrap());
    let plane = Plane {
        data: &gray,
        stride: width,
    };
    let full = facetrack::image::ColorRange::Full;
    let colorimetry = Colorimetry {
        range: full,
        ..Colorimetry::default()
    };
    let image = ImageView::new(PixelFormat::Gray8, width, height, colorimetry, &[plane]).unwrap();
    assert!(!expected.is_empty());
    assert_eq!(boxes(&mut engine, image), expected);
}

#[test]
fn frames_of_changing_size_are_searched_as_by_a_new_engine() {
    let search = Search {
        min_size: 0,
        min_neighbors: 1,
        ..Search::default()
    };
    let mut one = haar(&small_cascade(search)).expect("the small cascade");
    let sizes = [
        (200, 130),
        (1, 1),
        (61, 300),
        (200, 130),
        (16384, 2),
        (2, 16384),
        (12, 16),
        (13, 17),
        (3000, 17),
        (17, 3000),
        (640, 96),
        (61, 300),
    ];
    for (width, height) in sizes {
        let noise: Vec<u8> = (0..width * height * 3)
            .map(|i| (i * i * 31 % 251) as u8)
            .collect();
        let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
        let face = Face {
            x,
            y,
            size: x.min(y) * 0.7,
            half_roll: 0.0,
            jaw: 0.3,
            blink: 0.0,
        };
        for pixels in [noise, draw(width, height, &[face])] {
            let mut another = haar(&small_cascade(search)).expect("the small cascade");
            let image = || ImageView::rgb(width, height, &pixels).unwrap();
            let found = boxes(&mut one, image());
            assert_eq!(found, boxes(&mut another, image()), "{width}×{height}");
            for [x, y, w, h] in found {
                assert!(x >= 0.0 && y >= 0.0 && w > 0.0 && h > 0.0);
                assert!(x + w <= width as f32 && y + h <= height as f32);
            }
        }
    }
}

#[test]
fn flat_frames_hold_no_face() {
    let mut engine = haar(&small_cascade(Search::default())).expect("the small cascade");
    for level in [0, 128, 255] {
        let pixels = vec![level; 640 * 360 * 3];
        let image = ImageView::rgb(640, 360, &pixels).unwrap();
        assert!(boxes(&mut engine, image).is_empty(), "{level}");
    }
}

#[test]
fn a_frame_too_large_for_the_arithmetic_is_an_error() {
    let mut engine = haar(&small_cascade(Search::default())).expect("the small cascade");
    let pixels = vec![0; 65_536 * 3];
    let image = ImageView::rgb(65_536, 1, &pixels).unwrap();
    let time = Duration::ZERO;
    let frame = Frame { image, time };
    let error = engine
        .finder
        .find(&frame, &Thresholds::DEFAULT)
        .unwrap_err();
    assert!(error.to_string().contains("65536×1"), "{error}");
}

fn refusal(config: &EngineConfig) -> EngineError {
    load(EngineKind::OpenCvHaar, config)
        .err()
        .expect("it can't be used")
}

#[test]
fn settings_that_nothing_can_be_searched_with_are_errors_at_load() {
    let search = Search::default();
    for (haar, setting) in [
        (
            Search {
                scale_factor: 1.0,
                ..search
            },
            "scale_factor",
        ),
        (
            Search {
                scale_factor: f64::NAN,
                ..search
            },
            "scale_factor",
        ),
        (
            Search {
                scale_factor: f64::INFINITY,
                ..search
            },
            "scale_factor",
        ),
        (
            Search {
                max_size: Some(29),
                ..search
            },
            "max_size",
        ),
    ] {
        let error = refusal(&small_cascade(haar));
        assert!(
            matches!(error, EngineError::Config { setting: own, .. } if own == setting),
            "{error}"
        );
    }
}

/// A file of that name and content, in a folder of its own.
fn file(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file");
    path
}

#[test]
fn cascades_that_can_not_be_used_are_errors_at_load() {
    let folder = tempfile::tempdir().unwrap();
    let small = std::fs::read_to_string(SMALL_CASCADE).unwrap();
    let refusal_of = |path: PathBuf| {
        refusal(&EngineConfig {
            model: Some(path),
            ..EngineConfig::default()
        })
    };
    let missing = refusal_of(folder.path().join("nothing.xml"));
    assert!(
        matches!(missing, EngineError::Model(ModelError::Missing { .. })),
        "{missing}"
    );
    let lbp = small.replace("HAAR", "LBP");
    let old = small.replace("opencv-cascade-classifier", "opencv-haar-classifier");
    for (name, content, reason) in [
        ("text.xml", "no cascade", "not a valid OpenCV cascade file"),
        ("cut.xml", &small[..small.len() / 2], "cut.xml"),
        ("lbp.xml", &lbp, "LBP"),
        ("old.xml", &old, "opencv-haar-classifier"),
    ] {
        let error = refusal_of(file(folder.path(), name, content));
        assert!(
            matches!(error, EngineError::Model(ModelError::Format { .. })),
            "{error}"
        );
        let text = error.to_string();
        for part in [name, reason] {
            assert!(text.contains(part), "{text}");
        }
    }
}
