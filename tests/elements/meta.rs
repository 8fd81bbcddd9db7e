// SPDX-License-Identifier: MPL-2.0
//! Metadata on its way through other elements and into other languages.

use std::time::Duration;

use crate::common;

use crate::common::faces::{face, full_face};
use crate::common::python;
use crate::common::reports::{report, with_report};
use facetrack::report::FrameReport;
use gst_check::Harness;
use gst_video::VideoRegionOfInterestMeta;
use gstfacetrack::meta::FaceTrackMeta;

const CAPS: &str = "video/x-raw,format=RGB,width=1280,height=720,framerate=25/1";

fn sent() -> FrameReport {
    report(vec![full_face(4, 300.875), face(7, -20.5)])
}

/// A frame with a report, after `elements`.
fn after(elements: &str) -> gst::Buffer {
    common::init();
    let mut harness = Harness::new_parse(elements);
    harness.set_src_caps_str(CAPS);
    let mut buffer = gst::Buffer::with_size(1280 * 720 * 3).expect("room");
    buffer.make_mut().set_pts(gst::ClockTime::ZERO);
    harness
        .push(with_report(buffer, &sent()))
        .expect("the elements take it");
    // Some wait for the next frame, or for the end.
    harness.push_event(gst::event::Eos::new());
    harness.pull().expect("a frame comes out")
}

/// Boxes and ids of the regions of interest.
fn regions(buffer: &gst::BufferRef) -> Vec<(i32, (u32, u32, u32, u32))> {
    buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .map(|region| (region.id(), region.rect()))
        .collect()
}

#[test]
fn the_record_survives_what_copies_metadata() {
    let untouched = FaceTrackMeta::read(&after("identity")).expect("a report");
    assert_eq!(untouched.faces[0].face.bbox, sent().faces[0].face.bbox);
    for elements in [
        "queue",
        "tee ! queue",
        "videorate ! capsfilter caps=video/x-raw,framerate=25/1",
        "videoconvert ! capsfilter caps=video/x-raw,format=NV12",
        "videoconvert ! capsfilter caps=video/x-raw,format=I420 ! videoconvert ! capsfilter caps=video/x-raw,format=BGRA",
        "videoscale ! capsfilter caps=video/x-raw,width=320,height=180",
        "videobalance saturation=0.5",
        // A copy, and the first then changed in place.
        "tee name=t t. ! queue ! fakesink async=false sync=false t. ! videobalance saturation=0.5",
    ] {
        let buffer = after(elements);
        assert_eq!(
            FaceTrackMeta::read(&buffer).as_ref(),
            Ok(&untouched),
            "{elements}"
        );
        assert_eq!(regions(&buffer).len(), 2, "{elements}");
    }
}

#[test]
fn regions_follow_the_scale_and_the_record_keeps_its_own() {
    let buffer = after("videoscale ! capsfilter caps=video/x-raw,width=640,height=360");
    let ids: Vec<_> = regions(&buffer).iter().map(|(id, _)| *id).collect();
    // The number of a track or, with the feature, of a detection.
    let expected = match cfg!(feature = "analytics") {
        false => [4, 7],
        true if cfg!(feature = "analytics-keypoints") => [0, 10],
        true => [0, 3],
    };
    assert_eq!(ids, expected);
    assert_eq!(regions(&buffer)[0].1, (150, 60, 41, 49));
    let record = FaceTrackMeta::from_buffer(&buffer).expect("a report");
    assert_eq!((record.width, record.height), (1280, 720));
}

/// Python reads the metadata with only GStreamer's own bindings.
#[test]
fn python_reads_the_record() {
    if !python::has_bindings("Gst", "python3-gst-1.0") {
        return;
    }
    let output = python::script(include_str!("../read_meta.py"))
        .arg(
            "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=640,height=360 \
             ! facetrack engine=scripted script=\"face x=0.3 size=0.25; landmarks\"",
        )
        .run();
    assert!(output.success, "{}", output.text);
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.text);
    for line in lines {
        for part in [
            "version 2 640x360 tracked scripted face 1 ",
            " mediapipe-478 478 landmarks over ",
            // The box is the landmarks' extent.
            " from 0.000 52 blendshapes jawOpen ",
            " pose 1.0",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

#[test]
fn an_analysed_frame_states_how_long_that_took() {
    common::init();
    let elements = "facetrack engine=scripted inference-interval=3 script=\"face\"";
    let mut harness = Harness::new_parse(elements);
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
    for frame in 0..6 {
        let mut buffer = gst::Buffer::from_slice(vec![0; 64 * 48]);
        buffer
            .make_mut()
            .set_pts(gst::ClockTime::from_mseconds(40 * frame));
        let cost = FaceTrackMeta::cost(&harness.push_and_pull(buffer).expect("it flows"));
        let is_plausible = |time: Duration| !time.is_zero() && time < Duration::from_secs(60);
        // Two frames of three are held.
        assert_eq!(cost.time.is_some(), frame % 3 == 0);
        assert!(cost.time.is_none_or(is_plausible), "{cost:?}");
        assert_eq!(cost.gpu_memory, None);
    }
}
