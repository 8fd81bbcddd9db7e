// SPDX-License-Identifier: MPL-2.0
//! Faces in GStreamer's own analytics metadata, read by its library, its overlay and its Python
//! bindings. Needs GStreamer 1.24; `make test-debian` runs it with 1.26.
//!
//! From 1.28 on, elements that crop the picture crop the boxes too, in place of dropping them.

use crate::common;

use std::path::Path;

use crate::common::faces::{face, full_face};
use crate::common::player::{folder, open};
use crate::common::python;
use crate::common::reports::{report, with_report};
use facetrack::blendshape::MEDIAPIPE_CHANNELS;
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;
use gst::glib;
use gst::prelude::*;
use gst_analytics::prelude::*;
use gst_analytics::{
    AnalyticsClassificationMtd, AnalyticsODMtd, AnalyticsRelationMeta, AnalyticsTrackingMtd,
    RelTypes,
};
use gst_check::Harness;
use gst_video::VideoRegionOfInterestMeta;
use gstfacetrack::meta::FaceTrackMeta;

/// A face, as the library has it.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    label: String,
    /// x, y, width, height.
    location: [i32; 4],
    confidence: f32,
    track: u64,
    /// First and last seen, ms.
    seen: [u64; 2],
    /// Classes with their levels, where there is a classification.
    classes: Vec<(String, f32)>,
}

fn crops_boxes() -> bool {
    gst::version() >= (1, 28, 0, 0)
}

/// The faces on a buffer, each with what belongs to it, and nothing else.
fn found(buffer: &gst::BufferRef) -> Vec<Found> {
    let relations = buffer.meta::<AnalyticsRelationMeta>().expect("relations");
    let detections = relations.iter::<AnalyticsODMtd>();
    let found: Vec<_> = detections.map(|it| read(&relations, &it)).collect();
    let classified = found.iter().filter(|face| !face.classes.is_empty());
    if cfg!(not(any(
        feature = "analytics-keypoints",
        feature = "analytics-tensor"
    ))) {
        assert_eq!(relations.len(), 2 * found.len() + classified.count());
    }
    found
}

fn read(
    relations: &gst::MetaRef<'_, AnalyticsRelationMeta>,
    detection: &gst_analytics::AnalyticsMtdRef<'_, AnalyticsODMtd>,
) -> Found {
    let location = detection.location().expect("a location");
    let mut trackings =
        relations.iter_direct_related::<AnalyticsTrackingMtd>(detection.id(), RelTypes::RELATE_TO);
    let tracking = trackings.next().expect("a tracking");
    assert!(trackings.next().is_none());
    let (track, first, last, lost) = tracking.info();
    assert!(!lost);
    let mut classifications = relations
        .iter_direct_related::<AnalyticsClassificationMtd>(detection.id(), RelTypes::CONTAIN);
    let classes = classifications.next().map(|classification| {
        let back = relations.relation(classification.id(), detection.id());
        assert_eq!(back, RelTypes::IS_PART_OF);
        let classes = (0..classification.len()).map(|i| {
            let name = classification.quark(i).as_str().to_string();
            (name, classification.level(i))
        });
        classes.collect()
    });
    Found {
        label: detection.obj_type().expect("a label").as_str().to_string(),
        location: [location.x, location.y, location.w, location.h],
        confidence: location.loc_conf_lvl,
        track,
        seen: [first, last].map(gst::ClockTime::mseconds),
        classes: classes.unwrap_or_default(),
    }
}

/// A buffer with this report.
fn buffer_with(report: &FrameReport) -> gst::Buffer {
    common::init();
    let mut buffer = gst::Buffer::with_size(1280 * 720).expect("room");
    buffer
        .make_mut()
        .set_pts(gst::ClockTime::from_mseconds(120));
    with_report(buffer, report)
}

#[test]
fn each_face_is_detected_tracked_and_classified() {
    let sent = report(vec![full_face(4, 300.25), face(7, -20.5)]);
    let buffer = buffer_with(&sent);
    let levels = (0..52).map(|i| i as f32 / 64.0);
    let names = MEDIAPIPE_CHANNELS.map(str::to_owned);
    let expected = [
        Found {
            label: "face".into(),
            location: [300, 120, 81, 98],
            confidence: 0.987_65,
            track: 4,
            seen: [120, 120],
            classes: std::iter::zip(names, levels).collect(),
        },
        // Without a confidence, and without blendshapes.
        Found {
            label: "face".into(),
            location: [0, 120, 60, 98],
            confidence: 0.0,
            track: 7,
            seen: [120, 120],
            classes: Vec::new(),
        },
    ];
    assert_eq!(found(&buffer), expected);
    // One region is found from each detection.
    let relations = buffer.meta::<AnalyticsRelationMeta>().expect("relations");
    let ids: Vec<_> = relations
        .iter::<AnalyticsODMtd>()
        .map(|it| it.id() as i32)
        .collect();
    let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
    assert_eq!(regions.map(|region| region.id()).collect::<Vec<_>>(), ids);
}

#[test]
fn a_level_is_never_negative() {
    let mut tracked = full_face(1, 300.25);
    let names = ["down", "up", "lost"].map(str::to_owned).into();
    let values = vec![-0.25, 1.5, f32::NAN];
    tracked.face.blendshapes = Some(facetrack::blendshape::Blendshapes::new(names, values));
    let levels: Vec<_> = found(&buffer_with(&report(vec![tracked])))[0]
        .classes
        .iter()
        .map(|(_, level)| *level)
        .collect();
    assert_eq!(levels, [0.0, 1.5, 0.0]);
}

#[test]
fn a_second_report_takes_the_place_of_the_first() {
    let first = buffer_with(&report(vec![full_face(1, 300.0), face(2, 600.0)]));
    // Also on a copy, as behind a tee.
    for mut buffer in [first.copy(), first] {
        let second = report(vec![face(9, 100.0)]);
        buffer = with_report(buffer, &second);
        let tracks: Vec<_> = found(&buffer).iter().map(|face| face.track).collect();
        assert_eq!(tracks, [9]);
        buffer = with_report(buffer, &report(vec![]));
        assert_eq!(found(&buffer), []);
    }
}

/// Labels of the detections.
fn labels(buffer: &gst::BufferRef) -> Vec<String> {
    let relations = buffer.meta::<AnalyticsRelationMeta>().expect("relations");
    let detections = relations.iter::<AnalyticsODMtd>();
    let labels = detections.map(|it| it.obj_type().expect("a label").as_str().to_string());
    labels.collect()
}

/// The library can't remove single pieces, and pieces of other elements must stay.
#[test]
fn what_others_added_stays() {
    let mut buffer = buffer_with(&report(vec![face(1, 300.0)]));
    let others = glib::Quark::from_str("car");
    AnalyticsRelationMeta::add(buffer.make_mut())
        .add_od_mtd(others, 1, 2, 3, 4, 0.5)
        .expect("room");
    buffer = with_report(buffer, &report(vec![face(2, 600.0)]));
    assert_eq!(labels(&buffer), ["face", "car", "face"]);
    let regions: Vec<_> = buffer.iter_meta::<VideoRegionOfInterestMeta>().collect();
    assert_eq!(regions.len(), 1);
    let relations = buffer.meta::<AnalyticsRelationMeta>().expect("relations");
    let last = relations.iter::<AnalyticsODMtd>().last().expect("a face");
    assert_eq!(regions[0].id(), last.id() as i32);
}

/// Behind what cut the picture, where the first report's pieces went.
#[test]
fn what_others_found_in_a_part_of_the_picture_stays() {
    common::init();
    let mut harness = Harness::new_parse("videocrop left=20");
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1280,height=720,framerate=25/1");
    harness
        .push(buffer_with(&report(vec![face(1, 300.0)])))
        .expect("it flows");
    let mut buffer = harness.pull().expect("a frame");
    let others = glib::Quark::from_str("car");
    let mut relations = AnalyticsRelationMeta::add(buffer.make_mut());
    for x in [1, 2] {
        relations.add_od_mtd(others, x, 2, 3, 4, 0.5).expect("room");
    }
    buffer = with_report(buffer, &report(vec![face(2, 600.0)]));
    let expected = match crops_boxes() {
        false => &["car", "car", "face"][..],
        true => &["face", "car", "car", "face"],
    };
    assert_eq!(labels(&buffer), expected);
}

/// Frames of 25 a second behind elements.
fn frames(elements: &str, count: usize) -> Vec<gst::Buffer> {
    common::init();
    let mut harness = Harness::new_parse(elements);
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
    (0..count as u64)
        .map(|frame| {
            // Memory that was never written would look like a cut.
            let mut buffer = gst::Buffer::from_mut_slice(vec![0; 64 * 48]);
            let time = gst::ClockTime::from_mseconds(40 * frame);
            buffer.make_mut().set_pts(time);
            harness.push_and_pull(buffer).expect("it flows")
        })
        .collect()
}

#[test]
fn a_track_says_when_it_came_and_was_last_measured() {
    // One face is always there, one comes and goes; two frames of three are held.
    let elements = "facetrack engine=scripted inference-interval=3 \
         script=\"face x=0.2 size=0.2; face x=0.8 size=0.2 from=3 to=4\"";
    let seen = |buffers: &[gst::Buffer]| -> Vec<Vec<(u64, [u64; 2])>> {
        let seen =
            |buffer: &gst::Buffer| found(buffer).iter().map(|it| (it.track, it.seen)).collect();
        buffers.iter().map(seen).collect()
    };
    let tracked = frames(elements, 13);
    let expected = |frame: u64| {
        // The script counts the frames that it sees.
        let measured = frame / 3 * 120;
        let mut faces = vec![(1, [0, measured])];
        if (6..12).contains(&frame) {
            faces.push((2, [240, measured]));
        }
        faces
    };
    assert_eq!(seen(&tracked), (0..13).map(expected).collect::<Vec<_>>());

    // The same when it is replayed.
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("track.json");
    let path = path.to_str().expect("a readable name");
    let mut harness = Harness::new_parse(&format!("trackjsonsink location={path} verbose=true"));
    harness.set_src_caps_str("video/x-raw,format=GRAY8,width=64,height=48,framerate=25/1");
    for buffer in &tracked {
        harness.push(buffer.clone()).expect("it is taken");
    }
    harness.push_event(gst::event::Eos::new());
    drop(harness);
    let replayed = frames(&format!("trackjsonload location={path}"), 13);
    assert_eq!(seen(&replayed), seen(&tracked));
}

#[test]
fn boxes_follow_the_picture_as_long_as_they_can() {
    let after = |elements: &str| {
        common::init();
        let mut harness = Harness::new_parse(elements);
        harness.set_src_caps_str("video/x-raw,format=GRAY8,width=1280,height=720,framerate=25/1");
        // The box of whole pixels has even sides, since versions round halves differently.
        let buffer = buffer_with(&report(vec![full_face(4, 300.875)]));
        harness.push(buffer).expect("it flows");
        harness.pull().expect("a frame")
    };
    let half = after("videoscale ! capsfilter caps=video/x-raw,width=640,height=360 ! identity");
    let face = &found(&half)[0];
    assert_eq!((face.location, face.track), ([150, 60, 41, 49], 4));
    assert_eq!(face.classes.len(), 52);
    let cut = after("videocrop left=20");
    match crops_boxes() {
        false => assert!(cut.meta::<AnalyticsRelationMeta>().is_none()),
        true => assert_eq!(found(&cut)[0].location, [280, 120, 82, 98]),
    }
}

/// The overlay's drawing on black frames, as grey rows of 320.
fn drawn(script: &str, properties: &str, frames: usize) -> Vec<Vec<u8>> {
    common::init();
    // Versions that draw tracks too have these properties.
    let tracks = match gst::version() >= (1, 28, 0, 0) {
        false => "",
        true => "tracking-outline-colors=false draw-tracking-labels=false",
    };
    let pipeline = gst::parse::launch(&format!(
        "videotestsrc pattern=black num-buffers={frames} ! video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1 \
         ! {script} ! videoconvert ! objectdetectionoverlay object-detection-outline-color=0xFFFFFFFF {tracks} {properties} \
         ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=out sync=false"
    ));
    let pipeline = pipeline.expect("a pipeline with GStreamer's overlay");
    let pipeline = pipeline.downcast::<gst::Pipeline>().expect("of several");
    let out = pipeline.by_name("out").expect("the sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let pictures = std::iter::from_fn(|| out.pull_sample().ok())
        .map(|sample| {
            let map = sample.buffer().expect("a frame").map_readable();
            map.expect("readable").to_vec()
        })
        .collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    pictures
}

fn is_bright(level: u8) -> bool {
    level > 100
}

/// Left, top, right and bottom of what is bright.
fn extent(picture: &[u8]) -> Option<[usize; 4]> {
    let bright = |i: &usize| is_bright(picture[*i]);
    let (xs, ys): (Vec<_>, Vec<_>) = (0..picture.len())
        .filter(bright)
        .map(|i| (i % 320, i / 320))
        .unzip();
    Some([
        *xs.iter().min()?,
        *ys.iter().min()?,
        *xs.iter().max()?,
        *ys.iter().max()?,
    ])
}

#[test]
fn gstreamers_overlay_draws_the_boxes() {
    // Sides of 96 px: from 48 to 144, and 72 to 168.
    let script = "facetrack engine=scripted script=\"face x=0.3 y=0.5 size=0.4 from=2 to=3\"";
    let pictures = drawn(script, "draw-labels=false", 12);
    let extents: Vec<_> = pictures.iter().map(|picture| extent(picture)).collect();
    // Nothing before the face comes, a line of two pixels around it, and nothing when it has gone.
    assert_eq!(extents[0], None);
    assert_eq!(extents[1..3], [Some([47, 71, 144, 168]); 2]);
    assert_eq!(extents[3..], [None; 9]);
    let inside = (80..160).flat_map(|y| (56..136).map(move |x| y * 320 + x));
    assert!(inside.into_iter().all(|i| !is_bright(pictures[1][i])));
}

/// With blendshapes, the overlay still writes the label and the confidence.
#[test]
fn gstreamers_overlay_writes_the_same_label_with_and_without_blendshapes() {
    let label = |detail: &str| {
        let script = "face x=0.3 y=0.5 size=0.4";
        let picture = drawn(
            &format!("facetrack engine=scripted script=\"{script}{detail}\""),
            "draw-labels=true labels-color=0xFFFFFFFF object-detection-outline-color=0",
            1,
        );
        picture[0].clone()
    };
    let plain = label("");
    assert!(plain.iter().copied().any(is_bright), "no label was drawn");
    assert_eq!(plain, label("; landmarks"));
}

#[test]
fn python_reads_the_faces() {
    if !python::has_bindings("GstAnalytics", "gir1.2-gst-plugins-bad-1.0") {
        return;
    }
    let output = python::script(include_str!("../read_analytics.py"))
        .arg(
            "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=640,height=480,framerate=25/1 \
             ! facetrack engine=scripted script=\"face x=0.3 size=0.25; landmarks\"",
        )
        .run();
    assert!(output.success, "{}", output.text);
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", output.text);
    for (frame, line) in lines.into_iter().enumerate() {
        let seen = format!(" track 1 from 0 to {} lost False ", 40 * frame);
        for part in [
            "face 120x120 at 132,180 turned 0.0 sure 0.90",
            &seen,
            " 52 channels jawOpen 0.",
            " object 1 x_min 0.206",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

/// A real engine on a real clip: what the library holds is what the record says.
#[test]
fn a_clip_has_the_same_faces_in_both() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
        return;
    };
    let clip = folder.join("media/pyfeat_single_face.mp4");
    if !clip.is_file() {
        eprintln!("SKIPPED: {} is not there", clip.display());
        return;
    }
    compare(&clip);
}

fn compare(clip: &Path) {
    let (pipeline, out) = open(clip, "decodebin ! facetrack engine=mediapipe");
    let mut first = std::collections::HashMap::new();
    let mut faces = 0;
    for sample in std::iter::from_fn(|| out.pull_sample().ok()).take(60) {
        let buffer = sample.buffer().expect("a frame");
        let report = FaceTrackMeta::from_buffer(buffer).expect("a report");
        let segment = sample.segment().expect("a segment");
        let segment = segment.downcast_ref::<gst::ClockTime>().expect("of time");
        let now = segment.to_running_time(buffer.pts()).expect("a time");
        let now = now.mseconds();
        let found = found(buffer);
        assert_eq!(found.len(), report.faces.len());
        for (found, tracked) in std::iter::zip(&found, &report.faces) {
            let face = &tracked.face;
            assert_eq!(found.track, u64::from(tracked.id));
            assert_eq!(found.seen, [*first.entry(tracked.id).or_insert(now), now]);
            assert!((found.location[0] as f32 - face.bbox.x).abs() <= 1.0);
            assert!((found.location[2] as f32 - face.bbox.width).abs() <= 2.0);
            assert_eq!(found.confidence, face.confidence.unwrap_or(0.0));
            let blendshapes = face.blendshapes.as_ref().expect("MediaPipe's");
            let classes = found.classes.iter().map(|(name, level)| (&**name, *level));
            assert!(classes.eq(blendshapes.iter()));
            faces += 1;
        }
    }
    pipeline.set_state(gst::State::Null).expect("it stops");
    assert!(faces >= 30, "{faces}");
}
