// SPDX-License-Identifier: MPL-2.0

use std::path::PathBuf;

use super::facetrack::FACETRACK;
use super::facetrackoverlay::FACETRACKOVERLAY;
use super::trackjsonload::TRACKJSONLOAD;
use super::trackjsonsink::TRACKJSONSINK;
use super::trackudpsink::TRACKUDPSINK;
use super::*;

fn resolve(settings: &Settings, engine: &str, env: &[(&str, &str)]) -> (Resolved, Vec<EnvWarning>) {
    settings.resolve(Some(engine), &|name| {
        env.iter()
            .find(|(variable, _)| *variable == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

fn engine_from(env: &[(&str, &str)]) -> (String, usize) {
    let (resolved, warnings) = resolve(&Settings::new(FACETRACK), "mediapipe", env);
    (resolved.get("engine"), warnings.len())
}

#[test]
fn the_tables_are_sound() {
    for table in [
        FACETRACK,
        FACETRACKOVERLAY,
        TRACKJSONLOAD,
        TRACKJSONSINK,
        TRACKUDPSINK,
    ] {
        assert_sound(table);
    }
}

fn assert_sound(table: &[OptionSpec]) {
    for (i, option) in table.iter().enumerate() {
        let name = option.name;
        assert!(
            table[..i].iter().all(|other| other.name != name),
            "{name} twice"
        );
        assert_eq!(name, kebab(name));
        assert!(
            !option.blurb.is_empty() && !option.blurb.ends_with('.'),
            "{name}"
        );
        let Some(default) = option.default() else {
            continue;
        };
        assert_eq!(option.parse(&default.to_string()), Ok(default), "{name}");
    }
}

#[test]
fn an_explicit_value_beats_the_environment_which_beats_the_default() {
    let env = [("STEP5_BLENDSHAPES_THROTTLE_N", "3")];
    let mut settings = Settings::new(FACETRACK);
    let interval = |settings: &Settings, env: &[(&str, &str)]| {
        resolve(settings, "mediapipe", env)
            .0
            .get::<u32>("blendshape-interval")
    };
    assert_eq!(interval(&settings, &[]), 1);
    assert_eq!(interval(&settings, &env), 3);
    settings.set("blendshape-interval", Some(Value::Int(1)));
    assert_eq!(interval(&settings, &env), 1, "explicit, though the default");
    settings.set("blendshape-interval", None);
    assert_eq!(interval(&settings, &env), 3);
}

#[test]
fn what_is_not_understood_warns_and_does_not_count() {
    for text in ["x", "0", "-4", "1001", "2.5"] {
        let env = [("STEP5_BLENDSHAPES_THROTTLE_N", text)];
        let (resolved, warnings) = resolve(&Settings::new(FACETRACK), "mediapipe", &env);
        assert_eq!(resolved.get::<u32>("blendshape-interval"), 1);
        let message = warnings[0].to_string();
        assert!(
            message.contains("STEP5_BLENDSHAPES_THROTTLE_N"),
            "{message}"
        );
        assert!(message.contains("an integer from 1 to 1000"), "{message}");
        assert!(message.contains("`blendshape-interval` is 1"), "{message}");
    }
    assert_eq!(engine_from(&[("STEP5_BLENDSHAPES_THROTTLE_N", " ")]).1, 0);
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
fn a_variable_of_one_engine_is_nothing_to_another() {
    let env = [("STEP5_MEDIAPIPE_MAX_FACES", "2")];
    let settings = Settings::new(FACETRACK);
    for (engine, want) in [("mediapipe", 2), ("scripted", 0)] {
        let (resolved, _) = resolve(&settings, engine, &env);
        assert_eq!(resolved.get::<u32>("max-faces"), want, "{engine}");
    }
}

#[test]
fn profiling_switches() {
    let settings = Settings::new(FACETRACK);
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
        let (resolved, warnings) = resolve(&settings, "mediapipe", env);
        assert_eq!(resolved.get::<u32>("profile-interval"), want, "{env:?}");
        assert_eq!(warnings.len(), warned, "{env:?}");
    }
}

#[test]
fn unset_texts_are_none() {
    let mut settings = Settings::new(FACETRACK);
    assert_eq!(settings.get("model", None), None);
    settings.set("model", Some(Value::Text("/a".into())));
    let (resolved, _) = resolve(&settings, "mediapipe", &[]);
    assert_eq!(resolved.get::<Option<PathBuf>>("model"), Some("/a".into()));
    assert_eq!(resolved.get::<Option<PathBuf>>("models-dir"), None);
}

#[test]
fn markdown_has_a_row_for_each_option() {
    let text = markdown::table(FACETRACK);
    assert_eq!(text.lines().count(), FACETRACK.len() + 2);
    for line in text.lines() {
        assert_eq!(line.matches('|').count(), 7, "{line}");
    }
}
