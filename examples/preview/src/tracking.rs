// SPDX-License-Identifier: MPL-2.0
//! The pipeline that tracks: it keeps the video going, and hands its newest frame on.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use gst::prelude::*;
use winit::event_loop::EventLoopProxy;

use crate::drawing::Drawing;
use crate::pipelines::{Event, element};
use crate::source::Source;
use crate::stage::{Stage, Until};

/// Elements behind the source. The video is turned upright as its tag says. The mirror comes before the text, which stays
/// readable.
const TRACKING: &str = "videoconvert ! videoflip video-direction=auto ! queue ! videoflip name=mirror ! \
                        facetrack name=track ! appsink name=newest max-buffers=1 drop=true";

/// The sink in it, which shows frames when they are due unless it is told otherwise.
pub const NEWEST: &str = "newest";

/// The parts of an analysis, as facetrack's `stats` name them.
const ANALYSIS: [&str; 4] = ["process", "track", "smooth", "complete"];

/// How to begin.
pub struct Options<'a> {
    pub engine: Option<&'a str>,
    pub freeze_at: Option<gst::ClockTime>,
}

/// A video that is tracked.
pub struct Tracking {
    stage: Arc<Stage>,
    track: gst::Element,
    mirror: gst::Element,
}

impl Tracking {
    /// A video that does not play yet.
    ///
    /// # Errors
    /// Where the pipeline can't be put together.
    pub fn new(
        source: &Source,
        options: &Options<'_>,
        drawing: Drawing,
        events: EventLoopProxy<Event>,
    ) -> Result<Self, Box<dyn Error>> {
        let pipeline = source.pipeline(TRACKING)?;
        let track = element(&pipeline, "track");
        if let Some(engine) = options.engine {
            track.set_property("engine", engine);
        }
        if options.freeze_at.is_none() {
            // A file is played at its own speed too.
            track.set_property_from_str("late-frames", "hold");
        }
        let mirror = element(&pipeline, "mirror");
        let until = options.freeze_at.map_or(Until::Forever, Until::Time);
        let stage = Stage::new(pipeline, source, until, drawing, events);
        let tracking = Self {
            stage,
            track,
            mirror,
        };
        if source.is_mirror() {
            tracking.flip();
        }
        Ok(tracking)
    }

    /// Begins to load and to play. What comes of it, the events tell.
    pub fn start(&self) {
        self.stage.start();
    }

    /// Ends it, which may wait for a frame's analysis.
    pub fn stop(&self) {
        self.stage.stop();
    }

    /// Whether the source is a camera or the like.
    pub fn is_live(&self) -> bool {
        self.stage.is_live()
    }

    /// Whether the picture stands still, or is about to.
    pub fn is_paused(&self) -> bool {
        self.stage.until() == Until::Paused
    }

    /// Pauses, or goes on.
    pub fn toggle(&self) {
        self.stage.change(match self.is_paused() {
            true => Until::Forever,
            false => Until::Paused,
        });
    }

    /// Goes on for a frame.
    pub fn step(&self) {
        self.stage.change(Until::Time(gst::ClockTime::ZERO));
    }

    /// Mirrors the video, or does so no more.
    pub fn flip(&self) {
        let flipped = self.mirror.property_value("video-direction");
        let is_flipped = flipped.get::<gst_video::VideoOrientationMethod>()
            == Ok(gst_video::VideoOrientationMethod::Horiz);
        self.mirror.set_property(
            "video-direction",
            match is_flipped {
                true => gst_video::VideoOrientationMethod::Identity,
                false => gst_video::VideoOrientationMethod::Horiz,
            },
        );
    }

    /// Asks for another engine, which is loaded while the one at work goes on.
    pub fn set_engine(&self, engine: &str) {
        self.track.set_property("engine", engine);
    }

    /// Where the engine runs.
    pub fn device(&self) -> String {
        let device = self.track.property::<Option<String>>("active-device");
        device.unwrap_or_default()
    }

    /// How long an analysis takes: the sum of the medians of its parts. That of the whole counts held frames too.
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
