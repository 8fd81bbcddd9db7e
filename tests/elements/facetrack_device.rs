// SPDX-License-Identifier: MPL-2.0
//! Device on which `facetrack` runs, in real pipelines on a machine without an NVIDIA driver, for
//! properties and for each variable.

use crate::common;

use crate::common::bus::{Watch, refusal};
use crate::common::clip::{Clip, FRAMES};
use crate::common::engine::engine;
use crate::common::pack::{Installed, element};
use crate::common::python;
use crate::common::tool::{Finished, Tool};
use facetrack::device::nvidia_driver;
use facetrack::engine::{EngineConfig, EngineKind};
use gst::glib;
use gst::prelude::*;

const UNAVAILABLE: &str = "GPU requested but unavailable: no NVIDIA driver: ";
const CPU_ONLY: &str = "CPU-only mode (GPU disabled or not supported for this engine)";

/// Files that the engine reads, on a machine without an NVIDIA driver; `None`, with a message,
/// elsewhere.
fn without_driver() -> Option<Installed> {
    if nvidia_driver(None).is_ok() {
        eprintln!("SKIPPED: this machine has an NVIDIA driver");
        return None;
    }
    Installed::find()
}

/// The element with the pack and what `settings` say.
fn tracker(installed: &Installed, settings: &[(&str, &str)]) -> gst::Element {
    let element = element(&[("model", &*installed.pack.to_string_lossy())]);
    for (name, value) in settings {
        element.set_property_from_str(name, value);
    }
    element
}

/// Warnings, and messages that the engine is loaded; there is no error.
fn told(bus: &gst::Bus) -> (Vec<glib::Error>, Vec<gst::Structure>) {
    let (mut warnings, mut ready) = (Vec::new(), Vec::new());
    while let Some(message) = bus.pop() {
        match message.view() {
            gst::MessageView::Warning(warning) => warnings.push(warning.error()),
            gst::MessageView::Element(element) => {
                ready.extend(element.structure().map(|structure| structure.to_owned()));
            }
            gst::MessageView::Error(error) => panic!("{error:?}"),
            _ => (),
        }
    }
    (warnings, ready)
}

#[test]
fn row_4_the_stream_runs_by_falling_back_and_it_is_reported_once() {
    let Some(installed) = without_driver() else {
        return;
    };
    for settings in [
        &[("device", "cuda")][..],
        &[("device", "cuda"), ("gpu-id", "1")],
        &[("gpu-id", "0"), ("gpu-fallback", "true")],
    ] {
        let element = tracker(&installed, settings);
        let bus = Watch::of(&element);
        // Nothing is asked or loaded a second time on the way to PLAYING and back.
        for state in [
            gst::State::Ready,
            gst::State::Paused,
            gst::State::Playing,
            gst::State::Ready,
            gst::State::Paused,
        ] {
            element.set_state(state).expect("it goes there");
        }
        let (warnings, ready) = told(&bus);
        let [warning] = warnings.as_slice() else {
            panic!("{settings:?}: {warnings:?}");
        };
        assert!(warning.matches(gst::ResourceError::NotFound), "{warning}");
        let reason: String = element.property("device-reason");
        assert!(reason.starts_with(UNAVAILABLE), "{reason}");
        let remedy = warning.message().strip_prefix(&reason).expect(&reason);
        assert!(remedy.contains("driver"), "the remedy: {remedy}");
        assert_eq!(element.property::<String>("active-device"), "cpu");
        let provider: String = element.property("active-execution-provider");
        assert_eq!(provider, "built-in");
        let [ready] = ready.as_slice() else {
            panic!("{settings:?}: {ready:?}");
        };
        assert_eq!(ready.name(), "facetrack-ready");
        assert_eq!(ready.get("device"), Ok("cpu"));
        assert_eq!(ready.get("reason"), Ok(reason));
        let models: gst::Structure = ready.get("models").expect("hashes");
        assert_eq!(models.n_fields(), 3, "{models:?}");
        let stats: gst::Structure = element.property("stats");
        assert!(!stats.has_field("vram"), "{stats:?}");
        element.set_state(gst::State::Null).expect("NULL");
    }
}

#[test]
fn row_4_is_in_the_log_and_in_the_record() {
    let Some(installed) = without_driver() else {
        return;
    };
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .env("GST_DEBUG", "facetrack:4")
        .env("GST_DEBUG_NO_COLOR", "1")
        .args("device=cuda profile-interval=2 ! trackjsonsink")
        .run();
    assert!(success, "{text}");
    assert_eq!(text.matches("\"obj_1\"").count(), FRAMES, "{text}");
    for part in [
        "Auto-fallback to CPU enabled",
        "[InsightFace] Detection session using provider: built-in",
        "WARNING: from element",
        r#""device":"cpu""#,
        "GPU requested but unavailable: no NVIDIA driver",
        "[PROFILING] Frame 4: detection=",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
    let logged = text
        .lines()
        .find(|line| line.contains("WARN") && line.contains(UNAVAILABLE));
    assert!(logged.is_some(), "{text}");
    assert!(!text.contains("VRAM="), "there is no GPU:\n{text}");
}

#[test]
fn row_5_without_falling_back_it_does_not_start() {
    let Some(installed) = without_driver() else {
        return;
    };
    for settings in [
        &[("gpu-fallback", "false")][..],
        &[("gpu-fallback", "false"), ("device", "cuda")],
    ] {
        let error = refusal(&tracker(&installed, settings));
        assert!(error.matches(gst::ResourceError::NotFound), "{error}");
        let told = error.message();
        assert!(told.starts_with(UNAVAILABLE), "{told}");
        let remedy = ", or set gpu-fallback=true to run on the CPU";
        assert!(told.ends_with(remedy), "{told}");
    }
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .env("STEP5_GPU_FALLBACK_AUTO", "0")
        .args("! fakesink")
        .run();
    assert!(!success && text.contains(UNAVAILABLE), "{text}");
}

#[test]
fn row_6_the_cpu_needs_no_warning_if_it_is_requested_or_no_gpu_is() {
    let Some(installed) = without_driver() else {
        return;
    };
    let requested = "CPU mode requested for engine: insightface";
    let selected = "CPU mode selected for insightface: no NVIDIA driver: ";
    for (settings, reason) in [
        (&[("device", "cpu")][..], requested),
        (&[("device", "cpu"), ("gpu-fallback", "false")], requested),
        (&[], selected),
        (&[("device", "auto")], selected),
        (&[("gpu-min-free-vram", "0")], selected),
    ] {
        let element = tracker(&installed, settings);
        let bus = Watch::of(&element);
        element.set_state(gst::State::Ready).expect("READY");
        let (warnings, ready) = told(&bus);
        assert!(warnings.is_empty(), "{settings:?}: {warnings:?}");
        assert_eq!(ready[0].get("device"), Ok("cpu"));
        let told: String = element.property("device-reason");
        assert!(told.starts_with(reason), "{settings:?}: {told}");
        element.set_state(gst::State::Null).expect("NULL");
    }
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .env("GST_DEBUG", "facetrack:4")
        .env("GST_DEBUG_NO_COLOR", "1")
        .args("! fakesink")
        .run();
    assert!(success, "{text}");
    let is_logged = |line: &str| line.contains("INFO") && line.contains(selected);
    assert!(text.lines().any(is_logged), "{text}");
    assert!(!text.contains("WARN"), "{text}");
}

#[test]
fn row_7_names_the_variable_and_a_property_beats_it() {
    let Some(installed) = without_driver() else {
        return;
    };
    let clip = Clip::draw();
    for (variables, because) in [
        (
            &[("TRACKING_DISABLE_GPU", "yes")][..],
            "the environment sets TRACKING_DISABLE_GPU=yes",
        ),
        (
            &[("STEP5_ENABLE_GPU", "0"), ("STEP5_GPU_ENGINES", "all")],
            "the environment sets STEP5_ENABLE_GPU=0",
        ),
        (
            &[("STEP5_GPU_ENGINES", "insightface")],
            "the environment does not set STEP5_ENABLE_GPU",
        ),
        (
            &[("STEP5_ENABLE_GPU", "1")],
            "the environment does not set STEP5_GPU_ENGINES",
        ),
        (
            &[
                ("STEP5_ENABLE_GPU", "1"),
                ("STEP5_GPU_ENGINES", "mediapipe"),
            ],
            "the environment sets STEP5_GPU_ENGINES=mediapipe",
        ),
        (
            &[("STEP5_INSIGHTFACE_CTX_ID", "-1")],
            "the environment sets STEP5_INSIGHTFACE_CTX_ID=-1",
        ),
    ] {
        let launch = |properties: &str| {
            let tool = variables
                .iter()
                .fold(installed.launch(&clip), |tool, (name, value)| {
                    tool.env(name, value)
                });
            let tool = tool.env("GST_DEBUG", "facetrack:4");
            tool.args(properties).args("! trackjsonsink").run()
        };
        let Finished { success, text } = launch("");
        assert!(!success, "{variables:?}: {text}");
        for part in [
            &format!("InsightFace is GPU-only ({because}"),
            "Set device=cpu to run on the CPU, or device=auto gpu-fallback=true",
        ] {
            assert!(text.contains(part), "{part} not in\n{text}");
        }
        for (device, reason) in [
            ("device=auto", "CPU mode selected for insightface"),
            ("device=cpu", "CPU mode requested for engine: insightface"),
            ("device=cuda", UNAVAILABLE),
        ] {
            let Finished { success, text } = launch(device);
            assert!(success && text.contains(reason), "{device}: {text}");
        }
    }
}

#[test]
fn variables_that_let_it_use_a_gpu_do() {
    let Some(installed) = without_driver() else {
        return;
    };
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .env("STEP5_ENABLE_GPU", "1")
        .env("STEP5_GPU_ENGINES", "mediapipe, insightface")
        .env("TRACKING_DISABLE_GPU", "0")
        .env("STEP5_INSIGHTFACE_CTX_ID", "0")
        .args("! trackjsonsink")
        .run();
    assert!(success && text.contains(UNAVAILABLE), "{text}");
    assert_eq!(text.matches("\"obj_1\"").count(), FRAMES, "{text}");
}

#[test]
fn rows_1_and_2_every_other_engine_runs_on_the_processor() {
    common::init();
    for kind in EngineKind::ALL {
        if kind == EngineKind::InsightFace || engine(kind, &EngineConfig::default()).is_none() {
            continue;
        }
        let reserved = format!(
            "GPU mode is reserved for InsightFace only. Engine '{}' will run in CPU-only mode.",
            kind.name()
        );
        for (device, reason) in [
            (None, CPU_ONLY),
            (Some("auto"), CPU_ONLY),
            (Some("cpu"), CPU_ONLY),
            (Some("cuda"), &reserved),
        ] {
            let element = gst::ElementFactory::make("facetrack")
                .property("engine", kind.name())
                .property("gpu-fallback", false)
                .build()
                .expect("the element");
            if let Some(device) = device {
                element.set_property_from_str("device", device);
            }
            let bus = Watch::of(&element);
            element.set_state(gst::State::Ready).expect("READY");
            let (warnings, ready) = told(&bus);
            let is_warned = |of: &str| {
                let mut warnings = warnings.iter();
                warnings.any(|warning| warning.message().contains(of))
            };
            assert!(is_warned("gpu-fallback (for insightface)"), "{warnings:?}");
            assert_eq!(is_warned(&reserved), device == Some("cuda"), "{warnings:?}");
            assert_eq!(warnings.len(), 1 + usize::from(device == Some("cuda")));
            assert_eq!(ready[0].get("reason"), Ok(reason), "{}", kind.name());
            assert_eq!(element.property::<String>("device-reason"), reason);
            assert_eq!(element.property::<String>("active-device"), "cpu");
            element.set_state(gst::State::Null).expect("NULL");
        }
    }
}

#[test]
fn no_variable_brings_another_engine_to_a_gpu() {
    let Finished { success, text } = Tool::new("gst-launch-1.0")
        .env("GST_DEBUG", "facetrack:4")
        .env("GST_DEBUG_NO_COLOR", "1")
        .env("STEP5_ENABLE_GPU", "1")
        .env("STEP5_GPU_ENGINES", "all")
        .env("STEP5_GPU_FALLBACK_AUTO", "0")
        .args(
            "-q videotestsrc num-buffers=2 ! facetrack engine=scripted device=cuda ! trackjsonsink",
        )
        .run();
    assert!(success, "{text}");
    for part in [
        "GPU mode is reserved for InsightFace only. Engine 'scripted' will run in CPU-only mode.",
        r#""device":"cpu""#,
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
}

/// Variables of a process may change while it runs, which a test in Rust can't do safely.
const READ_ONCE: &str = r#"
import os
import gi
gi.require_version("Gst", "1.0")
from gi.repository import Gst
Gst.init(None)
pipeline = Gst.parse_launch(
    'videotestsrc num-buffers=3 ! facetrack name=track script="fail at=2" ! fakesink'
)
track = pipeline.get_by_name("track")
def engine():
    return track.get_property("capabilities").get_string("engine")
os.environ["STEP5_TRACKING_ENGINE"] = "scripted"
assert pipeline.set_state(Gst.State.READY) == Gst.StateChangeReturn.SUCCESS
os.environ["STEP5_TRACKING_ENGINE"] = "opencv-haar"
# The second time nothing is loaded any more, since the script failed.
for _ in range(2):
    pipeline.set_state(Gst.State.PLAYING)
    bus = pipeline.get_bus()
    message = bus.timed_pop_filtered(30 * Gst.SECOND, Gst.MessageType.ERROR | Gst.MessageType.EOS)
    assert message.src == track, message.src
    assert "fail at=2" in message.parse_error()[0].message
    pipeline.set_state(Gst.State.READY)
    # The source complains of the failure as well.
    while bus.pop():
        pass
    assert engine() == "scripted", engine()
pipeline.set_state(Gst.State.NULL)
assert engine() == "opencv-haar", engine()
"#;

#[test]
fn variables_are_read_once_on_the_way_to_ready() {
    // Debian's own interpreter, which has the bindings.
    let python = python::script(READ_ONCE);
    let Finished { success, text } = python.run();
    assert!(success, "{text}");
}
