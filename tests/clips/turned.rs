// SPDX-License-Identifier: MPL-2.0
//! Video that is to be turned before it is shown, as phones record it.

use crate::common;

use crate::common::bus::Watch;

use std::path::{Path, PathBuf};

use crate::common::player::open;
use crate::common::rotated::{self, ROTATIONS, Rotation, UPRIGHT};
use crate::common::warned::warnings_of;
use facetrack::engine::{EngineConfig, EngineKind};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

/// The elements that the documentation has before `facetrack`.
const UPRIGHT_LINE: &str = "videoconvert ! videoflip video-direction=auto";

/// Frames of the reference clip that are tracked. A decoder that is told to end yields some more.
const FRAMES: usize = 24;

/// The warning's beginning, and its remedy.
const WARNING: &str = "the video has the orientation ";
const REMEDY: &str = "Put `videoconvert ! videoflip video-direction=auto` before facetrack";

/// The start of a reference clip with one face, and its copies that are to be turned; `None`, said
/// aloud, without the clip.
struct Clips {
    folder: tempfile::TempDir,
}

impl Clips {
    fn write() -> Option<Self> {
        common::init();
        let Some(reference) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
            eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
            return None;
        };
        let clip = Path::new(&reference).join("media/pyfeat_single_face.mp4");
        let source = format!(
            "filesrc location={} ! decodebin ! identity eos-after={}",
            clip.display(),
            FRAMES + 1
        );
        let clips = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for rotation in ROTATIONS.into_iter().chain([UPRIGHT]) {
            rotated::write(&source, rotation, &clips.path(rotation));
        }
        Some(clips)
    }

    fn path(&self, rotation: Rotation) -> PathBuf {
        self.folder.path().join(format!("{}.mp4", rotation.tag))
    }

    fn track(&self, rotation: Rotation, elements: &str) -> Vec<FrameReport> {
        let (pipeline, out) = open(&self.path(rotation), &format!("decodebin ! {elements}"));
        let samples = std::iter::from_fn(|| out.pull_sample().ok()).take(FRAMES);
        let reports = samples.map(|sample| {
            let buffer = sample.buffer().expect("a frame");
            FaceTrackMeta::from_buffer(buffer).expect("metadata")
        });
        let reports = reports.collect();
        pipeline.set_state(gst::State::Null).expect("it stops");
        reports
    }
}

/// The same faces in the same places.
#[track_caller]
fn assert_same_faces(reports: &[FrameReport], upright: &[FrameReport], case: &str) {
    assert_eq!(reports.len(), upright.len(), "{case}");
    for (index, (report, upright)) in reports.iter().zip(upright).enumerate() {
        assert_eq!(
            (report.width, report.height),
            (upright.width, upright.height)
        );
        let count = [report, upright].map(|report| report.faces.len());
        assert_eq!(count[0], count[1], "{case}, frame {index}");
        for (face, upright) in report.faces.iter().zip(&upright.faces) {
            assert_eq!(face.id, upright.id, "{case}, frame {index}");
            let iou = face.face.bbox.iou(&upright.face.bbox);
            assert!(iou > 0.99, "{case}, frame {index}: {face:?} {upright:?}");
        }
    }
}

#[test]
fn every_engine_finds_the_faces_of_the_upright_clip() {
    let Some(clips) = Clips::write() else {
        return;
    };
    for kind in EngineKind::ALL {
        let is_there = || common::engine::engine(kind, &EngineConfig::default()).is_some();
        if kind == EngineKind::Scripted || !is_there() {
            continue;
        }
        let elements = format!("{UPRIGHT_LINE} ! facetrack engine={}", kind.name());
        let upright = clips.track(UPRIGHT, &elements);
        assert_eq!(upright.len(), FRAMES);
        let seen = upright.iter().filter(|report| report.faces.len() == 1);
        assert_eq!(seen.count(), FRAMES, "{}", kind.name());
        for rotation in ROTATIONS {
            let reports = clips.track(rotation, &elements);
            let case = format!("{} {}", kind.name(), rotation.tag);
            assert_same_faces(&reports, &upright, &case);
        }
    }
}

#[test]
fn an_orientation_is_warned_of_once_unless_it_is_applied() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let source = "videotestsrc num-buffers=10 ! video/x-raw,width=64,height=48";
    for rotation in ROTATIONS.into_iter().chain([UPRIGHT]) {
        let path = folder.path().join("clip.mp4");
        rotated::write(source, rotation, &path);
        let warnings = |elements: &str| {
            warnings_of(&format!(
                "filesrc location={} ! decodebin ! {elements} ! facetrack engine=scripted ! fakesink",
                path.display()
            ))
        };
        let unapplied = warnings("queue");
        if rotation.tag == UPRIGHT.tag {
            assert!(unapplied.is_empty(), "{unapplied:?}");
        } else {
            let [warning] = unapplied.as_slice() else {
                panic!("{unapplied:?}");
            };
            let start = format!("{WARNING}{} ", rotation.tag);
            assert!(
                warning.starts_with(&start) && warning.ends_with(REMEDY),
                "{warning}"
            );
        }
        for elements in [UPRIGHT_LINE.to_owned(), format!("{UPRIGHT_LINE} ! queue")] {
            assert_eq!(warnings(&elements), [""; 0], "{elements}");
        }
        let mirrored = warnings("videoflip video-direction=horiz");
        assert_eq!(mirrored, unapplied, "a mirror turns nothing upright");
    }
}

/// The turned picture of a JPEG file is known behind jpegparse, which reads its EXIF data.
#[test]
fn exif_orientation_of_a_picture_is_warned_of_and_applied() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("picture.jpg");
    let line = format!(
        "videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=64,height=48 ! jpegenc ! \
         taginject tags=image-orientation=rotate-90 ! jifmux ! filesink location={}",
        picture.display()
    );
    common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    for decoder in ["jpegdec", "decodebin"] {
        let start = format!("jpegparse ! {decoder}");
        let warnings = warnings_of(&format!(
            "filesrc location={} ! {start} ! facetrack engine=scripted ! fakesink",
            picture.display()
        ));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with(&format!("{WARNING}rotate-90 ")));

        let elements = format!("{start} ! {UPRIGHT_LINE} ! facetrack engine=scripted");
        let (pipeline, out) = open(&picture, &elements);
        let sample = out.pull_sample().expect("the picture");
        let buffer = sample.buffer().expect("a frame");
        let report = FaceTrackMeta::from_buffer(buffer).expect("metadata");
        assert_eq!((report.width, report.height), (48, 64));
        assert!(common::bus::warnings(&pipeline.bus().expect("a bus")).is_empty());
        pipeline.set_state(gst::State::Null).expect("it stops");
    }
}

#[test]
fn another_orientation_is_another_warning_and_another_stream_begins_upright() {
    common::init();
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "scripted")
        .build()
        .expect("the element");
    let bus = Watch::of(&element);
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=RGB,width=8,height=8,framerate=25/1");
    let tag = |orientation: &str, scope| {
        let mut tags = gst::TagList::new();
        let list = tags.get_mut().expect("the only reference");
        list.add::<gst::tags::ImageOrientation>(&orientation, gst::TagMergeMode::Replace);
        list.set_scope(scope);
        gst::event::Tag::new(tags)
    };
    use gst::TagScope::{Global, Stream};
    for (event, warned) in [
        (tag("rotate-90", Global), true),
        (tag("rotate-90", Stream), false),
        (tag("rotate-0", Stream), false),
        (tag("flip-rotate-180", Stream), true),
        (gst::event::StreamStart::new("another"), false),
        (tag("flip-rotate-180", Stream), true),
    ] {
        let name = format!("{event:?}");
        assert!(harness.push_event(event), "{name}");
        let warnings = common::bus::warnings(&bus);
        assert_eq!(warnings.len(), usize::from(warned), "{name}: {warnings:?}");
    }
}
