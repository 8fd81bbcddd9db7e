// SPDX-License-Identifier: MPL-2.0
//! `facetrack` in processes of its own: environment, leaks, launch lines, log.

use crate::common::tool::Tool;

const SCRIPTED: &str = "-m videotestsrc num-buffers=3 ! facetrack engine=scripted ! fakesink";

#[test]
fn the_environment_names_the_engine() {
    let run = Tool::new("gst-launch-1.0")
        .env("STEP5_TRACKING_ENGINE", "Scripted")
        .args("-m videotestsrc num-buffers=1 ! facetrack ! fakesink")
        .run();
    assert!(run.success, "{}", run.text);
    assert!(run.text.contains("engine=(string)scripted"), "{}", run.text);
}

#[test]
fn a_variable_that_is_not_understood_is_a_warning() {
    let run = Tool::new("gst-launch-1.0")
        .env("STEP5_BLENDSHAPES_THROTTLE_N", "often")
        .args(SCRIPTED)
        .run();
    assert!(run.success, "{}", run.text);
    assert!(
        run.text
            .contains("STEP5_BLENDSHAPES_THROTTLE_N=\"often\" ignored"),
        "{}",
        run.text
    );
}

/// Every element is in one of the pipelines.
#[test]
fn nothing_leaks() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("clip.json").display().to_string();
    let source = "videotestsrc num-buffers=50 ! video/x-raw,width=64,height=48,framerate=25/1";
    assert_leaks_nothing(
        traced()
            .args(source)
            .args("! facetrack engine=scripted post-messages=every-frame")
            .arg("script=face from=5 to=20; landmarks")
            .args("! facetrackoverlay ! tee name=t ! queue ! trackudpsink sync=false")
            .args(&format!("t. ! queue ! trackjsonsink location={record}")),
    );
    assert_leaks_nothing(traced().args(source).args(&format!(
        "! trackjsonload location={record} ! facetrackoverlay ! fakesink"
    )));
}

/// `gst-launch-1.0` that lists what is left of each type at its end.
fn traced() -> Tool {
    let tool = Tool::new("gst-launch-1.0").env("GST_TRACERS", "leaks");
    tool.env("GST_DEBUG", "GST_TRACER:7")
}

fn assert_leaks_nothing(tool: Tool) {
    let run = tool.run();
    assert!(run.success, "{}", run.text);
    assert!(
        run.text.contains("object-alive.class"),
        "the tracer speaks: {}",
        run.text
    );
    let leak = "object-alive, type-name=(string)Gst";
    assert!(!run.text.contains(leak), "{}", run.text);
}

#[test]
fn the_profile_is_logged() {
    let run = Tool::new("gst-launch-1.0")
        .env("STEP5_ENABLE_PROFILING", "1")
        .env("GST_DEBUG", "facetrack:4")
        .env("GST_DEBUG_NO_COLOR", "1")
        .args("videotestsrc num-buffers=45 ! facetrack engine=scripted ! fakesink")
        .run();
    for frames in [20, 40] {
        let line = format!("[PROFILING] Frame {frames}: detection=");
        assert!(run.text.contains(&line), "{line} in {}", run.text);
    }
    assert!(
        run.text.contains("CPU-only mode (GPU disabled"),
        "{}",
        run.text
    );
}

#[test]
fn a_variable_without_an_effect_is_logged_with_the_reason() {
    for (engine, other, variable) in [
        ("mediapipe", "openseeface", "STEP5_MEDIAPIPE_MAX_WIDTH"),
        ("openseeface", "mediapipe", "STEP5_OPENSEEFACE_MAX_WIDTH"),
    ] {
        // Variables are read before the models, which may be missing.
        let log = |engine: &str| {
            let pipeline =
                format!("videotestsrc num-buffers=1 ! facetrack engine={engine} ! fakesink");
            let run = Tool::new("gst-launch-1.0")
                .env(variable, "640")
                .env("GST_DEBUG", "facetrack:2")
                .args(&pipeline)
                .run();
            run.text
        };
        let line =
            format!("{variable}=640 has no effect with engine={engine}: the networks' inputs");
        assert!(log(engine).contains(&line), "{line}");
        assert!(!log(other).contains(variable));
    }
}

/// The documented launch lines that need no file.
#[test]
fn launch_lines_run() {
    let documented = include_str!("../../src/facetrack/imp.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("* gst-launch-1.0 "))
        .filter(|line| !line.contains("filesrc"));
    let mut count = 0;
    for line in documented {
        let run = Tool::new("sh")
            .arg("-c")
            .arg(&format!("gst-launch-1.0 {line}"))
            .run();
        assert!(run.success, "{line}\n{}", run.text);
        assert!(run.text.contains("face-entered"), "{line}\n{}", run.text);
        assert!(run.text.contains("face-left"), "{line}\n{}", run.text);
        count += 1;
    }
    assert!(count > 0, "there are launch lines");
}
