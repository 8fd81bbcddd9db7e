// SPDX-License-Identifier: MPL-2.0
//! All elements in one stream, and what must hold for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use facetrack::report::{FrameReport, FrameStatus, TrackedFace};
use gst::prelude::*;
use gst_check::Harness;
use gst_video::VideoInfo;
use gstfacetrack::meta::{FaceTrackMeta, Fit};
use serde_json::Value as Json;

use crate::common::bus::Watch;
use crate::common::drawn::{self, Face};
use crate::rounds;

/// Time from frame to frame of a clean stream.
pub const PERIOD: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// Caps of a clean stream.
pub const CLEAN: &str = "video/x-raw,format=RGB,width=160,height=120,framerate=25/1";

/// Patience with a pipeline.
pub const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(60);

pub fn caps(text: &str) -> gst::Caps {
    text.parse().expect("caps")
}

/// Elements between a pad that frames are pushed to and one that they come out of.
pub struct Stream {
    pub harness: Harness,
    pub element: gst::Element,
    bus: Watch,
}

impl Stream {
    pub fn new(elements: &str) -> Self {
        rounds::init();
        let mut harness = Harness::new_parse(elements);
        let element = harness.element().expect("an element");
        let bus = Watch::of(&element);
        harness.set_src_caps(caps(CLEAN));
        harness.play();
        Self {
            harness,
            element,
            bus,
        }
    }

    pub fn set_caps(&mut self, caps: &gst::Caps) {
        let event = gst::event::Caps::new(caps);
        assert!(self.harness.push_event(event), "{caps} are refused");
    }

    /// The frame comes out, with readable metadata that is finite.
    pub fn pass(&mut self, buffer: gst::Buffer) -> (gst::Buffer, FrameReport) {
        let (size, offset) = (buffer.size(), buffer.offset());
        let pushed = self.harness.push(buffer);
        let passed = self.harness.try_pull();
        let passed =
            passed.unwrap_or_else(|| panic!("a frame is lost: {pushed:?}, {:?}", self.errors()));
        assert_eq!((passed.size(), passed.offset()), (size, offset));
        let report = FaceTrackMeta::read(&passed).expect("metadata");
        assert_finite(&report);
        (passed, report)
    }

    /// Text of the errors so far. A panic of an element is a failure.
    pub fn errors(&self) -> Vec<String> {
        errors(&self.bus)
    }

    #[track_caller]
    pub fn assert_no_error(&self) {
        assert_eq!(self.errors(), [""; 0]);
    }

    /// Stops and starts again, with clean caps.
    pub fn restart(&mut self) {
        self.element.set_state(gst::State::Null).expect("it stops");
        self.element
            .set_state(gst::State::Playing)
            .expect("it starts");
        let events = [
            gst::event::StreamStart::new("again"),
            gst::event::Caps::new(&caps(CLEAN)),
            gst::event::Segment::new(&gst::FormattedSegment::<gst::ClockTime>::new()),
        ];
        for event in events {
            assert!(self.harness.push_event(event));
        }
    }

    /// The face in a few clean frames is found.
    pub fn assert_works(&mut self) {
        self.errors();
        self.restart();
        let reports = [0, 1, 2].map(|number| self.pass(clean(number)).1);
        let last = &reports[2];
        assert_eq!(last.status, FrameStatus::Tracked, "{last:?}");
        self.assert_no_error();
    }
}

/// Text of the errors on a bus. A panic of an element is a failure.
pub fn errors(bus: &gst::Bus) -> Vec<String> {
    let messages = std::iter::from_fn(|| bus.pop_filtered(&[gst::MessageType::Error]));
    let texts = messages.map(|message| error_of(&message));
    texts.collect()
}

/// Text of an error message. A panic of an element is a failure.
pub fn error_of(message: &gst::Message) -> String {
    let gst::MessageView::Error(error) = message.view() else {
        panic!("{message:?} is no error");
    };
    let text = format!("{} ({:?})", error.error(), error.debug());
    assert!(!text.to_lowercase().contains("panicked"), "{text}");
    text
}

/// A frame of a clean stream, with a face.
pub fn clean(number: u64) -> gst::Buffer {
    static PICTURE: LazyLock<Vec<u8>> = LazyLock::new(|| picture(160, 120));
    at(gst::Buffer::from_mut_slice(PICTURE.clone()), number)
}

/// A drawn face.
pub fn picture(width: usize, height: usize) -> Vec<u8> {
    let (x, y) = (width as f64 * 0.45, height as f64 / 2.0);
    let face = Face {
        x,
        y,
        size: height as f64 * 0.28,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    };
    drawn::draw(width, height, &[face])
}

/// The frame with this number, from 0, of a clean stream.
pub fn at(mut buffer: gst::Buffer, number: u64) -> gst::Buffer {
    let fields = buffer.make_mut();
    fields.set_pts(number * PERIOD);
    fields.set_duration(PERIOD);
    fields.set_offset(number);
    buffer
}

fn assert_finite(report: &FrameReport) {
    for TrackedFace { face, .. } in &report.faces {
        let bbox = face.bbox;
        let sides = [bbox.x, bbox.y, bbox.width, bbox.height];
        let points = face.landmarks.iter().flat_map(|marks| &marks.points);
        let points = points.flat_map(|point| [point.x, point.y, point.z]);
        let is_finite = sides.into_iter().chain(points).all(f32::is_finite);
        assert!(is_finite, "{report:?}");
    }
}

/// The report can be placed in the frame at hand.
pub fn assert_placed(buffer: &gst::BufferRef, caps: &gst::Caps) {
    let info = VideoInfo::from_caps(caps).expect("video");
    let report = FaceTrackMeta::in_frame(buffer, &info, Fit::Borders);
    assert_finite(&report.unwrap_or_else(|error| panic!("{caps}: {error}")));
}

/// A record in a folder of its own.
pub struct Record(tempfile::TempDir);

impl Record {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("clip.json")
    }

    pub fn partial(&self) -> PathBuf {
        self.0.path().join("clip.json.partial")
    }

    /// `trackjsonsink`, which writes it.
    pub fn sink(&self) -> String {
        let path = self.path();
        format!(
            "trackjsonsink name=write location={} overwrite=true",
            path.display()
        )
    }

    pub fn read(&self) -> Json {
        json(&self.path())
    }

    /// Removes it, so that none is mistaken for the next one.
    pub fn remove(&self) {
        for path in [self.path(), self.partial()] {
            let _ = fs::remove_file(path);
        }
    }

    /// Numbers of frames that were received, and of those that were filled in. Numbers have no
    /// gaps.
    #[track_caller]
    pub fn assert_numbered(&self) -> (u64, u64) {
        assert!(!self.partial().exists(), "the record is not finished");
        numbered(&self.read())
    }
}

pub fn json(path: &Path) -> Json {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

/// Checks a record like [`Record::assert_numbered`].
#[track_caller]
pub fn numbered(record: &Json) -> (u64, u64) {
    let frames = record["frames"].as_array().expect("frames");
    let numbers = frames.iter().map(|frame| frame["frame"].as_u64());
    assert!(
        numbers.eq((1..=frames.len() as u64).map(Some)),
        "frames are not numbered"
    );
    let head = &record["metadata"];
    assert_eq!(head["total_frames"], frames.len());
    let filled = head["padded_frames"].as_u64().expect("a number");
    (frames.len() as u64 - filled, filled)
}

/// Counts the buffers that pass a pad.
pub fn count(pad: &gst::Pad) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let counted = counter.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        gst::PadProbeReturn::Ok
    });
    counter
}

/// A pipeline that is stopped when it is dropped.
pub struct Pipeline {
    pub pipeline: gst::Pipeline,
    pub bus: gst::Bus,
}

impl Pipeline {
    pub fn new(line: &str) -> Self {
        rounds::init();
        let pipeline = gst::parse::launch(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let pipeline = pipeline.downcast::<gst::Pipeline>().expect("a pipeline");
        let bus = pipeline.bus().expect("a bus");
        Self { pipeline, bus }
    }

    pub fn pad(&self, element: &str, pad: &str) -> gst::Pad {
        let element = self.pipeline.by_name(element).expect("it is named");
        element.static_pad(pad).expect("a pad")
    }

    /// Plays to the end. `Err` with the text of the first error.
    pub fn play(&self) -> Result<(), String> {
        // A failed state change posts an error.
        let _ = self.pipeline.set_state(gst::State::Playing);
        let end = self.end();
        self.stop();
        end
    }

    /// Waits until the end.
    pub fn end(&self) -> Result<(), String> {
        let end = self.end_within(PATIENCE);
        end.expect("the pipeline ends")
    }

    /// Waits until the end. `None` after this time if it is dead by then.
    pub fn end_unless(
        &self,
        time: gst::ClockTime,
        is_dead: impl FnOnce() -> bool,
    ) -> Option<Result<(), String>> {
        let end = self.end_within(time);
        if end.is_none() && is_dead() {
            return None;
        }
        Some(end.unwrap_or_else(|| self.end()))
    }

    fn end_within(&self, time: gst::ClockTime) -> Option<Result<(), String>> {
        let ends = [gst::MessageType::Eos, gst::MessageType::Error];
        let end = self.bus.timed_pop_filtered(time, &ends)?;
        Some(match end.type_() {
            gst::MessageType::Eos => Ok(()),
            _ => Err(error_of(&end)),
        })
    }

    pub fn stop(&self) {
        self.pipeline.set_state(gst::State::Null).expect("it stops");
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
