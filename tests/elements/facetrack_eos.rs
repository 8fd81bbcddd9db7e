// SPDX-License-Identifier: MPL-2.0
//! `facetrack engine=eos` in a pipeline: what it lacks, and what reaches a reader.

use crate::common;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::clip::{Clip, FRAMES};
use crate::common::engine::installed_paths;
use crate::common::tool::{Finished, Tool};
use facetrack::observation::{LandmarkScheme, MorphableFit, Observation};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// The model's own files.
const FILES: [&str; 4] = [
    "sfm_shape_3448.bin",
    "expression_blendshapes_3448.bin",
    "ibug_to_sfm.txt",
    "sfm_model_contours.json",
];

/// Models that find and measure faces for it.
const NETWORKS: [(&str, &str); 2] = [
    ("face_detection_yunet_2023mar.onnx", "yunet"),
    ("face_landmarker.task", "mediapipe"),
];

/// Vertices of the Surrey Face Model.
const VERTICES: usize = 3448;

/// Files that the engine reads on this machine; `None`, with a message, if one is missing.
struct Installed {
    files: Vec<PathBuf>,
    networks: Vec<PathBuf>,
    runtime: PathBuf,
}

impl Installed {
    /// A folder with only the model's files.
    fn folder_of_model(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for file in &self.files {
            link(file, folder.path());
        }
        folder
    }

    fn find() -> Option<Self> {
        let found = Self::look();
        if let Err(missing) = &found {
            eprintln!("SKIPPED: {missing}");
        }
        found.ok()
    }

    fn look() -> Result<Self, String> {
        let find = |(file, family): (&str, &str)| {
            installed_paths()
                .model(file, family, None)
                .map_err(|error| error.to_string())
        };
        let runtime = installed_paths().runtime_candidates();
        Ok(Self {
            files: FILES
                .into_iter()
                .map(|file| find((file, "eos")))
                .collect::<Result<_, _>>()?,
            networks: NETWORKS.into_iter().map(find).collect::<Result<_, _>>()?,
            runtime: runtime
                .into_iter()
                .find(|path| path.is_file())
                .ok_or("no ONNX Runtime")?,
        })
    }

    /// `gst-launch-1.0` on `clip`, where `files` alone lie in the folder of the models.
    fn launch<'a>(&self, files: impl IntoIterator<Item = &'a PathBuf>, clip: &Clip) -> Tool {
        let tool = Tool::new("gst-launch-1.0");
        let folder = tool.models_dir();
        files.into_iter().for_each(|file| link(file, &folder));
        tool.env("FACETRACK_ONNXRUNTIME", &self.runtime.to_string_lossy())
            .args(&format!("-q {} ! facetrack", clip.source()))
    }
}

fn link(file: &Path, folder: &Path) {
    let name = file.file_name().expect("a file has a name");
    symlink(file, folder.join(name)).expect("a link to the file");
}

#[test]
fn each_missing_file_is_named_with_its_property_and_the_remedy() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let clip = Clip::draw();
    let properties = FILES.map(|file| (file, "model"));
    let properties = properties.into_iter().chain([
        (NETWORKS[0].0, "detector-model"),
        (NETWORKS[1].0, "landmark-model"),
    ]);
    for (missing, property) in properties {
        let is_eos = installed.files.iter().any(|path| path.ends_with(missing));
        let fetch = if is_eos {
            "facetrack fetch eos"
        } else {
            "facetrack fetch"
        };
        let all = installed.files.iter().chain(&installed.networks);
        let others = all.filter(|path| !path.ends_with(missing));
        let Finished { success, text } = installed
            .launch(others, &clip)
            .args("engine=eos ! fakesink")
            .run();
        assert!(!success, "{missing}: {text}");
        for part in [
            format!("{missing} not found"),
            format!("set `{property}`"),
            format!("Run `{fetch}` to fetch it"),
        ] {
            assert!(text.contains(&part), "{part:?} not in\n{text}");
        }
    }
}

#[test]
fn a_folder_that_holds_other_models_alone_is_named() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let models_dir = format!("models-dir={}", folder.path().display());
    let Finished { success, text } = installed
        .launch(&installed.networks, &Clip::draw())
        .args("engine=eos")
        .arg(&models_dir)
        .args("! fakesink")
        .run();
    assert!(!success, "{text}");
    let place = folder.path().to_string_lossy().into_owned();
    for part in ["sfm_shape_3448.bin not found", &place, "facetrack fetch"] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }
}

/// One file is set, and the others are in its folder, which is not searched otherwise.
#[test]
fn the_other_files_are_found_beside_the_model() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let folder = installed.folder_of_model();
    let model = format!("model={}", folder.path().join(FILES[0]).display());
    let Finished { success, text } = installed
        .launch(&installed.networks, &Clip::draw())
        .args("engine=eos")
        .arg(&model)
        .args("! trackjsonsink verbose=true")
        .run();
    assert!(success, "{text}");
    assert_eq!(text.matches("\"shape_coeffs\"").count(), FRAMES, "{text}");
}

#[test]
fn the_environment_is_as_good_as_properties() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let folder = installed.folder_of_model();
    let Finished { success, text } = installed
        .launch(&installed.networks, &Clip::draw())
        .env("STEP5_TRACKING_ENGINE", "eos")
        .env("STEP5_EOS_MODELS_DIR", &folder.path().to_string_lossy())
        .env("STEP5_EOS_FIT_EVERY_N", "2")
        .args("! trackjsonsink verbose=true")
        .run();
    assert!(success, "{text}");
    assert!(text.contains(r#""tracking_engine":"eos""#), "{text}");
    assert_eq!(text.matches("\"eos\":{").count(), FRAMES, "{text}");
    let held = text.matches(r#""origin":"held""#).count();
    assert_eq!(held, FRAMES / 2, "{text}");
}

/// The reports on the clip's frames, at the end of a pipeline that scales them.
fn reports(properties: &str) -> Vec<FrameReport> {
    common::init();
    let clip = Clip::draw();
    let pipeline = gst::parse::launch(&format!(
        "{} ! facetrack engine=eos {properties} ! videoscale ! video/x-raw,width=160,height=120 \
         ! appsink name=sink sync=false",
        clip.source()
    ))
    .expect("a pipeline");
    let sink = pipeline
        .clone()
        .downcast::<gst::Bin>()
        .ok()
        .and_then(|bin| bin.by_name("sink"))
        .and_then(|sink| sink.downcast::<gst_app::AppSink>().ok())
        .expect("the sink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let reports = std::iter::from_fn(|| sink.pull_sample().ok())
        .map(|sample| {
            let buffer = sample.buffer().expect("a frame");
            FaceTrackMeta::read(buffer).expect("a report")
        })
        .collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    reports
}

fn fit_of(face: &Observation) -> &MorphableFit {
    let fit = face.morphable.as_ref().expect("it was tried");
    fit.as_ref().expect("it is fitted")
}

#[test]
fn a_reader_downstream_gets_the_fit_and_the_mesh_on_demand() {
    if Installed::find().is_none() {
        return;
    }
    for (properties, vertices) in [
        ("", None),
        ("mesh=true", Some(VERTICES)),
        ("mesh=true identity=per-frame", Some(VERTICES)),
    ] {
        let reports = reports(properties);
        assert_eq!(reports.len(), FRAMES, "{properties}");
        for report in &reports {
            let [tracked] = report.faces.as_slice() else {
                panic!("{properties}: {} faces", report.faces.len());
            };
            let face = &tracked.face;
            let landmarks = face.landmarks.as_ref().expect("landmarks");
            assert_eq!(landmarks.scheme, LandmarkScheme::Ibug68);
            assert_eq!(landmarks.points.len(), 68);
            assert!(face.pose.is_some());
            let fit = fit_of(face);
            assert_eq!((fit.shape.len(), fit.expression.len()), (63, 6));
            let mesh = fit.mesh.as_deref();
            assert_eq!(mesh.map(<[_]>::len), vertices, "{properties}");
            // The head with its neck, in pixels of the frame that was analysed, is about where its
            // face is.
            let near = |x: f32, y: f32| {
                let (dx, dy) = (face.bbox.width, face.bbox.height);
                (face.bbox.x - dx..=face.bbox.right() + dx).contains(&x)
                    && (face.bbox.y - dy..=face.bbox.bottom() + dy).contains(&y)
            };
            let places = mesh.unwrap_or_default().iter().map(|p| (p.x, p.y));
            let places = places.chain(fit.contour.iter().map(|p| (p.x, p.y)));
            for (x, y) in places.chain([(fit.origin.x, fit.origin.y)]) {
                assert!(near(x, y), "{properties}: {x}, {y} with {:?}", face.bbox);
            }
        }
    }
}
