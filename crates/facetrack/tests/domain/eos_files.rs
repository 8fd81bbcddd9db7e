// SPDX-License-Identifier: MPL-2.0
//! The published files of eos, where they are: what a fit takes from them, and how they are found.

use crate::common::engine::installed_paths;

use std::fs;
use std::path::{Path, PathBuf};

use facetrack::model::ModelError;
use facetrack::morphable::{self, FaceModel};
use facetrack_assets::locate::NotFound;

const SHAPE: &str = "sfm_shape_3448.bin";

/// The published files, the shape first.
const FILES: [&str; 4] = [
    SHAPE,
    "expression_blendshapes_3448.bin",
    "ibug_to_sfm.txt",
    "sfm_model_contours.json",
];

/// Paths of the files.
fn files() -> Option<[PathBuf; 4]> {
    let found: Result<Vec<PathBuf>, NotFound> = FILES
        .iter()
        .map(|name| installed_paths().model(name, "eos", None))
        .collect();
    let found = found.inspect_err(|error| eprintln!("SKIPPED: {error}"));
    Some(found.ok()?.try_into().expect("as many as were asked for"))
}

fn copy(from: &Path, folder: &Path, name: &str) {
    fs::copy(from, folder.join(name)).expect("a copy");
}

#[track_caller]
fn assert_is_published(model: &FaceModel) {
    assert_eq!(model.shape().mean.len(), 3448);
    assert_eq!(model.shape().components, 63);
    assert_eq!(model.expressions().len(), 6);
}

#[test]
fn the_published_model_is_what_its_makers_say() {
    if files().is_none() {
        return;
    }
    let (model, files) = morphable::load(None, &installed_paths()).unwrap();
    assert_is_published(&model);
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, FILES);
    assert_eq!(model.shape().triangles.len(), 6736);
    assert_eq!(model.shape().texture_coordinates.len(), 3448);
    let names = model.expressions().iter().map(|e| e.name.as_str());
    assert!(names.eq([
        "anger",
        "disgust",
        "fear",
        "happiness",
        "sadness",
        "surprise"
    ]));
    let mapping = model.mapping();
    assert_eq!(mapping.vertices.len(), 50);
    assert_eq!(mapping.vertices[0], (8, 33), "the chin");
    assert!(mapping.right_contour.iter().copied().eq(0..8));
    assert!(mapping.left_contour.iter().copied().eq(9..17));
    let contours = model.contours();
    assert_eq!((contours.right.len(), contours.left.len()), (17, 17));
}

#[test]
fn the_face_looks_along_z_and_its_triangles_outward() {
    if files().is_none() {
        return;
    }
    let (model, _) = morphable::load(None, &installed_paths()).unwrap();
    let mean = &model.shape().mean;
    let [right_eye, left_eye, tip, chin] = [36, 45, 30, 8].map(|landmark| {
        let mut pairs = model.mapping().vertices.iter();
        mean[pairs.find(|pair| pair.0 == landmark).unwrap().1]
    });
    assert!(right_eye[0] < left_eye[0] - 50.0, "mm, eye to eye");
    assert!(chin[1] < tip[1] && tip[1] < right_eye[1]);
    assert!(tip[2] > right_eye[2] && tip[2] > chin[2]);
    let front = model.shape().triangles.iter().filter(|triangle| {
        let [a, b, c] = triangle.map(|corner| mean[corner as usize]);
        (b[0] - a[0]) * (c[1] - a[1]) > (b[1] - a[1]) * (c[0] - a[0])
    });
    let front = front.count();
    assert!(front > 6000, "{front} of 6736 face the viewer");
}

#[test]
fn a_path_names_the_file_or_its_folder_and_the_rest_is_looked_for() {
    let Some(files) = files() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = folder.join("own.bin");
    copy(&files[0], folder, "own.bin");
    let (model, read) = morphable::load(Some(&own), &installed_paths()).unwrap();
    assert_is_published(&model);
    assert_eq!(read[0].name, "own.bin");

    let error = morphable::load(Some(folder), &installed_paths())
        .unwrap_err()
        .to_string();
    assert!(error.contains(SHAPE), "{error}");
    copy(&files[0], folder, SHAPE);
    assert_is_published(&morphable::load(Some(folder), &installed_paths()).unwrap().0);

    // Files next to the shape come first.
    for name in &FILES[1..] {
        let damaged = folder.join(name);
        fs::write(&damaged, "other").unwrap();
        for model in [folder, &own] {
            let error = morphable::load(Some(model), &installed_paths())
                .unwrap_err()
                .to_string();
            assert!(error.contains(&damaged.display().to_string()), "{error}");
        }
        fs::remove_file(damaged).unwrap();
    }
}

#[test]
fn what_is_missing_or_no_model_is_named() {
    let nowhere = Path::new("/nowhere/shape.bin");
    let error = morphable::load(Some(nowhere), &installed_paths()).unwrap_err();
    assert!(matches!(error, ModelError::Missing { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere/shape.bin"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.bin");
    fs::write(&other, b"\x01\0\0\0 no model").unwrap();
    let error = morphable::load(Some(&other), &installed_paths()).unwrap_err();
    assert!(matches!(error, ModelError::Format { .. }), "{error}");
    for part in ["other.bin", "eos model", "the mean of the shape"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}
