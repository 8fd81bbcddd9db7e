// SPDX-License-Identifier: MPL-2.0
//! The engine insightface: packs that can't be used, and what it makes of drawn faces.

use crate::common::drawn;
use crate::common::engine as installed;

use std::fs;
use std::path::{Path, PathBuf};

use drawn::{Face, draw};
use facetrack::engine::insightface::{Module, Settings};
use facetrack::engine::{Engine, EngineConfig, EngineError, EngineKind};
use facetrack::model::ModelError;
use facetrack::observation::{Fields, LandmarkScheme, Observation};
use installed::{engine, installed_paths, load, look_at_rgb};

const KIND: EngineKind = EngineKind::InsightFace;

/// The folder of the published networks that need no pack; `None`, said aloud, where they are not
/// installed.
fn published() -> Option<PathBuf> {
    match installed_paths().pack(Some(Path::new("insightface"))) {
        Ok(folder) => Some(folder),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

fn config(pack: &Path, settings: Settings) -> EngineConfig {
    EngineConfig {
        model: Some(pack.to_owned()),
        insightface: settings,
        ..EngineConfig::default()
    }
}

fn with_embedding() -> Settings {
    Settings {
        embedding: true,
        ..Settings::default()
    }
}

/// Error of loading `pack`; `None`, with a message, without ONNX Runtime.
fn error_of(pack: &Path, settings: Settings) -> Option<String> {
    let error = load(KIND, &config(pack, settings)).err();
    match error.expect("this pack can't be loaded") {
        EngineError::Model(reason @ ModelError::Runtime { .. }) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
        error => Some(error.to_string()),
    }
}

#[test]
fn folders_that_are_no_packs_are_errors_that_name_them() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = folder.path().join("nothing");
    let empty = folder.path().join("empty");
    let page = folder.path().join("page");
    for folder in [&empty, &page] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(page.join("det_10g.onnx"), "404: Not Found").unwrap();
    for (pack, parts) in [
        (nothing.as_path(), &["nothing", "missing"][..]),
        (&empty, &["empty", "detector"]),
        (&page, &["det_10g.onnx"]),
        (Path::new("buffalo_xxl"), &["buffalo_xxl", "models"]),
    ] {
        let Some(error) = error_of(pack, Settings::default()) else {
            return;
        };
        for part in parts {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}

/// A pack of copies of published files, each cut to a part of its length.
fn copied(published: &Path, files: &[(&str, &str, usize)]) -> tempfile::TempDir {
    let pack = tempfile::tempdir().unwrap();
    for (from, to, percent) in files {
        let bytes = fs::read(published.join(from)).unwrap();
        let length = bytes.len() * percent / 100;
        fs::write(pack.path().join(to), &bytes[..length]).unwrap();
    }
    pack
}

#[test]
fn damaged_and_missing_networks_are_errors_that_name_them() {
    let Some(published) = published() else {
        return;
    };
    let det = ("scrfd_500m_bnkps.onnx", "det.onnx", 100);
    for (files, settings, parts) in [
        (
            &[("scrfd_500m_bnkps.onnx", "det.onnx", 60)][..],
            Settings::default(),
            &["det.onnx"][..],
        ),
        (
            &[det, ("genderage.onnx", "age.onnx", 99)],
            Settings::default(),
            &["age.onnx"],
        ),
        (
            &[("genderage.onnx", "age.onnx", 100)],
            Settings::default(),
            &["detector"],
        ),
        (&[det], with_embedding(), &["recognition", "embedding: "]),
    ] {
        let pack = copied(&published, files);
        let Some(error) = error_of(pack.path(), settings) else {
            return;
        };
        for part in parts {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}

fn faces(x: &[f64]) -> Vec<u8> {
    let face = |x: &f64| Face {
        x: *x,
        y: 120.0,
        size: 60.0,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    };
    let faces: Vec<Face> = x.iter().map(face).collect();
    draw(640, 240, &faces)
}

fn find(engine: &mut Engine, x: &[f64]) -> Vec<Observation> {
    let mut found = look_at_rgb(engine, (640, 240), &faces(x), 0);
    found.sort_by(|a, b| a.bbox.x.total_cmp(&b.bbox.x));
    assert_eq!(found.len(), x.len());
    found
}

#[test]
fn what_is_allowed_is_measured() {
    use Module::*;
    let Some(published) = published() else {
        return;
    };
    for (allowed, embedding) in [
        (None, true),
        (None, false),
        (Some(vec![Landmark2d106]), false),
        (Some(vec![GenderAge]), false),
        (Some(vec![Detection, Recognition]), true),
        (Some(Vec::new()), false),
    ] {
        let has = |module| {
            allowed
                .as_ref()
                .is_none_or(|allowed| allowed.contains(&module))
        };
        let settings = Settings {
            allowed_modules: allowed.clone(),
            embedding,
            ..Settings::default()
        };
        let Some(mut engine) = engine(KIND, &config(&published, settings)) else {
            return;
        };
        let scheme = has(Landmark2d106).then_some(LandmarkScheme::InsightFace106);
        let info = engine.info.clone();
        assert_eq!(info.landmarks, scheme);
        assert_eq!(info.measures.contains(Fields::ATTRIBUTES), has(GenderAge));
        assert_eq!(info.embedding, if embedding { 512 } else { 0 });
        let networks = [true, has(Landmark2d106), has(GenderAge), embedding];
        assert_eq!(
            info.models.len(),
            networks.iter().filter(|has| **has).count()
        );
        let face = &find(&mut engine, &[200.0])[0];
        assert_eq!(face.landmarks.as_ref().map(|l| l.scheme), scheme);
        assert_eq!(face.blendshapes.is_some(), scheme.is_some());
        assert_eq!(face.attributes.is_some(), has(GenderAge));
        assert_eq!(face.embedding.is_some(), embedding);
        assert_eq!(face.key_points.len(), 5);
        assert_eq!(face.pose, None, "there are no landmarks in space");
    }
}

#[test]
fn a_pack_with_a_manifest_finds_the_same_faces() {
    let Some(published) = published() else {
        return;
    };
    let names = ["scrfd_500m_bnkps.onnx", "w600k_mbf.onnx"];
    let plain = copied(&published, &names.map(|name| (name, name, 100)));
    let stated = copied(
        &published,
        &[
            (names[0], "detection.onnx", 100),
            (names[1], "faces.onnx", 100),
        ],
    );
    let manifest = r#"{"manifest_version": 2, "model_id": "small", "license": "MODEL.LICENSE", "tasks": {
        "detection": {"file": "detection.onnx", "preprocessing": {"mean": 127.5, "std": 128.0}},
        "recognition": {"file": "faces.onnx"}}}"#;
    fs::write(stated.path().join("manifest.json"), manifest).unwrap();
    let find_in = |pack: &Path| {
        let mut engine = engine(KIND, &config(pack, with_embedding()))?;
        Some(find(&mut engine, &[200.0, 450.0]))
    };
    let found = find_in(stated.path());
    assert_eq!(found, find_in(plain.path()));
}

/// A wide frame gives the same faces as one that fills the detector's square and is black below,
/// also where a face touches the lower edge. The detector has to see all of that black: with 96 px
/// of it, points move by up to 0.9 px.
#[test]
fn faces_at_the_lower_edge_are_those_in_the_whole_square() {
    let Some(published) = published() else {
        return;
    };
    let Some(mut engine) = engine(KIND, &config(&published, Settings::default())) else {
        return;
    };
    let mut faces = 0;
    for y in [240.0, 280.0, 300.0, 320.0, 340.0] {
        for size in [30.0, 60.0, 100.0] {
            let face = |x| Face {
                x,
                y,
                size,
                half_roll: 0.05,
                jaw: 0.3,
                blink: 0.0,
            };
            let mut pixels = draw(640, 360, &[face(150.0), face(450.0)]);
            let wide = look_at_rgb(&mut engine, (640, 360), &pixels, 0);
            pixels.resize(640 * 640 * 3, 0);
            let square = look_at_rgb(&mut engine, (640, 640), &pixels, 40);
            assert_eq!(wide.len(), square.len(), "y={y} size={size}");
            faces += wide.len();
            for (wide, square) in wide.iter().zip(&square) {
                let points = wide.key_points.iter().zip(&square.key_points);
                for (a, b) in points {
                    let distance = a.distance(*b);
                    assert!(distance <= 0.01, "y={y} size={size}: {distance} px");
                }
            }
        }
    }
    assert!(faces >= 10, "{faces}");
}
