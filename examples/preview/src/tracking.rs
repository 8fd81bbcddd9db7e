// SPDX-License-Identifier: MPL-2.0
//! The tracking pipeline: plays the video, and passes its newest frame on, with its faces.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use facetrack::engine::EngineKind;
use facetrack::gain::Gains;
use gst::prelude::*;
use winit::event_loop::EventLoopProxy;

use crate::drawing::Drawing;
use crate::neutral::NeutralFaces;
use crate::outputs::Outputs;
use crate::pipelines::{Event, element, launch};
use crate::profile::Rest;
use crate::record::Record;
use crate::source::Source;
use crate::stage::{Stage, Until};

/// The element that takes the video of the source, which may be replaced.
pub const ENTRY: &str = "entry";

/// The elements that find faces. The video is mirrored before text is drawn, so that the text stays
/// readable.
const TRACKING: &str = "videoflip name=mirror ! facetrack name=track post-messages=on-change";

/// The element that reads faces from a record. Their positions are those in a video that is not
/// mirrored.
const RECORD: &str = "trackjsonload name=load";

/// The sink, which by default passes frames on when they are due.
pub const NEWEST: &str = "newest";

/// The parts of an analysis, with the names in facetrack's `stats`.
const ANALYSIS: [&str; 5] = ["detection", "landmarks", "track", "smooth", "complete"];

/// Settings at the start.
pub struct Options<'a> {
    pub engine: Option<&'a str>,
    pub gains: &'a Gains,
    /// Rest values of each engine.
    pub neutral: &'a BTreeMap<String, Rest>,
    pub freeze_at: Option<gst::ClockTime>,
    /// The record to show, instead of tracking.
    pub record: Option<&'a Record>,
}

/// A video with faces.
pub struct Tracking {
    pub stage: Arc<Stage>,
    /// `None` if a record has the faces.
    analysis: Option<Analysis>,
}

/// The elements that find faces.
pub struct Analysis {
    track: gst::Element,
    mirror: gst::Element,
    neutral_faces: NeutralFaces,
}

impl Tracking {
    /// A video that does not play yet.
    ///
    /// # Errors
    /// Returns an error if the pipeline cannot be built.
    pub fn new(
        source: Source,
        options: &Options<'_>,
        shown: (Drawing, Outputs),
        events: EventLoopProxy<Event>,
    ) -> Result<Self, Box<dyn Error>> {
        let faces = options.record.map_or(TRACKING, |_| RECORD);
        let sink = format!("appsink name={NEWEST} max-buffers=1 drop=true");
        let pipeline = launch(&format!("queue name={ENTRY} ! {faces} ! {sink}"))?;
        // The clock of a camera would stop with it.
        pipeline.use_clock(Some(&gst::SystemClock::obtain()));
        let analysis = match options.record {
            Some(record) => {
                let path = record.path.to_string_lossy();
                element(&pipeline, "load").set_property("location", &*path);
                None
            }
            None => Some(Analysis::new(&pipeline, &source, options)?),
        };
        let until = options.freeze_at.map_or(Until::Forever, Until::Time);
        let stage = Stage::new(pipeline, source, until, shown, events)?;
        Ok(Self { stage, analysis })
    }

    /// The elements that find faces; `None` if a record has the faces.
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref()
    }

    /// Returns true if the video is paused or about to pause.
    pub fn is_paused(&self) -> bool {
        let until = self.stage.until();
        matches!(until, Until::Paused | Until::Seek(_) | Until::Sought(_))
    }

    /// Pauses or resumes.
    pub fn toggle(&self) {
        self.stage.change(if self.is_paused() {
            Until::Forever
        } else {
            Until::Paused
        });
    }

    /// Shows the next frame.
    pub fn step(&self) {
        self.stage.change(Until::Time(gst::ClockTime::ZERO));
    }

    /// Goes to the first frame at or after a time of the video, and pauses there.
    pub fn jump(&self, time: gst::ClockTime) {
        self.stage.change(Until::Seek(time));
    }
}

impl Analysis {
    fn new(
        pipeline: &gst::Pipeline,
        source: &Source,
        options: &Options<'_>,
    ) -> Result<Self, Box<dyn Error>> {
        let analysis = Self {
            track: element(pipeline, "track"),
            mirror: element(pipeline, "mirror"),
            neutral_faces: NeutralFaces::new(options.neutral)?,
        };
        let engine = options.engine.unwrap_or(EngineKind::default().name());
        analysis.set_engine(engine);
        analysis.set_gains(options.gains);
        if options.freeze_at.is_none() {
            // Files are played at their own speed, too.
            analysis.track.set_property_from_str("late-frames", "hold");
        }
        if source.is_mirror() {
            analysis.flip();
        }
        Ok(analysis)
    }

    /// Returns true if the picture is mirrored.
    pub fn is_mirrored(&self) -> bool {
        let direction = self.mirror.property_value("video-direction");
        direction.get() == Ok(gst_video::VideoOrientationMethod::Horiz)
    }

    /// Turns the mirror on or off.
    pub fn flip(&self) {
        let direction = if self.is_mirrored() {
            gst_video::VideoOrientationMethod::Identity
        } else {
            gst_video::VideoOrientationMethod::Horiz
        };
        self.mirror.set_property("video-direction", direction);
    }

    /// Requests another engine, which is loaded while the present one keeps running.
    pub fn set_engine(&self, engine: &str) {
        self.neutral_faces.apply(&self.track, engine);
        self.track.set_property("engine", engine);
    }

    /// Sets the gains of blendshapes.
    pub fn set_gains(&self, gains: &Gains) {
        self.track
            .set_property("blendshape-gain", gains.to_string());
    }

    /// Takes the faces of the next frame as neutral.
    pub fn set_neutral(&self) {
        self.track.emit_by_name::<()>("set-neutral", &[]);
    }

    /// The device of the engine.
    pub fn device(&self) -> String {
        let device = self.track.property::<Option<String>>("active-device");
        device.unwrap_or_default()
    }

    /// Time of an analysis: the sum of the medians of its parts, since the median of the whole
    /// includes held frames.
    pub fn cost(&self) -> Option<Duration> {
        let stats = self.track.property::<Option<gst::Structure>>("stats")?;
        let median = |part| {
            stats
                .get::<gst::Structure>(part)
                .ok()?
                .get::<f64>("p50")
                .ok()
        };
        let millis = ANALYSIS.into_iter().map(median).sum::<Option<f64>>()?;
        Some(Duration::from_secs_f64(millis / 1e3))
    }
}
