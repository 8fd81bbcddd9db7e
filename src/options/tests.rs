// SPDX-License-Identifier: MPL-2.0

use std::path::PathBuf;

use gst::prelude::*;

use super::*;
use ::facetrack::engine::kebab;
use ::facetrack::tracker::{TrackerConfig, TrackerKind};

/// Options that are set by name.
pub(crate) fn options<S: Defaults>(set: &[(&str, &str)]) -> Options<S> {
    gst::init().expect("GStreamer");
    let mut options = Options::<S>::default();
    for (name, text) in set {
        let is_meant = |row: &Row<S>| row.name == *name;
        let index = S::ROWS.iter().position(is_meant);
        let index = index.expect("an option");
        let spec = S::ROWS[index].param_spec();
        let value = glib::Value::deserialize_with_pspec(text, &spec).expect("a value");
        options.set_property(index + 1, &value);
    }
    options
}

pub(crate) fn environment(variables: &[(&'static str, &str)]) -> Environment {
    let variables = variables.iter();
    Environment(
        variables
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect(),
    )
}

fn resolve(
    set: &[(&str, &str)],
    engine: &str,
    env: &[(&'static str, &str)],
) -> (FaceTrackSettings, Vec<EnvWarning>) {
    let engine = engine.parse().expect("an engine");
    options(set).resolve(Some(engine), &environment(env))
}

fn engine_from(env: &[(&'static str, &str)]) -> (String, usize) {
    let (settings, warnings) = resolve(&[], "mediapipe", env);
    (settings.engine, warnings.len())
}

#[test]
fn the_tables_are_sound() {
    gst::init().expect("GStreamer");
    assert_sound::<FaceTrackSettings>();
    assert_sound::<JsonSinkSettings>();
    assert_sound::<LoadSettings>();
    assert_sound::<BlurSettings>();
    assert_sound::<OverlaySettings>();
    assert_sound::<UdpSettings>();
}

fn assert_sound<S: Defaults>() {
    for (index, row) in S::ROWS.iter().enumerate() {
        let name = row.name;
        let is_double = S::ROWS[..index].iter().any(|other| other.name == name);
        assert!(!is_double && name == kebab(name), "{name}");
        assert!(row.blurb.chars().count() <= 120, "{name}");
        let default = row.value(&mut S::default());
        let mut settings = S::default();
        row.set_value(&mut settings, &default);
        assert_eq!(
            display(&row.value(&mut settings)),
            display(&default),
            "{name}"
        );
    }
}

#[test]
fn the_defaults_of_engines_are_shown() {
    gst::init().expect("GStreamer");
    let blurb = |name: &str| {
        let row = FaceTrackSettings::ROWS.iter().find(|row| row.name == name);
        let spec = row.expect(name).param_spec();
        spec.blurb().expect(name).to_string()
    };
    assert_eq!(
        blurb("nms-threshold"),
        "Maximum overlap (IoU) of two detected faces (default of insightface: 0.4) (engines: opencv-yunet, opencv-yunet-pyfeat, eos, insightface)"
    );
    let width = blurb("detect-max-width");
    assert!(
        width.contains(" [px] (default of opencv-yunet: 640)"),
        "{width}"
    );
}

#[test]
fn an_explicit_value_beats_the_environment_which_beats_the_default() {
    let env = [("STEP5_BLENDSHAPES_THROTTLE_N", "3")];
    let interval = |options: &Options<FaceTrackSettings>, env: &[(&'static str, &str)]| {
        let (settings, _) = options.resolve(None, &environment(env));
        settings.tuning.blendshape_interval
    };
    let unset = options(&[]);
    assert_eq!(interval(&unset, &[]), 1);
    assert_eq!(interval(&unset, &env), 3);
    let set = options(&[("blendshape-interval", "1")]);
    assert_eq!(interval(&set, &env), 1, "explicit, though the default");
}

#[test]
fn a_null_or_empty_string_unsets_an_option() {
    for unset in [None, Some("")] {
        let mut options = options::<FaceTrackSettings>(&[("model", "/a"), ("mesh", "true")]);
        assert_eq!(options.settings.config.model, Some(PathBuf::from("/a")));
        let explicit = options.explicit();
        assert_eq!((explicit.len(), &explicit["mesh"]), (1, &Value::Bool(true)));
        let index = FaceTrackSettings::ROWS
            .iter()
            .position(|row| row.name == "model");
        options.set_property(index.expect("an option") + 1, &unset.to_value());
        assert_eq!(options.settings.config.model, None);
        assert_eq!(options.explicit().len(), 1);
    }
}

/// Sets every text of an element to an empty one.
fn assert_empty_is_unset<S: Defaults>() {
    gst::init().expect("GStreamer");
    let texts = S::ROWS.iter().enumerate();
    let texts = texts.filter(|(_, row)| row.param_spec().value_type() == glib::Type::STRING);
    let mut options = Options::<S>::default();
    for (index, row) in texts {
        options.set_property(index + 1, &"".to_value());
        let default = row.value(&mut S::default());
        assert_eq!(
            display(&options.property(index + 1)),
            display(&default),
            "{}",
            row.name
        );
    }
    assert!(options.explicit().is_empty());
}

#[test]
fn an_empty_text_is_unset_in_every_element() {
    assert_empty_is_unset::<FaceTrackSettings>();
    assert_empty_is_unset::<JsonSinkSettings>();
    assert_empty_is_unset::<LoadSettings>();
    assert_empty_is_unset::<BlurSettings>();
    assert_empty_is_unset::<OverlaySettings>();
    assert_empty_is_unset::<UdpSettings>();
}

#[test]
fn effective_options_are_those_that_change_results() {
    let options = options::<FaceTrackSettings>(&[("engine", "opencv_yunet"), ("threads", "2")]);
    let env = environment(&[("STEP5_OPENCV_MAX_FACES", "3")]);
    let effective = options.effective(EngineKind::OpenCvYunet, &env);
    assert_eq!(effective["max-faces"], 3);
    assert_eq!(effective["detect-max-width"], 640);
    for absent in ["engine", "threads", "mesh", "model"] {
        assert!(!effective.contains_key(absent), "{absent}");
    }
}

#[test]
fn what_is_not_understood_warns_and_does_not_count() {
    for text in ["x", "0", "-4", "1001", "2.5"] {
        let env = [("STEP5_BLENDSHAPES_THROTTLE_N", text)];
        let (settings, warnings) = resolve(&[], "mediapipe", &env);
        assert_eq!(settings.tuning.blendshape_interval, 1);
        let message = warnings[0].to_string();
        for part in [
            "STEP5_BLENDSHAPES_THROTTLE_N",
            "an integer from 1 to 1000",
            "`blendshape-interval` is 1",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    assert_eq!(engine_from(&[("STEP5_BLENDSHAPES_THROTTLE_N", " ")]).1, 0);
}

#[test]
fn words_are_read_from_text() {
    gst::init().expect("GStreamer");
    let parse = |name: &str, text: &str| {
        let row = OverlaySettings::ROWS.iter().find(|row| row.name == name);
        let value = row.expect(name).parse(text)?;
        Ok::<_, String>(display(&value))
    };
    let layers = parse("layers", " Key_Points+boxes");
    assert_eq!(layers, Ok("boxes+key-points".to_owned()));
    let error = parse("layers", "eyebrows").expect_err("no such layer");
    assert!(error.starts_with("not any of boxes"), "{error}");
}

#[test]
fn engines_from_the_environment() {
    let name = "STEP5_TRACKING_ENGINE";
    assert_eq!(engine_from(&[(name, "scripted")]), ("scripted".into(), 0));
    assert_eq!(
        engine_from(&[(name, "mediapipe_landmarker")]),
        ("mediapipe_landmarker".into(), 0)
    );
    assert_eq!(engine_from(&[(name, "dlib")]), ("mediapipe".into(), 1));
}

#[test]
fn the_older_pipeline_keeps_its_tracker() {
    let mut older = TrackerConfig::default();
    older.kind = TrackerKind::Centroid;
    older.max_distance = Some(80.0);
    let env = [("STEP5_TRACKING_ENGINE", "mediapipe")];
    let tracker = |set, env| resolve(set, "mediapipe", env).0.tracker;
    assert_eq!(tracker(&[], &env[..]), older);
    assert_eq!(tracker(&[], &[]), TrackerConfig::default());
    let set = [("tracker", "iou"), ("max-distance", "0")];
    assert_eq!(tracker(&set, &env), TrackerConfig::default());
}

#[test]
fn a_variable_of_one_engine_is_nothing_to_another() {
    let env = [("STEP5_MEDIAPIPE_MAX_FACES", "2")];
    for (engine, want) in [("mediapipe", Some(2)), ("scripted", None)] {
        let (settings, _) = resolve(&[], engine, &env);
        assert_eq!(settings.config.max_faces, want, "{engine}");
    }
}

#[test]
fn profiling_switches() {
    for (env, want, warned) in [
        (&[][..], 0, 0),
        (&[("STEP5_ENABLE_PROFILING", "1")], 20, 0),
        (&[("STEP5_ENABLE_PROFILING", "0")], 0, 0),
        (&[("STEP5_GPU_PROFILING", "YES")], 20, 0),
        (
            &[
                ("STEP5_ENABLE_PROFILING", "0"),
                ("STEP5_GPU_PROFILING", "on"),
            ],
            20,
            0,
        ),
        (&[("STEP5_ENABLE_PROFILING", "maybe")], 0, 1),
    ] {
        let (settings, warnings) = resolve(&[], "mediapipe", env);
        assert_eq!(settings.profile_interval, want, "{env:?}");
        assert_eq!(warnings.len(), warned, "{env:?}");
    }
}
