// SPDX-License-Identifier: MPL-2.0
//! Faces in the pixels of the frame at hand, behind elements that change the picture: where the
//! metadata says that a face is, there is what was drawn there before.

use crate::common;

use crate::common::faces::face;
use crate::common::python;
use crate::common::reports::report;
use facetrack::geometry::{Point, Rect};
use facetrack::report::FrameReport;
use gst::meta::{CustomMeta, MetaAPI};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::{VideoCropMeta, VideoFormat, VideoFrameExt, VideoFrameRef, VideoInfo, VideoMeta};
use gstfacetrack::meta::{FaceTrackMeta, Fit, FrameShape, MetaError, Stale};

const WIDTH: u32 = 640;
const HEIGHT: u32 = 360;

/// A face whose box is [`BOX`] in a frame of this size.
const FACETRACK: &str =
    "facetrack engine=scripted script=\"face x=0.3 y=0.4 size=0.25; landmarks\"";
const BOX: Rect = Rect::new(147.0, 99.0, 90.0, 90.0);

/// Around the box, brighter than the black of borders.
const BACKGROUND: u8 = 60;
const FACE: u8 = 220;

/// Grey level between the two, however they are scaled.
const EDGE: u8 = 140;

fn caps(pixel_aspect_ratio: &str) -> String {
    format!(
        "video/x-raw,format=GRAY8,width={WIDTH},height={HEIGHT},framerate=25/1,\
         pixel-aspect-ratio={pixel_aspect_ratio}"
    )
}

/// The face as a bright square.
fn picture() -> gst::Buffer {
    let inside = |at: u32, from: f32, extent: f32| {
        let at = at as f32;
        at >= from && at < from + extent
    };
    let pixels = (0..HEIGHT).flat_map(|y| {
        (0..WIDTH).map(
            move |x| match inside(x, BOX.x, BOX.width) && inside(y, BOX.y, BOX.height) {
                true => FACE,
                false => BACKGROUND,
            },
        )
    });
    let mut buffer = gst::Buffer::from_mut_slice(pixels.collect::<Vec<_>>());
    buffer.make_mut().set_pts(gst::ClockTime::ZERO);
    buffer
}

/// A frame behind elements, by its caps.
struct Seen {
    buffer: gst::Buffer,
    info: VideoInfo,
}

impl Seen {
    /// Behind `facetrack` and `elements`, from pixels of this aspect ratio.
    fn behind_with(elements: &str, pixel_aspect_ratio: &str) -> Self {
        common::init();
        // Caps can't be the last of a harness's elements.
        let harness = Harness::new_parse(&format!("{FACETRACK} ! {elements} ! identity"));
        Self::from_harness(harness, pixel_aspect_ratio, elements)
    }

    fn behind(elements: &str) -> Self {
        Self::behind_with(elements, "1/1")
    }

    fn from_harness(mut harness: Harness, pixel_aspect_ratio: &str, what: &str) -> Self {
        harness.set_src_caps_str(&caps(pixel_aspect_ratio));
        let pushed = harness.push(picture());
        assert_eq!(pushed, Ok(gst::FlowSuccess::Ok), "{what}");
        // Encoders and queues give the frame away at the end.
        harness.push_event(gst::event::Eos::new());
        let sink = harness.sinkpad().expect("a pad");
        let buffer = loop {
            let buffer = harness.pull().expect("a frame comes out");
            // Before it, there may be headers.
            if FaceTrackMeta::from_buffer(&buffer).is_some() {
                break buffer;
            }
        };
        let caps = sink.current_caps().expect("caps");
        let info = VideoInfo::from_caps(&caps).expect("of video");
        Self { buffer, info }
    }

    fn faces(&self, fit: Fit) -> Result<FrameReport, MetaError> {
        FaceTrackMeta::in_frame(&self.buffer, &self.info, fit)
    }

    /// Position of the bright square.
    fn square(&self) -> Rect {
        let frame =
            VideoFrameRef::from_buffer_ref_readable(&self.buffer, &self.info).expect("a raw frame");
        let formats = [VideoFormat::Gray8, VideoFormat::I420, VideoFormat::Nv12];
        assert!(
            formats.contains(&frame.format()),
            "its first plane is no luma"
        );
        let rows = frame.plane_data(0).expect("a plane");
        let rows = rows.chunks(frame.plane_stride()[0] as usize);
        let bright = rows
            .take(frame.height() as usize)
            .enumerate()
            .flat_map(|(y, row)| {
                let row = row[..frame.width() as usize].iter().enumerate();
                row.filter(|(_, level)| **level > EDGE)
                    .flat_map(move |(x, _)| {
                        [(x, y), (x + 1, y + 1)].map(|(x, y)| Point::new(x as f32, y as f32))
                    })
            });
        Rect::enclosing(bright).expect("it is in the picture")
    }
}

fn sides(rect: &Rect) -> [f32; 4] {
    [rect.x, rect.y, rect.right(), rect.bottom()]
}

#[track_caller]
fn assert_near(actual: &Rect, expected: &Rect, tolerance: f32, what: &str) {
    for (a, e) in std::iter::zip(sides(actual), sides(expected)) {
        assert!(
            (a - e).abs() <= tolerance,
            "{what}: {actual:?} for {expected:?}"
        );
    }
}

/// The face is where the square is, with its landmarks, and the report is of this frame.
#[track_caller]
fn assert_follows(seen: &Seen, fit: Fit, what: &str) {
    let report = seen
        .faces(fit)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let (width, height) = (seen.info.width(), seen.info.height());
    assert_eq!((report.width, report.height), (width, height), "{what}");
    let face = &report.faces[0].face;
    // Half of what an edge is blurred by, and half a pixel; a picture that begins on a whole chroma
    // sample.
    assert_near(&face.bbox, &seen.square(), 1.5, what);
    let landmarks = face.landmarks.as_ref().expect("landmarks");
    let points = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
    let extent = Rect::enclosing(points).expect("many");
    assert_near(&extent, &face.bbox, 0.01, what);
}

#[test]
fn the_frame_that_was_analysed_is_itself() {
    let seen = Seen::behind("identity");
    assert_near(&seen.square(), &BOX, 0.0, "the picture");
    for fit in [Fit::Borders, Fit::Stretch] {
        let report = seen.faces(fit);
        assert_eq!(report, FaceTrackMeta::read(&seen.buffer));
        let bbox = report.expect("a report").faces[0].face.bbox;
        assert_near(&bbox, &BOX, 0.01, "the face");
    }
}

/// Shapes agree, so that there are no borders.
#[test]
fn faces_follow_what_keeps_the_shape() {
    for (elements, pixel_aspect_ratio) in [
        ("queue", "1/1"),
        ("tee ! queue", "1/1"),
        // The branches do not affect each other.
        (
            "tee name=t t. ! queue ! videoflip video-direction=90r ! fakesink async=false sync=false t. ! queue",
            "1/1",
        ),
        ("videoconvert ! video/x-raw,format=NV12", "1/1"),
        (
            "videoconvert ! video/x-raw,format=BGRA ! videoconvert ! video/x-raw,format=I420",
            "1/1",
        ),
        (
            "videoconvert ! video/x-raw,format=I420 ! videobalance contrast=0.9",
            "1/1",
        ),
        ("videoscale ! video/x-raw,width=320,height=180", "1/1"),
        ("videoscale ! video/x-raw,width=1280,height=720", "1/1"),
        (
            "videoconvertscale ! video/x-raw,format=NV12,width=960,height=540",
            "1/1",
        ),
        // The pixels take another shape, or had one.
        ("videoscale ! video/x-raw,width=360,height=360", "1/1"),
        ("videoscale ! video/x-raw,width=640,height=200", "4/3"),
        (
            "videoscale ! video/x-raw,width=848,height=360,pixel-aspect-ratio=160/159",
            "4/3",
        ),
        // By way of a small picture, and back.
        (
            "videoscale ! video/x-raw,width=160,height=90 ! videoscale ! video/x-raw,width=640,height=360",
            "1/1",
        ),
        ("jpegenc ! jpegdec", "1/1"),
        (
            "videoscale ! video/x-raw,width=320,height=180 ! jpegenc ! jpegdec",
            "1/1",
        ),
        // These elements change nothing.
        ("videocrop", "1/1"),
        ("videobox", "1/1"),
    ] {
        let seen = Seen::behind_with(elements, pixel_aspect_ratio);
        for fit in [Fit::Borders, Fit::Stretch] {
            assert_follows(&seen, fit, elements);
        }
    }
}

/// The picture's display has 16:9; frames of other shapes.
#[test]
fn faces_follow_between_borders() {
    for (size, pixel_aspect_ratio) in [
        ("width=360,height=360,pixel-aspect-ratio=1/1", "1/1"),
        ("width=640,height=480,pixel-aspect-ratio=1/1", "1/1"),
        ("width=1000,height=360,pixel-aspect-ratio=1/1", "1/1"),
        ("width=333,height=77,pixel-aspect-ratio=1/1", "1/1"),
        ("width=200,height=400,pixel-aspect-ratio=2/1", "1/1"),
        ("width=640,height=360,pixel-aspect-ratio=1/1", "4/3"),
        ("width=640,height=360,pixel-aspect-ratio=1/1", "1/2"),
    ] {
        for elements in [
            format!("videoscale ! video/x-raw,{size}"),
            format!("videoconvert ! videoscale ! video/x-raw,format=I420,{size} ! videoconvert"),
            format!("videoscale ! video/x-raw,{size} ! jpegenc quality=95 ! jpegdec"),
        ] {
            let seen = Seen::behind_with(&elements, pixel_aspect_ratio);
            assert_follows(&seen, Fit::Borders, &elements);
            // Without knowing of borders it would be wrong: the test sees the difference.
            let stretched = seen.faces(Fit::Stretch).expect("a report");
            let off = std::iter::zip(sides(&stretched.faces[0].face.bbox), sides(&seen.square()))
                .any(|(a, b)| (a - b).abs() > 4.0);
            assert!(off, "{elements}");
        }
    }
}

#[test]
fn faces_follow_a_picture_that_is_stretched() {
    for size in [
        "width=360,height=360,pixel-aspect-ratio=1/1",
        "width=1000,height=360,pixel-aspect-ratio=1/1",
        "width=640,height=360,pixel-aspect-ratio=2/1",
    ] {
        let elements = format!("videoscale add-borders=false ! video/x-raw,{size}");
        assert_follows(&Seen::behind(&elements), Fit::Stretch, &elements);
    }
}

/// Values that are not positions stay as measured, and lengths scale with the picture's width.
#[test]
fn a_pose_does_not_change_with_the_size() {
    let seen = Seen::behind("videoscale ! video/x-raw,width=320,height=320,pixel-aspect-ratio=1/1");
    let read = |report: Result<FrameReport, MetaError>| {
        let face = report.expect("a report").faces[0].face.clone();
        (face.pose, face.blendshapes, face.landmarks.expect("some"))
    };
    let (pose, blendshapes, landmarks) = read(seen.faces(Fit::Borders));
    let (analysed_pose, analysed_blendshapes, analysed) = read(FaceTrackMeta::read(&seen.buffer));
    assert!(pose.is_some());
    assert_eq!((pose, blendshapes), (analysed_pose, analysed_blendshapes));
    for (here, there) in std::iter::zip(&landmarks.points, &analysed.points) {
        assert!((here.z - there.z / 2.0).abs() < 1e-3);
    }
}

#[test]
fn encoded_frames_have_faces_too() {
    common::init();
    for (encoder, package) in [
        ("jpegenc", "gstreamer1.0-plugins-good"),
        ("pngenc", "gstreamer1.0-plugins-good"),
        ("avenc_mjpeg", "gstreamer1.0-libav"),
        ("x264enc", "gstreamer1.0-plugins-ugly"),
        ("openh264enc", "gstreamer1.0-plugins-bad"),
        ("vp8enc deadline=1", "gstreamer1.0-plugins-good"),
        ("theoraenc", "gstreamer1.0-plugins-base"),
    ] {
        let name = encoder.split(' ').next().expect("a name");
        if gst::ElementFactory::find(name).is_none() {
            common::skip_for_want_of(name, package);
            continue;
        }
        for (scaling, expected) in [
            ("", BOX),
            (
                "videoscale ! video/x-raw,width=320,height=320,pixel-aspect-ratio=1/1 !",
                Rect::new(73.5, 119.5, 45.0, 45.0),
            ),
        ] {
            let seen = Seen::behind(&format!("{scaling} videoconvert ! {encoder}"));
            let report = seen.faces(Fit::Borders);
            let report = report.unwrap_or_else(|error| panic!("{encoder}: {error}"));
            assert_near(&report.faces[0].face.bbox, &expected, 0.01, encoder);
        }
    }
}

#[test]
fn faces_are_stale_where_the_picture_was_cut_or_turned() {
    let scaled_back = "videoscale ! video/x-raw,width=640,height=360";
    let mut cases: Vec<String> = ["90r", "180", "90l", "horiz", "vert", "ul-lr", "ur-ll"]
        .map(|method| format!("videoflip video-direction={method}"))
        .into();
    cases.extend(
        [
            "videocrop left=20",
            "videocrop right=20",
            "videocrop top=20",
            "videocrop bottom=20",
            "aspectratiocrop aspect-ratio=1/1",
            "videobox left=20",
            "videobox left=-20",
            "videobox left=20 right=-20",
            "videoconvert ! video/x-raw,format=I420 ! videocrop top=16 bottom=16 ! videoconvert",
            "videocrop left=20 ! jpegenc",
        ]
        .map(str::to_owned),
    );
    cases.push(format!("videocrop left=64 top=36 ! {scaled_back}"));
    cases.push(format!("{scaled_back} ! videoflip video-direction=180"));
    for elements in cases {
        let seen = Seen::behind(&elements);
        for fit in [Fit::Borders, Fit::Stretch] {
            let stale = Err(MetaError::Stale(Stale::Remade));
            assert_eq!(seen.faces(fit), stale, "{elements}");
        }
        // The measurements are still there, in pixels of the measured frame.
        let report = FaceTrackMeta::from_buffer(&seen.buffer).expect("a report");
        assert_near(&report.faces[0].face.bbox, &BOX, 0.01, &elements);
    }
}

/// An element behind it cuts: the picture stays as it is in memory.
#[test]
fn faces_are_stale_where_a_crop_is_left_to_others() {
    common::init();
    for (elements, sides) in [
        ("videocrop left=20 top=10", (20, 10, 620, 350)),
        ("videoconvert ! videocrop right=20", (0, 0, 620, 360)),
    ] {
        let mut harness = Harness::new_parse(&format!("{FACETRACK} ! {elements}"));
        harness.add_propose_allocation_meta(VideoMeta::meta_api(), None);
        harness.add_propose_allocation_meta(VideoCropMeta::meta_api(), None);
        let seen = Seen::from_harness(harness, "1/1", elements);
        let crop = seen.buffer.meta::<VideoCropMeta>().expect("left to others");
        assert_eq!(crop.rect(), sides, "{elements}");
        let stale = Err(MetaError::Stale(Stale::Cropped));
        assert_eq!(seen.faces(Fit::Borders), stale, "{elements}");
    }
}

/// Caps that somebody changed behind everybody's back.
#[test]
fn faces_are_stale_in_a_frame_whose_size_is_not_known() {
    let seen = Seen::behind("capssetter caps=video/x-raw,width=360,height=640");
    let error = seen.faces(Fit::Borders).expect_err("another frame");
    let (width, height) = (360, 640);
    assert_eq!(error, MetaError::Stale(Stale::Resized { width, height }));
    assert!(error.to_string().contains("360×640"), "{error}");
}

/// A buffer that an older plugin, or somebody else, made.
fn made(
    pixel_aspect_ratio: gst::Fraction,
    change_record: impl Fn(&mut gst::StructureRef),
    change_witness: impl Fn(&mut gst::StructureRef),
) -> gst::Buffer {
    common::init();
    let mut buffer = gst::Buffer::new();
    let writable = buffer.make_mut();
    let sent = report(vec![face(1, 320.0)]);
    let shape = FrameShape {
        pixel_aspect_ratio,
        ..FrameShape::square(sent.width, sent.height)
    };
    FaceTrackMeta::attach_seen(writable, &sent, shape, &[]).expect("the name is free");
    let mut record = CustomMeta::from_mut_buffer(writable, FaceTrackMeta::NAME).expect("attached");
    change_record(record.mut_structure());
    let mut witness = CustomMeta::from_mut_buffer(writable, "FaceTrackFrame").expect("attached");
    change_witness(witness.mut_structure());
    buffer
}

fn info(caps: &str) -> VideoInfo {
    common::init();
    let caps: gst::Caps = caps.parse().expect("caps");
    VideoInfo::from_caps(&caps).expect("of video")
}

#[test]
fn pixels_of_no_known_shape_are_square() {
    let square = gst::Fraction::new(1, 1);
    let scaled = |witness: &mut gst::StructureRef| witness.set("scaled", true);
    let old = made(
        gst::Fraction::new(2, 1),
        |record| record.remove_field("pixel-aspect-ratio"),
        scaled,
    );
    let frame = info("video/x-raw,format=RGB,width=640,height=640");
    let read = |buffer: &gst::Buffer| FaceTrackMeta::in_frame(buffer, &frame, Fit::Borders);
    assert!(read(&old).is_ok());
    assert_eq!(read(&old), read(&made(square, |_| (), scaled)));
}

#[test]
fn caps_with_a_shape_that_pixels_cant_have_lose_nothing() {
    let square = made(gst::Fraction::new(1, 1), |_| (), |_| ());
    for (across, up) in [(0, 1), (-4, 3)] {
        let odd = made(gst::Fraction::new(across, up), |_| (), |_| ());
        let report = FaceTrackMeta::read(&odd);
        assert!(report.is_ok(), "{across}/{up}");
        assert_eq!(report, FaceTrackMeta::read(&square), "{across}/{up}");
    }
}

#[test]
fn caps_without_a_size_are_reported() {
    let scaled = |witness: &mut gst::StructureRef| witness.set("scaled", true);
    let buffer = made(gst::Fraction::new(1, 1), |_| (), scaled);
    let read = FaceTrackMeta::in_frame(&buffer, &info("image/jpeg"), Fit::Borders);
    assert_eq!(read, Err(MetaError::Stale(Stale::Unsized)));
}

#[test]
fn a_malformed_witness_tells_nothing() {
    let square = gst::Fraction::new(1, 1);
    let frame = info("video/x-raw,format=RGB,width=1280,height=720");
    let read = |buffer: &gst::Buffer| FaceTrackMeta::in_frame(buffer, &frame, Fit::Borders);
    assert!(read(&made(square, |_| (), |_| ())).is_ok());
    let stale = Err(MetaError::Stale(Stale::Remade));
    for spoil in [
        (|it| it.remove_field("scaled")) as fn(&mut gst::StructureRef),
        |it| it.set("scaled", "surely"),
    ] {
        assert_eq!(read(&made(square, |_| (), spoil)), stale);
    }
    let field = || Err(MetaError::Malformed("pixel-aspect-ratio".to_owned()));
    for spoil in [
        (|it| it.set("pixel-aspect-ratio", "square")) as fn(&mut gst::StructureRef),
        |it| it.set("pixel-aspect-ratio", gst::Fraction::new(0, 1)),
        |it| it.set("pixel-aspect-ratio", gst::Fraction::new(-4, 3)),
    ] {
        assert_eq!(read(&made(square, spoil, |_| ())), field());
    }
    let nowhere = gst::Buffer::new();
    assert_eq!(read(&nowhere), Err(MetaError::Absent));
}

/// Sizes and shapes at the end of what caps can say.
#[test]
fn frames_of_every_size_have_finite_faces() {
    let most = i32::MAX;
    for par in [(1, 1), (most, 1), (1, most), (most, most - 1)] {
        let buffer = made(
            gst::Fraction::new(par.0, par.1),
            |record| record.set("width", u32::MAX),
            |witness| witness.set("scaled", true),
        );
        for (width, height) in [(1, 1), (most, 1), (1, most), (most, most)] {
            for frame_par in [(1, 1), (most, 1), (1, most)] {
                let frame = info(&format!(
                    "image/jpeg,width={width},height={height},pixel-aspect-ratio={}/{}",
                    frame_par.0, frame_par.1
                ));
                let report = FaceTrackMeta::in_frame(&buffer, &frame, Fit::Borders);
                let face = report.expect("a report").faces[0].face.bbox;
                assert!(sides(&face).iter().all(|side| side.is_finite()), "{face:?}");
                assert!(face.x >= 0.0 && face.x <= width as f32, "{face:?}");
            }
        }
    }
}

/// The module for Python follows the steps that are written down for other readers.
#[test]
fn python_places_faces_too() {
    if !python::has_bindings("GstVideo", "gir1.2-gst-plugins-base-1.0") {
        return;
    }
    for elements in [
        "identity",
        "videoconvert ! video/x-raw,format=NV12",
        "videoscale ! video/x-raw,width=320,height=180",
        "videoscale ! video/x-raw,width=360,height=360,pixel-aspect-ratio=1/1",
        "videoscale ! video/x-raw,width=1000,height=333,pixel-aspect-ratio=1/1",
        "videoscale ! video/x-raw,width=200,height=400,pixel-aspect-ratio=2/1",
        "videoflip video-direction=horiz",
        "videocrop left=20",
        "capssetter caps=video/x-raw,width=360,height=640",
    ] {
        let output = python::program("tests/place_faces.py")
            .arg(&format!(
                "videotestsrc num-buffers=1 ! {} ! {FACETRACK} ! {elements}",
                caps("1/1")
            ))
            .run();
        assert!(output.success, "{}", output.text);
        let placed: Vec<f32> = output
            .text
            .split_whitespace()
            .filter_map(|number| number.parse().ok())
            .collect();
        match (Seen::behind(elements).faces(Fit::Borders), &placed[..]) {
            (Ok(report), &[x, y, width, height]) => {
                let bbox = &report.faces[0].face.bbox;
                assert_near(&Rect::new(x, y, width, height), bbox, 0.01, elements);
            }
            (Err(MetaError::Stale(_)), []) => assert_eq!(output.text, "stale\n", "{elements}"),
            (report, _) => panic!("{elements}: {report:?} and {}", output.text),
        }
    }
}
