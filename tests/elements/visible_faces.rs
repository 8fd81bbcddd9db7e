// SPDX-License-Identifier: MPL-2.0
//! No face is visible after `facetrackblur`: pipelines that find, move, lose or miss faces, and
//! records that are replayed over another video. Faces are white squares on grey.

use std::path::Path;

use facetrack::geometry::Rect;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

use crate::common;
use crate::common::rotated::{self, ROTATIONS};

const WIDTH: usize = 320;
const HEIGHT: usize = 180;
const FRAMES: usize = 40;

/// Levels of the background and of faces.
const GREY: u8 = 90;
const WHITE: u8 = 235;

/// A pixel of this level shows a face, also after lossy encoding and scaling.
const BRIGHT: u8 = 200;

/// A pixel of this level shows the background.
const DIM: std::ops::Range<u8> = 60..120;

/// Faces that move.
const MOVING: &str =
    "face x=0.3 y=0.5 size=0.3 dx=0.004; face x=0.75 y=0.5 size=0.3 from=13 dx=-0.002";

/// A face that stays, and one that enters with this analysed frame, counted from 1.
fn staying(from: usize) -> String {
    format!("face x=0.3 y=0.5 size=0.3; face x=0.75 y=0.5 size=0.3 from={from}")
}

/// Index of the frame with which the second face of [`staying`] enters the picture.
const ENTERS: usize = 12;

/// The frames and messages of a pipeline.
#[derive(Debug, Default)]
struct Seen {
    frames: usize,
    /// Frames that show a face.
    visible: Vec<usize>,
    /// Frames that show neither a face nor the background.
    black: usize,
    warnings: Vec<String>,
    error: Option<String>,
}

impl Seen {
    fn take(&mut self, sample: &gst::Sample) {
        let info = sample.caps().expect("caps");
        let info = gst_video::VideoInfo::from_caps(info).expect("video");
        let map = sample.buffer().expect("a frame").map_readable();
        let map = map.expect("readable");
        let rows = map.chunks(info.stride()[0] as usize);
        let mut pixels = rows.flat_map(|row| &row[..info.width() as usize]);
        let shows_background = pixels.clone().any(|pixel| DIM.contains(pixel));
        if pixels.any(|pixel| *pixel >= BRIGHT) {
            self.visible.push(self.frames);
        } else if !shows_background {
            self.black += 1;
        }
        self.frames += 1;
    }

    fn take_messages(&mut self, bus: &gst::Bus) {
        while let Some(message) = bus.pop() {
            match message.view() {
                gst::MessageView::Warning(warning) => {
                    self.warnings.push(warning.error().message().to_owned());
                }
                gst::MessageView::Error(error) => {
                    let text = error.error().message().to_owned();
                    self.error.get_or_insert(text);
                }
                _ => (),
            }
        }
    }
}

/// The boxes of the faces in each frame, if all frames are analysed.
fn boxes(script: &str) -> Vec<Vec<Rect>> {
    common::init();
    let element = gst::ElementFactory::make("facetrack")
        .property_from_str("engine", "scripted")
        .property("script", script)
        .build()
        .expect("the element");
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str(&caps());
    let frames = (0..FRAMES).map(|index| {
        let buffer = harness.push_and_pull(picture(index, &[])).expect("a frame");
        let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
        report.faces.iter().map(|face| face.face.bbox).collect()
    });
    frames.collect()
}

fn caps() -> String {
    format!("video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=25/1")
}

/// A frame with white faces.
fn picture(index: usize, faces: &[Rect]) -> gst::Buffer {
    let is_face = |x: usize, y: usize| {
        faces.iter().any(|face| {
            let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
            (face.x..face.right()).contains(&x) && (face.y..face.bottom()).contains(&y)
        })
    };
    let pixels = (0..WIDTH * HEIGHT).map(|at| {
        let is_face = is_face(at % WIDTH, at / WIDTH);
        if is_face { WHITE } else { GREY }
    });
    let mut buffer = gst::Buffer::from_mut_slice(pixels.collect::<Vec<_>>());
    let writable = buffer.make_mut();
    writable.set_pts(gst::ClockTime::from_mseconds(40 * index as u64));
    writable.set_duration(gst::ClockTime::from_mseconds(40));
    buffer
}

/// Plays a line that ends in an appsink named `out`. An appsrc named `in` gets frames that show these
/// faces.
fn play(line: &str, faces: &[Vec<Rect>]) -> Seen {
    play_with(line, faces, |_| ())
}

/// Plays a line like [`play`], after `prepare` has seen the pipeline.
fn play_with(line: &str, faces: &[Vec<Rect>], prepare: impl FnOnce(&gst::Pipeline)) -> Seen {
    common::init();
    let pipeline = gst::parse::launch(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let pipeline: gst::Pipeline = pipeline.downcast().expect("several elements");
    prepare(&pipeline);
    let bus = pipeline.bus().expect("a bus");
    let out = pipeline.by_name("out").expect("the sink");
    let out: gst_app::AppSink = out.downcast().expect("an appsink");
    // An error that comes at once is read from the bus.
    let _ = pipeline.set_state(gst::State::Playing);
    if let Some(source) = pipeline.by_name("in") {
        let source: gst_app::AppSrc = source.downcast().expect("an appsrc");
        for (index, faces) in faces.iter().enumerate() {
            // It refuses frames after an error.
            let _ = source.push_buffer(picture(index, faces));
        }
        source.end_of_stream().expect("it ends");
    }
    let mut seen = Seen::default();
    while seen.error.is_none() && !out.is_eos() {
        if let Some(sample) = out.try_pull_sample(gst::ClockTime::from_mseconds(100)) {
            seen.take(&sample);
        } else {
            seen.take_messages(&bus);
        }
    }
    seen.take_messages(&bus);
    pipeline.set_state(gst::State::Null).expect("it stops");
    seen
}

/// Plays faces through these elements and the blur.
fn blurred(faces: &[Vec<Rect>], elements: &str, blur: &str) -> Seen {
    let line = format!(
        "appsrc name=in format=time caps={} ! {elements} ! facetrackblur mode=fill {blur} \
         ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=out sync=false",
        caps()
    );
    play(&line, faces)
}

fn tracked(script: &str, properties: &str) -> String {
    format!("facetrack engine=scripted script=\"{script}\" {properties}")
}

/// Frames with the faces of [`staying`].
fn stay() -> Vec<Vec<Rect>> {
    boxes(&staying(ENTERS + 1))
}

#[test]
fn the_faces_of_the_test_are_visible_without_the_blur() {
    for faces in [boxes(MOVING), stay()] {
        let line = format!(
            "appsrc name=in format=time caps={} ! appsink name=out sync=false",
            caps()
        );
        let seen = play(&line, &faces);
        assert_eq!((seen.visible.len(), seen.frames), (FRAMES, FRAMES));
    }
}

/// Chains of elements between the analysis and the blur, and whether the faces can be covered after
/// them. If not, frames are black, and a message says why.
#[test]
fn no_chain_of_elements_uncovers_a_face() {
    let faces = boxes(MOVING);
    for (chain, is_followed) in [
        ("identity", true),
        ("queue", true),
        ("videoconvert ! video/x-raw,format=I420", true),
        ("videoconvert ! videobalance brightness=0.02", true),
        ("videoscale ! video/x-raw,width=640,height=360", true),
        (
            "videoscale ! video/x-raw,width=180,height=180,pixel-aspect-ratio=1/1",
            true,
        ),
        (
            "videoscale add-borders=false ! video/x-raw,width=180,height=180,pixel-aspect-ratio=1/1",
            true,
        ),
        (
            "videoscale add-borders=false ! video/x-raw,width=640,height=180,pixel-aspect-ratio=1/1",
            true,
        ),
        ("videorate ! video/x-raw,framerate=50/1", true),
        ("jpegenc quality=95 ! jpegdec", true),
        ("videocrop left=60", false),
        ("aspectratiocrop aspect-ratio=1/1", false),
        ("videoflip video-direction=90r", false),
        ("videoflip video-direction=horiz", false),
        ("videoconvert ! videobox left=-40 top=-20", false),
    ] {
        let seen = blurred(&faces, &format!("{} ! {chain}", tracked(MOVING, "")), "");
        assert_eq!(seen.visible, [0; 0], "{chain}: {seen:?}");
        assert!(seen.frames >= FRAMES, "{chain}: {seen:?}");
        let want = if is_followed {
            (0, 0)
        } else {
            (seen.frames, 1)
        };
        assert_eq!((seen.black, seen.warnings.len()), want, "{chain}: {seen:?}");
        assert_eq!(seen.error, None, "{chain}");
    }
}

/// `videorate` marks the frames that it repeats as gaps.
#[test]
fn frames_that_are_repeated_before_the_analysis_are_covered() {
    let rate = "videorate ! video/x-raw,framerate=50/1";
    let elements = tracked(&staying(2 * ENTERS + 1), "");
    let seen = blurred(&stay(), &format!("{rate} ! {elements}"), "");
    assert_eq!(seen.visible, [0; 0], "{seen:?}");
    assert!(seen.frames >= 2 * FRAMES - 1, "{seen:?}");
    assert_eq!((seen.black, seen.warnings.len()), (0, 0), "{seen:?}");
}

/// Settings of `facetrack` that may miss a face, the analysed frame that has the second face, and a
/// part of the warning.
#[test]
fn frames_that_may_show_another_face_are_black_and_reported_once() {
    let faces = stay();
    for (properties, from, blur, part) in [
        ("inference-interval=10", 3, "", "inference-interval=1"),
        (
            "inference-interval=10 predict=true",
            3,
            "",
            "inference-interval=1",
        ),
        ("max-fps=5", 4, "unknown=fill-frame", "max-fps=0"),
        ("max-faces=1", 13, "", "max-faces"),
        ("select=largest", 13, "", "select=all"),
        ("select=largest inference-interval=3", 5, "", "select=all"),
    ] {
        let seen = blurred(&faces, &tracked(&staying(from), properties), blur);
        assert_eq!(seen.visible, [0; 0], "{properties}");
        let black = FRAMES - ENTERS..FRAMES;
        assert!(
            seen.frames == FRAMES && black.contains(&seen.black),
            "{properties}: {seen:?}"
        );
        let reasons = seen.warnings.iter().filter(|it| it.contains(part));
        assert_eq!(reasons.count(), 1, "{properties}: {:?}", seen.warnings);
    }
}

#[test]
fn a_face_that_is_not_known_is_visible_only_with_pass() {
    let elements = tracked(&staying(3), "inference-interval=10");
    let seen = blurred(&stay(), &elements, "unknown=pass");
    assert_eq!(seen.visible, (ENTERS..20).collect::<Vec<_>>());
    assert_eq!((seen.black, seen.warnings.len()), (0, 1), "{seen:?}");
}

#[test]
fn frames_without_metadata_are_black_and_reported_once() {
    let seen = blurred(&stay(), "identity", "");
    assert_eq!((seen.black, seen.warnings.len()), (FRAMES, 1), "{seen:?}");
}

#[test]
fn a_first_frame_without_metadata_is_reported() {
    let faces = stay();
    let line = format!(
        "appsrc name=in format=time caps={} ! {} ! identity name=strip ! facetrackblur mode=fill \
         ! appsink name=out sync=false",
        caps(),
        tracked(&staying(13), "")
    );
    let seen = play_with(&line, &faces, |pipeline| {
        let strip = pipeline.by_name("strip").expect("the element");
        let pad = strip.static_pad("src").expect("a pad");
        pad.add_probe(gst::PadProbeType::BUFFER, |_, info| {
            if let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data
                && buffer.pts() < Some(gst::ClockTime::from_mseconds(80))
            {
                buffer.make_mut().foreach_meta_mut(|_| {
                    std::ops::ControlFlow::Continue(gst::buffer::BufferMetaForeachAction::Remove)
                });
            }
            gst::PadProbeReturn::Ok
        });
    });
    assert_eq!((seen.black, seen.warnings.len()), (2, 1), "{seen:?}");
    assert_eq!(seen.visible, [0; 0]);
}

#[test]
fn a_failed_analysis_shows_no_face() {
    let failing = format!("{}; fail at=20", staying(13));
    let seen = blurred(&stay(), &tracked(&failing, ""), "");
    assert_eq!(seen.visible, [0; 0], "{seen:?}");
    assert!(seen.error.is_some() && seen.frames < FRAMES, "{seen:?}");
}

/// An analysis of 100 ms in a live pipeline with a frame every 40 ms. Both faces are in all frames,
/// but the second one is found in the second analysed frame.
#[test]
fn an_overloaded_live_pipeline_shows_no_face() {
    let mut faces = boxes(&staying(1));
    faces[0].truncate(1);
    let live = |queue: &str, late: &str| {
        let script = format!("{}; slow ms=100", staying(2));
        let line = format!(
            "appsrc name=in is-live=true format=time caps={} ! identity sync=true ! {queue} \
             ! {} ! facetrackblur mode=fill ! appsink name=out sync=false",
            caps(),
            tracked(&script, &format!("late-frames={late}"))
        );
        play(&line, &faces)
    };
    let seen = live("identity", "auto");
    assert_eq!((seen.frames, &seen.visible[..]), (FRAMES, &[][..]));
    assert!(seen.black >= FRAMES / 3, "{seen:?}");
    assert_eq!(seen.warnings.len(), 1, "{seen:?}");
    // The documented remedy drops frames instead.
    let seen = live("queue leaky=downstream max-size-buffers=1", "analyze");
    assert_eq!(
        (seen.black, &seen.visible[..], &seen.warnings[..]),
        (0, &[][..], &[][..])
    );
    assert!((2..FRAMES).contains(&seen.frames), "{seen:?}");
}

/// Writes the white faces as a clip that players have to turn.
fn write_clip(path: &Path, pattern: &str) {
    let source = format!(
        "videotestsrc num-buffers=30 pattern={pattern} ! video/x-raw,width=320,height=180,framerate=25/1"
    );
    rotated::write(&source, ROTATIONS[0], path);
}

const UPRIGHT: &str = "videoconvert ! videoflip video-direction=auto";

#[test]
fn a_record_over_another_video_is_reported_and_refused_by_the_blur() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_clip(&folder.path().join("clip.mp4"), "white");
    write_clip(&folder.path().join("other.mp4"), "red");
    let decoded = |clip: &str| format!("filesrc location={} ! decodebin", at(clip));
    let record = format!(
        "{} ! {UPRIGHT} ! facetrack engine=scripted script=\"face size=0.9\" ! trackjsonsink location={}",
        decoded("clip.mp4"),
        at("clip.json"),
    );
    common::play_to_end(&gst::parse::launch(&record).expect("a pipeline"));
    let load = format!("trackjsonload location={}", at("clip.json"));
    let end = "videoconvert ! video/x-raw,format=GRAY8 ! appsink name=out sync=false";
    for (clip, elements, part) in [
        ("clip.mp4", UPRIGHT, None),
        ("clip.mp4", "identity", Some("rotate-90")),
        (
            "clip.mp4",
            "videoconvert ! videoflip video-direction=auto ! videoflip video-direction=90r",
            Some("180×320"),
        ),
        ("other.mp4", UPRIGHT, Some("another file")),
        (
            "clip.mp4",
            "videoconvert ! videoflip video-direction=auto ! videocrop left=20",
            Some("300×180"),
        ),
        (
            "clip.mp4",
            "videoconvert ! videoflip video-direction=auto ! videoscale ! video/x-raw,width=160,height=90",
            Some("160×90"),
        ),
    ] {
        let line = format!("{} ! {elements} ! {load}", decoded(clip));
        let seen = play(&format!("{line} ! {end}"), &[]);
        let warnings: Vec<_> = seen
            .warnings
            .iter()
            .filter(|it| it.contains("clip.json"))
            .collect();
        let is_reported = match part {
            Some(part) => warnings.len() == 1 && warnings[0].contains(part),
            None => warnings.is_empty(),
        };
        assert!(is_reported, "{clip} {elements}: {:?}", seen.warnings);
        assert_eq!((seen.frames, &seen.error), (30, &None), "{clip} {elements}");

        let refusing = format!("{line} ! facetrackblur mode=fill shape=box margin=2 ! {end}");
        let seen = play(&refusing, &[]);
        assert_eq!(seen.visible, [0; 0], "{clip} {elements}");
        let is_refused = seen.frames == 0 && seen.error.is_some();
        assert_eq!(is_refused, part.is_some(), "{clip} {elements}: {seen:?}");

        let accepted = line.replace("trackjsonload", "trackjsonload on-mismatch=ignore");
        let seen = play(
            &format!("{accepted} ! facetrackblur mode=fill ! {end}"),
            &[],
        );
        assert_eq!((seen.frames, &seen.error), (30, &None), "{clip} {elements}");
    }
    // At another rate, frames have no record: they are black.
    let line = format!(
        "{} ! {UPRIGHT} ! videorate ! video/x-raw,framerate=50/1 ! {load} ! facetrackblur mode=fill shape=box margin=2 ! {end}",
        decoded("clip.mp4")
    );
    let seen = play(&line, &[]);
    assert_eq!(
        (seen.visible.len(), seen.error.is_none()),
        (0, true),
        "{seen:?}"
    );
    assert!(seen.black >= 25, "{seen:?}");
    assert_eq!(seen.warnings.len(), 1, "{seen:?}");
    assert!(seen.warnings[0].contains("no FaceTrackMeta"), "{seen:?}");
}

/// Drops the frames before a time at the element `drop`.
fn drop_before(pipeline: &gst::Pipeline, from: gst::ClockTime) {
    let dropping = pipeline.by_name("drop").expect("the element");
    let pad = dropping.static_pad("src").expect("a pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| match &info.data {
        Some(gst::PadProbeData::Buffer(buffer)) if buffer.pts() < Some(from) => {
            gst::PadProbeReturn::Drop
        }
        _ => gst::PadProbeReturn::Ok,
    });
}

/// Time and left edge of the first face of each frame that a pipeline yields, without those before
/// `from`.
fn edges(line: &str, from: gst::ClockTime) -> Vec<(gst::ClockTime, f32)> {
    let line = format!("{line} ! appsink name=out sync=false");
    let pipeline = gst::parse::launch(&line).expect("a pipeline");
    let pipeline: gst::Pipeline = pipeline.downcast().expect("several elements");
    drop_before(&pipeline, from);
    let out = pipeline.by_name("out").expect("the sink");
    let out: gst_app::AppSink = out.downcast().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let samples = std::iter::from_fn(|| out.pull_sample().ok());
    let edges = samples.map(|sample| {
        let buffer = sample.buffer().expect("a frame");
        let report = FaceTrackMeta::from_buffer(buffer).expect("a report");
        (buffer.pts().expect("a time"), report.faces[0].face.bbox.x)
    });
    let edges = edges.collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    edges
}

#[test]
fn missing_first_frames_do_not_shift_the_faces_of_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).display().to_string();
    write_clip(&folder.path().join("clip.mp4"), "white");
    let decoded = format!(
        "filesrc location={} ! decodebin ! {UPRIGHT}",
        at("clip.mp4")
    );
    let record = format!(
        "{decoded} ! facetrack engine=scripted script=\"face x=0.2 size=0.3 dx=0.01\" \
         ! trackjsonsink location={}",
        at("clip.json")
    );
    common::play_to_end(&gst::parse::launch(&record).expect("a pipeline"));
    let line = format!(
        "{decoded} ! identity name=drop ! trackjsonload location={}",
        at("clip.json")
    );
    let all = edges(&line, gst::ClockTime::ZERO);
    let late = edges(&line, all[12].0);
    assert_eq!(late, all[12..]);

    // Frames are missing, so each number belongs to another frame of the record.
    let blur =
        "facetrackblur ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=out sync=false";
    let line = format!("{line} match=frame ! {blur}");
    let seen = play_with(&line, &[], |_| ());
    assert_eq!((seen.frames, &seen.error), (30, &None), "{seen:?}");
    let seen = play_with(&line, &[], |pipeline| drop_before(pipeline, all[12].0));
    assert!(seen.frames == 0 && seen.error.is_some(), "{seen:?}");
    let is_reported = seen.warnings.iter().any(|it| it.contains("match=pts"));
    assert!(is_reported, "{seen:?}");
}

fn names_of(tags: &gst::TagListRef) -> Vec<String> {
    let names = tags.iter_generic().map(|(name, _)| name.to_string());
    names.collect()
}

/// The names of the tags in an event.
fn tags_in(event: &gst::EventRef) -> Vec<String> {
    let of_stream = |stream: gst::Stream| stream.tags().map_or(Vec::new(), |tags| names_of(&tags));
    match event.view() {
        gst::EventView::Tag(tags) => names_of(tags.tag()),
        gst::EventView::Toc(_) => vec!["toc".to_owned()],
        gst::EventView::StreamStart(start) => start.stream().map_or(Vec::new(), of_stream),
        gst::EventView::StreamCollection(streams) => {
            let streams = streams.stream_collection();
            streams.iter().flat_map(of_stream).collect()
        }
        _ => Vec::new(),
    }
}

/// The names of the tags that reach the end of a pipeline.
fn tags_after(elements: &str) -> Vec<String> {
    common::init();
    let line =
        format!("videotestsrc num-buffers=2 ! identity name=tags ! {elements} ! fakesink name=end");
    let pipeline = gst::parse::launch(&line).expect("a pipeline");
    let pipeline: gst::Pipeline = pipeline.downcast().expect("several elements");
    let source = pipeline.by_name("tags").expect("the element");
    let pad = source.static_pad("src").expect("a pad");
    let mut tags = gst::TagList::new();
    let list = tags.make_mut();
    let picture = gst::Sample::builder()
        .buffer(&gst::Buffer::from_slice([1; 4]))
        .build();
    list.add::<gst::tags::Image>(&picture, gst::TagMergeMode::Append);
    list.add::<gst::tags::PreviewImage>(&picture, gst::TagMergeMode::Append);
    list.add::<gst::tags::Attachment>(&picture, gst::TagMergeMode::Append);
    list.add::<gst::tags::GeoLocationLatitude>(&52.5, gst::TagMergeMode::Append);
    list.add::<gst::tags::GeoLocationLongitude>(&13.4, gst::TagMergeMode::Append);
    list.add::<gst::tags::GeoLocationCity>(&"Berlin", gst::TagMergeMode::Append);
    list.add::<gst::tags::Title>(&"a title", gst::TagMergeMode::Append);
    let kind = gst::StreamType::VIDEO;
    let stream = gst::Stream::new(Some("video"), None, kind, gst::StreamFlags::empty());
    stream.set_tags(Some(&tags));
    let streams = gst::StreamCollection::builder(None).stream(stream.clone());
    let toc = gst::Toc::new(gst::TocScope::Global);
    let events = [
        gst::event::StreamStart::builder("video")
            .stream(stream)
            .build(),
        gst::event::StreamCollection::new(&streams.build()),
        gst::event::Toc::new(&toc, false),
        gst::event::Tag::new(tags),
    ];
    let sent = std::sync::atomic::AtomicBool::new(false);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, _| {
        if !sent.swap(true, std::sync::atomic::Ordering::Relaxed) {
            for event in &events {
                pad.push_event(event.clone());
            }
        }
        gst::PadProbeReturn::Ok
    });
    let end = pipeline.by_name("end").expect("the sink");
    let sink = end.static_pad("sink").expect("a pad");
    let (sender, received) = std::sync::mpsc::channel();
    sink.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        if let Some(gst::PadProbeData::Event(event)) = &info.data {
            let names = tags_in(event).into_iter();
            names.for_each(|name| sender.send(name).expect("it is read"));
        }
        gst::PadProbeReturn::Ok
    });
    common::play_to_end(pipeline.upcast_ref());
    let mut names: Vec<_> = received.try_iter().collect();
    names.sort();
    names
}

#[test]
fn tags_keep_neither_pictures_nor_places() {
    let names = tags_after("facetrack engine=scripted ! facetrackblur");
    assert_eq!(names, ["title"]);
    let all = tags_after("identity");
    assert!(
        all.len() > 3 * 6 && all.contains(&"toc".to_owned()),
        "{all:?}"
    );
}
