// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackblur`: the parts of frames that it covers, and those that it does not.

use std::iter::zip;

use crate::common;

use super::facetrackoverlay::{
    GREY, HEIGHT, Stream, WIDTH, boxed, bytes, caps, color, formats_of, grey, report, unpacked,
};
use crate::common::bus::{self, Watch};
use crate::common::faces::full_face;
use crate::common::noise::Noise;
use crate::common::reports::{report_of, with_malformed_meta, with_report};
use facetrack::geometry::Rect;
use facetrack::observation::Origin;
use facetrack::report::{FrameReport, FrameStatus, TrackedFace};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::{VideoCropMeta, VideoInfo, VideoRegionOfInterestMeta};
use gstfacetrack::meta::FaceTrackMeta;

const MS: gst::ClockTime = gst::ClockTime::from_mseconds(1);

/// Black in RGB.
const BLACK: [u8; 3] = [0; 3];

impl Stream {
    /// The element with frames of one layout.
    fn blurring(properties: &str, caps: gst::Caps) -> Self {
        Self::of(&format!("facetrackblur {properties}"), caps)
    }

    /// A stream of grey frames in RGB. Their faces become black.
    fn filling(properties: &str) -> Self {
        let properties = format!("mode=fill shape=box margin=0 {properties}");
        Self::blurring(&properties, caps("RGB", WIDTH, HEIGHT))
    }

    /// The number of black pixels in a grey frame at this time.
    fn blackened(&mut self, report: Option<&FrameReport>, ms: u64) -> usize {
        black_pixels(&self.push(frame(report, ms)))
    }
}

fn frame(report: Option<&FrameReport>, ms: u64) -> gst::Buffer {
    let mut buffer = grey();
    buffer.make_mut().set_pts(ms * MS);
    match report {
        Some(report) => with_report(buffer, report),
        None => buffer,
    }
}

fn black_pixels(buffer: &gst::BufferRef) -> usize {
    let bytes = bytes(buffer);
    bytes.chunks(3).filter(|pixel| *pixel == BLACK).count()
}

const WHOLE: usize = (WIDTH * HEIGHT) as usize;

/// Pixels of the box of [`boxed`].
const BOX: usize = 60 * 60;

/// The same 40 ms after it was found once.
const GROWN: usize = 70 * 70;

fn without_analysis(status: FrameStatus) -> FrameReport {
    FrameReport {
        status,
        ..report(vec![])
    }
}

/// Id of the face, if it has one, and box of a region.
type Marked = (Option<i32>, (u32, u32, u32, u32));

/// The regions that mark what is covered.
fn regions(buffer: &gst::BufferRef) -> Vec<Marked> {
    let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
    let redacted = regions.filter(|region| region.roi_type() == "redacted");
    let found = redacted.map(|region| {
        let id = region
            .param("object_id")
            .map(|it| it.get("id").expect("an id"));
        (id, region.rect())
    });
    found.collect()
}

fn noise(info: &VideoInfo) -> gst::Buffer {
    let mut noise = Noise::new(7);
    let bytes = (0..info.size()).map(|_| noise.below(256) as u8);
    gst::Buffer::from_mut_slice(bytes.collect::<Vec<_>>())
}

/// A face whose mesh fills its box.
fn meshed() -> TrackedFace {
    let mut tracked = full_face(1, 40.0);
    tracked.face.bbox = boxed().face.bbox;
    let landmarks = tracked.face.landmarks.as_mut().expect("a mesh");
    for (i, point) in landmarks.points.iter_mut().enumerate() {
        (point.x, point.y) = (40.0 + (i % 31) as f32 * 2.0, 30.0 + (i / 31) as f32 * 4.0);
    }
    tracked
}

#[test]
fn every_mode_and_shape_covers_the_face_and_nothing_else() {
    let caps = caps("GRAY8", WIDTH, HEIGHT);
    let info = VideoInfo::from_caps(&caps).expect("video");
    let before = bytes(&noise(&info));
    let at = |x: usize, y: usize| y * WIDTH as usize + x;
    for mode in ["pixelate", "blur", "fill"] {
        for (shape, covers_corners) in [("box", true), ("ellipse", false), ("face", true)] {
            let case = format!("{mode} {shape}");
            let properties = format!("mode={mode} shape={shape} margin=0 cells=3");
            let mut stream = Stream::blurring(&properties, caps.clone());
            let buffer = with_report(noise(&info), &report(vec![meshed()]));
            let after = bytes(&stream.push(buffer));
            let steps = |row: &[u8]| {
                let pairs = row.windows(2);
                pairs
                    .map(|pair| usize::from(pair[0].abs_diff(pair[1])))
                    .sum::<usize>()
            };
            let middle = at(45, 60)..at(95, 60);
            assert!(
                steps(&after[middle.clone()]) * 10 < steps(&before[middle]),
                "{case}"
            );
            let corners = [(42, 32), (97, 32), (42, 87), (97, 87)];
            let changed = corners
                .iter()
                .filter(|(x, y)| before[at(*x, *y)] != after[at(*x, *y)]);
            let is_covered = changed.count() >= 3;
            assert_eq!(is_covered, covers_corners, "{case}");
            for (y, x) in
                (0..HEIGHT as usize).flat_map(|y| (0..WIDTH as usize).map(move |x| (y, x)))
            {
                let is_near = (39..102).contains(&x) && (29..92).contains(&y);
                assert!(
                    is_near || before[at(x, y)] == after[at(x, y)],
                    "{case}: {x}, {y}"
                );
            }
        }
    }
}

#[test]
fn faces_are_covered_in_every_format_and_the_rest_stays_as_it_was() {
    // Pixels whose chroma may be shared with the box.
    const NEAR: u32 = 4;
    let formats = formats_of("facetrackblur");
    assert_eq!(formats, formats_of("facetrackoverlay"));
    for format in formats {
        for (mode, size) in [
            ("pixelate", (WIDTH, HEIGHT)),
            ("blur", (101, 95)),
            ("fill", (101, 95)),
        ] {
            let caps = caps(&format, size.0, size.1);
            let info = VideoInfo::from_caps(&caps).expect("video");
            let before = unpacked(&noise(&info), &info);
            let report = report_of(size, vec![boxed()]);
            let properties = format!("mode={mode} shape=box margin=0");
            let mut stream = Stream::blurring(&properties, caps);
            let after = unpacked(&stream.push(with_report(noise(&info), &report)), &info);
            let mut kept = 0;
            for (y, (before, after)) in (0..).zip(before.iter().zip(&after)) {
                let pixel = before.len() / size.0 as usize;
                let pixels = before.chunks(pixel).zip(after.chunks(pixel));
                for (x, (before, after)) in (0..).zip(pixels) {
                    let is_in = |slack| {
                        (40 - slack..100 + slack).contains(&x)
                            && (30 - slack..90 + slack).contains(&y)
                    };
                    assert!(
                        is_in(NEAR) || before == after,
                        "{format} {mode} at {x}, {y}"
                    );
                    kept += usize::from(is_in(0) && before == after);
                }
            }
            assert!(kept * 20 < BOX, "{format} {mode}: {kept}");
        }
    }
}

#[test]
fn frames_of_every_format_and_size_flow() {
    for format in formats_of("facetrackblur") {
        for (width, height) in [(1, 1), (33, 17), (2, 64)] {
            let caps = caps(&format, width, height);
            let info = VideoInfo::from_caps(&caps).expect("video");
            for mode in ["pixelate", "blur", "fill"] {
                let mut stream = Stream::blurring(&format!("mode={mode} shape=face"), caps.clone());
                let mut far = report_of((width, height), vec![full_face(1, -10.0)]);
                far.faces.push(full_face(2, 1e6));
                far.faces.push(boxed());
                for report in [&far, &report_of((width, height), vec![meshed()])] {
                    let buffer = gst::Buffer::from_mut_slice(vec![GREY; info.size()]);
                    stream.push(with_report(buffer, report));
                }
                assert_eq!(bus::error(&stream.bus), None, "{format} {mode}");
            }
        }
    }
}

#[test]
fn frames_with_nothing_to_cover_pass_uncopied() {
    let empty = with_report(gst::Buffer::new(), &report(vec![boxed()]));
    for (case, properties, buffer) in [
        ("no faces", "", with_report(grey(), &report(vec![]))),
        (
            "kept",
            "keep=1",
            with_report(grey(), &report(vec![boxed()])),
        ),
        ("nothing in it", "", empty),
        ("no metadata", "unknown=pass", grey()),
    ] {
        let mut stream = Stream::filling(properties);
        let held = buffer.clone();
        assert_eq!(stream.push(buffer).as_ptr(), held.as_ptr(), "{case}");
    }
}

#[test]
fn a_frame_that_somebody_else_holds_is_not_changed() {
    let mut stream = Stream::filling("");
    let buffer = with_report(grey(), &report(vec![boxed()]));
    let held = buffer.clone();
    let covered = stream.push(buffer);
    assert_eq!([black_pixels(&held), black_pixels(&covered)], [0, BOX]);
    assert!(regions(&held).is_empty());

    let buffer = with_report(grey(), &report(vec![boxed()]));
    let memory = buffer.peek_memory(0).as_ptr();
    let covered = stream.push(buffer);
    assert_eq!(covered.peek_memory(0).as_ptr(), memory, "covered in place");
}

#[test]
fn regions_say_what_is_covered() {
    let mut stream = Stream::filling("");
    let covered = stream.push(frame(Some(&report(vec![boxed()])), 0));
    assert_eq!(regions(&covered), [(Some(1), (40, 30, 60, 60))]);
    let lost = stream.push(frame(Some(&report(vec![])), 40));
    assert_eq!(regions(&lost), [(Some(1), (35, 25, 70, 70))]);
    let unknown = stream.push(frame(None, 2000));
    assert_eq!(regions(&unknown), [(None, (0, 0, WIDTH, HEIGHT))]);
    assert!(regions(&stream.push(frame(Some(&report(vec![])), 2040))).is_empty());
}

#[test]
fn a_lost_face_stays_covered_and_its_area_grows() {
    let mut stream = Stream::filling("hold=0.5");
    let [mut first, second] = [boxed(), boxed()];
    first.face.bbox.x -= 5.0;
    for (face, ms) in [(first, 0), (second, 40)] {
        assert_eq!(stream.blackened(Some(&report(vec![face])), ms), BOX);
    }
    for (ms, growth) in [(80, 5), (120, 10), (200, 20)] {
        let side = 60 + 2 * growth;
        let count = stream.blackened(Some(&report(vec![])), ms);
        assert_eq!(count, side * side, "{ms}");
    }
    assert_eq!(stream.blackened(Some(&report(vec![])), 541), 0);
}

/// Gaps and skipped frames may show any face.
#[test]
fn frames_without_analysis_follow_unknown() {
    let gap = without_analysis(FrameStatus::Gap);
    let skipped = without_analysis(FrameStatus::Skipped);
    for (properties, want) in [("", [WHOLE, WHOLE, WHOLE]), ("unknown=pass", [0, GROWN, 0])] {
        for report in [None, Some(&gap), Some(&skipped)] {
            let mut stream = Stream::filling(properties);
            let before = stream.blackened(report, 0);
            stream.blackened(Some(&self::report(vec![boxed()])), 40);
            let counts = [
                before,
                stream.blackened(report, 80),
                stream.blackened(report, 1100),
            ];
            assert_eq!(counts, want, "{properties} {report:?}");
        }
    }
}

/// Buffers with the flag for gaps may show a picture: `videorate` repeats frames so.
#[test]
fn pictures_of_gaps_are_covered() {
    let mut stream = Stream::filling("");
    stream.blackened(Some(&report(vec![boxed()])), 0);
    for report in [Some(without_analysis(FrameStatus::Gap)), None] {
        let mut buffer = frame(report.as_ref(), 40);
        buffer.make_mut().set_flags(gst::BufferFlags::GAP);
        assert_eq!(black_pixels(&stream.push(buffer)), WHOLE);
    }
}

#[test]
fn a_seek_forgets_lost_faces_and_another_flush_or_stream_does_not() {
    let known = report(vec![boxed()]);
    let after = |begin: &dyn Fn(&mut Harness), want| {
        let mut stream = Stream::filling("unknown=pass");
        assert_eq!(stream.blackened(Some(&known), 0), BOX);
        assert_eq!(stream.blackened(None, 40), GROWN);
        begin(&mut stream.harness);
        let buffer = stream.push(gst::Buffer::from_mut_slice(vec![GREY; WHOLE * 3]));
        assert_eq!(black_pixels(&buffer), want);
    };
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    let flush_of = |harness: &mut Harness, seqnum| {
        let start = gst::event::FlushStart::builder().seqnum(seqnum);
        let stop = gst::event::FlushStop::builder(true).seqnum(seqnum);
        assert!(harness.push_event(start.build()));
        assert!(harness.push_event(stop.build()));
        assert!(harness.push_event(gst::event::Segment::new(&segment)));
    };
    let seek_of = |harness: &mut Harness| {
        let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
        let (start, stop) = (gst::ClockTime::ZERO, gst::ClockTime::NONE);
        let seek = gst::event::Seek::new(1.0, gst::SeekFlags::FLUSH, set, start, none, stop);
        let seqnum = seek.seqnum();
        assert!(harness.push_upstream_event(seek));
        seqnum
    };
    let flush = |harness: &mut Harness| flush_of(harness, gst::Seqnum::next());
    after(&flush, GROWN);
    let seek = |harness: &mut Harness| {
        let seqnum = seek_of(harness);
        flush_of(harness, seqnum);
    };
    after(&seek, 0);
    // An earlier seek does not count.
    let both = |harness: &mut Harness| {
        seek_of(harness);
        flush(harness);
    };
    after(&both, GROWN);
    let restart = |harness: &mut Harness| {
        assert!(harness.push_event(gst::event::StreamStart::new("another")));
        harness.set_src_caps(caps("RGB", WIDTH, HEIGHT));
        assert!(harness.push_event(gst::event::Segment::new(&segment)));
    };
    after(&restart, GROWN);
    let faster = |harness: &mut Harness| {
        let mut segment = segment.clone();
        segment.set_rate(4.0);
        assert!(harness.push_event(gst::event::Segment::new(&segment)));
    };
    after(&faster, GROWN);
}

#[test]
fn a_lost_face_stays_covered_at_another_size() {
    for ((width, height), want) in [
        ((WIDTH / 2, HEIGHT / 2), (Some(1), (17, 12, 36, 36))),
        // The frame may have been turned or cropped.
        ((WIDTH, HEIGHT / 2), (None, (0, 0, WIDTH, HEIGHT / 2))),
    ] {
        let mut stream = Stream::filling("");
        assert_eq!(stream.blackened(Some(&report(vec![boxed()])), 0), BOX);
        stream.harness.set_src_caps(caps("RGB", width, height));
        let pixels = (width * height) as usize;
        let mut buffer = gst::Buffer::from_mut_slice(vec![GREY; pixels * 3]);
        buffer.make_mut().set_pts(40 * MS);
        let nothing = report_of((width, height), vec![]);
        let covered = stream.push(with_report(buffer, &nothing));
        assert_eq!(regions(&covered), [want]);
    }
}

/// The id of a lost face passes to another one.
#[test]
fn the_place_of_a_face_whose_id_jumps_stays_covered() {
    let mut stream = Stream::filling("");
    let mut other = boxed();
    other.face.bbox.x -= 30.0;
    assert_eq!(stream.blackened(Some(&report(vec![boxed()])), 0), BOX);
    assert_eq!(
        stream.blackened(Some(&report(vec![other.clone()])), 40),
        BOX + GROWN - 35 * 60
    );
    assert_eq!(stream.blackened(Some(&report(vec![other])), 1041), BOX);
}

#[test]
fn faces_that_are_kept_stay_visible() {
    let mut other = boxed();
    other.id = 7;
    other.face.bbox = Rect::new(110.0, 40.0, 20.0, 20.0);
    let both = report(vec![boxed(), other]);
    for (keep, want) in [("7", BOX), ("\"1, 7\"", 0), ("1", 400), ("3", BOX + 400)] {
        let mut stream = Stream::filling(&format!("keep={keep}"));
        assert_eq!(stream.blackened(Some(&both), 0), want, "{keep}");
    }
}

#[test]
fn ids_that_are_none_are_reported_and_uncover_nobody() {
    let both = report(vec![boxed()]);
    let mut stream = Stream::filling("keep=2");
    stream.element.set_property("keep", "1,everybody");
    let warning = bus::warning(&stream.bus).expect("a warning");
    assert!(warning.contains("everybody"), "{warning}");
    assert_eq!(stream.blackened(Some(&both), 0), BOX, "it keeps nobody");
    let keep = stream.element.property::<Option<String>>("keep");
    assert_eq!(keep.as_deref(), Some("1,everybody"));
    stream.element.set_property("margin", 0.0);
    assert_eq!(bus::warning(&stream.bus), None, "it is reported once");
    stream.element.set_property("keep", "1");
    assert_eq!(stream.blackened(Some(&both), 40), 0);

    let element = gst::parse::launch("facetrackblur keep=x").expect("good");
    let bus = Watch::of(&element);
    assert!(element.set_state(gst::State::Paused).is_err());
    let error = bus::error(&bus).expect("an error");
    assert!(error.contains("commas"), "{error}");
    element.set_state(gst::State::Null).expect("it stops");
}

/// Positions of another picture cover nothing: the whole frame becomes black.
#[test]
fn metadata_that_does_not_fit_the_frame_is_no_analysis() {
    let mut cropped = with_report(grey(), &report(vec![boxed()]));
    VideoCropMeta::add(cropped.make_mut(), (10, 10, 20, 20));
    for (buffer, part) in [
        (cropped, "cropped"),
        (with_malformed_meta(grey()), "malformed"),
    ] {
        let mut stream = Stream::filling("");
        for _ in 0..3 {
            assert_eq!(black_pixels(&stream.push(buffer.clone())), WHOLE, "{part}");
        }
        let warnings = bus::warnings(&stream.bus);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(part), "{warnings:?}");
    }
}

#[test]
fn streams_without_metadata_are_black_and_reported() {
    let mut stream = Stream::filling("");
    for n in 0..70 {
        assert_eq!(stream.blackened(None, 40 * n), WHOLE);
    }
    let warnings = bus::warnings(&stream.bus);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("put facetrack"), "{warnings:?}");
}

/// A frame with a face that cannot be written to does not pass.
#[test]
fn a_frame_that_cannot_be_changed_ends_the_stream() {
    let mut stream = Stream::filling("");
    let short = gst::Buffer::from_mut_slice(vec![GREY; 9]);
    let flow = stream
        .harness
        .push(with_report(short, &report(vec![boxed()])));
    assert_eq!(flow, Err(gst::FlowError::Error));
    assert!(stream.harness.try_pull().is_none());
    let error = bus::error(&stream.bus).expect("an error");
    assert!(error.contains("9 bytes"), "{error}");
}

#[test]
fn frames_that_were_scaled_are_covered_at_their_own_size() {
    common::init();
    let mut harness = Harness::new_parse(
        "videoscale ! capsfilter caps=video/x-raw,width=320,height=240 \
         ! facetrackblur mode=fill shape=box margin=0",
    );
    harness.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let buffer = with_report(grey(), &report(vec![boxed()]));
    let covered = harness.push_and_pull(buffer).expect("it flows");
    assert_eq!(black_pixels(&covered), 4 * BOX);
}

/// As under overload, every fourth frame is analysed. The face turns back after frame 16. Its speed
/// is known from frame 4 on.
#[test]
fn a_face_that_moves_between_analyses_is_covered() {
    let place = |n: u64| 20.0 + 3.0 * (16.0 - (n as f32 - 16.0).abs());
    let mut stream = Stream::filling("");
    for n in 0..24 {
        let mut face = boxed();
        face.face.bbox = Rect::new(place(n - n % 4), 50.0, 20.0, 20.0);
        let mut report = report(vec![face]);
        if n % 4 > 0 {
            report.status = FrameStatus::Skipped;
            report.faces[0].face.origin = Origin::Held;
        }
        let pixels = bytes(&stream.push(frame(Some(&report), 40 * n)));
        let left = place(n) as usize;
        let is_covered = (left..left + 20).all(|x| color(&pixels, x, 60) == BLACK);
        assert!(is_covered || n < 4, "frame {n}");
    }
}

#[test]
fn properties_act_from_the_next_frame_on() {
    let mut stream = Stream::filling("");
    let known = report(vec![boxed()]);
    assert_eq!(stream.blackened(Some(&known), 0), BOX);
    stream.element.set_property("margin", 0.25);
    assert_eq!(stream.blackened(Some(&known), 40), 90 * 90);
    stream.element.set_property_from_str("mode", "pixelate");
    let pixelated = stream.push(frame(Some(&known), 80));
    assert_eq!(color(&bytes(&pixelated), 70, 60), [GREY; 3]);
}

/// In two passes, with a face that moves.
#[test]
fn the_frame_after_a_seek_is_covered_at_its_own_place() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("clip.json");
    let record = record.display();
    let source =
        "videotestsrc num-buffers=50 ! video/x-raw,format=RGB,width=160,height=120,framerate=25/1";
    let script = "facetrack engine=scripted script=\"face dx=0.01\"";
    let first = gst::parse::launch(&format!(
        "{source} ! {script} ! trackjsonsink location={record} verbose=true"
    ));
    common::play_to_end(&first.expect("a pipeline"));

    let pipeline = gst::parse::launch(&format!(
        "{source} ! trackjsonload location={record} look-ahead=0.2 \
         ! facetrackblur shape=box margin=0 ! appsink name=out sync=false"
    ));
    let pipeline = pipeline
        .expect("a pipeline")
        .downcast::<gst::Pipeline>()
        .expect("one");
    let out = pipeline.by_name("out").expect("a sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline.set_state(gst::State::Paused).expect("it pauses");
    let mut places = Vec::new();
    for seconds in [0, 1] {
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        let time = gst::ClockTime::from_seconds(seconds);
        pipeline
            .seek_simple(flags, time)
            .expect("a seekable pipeline");
        let sample = out.pull_preroll().expect("a frame");
        let buffer = sample.buffer().expect("a frame");
        let report = FaceTrackMeta::from_buffer(buffer).expect("a report");
        let face = report.faces[0].face.bbox;
        let [(_, (left, top, width, height))] = regions(buffer)[..] else {
            panic!("{:?}", regions(buffer));
        };
        let covered = [left, top, left + width, top + height].map(|it| it as f32);
        let edges = [face.x, face.y, face.x + face.width, face.y + face.height];
        let outside = zip(covered, edges).map(|(covered, edge)| (covered - edge).abs());
        assert!(
            outside.into_iter().all(|it| it <= 1.0),
            "{covered:?} {edges:?}"
        );
        places.push(left);
    }
    pipeline.set_state(gst::State::Null).expect("it stops");
    assert!(places[1] > places[0] + 10, "{places:?}");
}
