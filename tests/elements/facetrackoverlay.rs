// SPDX-License-Identifier: MPL-2.0
//! The element `facetrackoverlay`: its drawing in frames of every format, and the frames that it
//! does not change.

use crate::common;

use crate::common::bus::{self, Watch};
use crate::common::faces::{face, full_face};
use crate::common::noise::Noise;
use crate::common::padded::{FILLING, padded};
use crate::common::reports::{report_of, with_malformed_meta, with_report};
use facetrack::geometry::Rect;
use facetrack::observation::{Observation, Origin};
use facetrack::report::{FrameReport, TrackedFace};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::prelude::*;
use gst_video::{
    VideoCropMeta, VideoFormat, VideoFormatInfo, VideoFrameFlags, VideoFrameRef, VideoInfo,
    VideoMeta, VideoPackFlags,
};
use gstfacetrack::meta::FaceTrackMeta;

pub(super) const WIDTH: u32 = 160;
pub(super) const HEIGHT: u32 = 120;

/// Grey, in the bytes of RGB and of luma.
pub(super) const GREY: u8 = 100;

pub(super) fn report(faces: Vec<TrackedFace>) -> FrameReport {
    report_of((WIDTH, HEIGHT), faces)
}

/// A face with only a box.
pub(super) fn boxed() -> TrackedFace {
    let mut tracked = face(1, 40.0);
    tracked.face.bbox = Rect::new(40.0, 30.0, 60.0, 60.0);
    tracked
}

pub(super) fn caps(format: &str, width: u32, height: u32) -> gst::Caps {
    common::init();
    format!("video/x-raw,format={format},width={width},height={height},framerate=25/1")
        .parse()
        .expect("caps")
}

/// An element with frames of one layout.
pub(super) struct Stream {
    pub(super) harness: Harness,
    pub(super) element: gst::Element,
    pub(super) bus: Watch,
}

impl Stream {
    fn new(properties: &str, caps: gst::Caps) -> Self {
        Self::of(&format!("facetrackoverlay {properties}"), caps)
    }

    /// The element of a launch line.
    pub(super) fn of(launch: &str, caps: gst::Caps) -> Self {
        common::init();
        let element = gst::parse::launch(launch).expect("good");
        let bus = Watch::of(&element);
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps(caps);
        Self {
            harness,
            element,
            bus,
        }
    }

    /// Creates a stream of gray frames in RGB.
    fn rgb(properties: &str) -> Self {
        Self::new(properties, caps("RGB", WIDTH, HEIGHT))
    }

    pub(super) fn push(&mut self, buffer: gst::Buffer) -> gst::Buffer {
        self.harness.push_and_pull(buffer).expect("it flows")
    }

    /// A grey frame with a report, after drawing.
    fn drawn(&mut self, report: &FrameReport) -> Vec<u8> {
        bytes(&self.push(with_report(grey(), report)))
    }
}

pub(super) fn grey() -> gst::Buffer {
    common::init();
    gst::Buffer::from_mut_slice(vec![GREY; (WIDTH * HEIGHT * 3) as usize])
}

pub(super) fn bytes(buffer: &gst::BufferRef) -> Vec<u8> {
    buffer.map_readable().expect("bytes").to_vec()
}

pub(super) fn color(pixels: &[u8], x: usize, y: usize) -> [u8; 3] {
    let at = (y * WIDTH as usize + x) * 3;
    [pixels[at], pixels[at + 1], pixels[at + 2]]
}

fn changed(pixels: &[u8]) -> usize {
    let pixels = pixels.chunks(3);
    pixels.filter(|pixel| *pixel != [GREY; 3]).count()
}

#[test]
fn a_box_is_drawn_where_the_metadata_says() {
    let mut stream = Stream::rgb("layers=boxes color=ff0000 line-width=0.05");
    let pixels = stream.drawn(&report(vec![boxed()]));
    for (x, y) in [(40, 60), (99, 60), (70, 30), (70, 89)] {
        let [r, g, b] = color(&pixels, x, y);
        assert!(r > 230 && g < 20 && b < 20, "{x}, {y}: {r} {g} {b}");
    }
    for (x, y) in [(70, 60), (30, 60), (70, 100), (0, 0)] {
        assert_eq!(color(&pixels, x, y), [GREY; 3], "{x}, {y}");
    }
}

/// A frame behind other elements, and a warning of the overlay.
fn behind(elements: &str, overlay: &str) -> (Vec<u8>, Option<String>) {
    common::init();
    let mut harness = Harness::new_parse(&format!(
        "{elements} ! facetrackoverlay layers=boxes color=ff0000 line-width=0.1 {overlay}"
    ));
    let bus = Watch::of(&harness.element().expect("a bin"));
    harness.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let mut flow = || {
        let buffer = with_report(grey(), &report(vec![boxed()]));
        bytes(&harness.push_and_pull(buffer).expect("it flows"))
    };
    flow();
    let pixels = flow();
    let mut warnings = bus::warnings(&bus).into_iter();
    let warning = warnings.next();
    assert_eq!(warnings.next(), None, "once is enough");
    (pixels, warning)
}

/// Coordinates go with the picture when it was scaled after the analysis.
#[test]
fn scaled_frames_are_drawn_into_at_their_own_size() {
    const WIDE: &str = "capsfilter caps=video/x-raw,width=320,height=60,pixel-aspect-ratio=1/1";
    for (add_borders, lines, inside) in [(true, [140, 170], 155), (false, [80, 200], 140)] {
        let setting = format!("add-borders={add_borders}");
        let (pixels, warning) = behind(&format!("videoscale {setting} ! {WIDE}"), &setting);
        assert_eq!(warning, None);
        let color = |x: usize| &pixels[(30 * 320 + x) * 3..][..3];
        for x in lines {
            assert!(color(x)[0] > 230 && color(x)[1] < 40, "{setting}: {x}");
        }
        assert_eq!(color(inside), [GREY; 3], "{setting}");
    }
}

#[test]
fn where_the_picture_was_cut_or_turned_nothing_is_drawn() {
    for elements in ["videocrop left=20", "videoflip video-direction=horiz"] {
        let (pixels, warning) = behind(elements, "");
        assert_eq!(changed(&pixels), 0, "{elements}");
        let warning = warning.expect(elements);
        assert!(warning.contains("put facetrack after"), "{warning}");
    }
}

#[test]
fn a_warning_is_not_repeated_where_other_frames_come_between() {
    let mut stream = Stream::rgb("layers=boxes");
    let good = with_report(grey(), &report(vec![boxed()]));
    let mut stale = good.clone();
    VideoCropMeta::add(stale.make_mut(), (10, 10, 20, 20));
    for _ in 0..5 {
        for buffer in [&stale, &grey(), &stale, &good] {
            stream.push(buffer.clone());
        }
    }
    assert_eq!(bus::warnings(&stream.bus).len(), 1);
}

#[test]
fn reasons_in_turn_are_reported_once_each() {
    let mut stream = Stream::rgb("layers=boxes");
    let mut cropped = with_report(grey(), &report(vec![boxed()]));
    VideoCropMeta::add(cropped.make_mut(), (10, 10, 20, 20));
    let malformed = with_malformed_meta(grey());
    let short = with_report(
        gst::Buffer::with_size(9).expect("room"),
        &report(vec![boxed()]),
    );
    for _ in 0..5 {
        for buffer in [&cropped, &malformed, &short] {
            stream.push(buffer.clone());
        }
    }
    let warnings = bus::warnings(&stream.bus);
    for (warning, what) in std::iter::zip(
        &warnings,
        ["cropped the picture", "FaceTrackMeta", "9 bytes"],
    ) {
        assert!(warning.contains(what), "{warning}");
    }
    assert_eq!(warnings.len(), 3);
}

#[test]
fn nobody_is_warned_where_nothing_was_to_be_drawn() {
    let mut stream = Stream::rgb("layers=0");
    let mut cropped = with_report(grey(), &report(vec![boxed()]));
    VideoCropMeta::add(cropped.make_mut(), (10, 10, 20, 20));
    stream.push(cropped);
    assert_eq!(bus::warning(&stream.bus), None);
}

#[test]
fn landmarks_are_drawn_where_the_metadata_says() {
    let mut stream = Stream::rgb("layers=points color=00ff00 line-width=0.01");
    let mut tracked = full_face(1, 20.0);
    let landmarks = tracked.face.landmarks.as_mut().expect("landmarks");
    for (i, point) in landmarks.points.iter_mut().enumerate() {
        (point.x, point.y) = (5.5 + (i % 30) as f32 * 5.0, 5.5 + (i / 30) as f32 * 6.0);
    }
    let points = landmarks.points.clone();
    let pixels = stream.drawn(&report(vec![tracked]));
    for point in points {
        let (x, y) = (point.x as usize, point.y as usize);
        assert!(color(&pixels, x, y)[1] > 200, "{point:?}");
        assert_eq!(color(&pixels, x + 2, y + 3), [GREY; 3], "between them");
    }
}

/// Buffers that pass are the very ones that came, although somebody else holds them too.
#[test]
fn frames_with_nothing_to_draw_pass_uncopied() {
    let with_faces = report(vec![boxed()]);
    let empty = with_report(gst::Buffer::new(), &with_faces);
    for (what, properties, buffer) in [
        ("without metadata", "", grey()),
        (
            "without faces",
            "layers=boxes",
            with_report(grey(), &report(vec![])),
        ),
        (
            "without layers",
            "layers=0",
            with_report(grey(), &with_faces),
        ),
        ("nothing in it", "", empty),
    ] {
        let mut stream = Stream::rgb(properties);
        let (held, flags) = (buffer.clone(), buffer.flags());
        let passed = stream.push(buffer);
        assert_eq!(passed.as_ptr(), held.as_ptr(), "{what}");
        assert_eq!(passed.flags(), flags, "{what}");
        if passed.size() > 0 {
            assert_eq!(changed(&bytes(&passed)), 0, "{what}");
        }
    }
}

#[test]
fn metadata_that_cannot_be_read_is_passed_on_with_its_frame() {
    let mut stream = Stream::rgb("");
    let mut buffer = with_report(grey(), &report(vec![boxed()]));
    let mut meta = gst::meta::CustomMeta::from_mut_buffer(buffer.make_mut(), FaceTrackMeta::NAME)
        .expect("the metadata");
    meta.mut_structure().set("version", 999u32);
    let held = buffer.clone();
    assert_eq!(stream.push(buffer).as_ptr(), held.as_ptr());
}

#[test]
fn a_frame_that_somebody_else_holds_is_not_changed() {
    let mut stream = Stream::rgb("");
    let buffer = with_report(grey(), &report(vec![boxed()]));
    let held = buffer.clone();
    let drawn = stream.push(buffer);
    assert_eq!(changed(&bytes(&held)), 0);
    assert!(changed(&bytes(&drawn)) > 100);
    assert!(FaceTrackMeta::from_buffer(&drawn).is_some());

    let buffer = with_report(grey(), &report(vec![boxed()]));
    let memory = buffer.peek_memory(0).as_ptr();
    let drawn = stream.push(buffer);
    assert_eq!(drawn.peek_memory(0).as_ptr(), memory, "drawn in place");
}

#[test]
fn properties_act_from_the_next_frame_on() {
    let mut stream = Stream::rgb("layers=boxes");
    let report = report(vec![boxed()]);
    let thin = changed(&stream.drawn(&report));
    assert!(thin > 0);
    stream.element.set_property("line-width", 0.05);
    assert!(changed(&stream.drawn(&report)) > 2 * thin);

    stream.element.set_property("color", "#0000ff");
    assert!(color(&stream.drawn(&report), 40, 60)[2] > 230);
    stream.element.set_property("color", None::<&str>);
    assert!(color(&stream.drawn(&report), 40, 60)[2] < 230);

    stream
        .element
        .set_property_from_str("layers", "info+labels");
    let small = changed(&stream.drawn(&report));
    stream.element.set_property("text-size", 0.1);
    assert!(changed(&stream.drawn(&report)) > small);
    let layers = stream.element.property_value("layers");
    let (_, layers) = gst::glib::FlagsValue::from_value(&layers).expect("flags");
    let layers: Vec<_> = layers.iter().map(|layer| layer.nick()).collect();
    assert_eq!(layers, ["labels", "info"]);

    stream
        .element
        .set_property_from_str("layers", "blendshapes");
    let mut tracked = full_face(1, 10.0);
    tracked.face.bbox = Rect::new(5.0, 5.0, 10.0, 20.0);
    let full = self::report(vec![tracked]);
    let [mut sizes, numbers] = [[0; 3], [0, 1, 4]];
    for (size, number) in sizes.iter_mut().zip(numbers) {
        stream
            .element
            .set_property("max-blendshapes", number as u32);
        *size = changed(&stream.drawn(&full));
    }
    assert!(
        sizes[0] == 0 && sizes[0] < sizes[1] && sizes[1] < sizes[2],
        "{sizes:?}"
    );
}

#[test]
fn a_color_that_is_none_is_reported() {
    let report = report(vec![boxed()]);
    let mut stream = Stream::rgb("layers=boxes line-width=0.05 color=ff0000");
    let red = stream.drawn(&report);
    stream.element.set_property("color", "mauve");
    let warning = bus::warning(&stream.bus).expect("a warning");
    assert!(
        warning.contains("color") && warning.contains("mauve"),
        "{warning}"
    );
    stream.element.set_property("line-width", 0.05);
    let again = bus::warning(&stream.bus);
    assert_eq!(again, None, "another property is no news of the color");
    let color = stream.element.property::<Option<String>>("color");
    assert_eq!(color.as_deref(), Some("ff0000"), "the color in use");
    assert_eq!(stream.drawn(&report), red);

    let element = gst::parse::launch("facetrackoverlay color=mauve").expect("good");
    let bus = Watch::of(&element);
    assert!(element.set_state(gst::State::Paused).is_err());
    let error = bus::error(&bus).expect("an error");
    assert!(error.contains("hexadecimal"), "{error}");
    element.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_face_that_is_held_looks_different() {
    let mut stream = Stream::rgb("layers=boxes line-width=0.02");
    let mut tracked = boxed();
    let measured = changed(&stream.drawn(&report(vec![tracked.clone()])));
    tracked.face.origin = Origin::Held;
    let held = changed(&stream.drawn(&report(vec![tracked])));
    assert!(held > 0 && held * 10 < measured * 8, "{held} {measured}");
}

/// The formats of the pads of an element.
pub(super) fn formats_of(element: &str) -> Vec<String> {
    common::init();
    let factory = gst::ElementFactory::find(element).expect("it is there");
    let templates = factory.static_pad_templates();
    let caps = templates.iter().next().expect("a template").caps();
    let formats = caps.structure(0).expect("a structure");
    let formats = formats.get::<gst::List>("format").expect("a list");
    formats
        .iter()
        .map(|format| format.get().expect("a name"))
        .collect()
}

/// A frame as RGB, by `videoconvert`.
fn converted(buffer: gst::Buffer, caps: &gst::Caps) -> Vec<u8> {
    let info = VideoInfo::from_caps(caps).expect("video");
    let rgb = format!(
        "video/x-raw,format=RGB,width={},height={},framerate=25/1,colorimetry=sRGB",
        info.width(),
        info.height()
    );
    let mut harness =
        Harness::new_parse(&format!("videoconvert dither=none ! capsfilter caps={rgb}"));
    harness.set_src_caps(caps.clone());
    let buffer = harness.push_and_pull(buffer).expect("converted");
    bytes(&buffer)
}

/// A grey frame of a format, made by `videoconvert`.
fn grey_in(caps: &gst::Caps) -> gst::Buffer {
    let mut harness = Harness::new_parse(&format!(
        "videoconvert dither=none ! capsfilter caps=\"{caps}\""
    ));
    let rgb = "video/x-raw,format=RGB,width=160,height=120,framerate=25/1,colorimetry=sRGB";
    harness.set_src_caps_str(rgb);
    harness.push_and_pull(grey()).expect("converted")
}

/// Maximum error of a color, levels, by the bits of a component. It includes the errors of
/// `videoconvert` in both directions.
fn tolerance(format: &str) -> u8 {
    match format {
        "RGB15" | "RGB16" => 9,
        _ => 6,
    }
}

/// Thick lines over grey have the same colour in every format, inside, and nothing else changes.
#[test]
fn colors_are_right_in_every_format() {
    let formats = formats_of("facetrackoverlay");
    assert!(formats.len() > 80, "{formats:?}");
    let report = report(vec![boxed()]);
    let properties = "layers=boxes color=e69f00 line-width=0.1";
    let want = color(&Stream::rgb(properties).drawn(&report), 40, 60);
    let luma = (0.299 * f32::from(want[0])
        + 0.587 * f32::from(want[1])
        + 0.114 * f32::from(want[2])) as u8;
    let mut wrong = Vec::new();
    for format in formats {
        let colorimetries: &[&str] = match format.parse::<VideoFormat>() {
            Ok(known) if gst_video::VideoFormatInfo::from_format(known).is_yuv() => {
                &["bt601", "bt709", "1:4:0:0"]
            }
            _ => &["sRGB"],
        };
        for colorimetry in colorimetries {
            let mut caps = caps(&format, WIDTH, HEIGHT);
            if *colorimetry != "sRGB" {
                caps.make_mut().set("colorimetry", *colorimetry);
            }
            let frame = with_report(grey_in(&caps), &report);
            let drawn = Stream::new(properties, caps.clone()).push(frame);
            let pixels = converted(drawn, &caps);
            let want = match format.starts_with("GRAY") {
                true => [luma; 3],
                false => want,
            };
            for (x, y, want) in [
                (40, 60, want),
                (100, 60, want),
                (72, 30, want),
                (72, 91, want),
                (72, 60, [GREY; 3]),
                (8, 8, [GREY; 3]),
                (150, 60, [GREY; 3]),
            ] {
                let found = color(&pixels, x, y);
                let off = found.iter().zip(want).map(|(a, b)| a.abs_diff(b));
                if off.max() > Some(tolerance(&format)) {
                    wrong.push(format!(
                        "{format} {colorimetry} at {x}, {y}: {found:?}, {want:?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The pixels of a frame as GStreamer unpacks them, row by row.
pub(super) fn unpacked(buffer: &gst::BufferRef, info: &VideoInfo) -> Vec<Vec<u8>> {
    let frame = VideoFrameRef::from_buffer_ref_readable(buffer, info).expect("a frame");
    let format = info.format_info();
    let pixel = VideoFormatInfo::from_format(format.unpack_format()).pixel_stride()[0] as usize;
    let (planes, strides) = (frame.planes_data(), frame.plane_stride());
    let rows = (0..info.height()).map(|y| {
        let row = |plane: usize| {
            let component = format.plane().iter().position(|p| *p as usize == plane);
            let y = y >> format.h_sub()[component.expect("a component")];
            &planes[plane][y as usize * strides[plane] as usize..]
        };
        let row: Vec<_> = (0..strides.len()).map(row).collect();
        let mut pixels = vec![0; pixel * info.width() as usize];
        let (flags, width) = (VideoPackFlags::empty(), info.width() as i32);
        format.unpack(flags, &mut pixels, &row, strides, 0, 0, width);
        // Bits that pad a sample mean nothing.
        let padding = 16u32.saturating_sub(format.depth()[0]);
        for word in pixels.as_chunks_mut().0.iter_mut().filter(|_| pixel == 8) {
            *word = (u16::from_ne_bytes(*word) >> padding).to_ne_bytes();
        }
        pixels
    });
    rows.collect()
}

#[test]
fn what_is_not_drawn_into_stays_as_it_was_in_every_format() {
    // Pixels whose chroma may be shared with the line's.
    const NEAR: u32 = 8;
    let is_near = |x: u32, y: u32| {
        // The box is at 40…100 and 30…90.
        let sides = [(x, 40, 100), (y, 30, 90)];
        let is_around = |(at, start, end)| at + NEAR > start && at < end + NEAR;
        let is_inside = |(at, start, end)| at >= start + NEAR && at + NEAR <= end;
        sides.into_iter().all(is_around) && !sides.into_iter().all(is_inside)
    };
    for format in formats_of("facetrackoverlay") {
        for (width, height) in [(WIDTH, HEIGHT), (101, 95)] {
            let caps = caps(&format, width, height);
            let info = VideoInfo::from_caps(&caps).expect("video");
            let mut noise = Noise::new(7);
            let noise = (0..info.size()).map(|_| noise.below(256) as u8);
            let buffer = gst::Buffer::from_mut_slice(noise.collect::<Vec<_>>());
            let before = unpacked(&buffer, &info);
            let report = report_of((width, height), vec![boxed()]);
            let mut stream = Stream::new("layers=boxes line-width=0.02", caps);
            let after = unpacked(&stream.push(with_report(buffer, &report)), &info);
            let mut changed = 0;
            for (y, (before, after)) in (0..).zip(before.iter().zip(&after)) {
                let pixel = before.len() / width as usize;
                let pixels = before.chunks(pixel).zip(after.chunks(pixel));
                for (x, (before, after)) in (0..).zip(pixels) {
                    changed += usize::from(before != after);
                    assert!(is_near(x, y) || before == after, "{format} at {x}, {y}");
                }
            }
            assert!(changed > 400, "{format}: {changed}");
        }
    }
}

#[test]
fn frames_of_every_format_and_size_flow() {
    for format in formats_of("facetrackoverlay") {
        for (width, height) in [(1, 1), (33, 17), (2, 64)] {
            let caps = caps(&format, width, height);
            let info = VideoInfo::from_caps(&caps).expect("video");
            let mut stream = Stream::new("layers=1023", caps);
            let mut report = report(vec![full_face(1, -10.0), full_face(2, 1e6)]);
            report.faces[0].face.bbox = Rect::new(f32::NAN, 0.0, 5.0, 5.0);
            (report.width, report.height) = (width, height);
            for report in [&report, &self::report(vec![boxed()])] {
                let buffer = gst::Buffer::from_mut_slice(vec![GREY; info.size()]);
                stream.push(with_report(buffer, report));
            }
            assert_eq!(bus::error(&stream.bus), None, "{format}");
        }
    }
}

#[test]
fn strides_and_offsets_of_the_buffer_are_used() {
    for format in ["NV12", "I420", "YUY2", "RGB", "P010_10LE", "A420"] {
        let caps = caps(format, WIDTH, HEIGHT);
        let info = VideoInfo::from_caps(&caps).expect("video");
        let report = report(vec![boxed()]);
        let tight = gst::Buffer::from_mut_slice(vec![GREY; info.size()]);
        let wide = with_report(padded(&tight, &info, 6, |_| 10), &report);
        let padding = bytes(&wide).iter().filter(|byte| **byte == FILLING).count();
        let mut stream = Stream::new("layers=boxes+labels color=008000", caps);
        let tight = stream.push(with_report(tight, &report));
        let wide = stream.push(wide);
        let again = padded(&tight, &info, 6, |_| 10);
        assert_eq!(bytes(&wide), bytes(&again), "{format}");
        assert!(bytes(&wide).iter().filter(|byte| **byte == FILLING).count() >= padding);
    }
}

/// Buffers that are not what their caps or their own metadata say pass as they are.
#[test]
fn frames_that_are_none_pass() {
    let report = report(vec![boxed()]);
    let short = gst::Buffer::from_mut_slice(vec![GREY; 100]);
    let mut lying = grey();
    VideoMeta::add_full(
        lying.make_mut(),
        VideoFrameFlags::empty(),
        VideoFormat::Rgb,
        WIDTH,
        HEIGHT,
        &[3000],
        &[480],
    )
    .expect("a meta");
    let mut cropped = grey();
    let mut crop = VideoCropMeta::add(cropped.make_mut(), (10, 10, 20, 20));
    crop.set_rect((10, 10, 4000, 4000));
    for (what, buffer) in [("short", short), ("lying", lying), ("cropped", cropped)] {
        let mut stream = Stream::rgb("");
        let before = bytes(&buffer);
        let passed = stream.push(with_report(buffer, &report));
        assert_eq!(bytes(&passed), before, "{what}");
    }
}

#[test]
fn other_sizes_and_formats_may_follow() {
    let mut stream = Stream::rgb("layers=boxes");
    stream.drawn(&report(vec![boxed()]));
    for (format, width, height) in [("I420", 320, 240), ("GRAY8", 8, 8), ("RGB", WIDTH, HEIGHT)] {
        let caps = caps(format, width, height);
        let info = VideoInfo::from_caps(&caps).expect("video");
        assert!(stream.harness.push_event(gst::event::Caps::new(&caps)));
        let buffer = gst::Buffer::from_mut_slice(vec![GREY; info.size()]);
        let report = FrameReport {
            width,
            height,
            ..report(vec![TrackedFace {
                face: Observation::from_bbox(Rect::new(1.0, 1.0, 6.0, 6.0)),
                ..boxed()
            }])
        };
        let drawn = bytes(&stream.push(with_report(buffer, &report)));
        assert!(drawn.iter().any(|byte| *byte != GREY), "{format}");
    }
}

#[test]
fn frames_of_any_layout_are_asked_for_where_downstream_takes_them() {
    for taken in [true, false] {
        let mut stream = Stream::rgb("");
        if taken {
            let video_meta = VideoMeta::meta_api();
            stream.harness.add_propose_allocation_meta(video_meta, None);
        }
        let crop_meta = VideoCropMeta::meta_api();
        stream.harness.add_propose_allocation_meta(crop_meta, None);
        let mut query = gst::query::Allocation::new(Some(&caps("RGB", WIDTH, HEIGHT)), true);
        let pad = stream.harness.srcpad().expect("the pad before the element");
        assert!(pad.peer_query(&mut query));
        let asked = query.find_allocation_meta::<VideoMeta>();
        assert_eq!(asked.is_some(), taken);
        let cropped = query.find_allocation_meta::<VideoCropMeta>();
        assert!(cropped.is_none(), "all of a frame would be drawn into");
    }
}

#[test]
fn formats_and_memory_that_cannot_be_drawn_into_are_refused() {
    common::init();
    let element = gst::ElementFactory::make("facetrackoverlay")
        .build()
        .expect("it is there");
    let sink = element.static_pad("sink").expect("a sink");
    for caps in [
        "video/x-raw,format=v210,width=64,height=48",
        "video/x-raw,format=BGR16,width=64,height=48",
        "video/x-raw,format=RGB8P,width=64,height=48",
        "video/x-raw,format=NV12_4L4,width=64,height=48",
        "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48",
    ] {
        let caps: gst::Caps = caps.parse().expect("caps");
        assert!(!sink.query_accept_caps(&caps), "{caps}");
    }
}

#[test]
fn other_formats_in_a_stream_are_reported_with_the_remedy() {
    let elsewhere = "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48";
    let convert = "put videoconvert before";
    for (caps, name, remedy) in [
        (caps("v210", WIDTH, HEIGHT), "v210", convert),
        (caps("NV12_4L4", WIDTH, HEIGHT), "NV12_4L4", convert),
        (elsewhere.parse().expect("caps"), "GLMemory", "gldownload"),
    ] {
        let mut stream = Stream::rgb("");
        stream.push(grey());
        stream.harness.push_event(gst::event::Caps::new(&caps));
        let refused = Err(gst::FlowError::NotNegotiated);
        assert_eq!(stream.harness.push(grey()), refused);
        let error = bus::error(&stream.bus).expect("an error");
        assert!(error.contains(name) && error.contains(remedy), "{error}");
    }
}

#[test]
fn how_fast_frames_come_is_shown() {
    let mut stream = Stream::rgb("layers=info text-size=0.05");
    let report = report(Vec::new());
    let mut frames = (0..3).map(|_| changed(&stream.drawn(&report)));
    let first = frames.next().expect("a frame");
    assert!(
        frames.all(|frame| frame > first),
        "a figure is there from the second frame on"
    );
}

/// A pipeline as users build it: landmarks are found in its pixels where its metadata says they
/// are.
#[test]
fn a_scripted_face_is_drawn_in_a_pipeline() {
    common::init();
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=10 pattern=black ! video/x-raw,format=NV12,width=640,height=360 \
         ! facetrack engine=scripted script=\"face size=0.6 dx=0.01; landmarks\" \
         ! facetrackoverlay layers=points color=ffffff line-width=0.006 ! videoconvert ! video/x-raw,format=RGB \
         ! appsink name=sink sync=false",
    )
    .expect("a pipeline");
    assert_eq!(landmarks_found(&pipeline, 640, 200), 10);
}

/// Plays to the end. Returns the number of frames with a bright pixel at each landmark.
fn landmarks_found(pipeline: &gst::Element, width: usize, bright: u8) -> usize {
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let sink = bin
        .by_name("sink")
        .and_downcast::<gst_app::AppSink>()
        .expect("a sink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let mut frames = 0;
    while let Ok(sample) = sink.pull_sample() {
        let buffer = sample.buffer().expect("a frame");
        let report = FaceTrackMeta::from_buffer(buffer).expect("a report");
        let pixels = bytes(buffer);
        for tracked in &report.faces {
            let landmarks = tracked.face.landmarks.as_ref().expect("landmarks");
            for point in &landmarks.points {
                let at = (point.y as usize * width + point.x as usize) * 3;
                let found = pixels[at..at + 3].iter().all(|level| *level >= bright);
                assert!(found, "{point:?}: {:?}", &pixels[at..at + 3]);
            }
        }
        frames += usize::from(!report.faces.is_empty());
    }
    assert_eq!(bus::error(&pipeline.bus().expect("a bus")), None);
    pipeline.set_state(gst::State::Null).expect("it stops");
    frames
}

/// The sample clip through MediaPipe's networks, where they are.
#[test]
fn a_real_face_is_drawn_over() {
    use common::engine::installed_paths;
    use facetrack_assets::manifest;

    common::init();
    let clip = manifest::known("single_face.mp4").expect("the clip is known");
    let clip = installed_paths()
        .data_dir
        .map(|folder| folder.join(clip.kind.folder()).join(&clip.name));
    let model = installed_paths().model("face_landmarker.task", "mediapipe", None);
    let runtime = installed_paths()
        .runtime_candidates()
        .into_iter()
        .find(|path| path.is_file());
    let Some(clip) = clip.filter(|clip| clip.is_file() && model.is_ok() && runtime.is_some())
    else {
        eprintln!("SKIPPED: no sample clip, model or ONNX Runtime. Run `make setup`");
        return;
    };
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={} ! decodebin ! identity eos-after=20 ! facetrack max-faces=1 \
         ! facetrackoverlay layers=points+mesh+contours color=ffffff line-width=0.006 ! videoconvert ! video/x-raw,format=RGB \
         ! appsink name=sink sync=false",
        clip.display()
    ))
    .expect("a pipeline");
    assert!(landmarks_found(&pipeline, 640, 150) >= 15);
}
