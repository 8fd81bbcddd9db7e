// SPDX-License-Identifier: MPL-2.0
//! `trackjsonload` with records that `trackjsonsink` wrote.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::bus::{self, Watch};
use crate::common::faces::{face, fitted_face, full_face, morphable_face, recognised_face};
use crate::common::noise::{Noise, replace_value};
use crate::common::reports::{report, with_report};
use crate::common::same::assert_same;
use facetrack::observation::{FitFailure, Origin};
use facetrack::report::{FrameReport, FrameStatus, SearchExtent, TrackedFace};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::{VideoInfo, VideoRegionOfInterestMeta};
use gstfacetrack::meta::{FaceTrackMeta, Fit};

const MS: gst::ClockTime = gst::ClockTime::from_mseconds(1);

const CAPS: &str = "video/x-raw,format=RGB,width=1280,height=720,framerate=25/1";

/// A buffer of a stream with 25 frames a second, the `n`th from 0.
fn nth(n: u64) -> gst::Buffer {
    at(Some(40 * n * MS))
}

fn at(pts: Option<gst::ClockTime>) -> gst::Buffer {
    common::init();
    let mut buffer = gst::Buffer::new();
    buffer.make_mut().set_pts(pts);
    buffer
}

/// A report whose face has the frame's number as its id.
fn numbered(n: u32) -> FrameReport {
    report(vec![face(n, 100.0)])
}

/// A folder with a record in it.
struct Recorded {
    folder: tempfile::TempDir,
}

impl Recorded {
    fn path(&self) -> PathBuf {
        self.folder.path().join("clip.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).expect("a record")
    }

    /// A file with this content.
    fn of(text: impl AsRef<[u8]>) -> Self {
        common::init();
        let folder = tempfile::tempdir().expect("a folder");
        let recorded = Self { folder };
        fs::write(recorded.path(), text).expect("room");
        recorded
    }

    /// The sink's record of these buffers.
    fn from(buffers: impl IntoIterator<Item = gst::Buffer>, properties: &str) -> Self {
        common::init();
        let folder = tempfile::tempdir().expect("a folder");
        let recorded = Self { folder };
        let launch = format!(
            "trackjsonsink location={} {properties}",
            recorded.path().display()
        );
        let mut sink = Harness::new_parse(&launch);
        sink.set_src_caps_str(CAPS);
        sink.play();
        for buffer in buffers {
            sink.push(buffer).expect("the sink takes it");
        }
        assert!(sink.push_event(gst::event::Eos::new()));
        recorded
    }

    /// Ten frames, each with a face that has the frame's number.
    fn ten(properties: &str) -> Self {
        let buffers = (0..10).map(|n| with_report(nth(n), &numbered(n as u32 + 1)));
        Self::from(buffers, properties)
    }
}

/// The element under test.
struct Load {
    harness: Harness,
    element: gst::Element,
    bus: Watch,
}

fn element(path: &Path) -> (gst::Element, Watch) {
    common::init();
    let element = gst::ElementFactory::make("trackjsonload")
        .property("location", path.to_str().expect("UTF-8"))
        .build()
        .expect("the element");
    let bus = Watch::of(&element);
    (element, bus)
}

impl Load {
    /// Before the first event.
    fn open(recorded: &Recorded, set: impl FnOnce(&gst::Element)) -> Self {
        let (element, bus) = element(&recorded.path());
        set(&element);
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.play();
        Self {
            harness,
            element,
            bus,
        }
    }

    fn with(recorded: &Recorded, set: impl FnOnce(&gst::Element)) -> Self {
        let mut load = Self::open(recorded, set);
        load.harness.set_src_caps_str(CAPS);
        load
    }

    /// The first segment begins with this timestamp and stream time, in ms.
    fn at(recorded: &Recorded, start: u64, time: u64) -> Self {
        let mut load = Self::open(recorded, |_| ());
        let caps: gst::Caps = CAPS.parse().expect("caps");
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start * MS);
        segment.set_time(time * MS);
        for event in [
            gst::event::StreamStart::new("a video"),
            gst::event::Caps::new(&caps),
            gst::event::Segment::new(&segment),
        ] {
            assert!(load.harness.push_event(event));
        }
        load
    }

    fn new(recorded: &Recorded) -> Self {
        Self::with(recorded, |_| ())
    }

    fn by_frame(recorded: &Recorded) -> Self {
        Self::with(recorded, |element| {
            element.set_property_from_str("match", "frame");
        })
    }

    fn pass(&mut self, buffer: gst::Buffer) -> gst::Buffer {
        self.harness.push_and_pull(buffer).expect("it passes")
    }

    /// Returns the report on a buffer that has passed the element.
    fn report(&mut self, buffer: gst::Buffer) -> Option<FrameReport> {
        FaceTrackMeta::from_buffer(&self.pass(buffer))
    }

    /// The number of the record that a buffer gets.
    fn number(&mut self, buffer: gst::Buffer) -> Option<u32> {
        Some(self.report(buffer)?.faces[0].id)
    }

    fn numbers(&mut self, times: &[u64]) -> Vec<Option<u32>> {
        times
            .iter()
            .map(|ms| self.number(at(Some(*ms * MS))))
            .collect()
    }

    fn segment(&mut self, start_ms: u64) {
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start_ms * MS);
        segment.set_time(start_ms * MS);
        let event = gst::event::Segment::new(&segment);
        assert!(self.harness.push_event(event));
    }

    /// Flushes the element, as a seek does.
    fn flush_to(&mut self, start_ms: u64) {
        assert!(self.harness.push_event(gst::event::FlushStart::new()));
        assert!(self.harness.push_event(gst::event::FlushStop::new(true)));
        self.segment(start_ms);
    }

    fn warning(&self) -> Option<String> {
        bus::warning(&self.bus)
    }
}

/// A record after it was attached to its frames and recorded again.
fn again(
    recorded: &Recorded,
    times: impl IntoIterator<Item = gst::Buffer>,
    properties: &str,
) -> String {
    let mut load = Load::with(recorded, |element| {
        element.set_property_from_str("on-mismatch", "ignore");
    });
    let buffers: Vec<_> = times.into_iter().map(|buffer| load.pass(buffer)).collect();
    Recorded::from(buffers, properties).text()
}

/// Reports with all that can be in one.
fn everything() -> Vec<Option<FrameReport>> {
    let mut unfitted = morphable_face(4, 500.0);
    unfitted.face.morphable = Some(Err(FitFailure::OutOfFrame));
    let mut other_size = report(vec![full_face(9, 40.5)]);
    (other_size.width, other_size.height) = (320, 200);
    let [mut gap, mut failed] = [report(vec![]), report(vec![])];
    gap.status = FrameStatus::Gap;
    failed.status = FrameStatus::Error;
    vec![
        None,
        Some(report(vec![])),
        Some(report(vec![face(2, -50.25), full_face(1, 300.0), unfitted])),
        Some(gap),
        Some(report(vec![
            fitted_face(1, 300.0),
            morphable_face(7, 1300.0),
        ])),
        Some(report(vec![recognised_face(1, 310.0)])),
        Some(failed),
        Some(other_size),
        None,
    ]
}

fn buffers(reports: &[Option<FrameReport>], times: &[u64]) -> Vec<gst::Buffer> {
    let buffer = |(report, n): (&Option<FrameReport>, &u64)| match report {
        Some(report) => with_report(nth(*n), report),
        None => nth(*n),
    };
    std::iter::zip(reports, times).map(buffer).collect()
}

#[test]
fn recording_again_gives_the_same_file() {
    // Frames 3, 4 and 10 are missing.
    let times = [0, 1, 4, 5, 6, 7, 8, 10, 11];
    for properties in [
        "verbose=true",
        "verbose=true format=jsonl",
        "verbose=true blendshape-profile=mouth",
        "verbose=true fill-gaps=false",
        "verbose=true fill-by=timestamps",
    ] {
        let recorded = Recorded::from(buffers(&everything(), &times), properties);
        let text = again(&recorded, times.map(nth), properties);
        assert_same(&text, &recorded.text());
    }
}

/// The record is described in `tests/golden/records/README.md`. Its times are timestamps.
#[test]
fn records_of_the_first_schema_are_read() {
    let recorded = Recorded::of(include_bytes!("../golden/records/facetrack-1.json"));
    let segment = |load: &mut Load| {
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(80 * MS);
        segment.set_time(gst::ClockTime::ZERO);
        assert!(load.harness.push_event(gst::event::Segment::new(&segment)));
    };
    let timestamps = || (0..10).map(|n| at(Some((80 + 40 * n) * MS)));
    for by in ["auto", "pts", "frame"] {
        let mut load = Load::with(&recorded, |element| {
            element.set_property_from_str("match", by);
        });
        segment(&mut load);
        let found: Vec<usize> = timestamps()
            .map(|buffer| load.report(buffer).expect("a report").faces.len())
            .collect();
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 2, 2, 2, 2], "{by}");
    }
    // Recorded again it has the new schema, and with that it comes back to the letter.
    let second = again(&recorded, timestamps(), "verbose=true");
    assert!(second.contains("\"facetrack-2\""), "{second}");
    let same = again(&Recorded::of(&second), timestamps(), "verbose=true");
    assert_same(&same, &second);
    let faces = |text: &str| -> Vec<serde_json::Value> {
        let record: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let frames = record["frames"].as_array().expect("frames").iter();
        frames
            .map(|frame| frame["tracked_objects"].clone())
            .collect()
    };
    assert_eq!(faces(&second), faces(&recorded.text()));
}

/// Stream times are compared, also if timestamps start late, as in a transport stream.
#[test]
fn stream_times_are_found() {
    let head = r#"{"metadata":{"schema":"facetrack-2","start_time":780000000,"width":640,"height":360,"tracking_engine":"a"}}"#;
    let frame = |n: u64| {
        format!(
            r#"{{"frame":{},"tracked_objects":[],"pts":{}}}"#,
            n + 1,
            n * 40_000_000
        )
    };
    let lines: Vec<String> = std::iter::once(head.to_owned())
        .chain((0..3).map(frame))
        .collect();
    let recorded = Recorded::of(lines.join("\n"));
    for (start, time) in [(780, 780), (5000, 780)] {
        let mut second = Load::new(&recorded);
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start * MS);
        segment.set_time(time * MS);
        let segment = gst::event::Segment::new(&segment);
        assert!(second.harness.push_event(segment));
        for mut load in [second, Load::at(&recorded, start, time)] {
            for n in 0..3 {
                let buffer = at(Some((start + 40 * n) * MS));
                assert!(load.report(buffer).is_some(), "{start} {n}");
            }
            assert!(load.report(at(Some((start + 400) * MS))).is_none());
        }
    }
}

#[test]
fn positions_come_back_to_the_thousandth() {
    let mut noise = Noise::new(5);
    for size in [(640, 360), (1280, 720), (1921, 1081), (2560, 1440)] {
        let reports: Vec<_> = (0..200)
            .map(|_| {
                let faces = noise.faces(3, (size.0 as f32, size.1 as f32));
                let mut report = report(faces);
                (report.width, report.height) = size;
                Some(report)
            })
            .collect();
        let times: Vec<u64> = (0..200).collect();
        let recorded = Recorded::from(buffers(&reports, &times), "verbose=true");
        let text = again(&recorded, (0..200).map(nth), "verbose=true");
        assert_same(&text, &recorded.text());
    }
}

#[test]
fn a_plain_file_gives_a_plain_file_back() {
    // Without landmarks, the mean is unknown that MediaPipe's faces have for a centroid.
    let reports: Vec<_> = everything()
        .into_iter()
        .map(|report| {
            let mut report = report?;
            let cut = |face: &mut TrackedFace| {
                face.face.bbox = facetrack::geometry::Rect::new(10.0, 20.0, 30.0, 40.0)
            };
            report.faces.iter_mut().for_each(cut);
            Some(report)
        })
        .collect();
    let times: Vec<u64> = (0..reports.len() as u64).collect();
    let recorded = Recorded::from(buffers(&reports, &times), "");
    assert_same(
        &again(&recorded, times.into_iter().map(nth), ""),
        &recorded.text(),
    );
}

#[test]
fn buffers_get_the_record_of_their_time() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    assert_eq!(load.element.property::<u32>("frames"), 10);
    let found = load.numbers(&[0, 41, 78, 83, 360, 400, 1_000_000]);
    let want = [Some(1), Some(2), Some(3), None, Some(10), None, None];
    assert_eq!(found, want);
    // Seeking back, with a flush and without.
    load.flush_to(200);
    assert_eq!(load.numbers(&[200, 240]), [Some(6), Some(7)]);
    load.segment(0);
    assert_eq!(load.numbers(&[0, 40]), [Some(1), Some(2)]);
    assert_eq!(load.element.property::<u32>("matched"), 8);
    assert_eq!(load.element.property::<u32>("unmatched"), 3);
}

#[test]
fn the_tolerance_is_how_far_times_may_differ() {
    let recorded = Recorded::ten("");
    for (tolerance, want) in [
        (0u32, [Some(1), None, None]),
        (2, [Some(1), Some(1), None]),
        (20, [Some(1), Some(1), Some(2)]),
    ] {
        let mut load = Load::with(&recorded, |element| {
            element.set_property("tolerance", tolerance);
        });
        assert_eq!(load.numbers(&[0, 2, 25]), want, "{tolerance}");
    }
}

#[test]
fn faces_of_another_frame_were_not_searched_here() {
    let recorded = Recorded::ten("");
    for (mismatch, want) in [
        (
            "warn",
            [
                SearchExtent::Whole,
                SearchExtent::Whole,
                SearchExtent::None,
                SearchExtent::None,
            ],
        ),
        ("ignore", [SearchExtent::Whole; 4]),
    ] {
        let mut load = Load::with(&recorded, |element| {
            element.set_property("tolerance", 60_000u32);
            element.set_property_from_str("on-mismatch", mismatch);
        });
        for (ms, want) in std::iter::zip([0, 362, 363, 20_000], want) {
            let report = load.report(at(Some(ms * MS))).expect("a record");
            assert_eq!(report.search, want, "{ms} {mismatch}");
        }
    }
}

#[test]
fn frames_are_counted_where_that_is_asked_for() {
    let recorded = Recorded::ten("");
    assert_eq!(Load::new(&recorded).numbers(&[0, 20]), [Some(1), None]);
    let mut load = Load::by_frame(&recorded);
    // The frame of 80 ms is missing.
    assert_eq!(load.numbers(&[0, 40]), [Some(1), Some(2)]);
    let mut late = at(Some(120 * MS));
    late.make_mut().set_flags(gst::BufferFlags::DISCONT);
    assert_eq!(load.number(late), Some(4));
    load.flush_to(240);
    assert_eq!(load.numbers(&[240, 280]), [Some(7), Some(8)]);
    // A gap that was announced, and the end of the record.
    let gap = gst::event::Gap::builder(320 * MS)
        .duration(40 * MS)
        .gap_flags(gst::GapFlags::DATA)
        .build();
    assert!(load.harness.push_event(gap));
    assert_eq!(load.numbers(&[360, 400]), [Some(10), None]);
    load.flush_to(0);
    assert_eq!(load.numbers(&[0]), [Some(1)]);
}

/// The next video of a list, whose times start again, is recorded after the previous one.
#[test]
fn frames_are_counted_on_over_segments() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = Recorded { folder };
    common::init();
    let launch = format!("trackjsonsink location={}", recorded.path().display());
    let mut sink = Harness::new_parse(&launch);
    sink.set_src_caps_str(CAPS);
    sink.play();
    let video = |first: u32| (0..3).map(move |n| with_report(nth(n), &numbered(first + n as u32)));
    video(1).for_each(|buffer| assert!(sink.push(buffer).is_ok()));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(sink.push_event(gst::event::Segment::new(&segment)));
    video(4).for_each(|buffer| assert!(sink.push(buffer).is_ok()));
    assert!(sink.push_event(gst::event::Eos::new()));

    let mut load = Load::by_frame(&recorded);
    assert_eq!(load.numbers(&[0, 40, 80]), [1, 2, 3].map(Some));
    load.segment(0);
    assert_eq!(load.numbers(&[0, 40, 80]), [4, 5, 6].map(Some));
    // A seek without a flush, as players do it that repeat a video.
    let seek = seek(40, gst::SeekFlags::SEGMENT);
    load.harness.push_upstream_event(seek);
    load.segment(40);
    assert_eq!(load.numbers(&[40, 80]), [2, 3].map(Some));
}

/// A seek to a time, ms.
fn seek(time: u64, flags: gst::SeekFlags) -> gst::Event {
    let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
    gst::event::Seek::new(1.0, flags, set, time * MS, none, gst::ClockTime::NONE)
}

/// A failed seek does not change the count.
#[test]
fn frames_are_counted_on_after_a_seek_that_failed() {
    let recorded = Recorded::ten("");
    let mut load = Load::by_frame(&recorded);
    assert_eq!(load.numbers(&[0, 40]), [1, 2].map(Some));
    let sink = load.element.static_pad("sink").expect("a pad");
    let source = sink.peer().expect("the harness");
    source.unlink(&sink).expect("they are linked");
    let seek = seek(80, gst::SeekFlags::empty());
    assert!(!load.harness.push_upstream_event(seek), "nobody can");
    source.link(&sink).expect("as before");
    load.segment(0);
    assert_eq!(load.numbers(&[0, 40]), [3, 4].map(Some));
}

/// The record of a stream begins with frame 1 wherever in the video that is.
#[test]
fn frames_are_counted_from_where_the_stream_begins() {
    let recorded = Recorded::ten("");
    let mut load = Load::by_frame(&recorded);
    // The harness began a segment of its own.
    load.element.set_state(gst::State::Ready).expect("it stops");
    load.harness.play();
    let caps = CAPS.parse().expect("caps");
    load.harness.push_event(gst::event::Caps::new(&caps));
    load.segment(10_000);
    assert_eq!(load.numbers(&[10_000, 10_040]), [1, 2].map(Some));
    load.flush_to(10_230);
    assert_eq!(load.numbers(&[10_230, 10_240]), [6, 7].map(Some));
}

#[test]
fn a_record_of_a_failed_analysis_is_replayed_to_the_end() {
    let mut failed = report(vec![]);
    failed.status = FrameStatus::Error;
    let frames = [
        with_report(nth(0), &numbered(1)),
        with_report(nth(1), &failed),
    ];
    let recorded = Recorded::from(frames, "");
    let partial = recorded.path().with_extension("json.partial");
    let recorded = Recorded::of(fs::read(partial).expect("a record"));
    let mut load = Load::new(&recorded);
    let report = load.report(nth(1)).expect("a report");
    assert_eq!(report.status, FrameStatus::Error);
    // The source continues, as nothing failed this time.
    let buffers: Vec<_> = (0..4).map(|n| load.pass(nth(n))).collect();
    Recorded::from(buffers, "");
}

#[test]
fn buffers_without_a_time_are_counted() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    let found: Vec<_> = (0..3).map(|_| load.number(at(None))).collect();
    assert_eq!(found, [Some(1), Some(2), Some(3)]);
    // Only by time there is nothing to be found.
    let mut load = Load::with(&recorded, |element| {
        element.set_property_from_str("match", "pts");
    });
    assert_eq!(load.number(at(None)), None);
    // A record without times.
    let timeless = (0..3).map(|n| with_report(at(None), &numbered(n + 1)));
    let recorded = Recorded::from(timeless, "");
    assert_eq!(Load::new(&recorded).numbers(&[0, 40]), [Some(1), Some(2)]);
}

#[test]
fn metadata_of_an_earlier_analysis_are_replaced_or_removed() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    let other = report(vec![face(77, 5.0), face(78, 6.0)]);
    let found = load.report(with_report(nth(2), &other)).expect("a report");
    assert_eq!(found.faces.len(), 1);
    assert_eq!(found.faces[0].id, 3);
    let passed = load.report(with_report(at(Some(555 * MS)), &other));
    assert_eq!(passed, None);
}

#[test]
fn buffers_pass_with_all_that_they_have() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    for pts in [0, 555] {
        let mut buffer = gst::Buffer::from_slice([1, 2, 3]);
        let writable = buffer.make_mut();
        writable.set_pts(pts * MS);
        writable.set_flags(gst::BufferFlags::GAP | gst::BufferFlags::DISCONT);
        let memory = buffer.peek_memory(0).as_ptr();
        let passed = load.pass(buffer);
        assert!(
            passed
                .flags()
                .contains(gst::BufferFlags::GAP | gst::BufferFlags::DISCONT)
        );
        assert_eq!(passed.pts(), Some(pts * MS));
        assert_eq!(passed.peek_memory(0).as_ptr(), memory, "it is copied");
    }
}

#[test]
fn positions_hold_at_another_size() {
    let recorded = Recorded::ten("verbose=true");
    // In frames of the same shape, and between borders.
    for (width, height, x) in [(640, 360, 50.0), (640, 640, 50.0), (1280, 360, 370.0)] {
        let mut load = Load::new(&recorded);
        let caps = format!("video/x-raw,format=RGB,width={width},height={height},framerate=25/1");
        let caps: gst::Caps = caps.parse().expect("caps");
        assert!(load.harness.push_event(gst::event::Caps::new(&caps)));
        let info = VideoInfo::from_caps(&caps).expect("of video");
        let passed = load.pass(nth(0));
        let placed = FaceTrackMeta::in_frame(&passed, &info, Fit::Borders);
        let placed = placed.expect("a report");
        assert_eq!(placed.faces[0].face.bbox.x, x, "{width}×{height}");
        let region = passed
            .meta::<VideoRegionOfInterestMeta>()
            .expect("a region");
        assert_eq!(region.rect().0, x as u32, "{width}×{height}");
    }
}

#[test]
fn a_file_that_suits_no_buffer_is_reported() {
    let recorded = Recorded::ten("");
    for (times, figures) in [
        (vec![0, 5_000], Some("1 of 2 buffers")),
        ((0..20).map(|n| n * 50).collect(), Some("2 of 20 buffers")),
        // As much as there is in the record.
        ((0..20).map(|n| n * 40).collect(), None),
        (vec![0, 40], None),
    ] {
        let mut load = Load::new(&recorded);
        load.numbers(&times);
        assert!(load.harness.push_event(gst::event::Eos::new()));
        let warning = load.warning();
        assert_eq!(warning.is_some(), figures.is_some(), "{times:?}");
        for (warning, figures) in warning.iter().zip(figures) {
            assert!(warning.contains("match=frame"), "{warning}");
            assert!(warning.contains(figures), "{warning}");
        }
    }
}

/// The stream times of a video differ from container to container.
#[test]
fn the_first_frame_is_found_in_every_container() {
    let recorded = Recorded::ten("");
    let start = r#""metadata":{"start_time":23000000,"#;
    let late = Recorded::of(recorded.text().replacen(r#""metadata":{"#, start, 1));
    for (recorded, start, time, first) in [
        (&recorded, 0, 0, 0),
        // Transport streams, an edit list, and late videos.
        (&recorded, 780, 780, 780),
        (&recorded, 90, 90, 780),
        (&recorded, 80, 0, 80),
        (&recorded, 0, 0, 23),
        (&recorded, 0, 0, 280),
        (&recorded, 0, 0, 10_000),
        // As late as a later frame of the record: FLV, and Matroska made of it.
        (&recorded, 80, 80, 80),
        (&late, 80, 80, 80),
        (&late, 0, 0, 80),
    ] {
        let mut load = Load::at(recorded, start, time);
        let times: Vec<_> = (0..3).map(|n| first + 40 * n).collect();
        let want = [1, 2, 3].map(Some);
        assert_eq!(load.numbers(&times), want, "{start} {time} {first}");
    }
    // The first frame was lost.
    let mut load = Load::new(&recorded);
    assert_eq!(load.numbers(&[40, 80]), [2, 3].map(Some));
}

/// Decoders shorten the frame at the target of a seek.
#[test]
fn the_first_frame_after_a_seek_gets_its_faces() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    assert_eq!(load.number(nth(0)), Some(1));
    load.flush_to(90);
    let mut cut = at(Some(90 * MS));
    cut.make_mut().set_duration(30 * MS);
    assert_eq!(load.number(cut.clone()), Some(3));
    assert_eq!(load.number(nth(3)), Some(4));
    // Only there.
    assert_eq!(load.number(cut), None);
}

#[test]
fn a_stream_that_broke_off_is_replayed_as_far_as_it_came() {
    let text = Recorded::ten("verbose=true").text();
    let last = text.find("\"frame\":10").expect("ten frames");
    let recorded = Recorded::of(&text[..last + 100]);
    let mut load = Load::new(&recorded);
    let warning = load.warning().expect("a warning");
    for part in ["clip.json", "line 11", "9 frames"] {
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(load.numbers(&[0, 320, 360]), [Some(1), Some(9), None]);
}

/// The element's error when it can't start.
fn refusal(path: &Path) -> String {
    let (element, bus) = element(path);
    let started = element.set_state(gst::State::Paused);
    assert!(started.is_err(), "{}", path.display());
    element.set_state(gst::State::Null).expect("it stops");
    error(&bus)
}

fn error(bus: &gst::Bus) -> String {
    bus::error(bus).expect("an error")
}

#[test]
fn what_can_not_be_read_is_an_error_before_the_first_frame() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let missing = refusal(&folder.path().join("none.json"));
    for part in ["none.json", "Set location"] {
        assert!(missing.contains(part), "{missing}");
    }
    assert!(refusal(folder.path()).contains("not a regular file"));
    assert!(refusal(Path::new("/dev/null")).contains("not a regular file"));
    for (text, parts) in [
        ("", &["clip.json: it is empty"][..]),
        ("no JSON", &["clip.json: line 1", "trackjsonsink"]),
        ("{\"frames_analysis\":[]}", &["clip.json", "reduced"]),
    ] {
        let refusal = refusal(&Recorded::of(text).path());
        for part in parts {
            assert!(refusal.contains(part), "{refusal}");
        }
    }
    let reduced = Recorded::ten("format=reduced");
    assert!(refusal(&reduced.path()).contains("format=dense"));
    let unset = gst::ElementFactory::make("trackjsonload")
        .build()
        .expect("it");
    let bus = Watch::of(&unset);
    assert!(unset.set_state(gst::State::Paused).is_err());
    assert!(error(&bus).contains("location is not set"));
    unset.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_damaged_frame_ends_the_stream_when_it_is_reached() {
    let text = Recorded::ten("").text().replace("obj_3", "face 3");
    let recorded = Recorded::of(text);
    let mut load = Load::new(&recorded);
    assert_eq!(load.numbers(&[0, 40]), [Some(1), Some(2)]);
    assert_eq!(load.harness.push(nth(2)), Err(gst::FlowError::Error));
    let error = error(&load.bus);
    for part in ["clip.json: line 4, frame 3", "face 3", "fix the line"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_file_is_read_anew_with_every_start() {
    let recorded = Recorded::ten("");
    let mut load = Load::new(&recorded);
    assert_eq!(load.number(nth(4)), Some(5));
    load.element.set_state(gst::State::Ready).expect("it stops");
    let text = recorded.text().replace("obj_5", "obj_55");
    fs::write(recorded.path(), text).expect("room");
    load.harness.play();
    load.harness.set_src_caps_str(CAPS);
    load.segment(0);
    assert_eq!(load.number(nth(4)), Some(55));
}

/// A value that the metadata can't carry would be lost, or worse.
#[test]
fn whatever_is_read_can_be_attached() {
    let times: Vec<u64> = (0..9).collect();
    let text = Recorded::from(buffers(&everything(), &times), "verbose=true").text();
    let mut noise = Noise::new(23);
    let values = [
        "-1",
        "3e38",
        "-3e38",
        "1e-45",
        "4294967295",
        "[]",
        "\"\\u0000\"",
        "2147483647",
        "-2147483648",
        "\"a,b\"",
    ];
    let mut attached = 0;
    for _ in 0..300 {
        let at = noise.below(text.len());
        let mut damaged = text.clone().into_bytes();
        replace_value(&mut damaged, at, values[noise.below(values.len())]);
        let damaged = String::from_utf8(damaged).expect("only whole values were replaced");
        let recorded = Recorded::of(damaged);
        let (element, _bus) = element(&recorded.path());
        if element.set_state(gst::State::Paused).is_err() {
            element.set_state(gst::State::Null).expect("it stops");
            continue;
        }
        element.set_state(gst::State::Null).expect("it stops");
        let mut load = Load::new(&recorded);
        for n in 0..9 {
            if load.harness.push(nth(n)).is_err() {
                break;
            }
            let buffer = load.harness.pull().expect("it passes");
            match FaceTrackMeta::read(&buffer) {
                Ok(_) => attached += 1,
                Err(error) => assert_eq!(error, gstfacetrack::meta::MetaError::Absent),
            }
        }
    }
    assert!(attached > 300, "{attached}");
}

/// Id and origin of each face.
fn origins(report: Option<FrameReport>) -> Vec<(u32, Origin)> {
    let faces = report.expect("a record").faces;
    faces.iter().map(|it| (it.id, it.face.origin)).collect()
}

/// Face 1 is in the frames 0 to 3 and 6, face 2 from frame 8 on.
#[test]
fn faces_come_as_much_earlier_as_is_asked_for() {
    let faces = |n: u64| match n {
        0..=3 | 6 => vec![face(1, 10.0 * n as f32)],
        8.. => vec![face(2, 500.0)],
        _ => vec![],
    };
    let buffers = (0..10).map(|n| with_report(nth(n), &report(faces(n))));
    let recorded = Recorded::from(buffers, "verbose=true");
    let [found, held] = [Origin::Detected, Origin::Held];
    for (look_ahead, frames, want) in [
        (
            0.0,
            [4, 5, 6, 7],
            [vec![], vec![], vec![(1, found)], vec![]],
        ),
        (
            // The next frame counts, even if it is later.
            0.01,
            [4, 5, 6, 7],
            [
                // After a jump, the frames before count too.
                vec![(1, held)],
                vec![(1, held)],
                vec![(1, found)],
                vec![(2, held)],
            ],
        ),
        // Backwards, as seeking does.
        (
            0.09,
            [7, 6, 4, 3],
            [
                vec![(1, held), (2, held)],
                vec![(1, found), (2, held)],
                vec![(1, held)],
                vec![(1, found)],
            ],
        ),
    ] {
        let set = |element: &gst::Element| element.set_property("look-ahead", look_ahead);
        let mut load = Load::with(&recorded, set);
        load.pass(nth(0));
        for (n, want) in std::iter::zip(frames, want) {
            let report = load.report(nth(n));
            let status = report.as_ref().map(|report| report.status);
            let is_tracked = status == Some(FrameStatus::Tracked);
            assert_eq!(is_tracked, !want.is_empty(), "{look_ahead} {n}");
            assert_eq!(origins(report), want, "{look_ahead} {n}");
        }
    }
    let mut load = Load::with(&recorded, |element| {
        element.set_property("look-ahead", 0.09f64)
    });
    // Its speed was 10 px per frame.
    let moved = load.report(nth(4)).expect("a record").faces[0].face.bbox;
    let bbox = face(1, 30.0).face.bbox;
    assert_eq!(moved.x, bbox.x - 10.0);
    assert_eq!(moved.right(), bbox.right() + 10.0);
    // It stays, but may have moved by half its size per second.
    let resting = load
        .report(nth(7))
        .expect("a record")
        .faces
        .pop()
        .expect("a face")
        .face;
    let bbox = face(2, 500.0).face.bbox;
    assert!(resting.bbox.x < bbox.x && resting.bbox.x > bbox.x - bbox.width / 4.0);
}

/// A seek to the frame that is shown, or to the next one.
#[test]
fn the_first_frame_after_a_seek_gets_the_faces_of_the_frames_before() {
    let faces = |n: u64| if n < 4 { vec![face(1, 10.0)] } else { vec![] };
    let buffers = (0..10).map(|n| with_report(nth(n), &report(faces(n))));
    let recorded = Recorded::from(buffers, "verbose=true");
    let mut load = Load::with(&recorded, |element| {
        element.set_property("look-ahead", 0.21f64)
    });
    for n in 0..6 {
        load.pass(nth(n));
    }
    assert_eq!(origins(load.report(nth(6))), []);
    for n in [6, 7] {
        load.flush_to(40 * n);
        assert_eq!(origins(load.report(nth(n))), [(1, Origin::Held)], "{n}");
        assert_eq!(origins(load.report(nth(n + 1))), [], "{n}");
    }
}

/// The id of a face passes to another one, or its box was of a part of it.
#[test]
fn faces_come_early_where_their_ids_jump() {
    let faces = |n: u64| vec![face(1, if n < 4 { 10.0 } else { 300.0 })];
    let buffers = (0..10).map(|n| with_report(nth(n), &report(faces(n))));
    let recorded = Recorded::from(buffers, "verbose=true");
    let mut load = Load::with(&recorded, |element| {
        element.set_property("look-ahead", 0.09f64)
    });
    let [found, held] = [(1, Origin::Detected), (1, Origin::Held)];
    for (n, want) in [
        (1, vec![found]),
        (2, vec![found, held]),
        (3, vec![found, held]),
        (4, vec![found]),
    ] {
        let read = load.report(nth(n)).expect("a record");
        let centre = read.faces.last().expect("a face").face.bbox.center();
        assert_eq!(centre.x > 250.0, n > 1, "{n}");
        assert_eq!(origins(Some(read)), want, "{n}");
    }
}

#[test]
fn all_faces_of_one_id_come_and_come_early() {
    let faces = |n: u64| match n {
        0 => vec![face(1, 10.0)],
        1 => vec![face(1, 10.0), face(1, 500.0)],
        _ => vec![],
    };
    let buffers = (0..3).map(|n| with_report(nth(n), &report(faces(n))));
    let recorded = Recorded::from(buffers, "verbose=true");
    let mut load = Load::with(&recorded, |element| {
        element.set_property("look-ahead", 0.05f64)
    });
    let [found, held] = [Origin::Detected, Origin::Held];
    for (n, want) in [
        (0, vec![(1, found), (1, held)]),
        (1, vec![(1, found), (1, found)]),
        (2, vec![]),
    ] {
        assert_eq!(origins(load.report(nth(n))), want, "{n}");
    }
}

/// How far the frames were searched comes back, with the origins of faces or without them.
#[test]
fn the_extent_of_the_search_comes_back() {
    let with = |search, origin| {
        let mut tracked = face(1, 10.0);
        tracked.face.origin = origin;
        FrameReport {
            search,
            ..report(vec![tracked])
        }
    };
    let reports = [
        with(SearchExtent::Whole, Origin::Tracked),
        with(SearchExtent::Whole, Origin::Held),
        with(SearchExtent::None, Origin::Held),
        with(SearchExtent::Limited, Origin::Detected),
        with(SearchExtent::Partial, Origin::Detected),
        with(SearchExtent::KnownFaces, Origin::Tracked),
        with(SearchExtent::OtherVideo, Origin::Detected),
    ];
    for properties in ["verbose=true", ""] {
        let buffers = std::iter::zip(0.., &reports).map(|(n, it)| with_report(nth(n), it));
        let recorded = Recorded::from(buffers, properties);
        let mut load = Load::with(&recorded, |_| ());
        for (n, want) in std::iter::zip(0.., &reports) {
            let read = load.report(nth(n)).expect("a record");
            assert_eq!(read.search, want.search, "{properties} {n}");
        }
        assert_eq!(
            recorded.text().matches("\"search\"").count(),
            6,
            "{properties}"
        );
    }
}
