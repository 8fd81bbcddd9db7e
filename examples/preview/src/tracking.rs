// SPDX-License-Identifier: MPL-2.0
//! The tracking pipeline: plays the video, and passes its newest frame on.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use gst::prelude::*;
use winit::event_loop::EventLoopProxy;

use crate::drawing::Drawing;
use crate::outputs::Outputs;
use crate::pipelines::{Event, element};
use crate::source::Source;
use crate::stage::{Stage, Until};

/// Elements after the source. The video is rotated as its tag says. It is mirrored before text is
/// drawn, so that the text stays readable.
const TRACKING: &str = "videoconvert ! videoflip video-direction=auto ! queue ! videoflip name=mirror ! \
                        facetrack name=track post-messages=on-change ! \
                        appsink name=newest max-buffers=1 drop=true";

/// The sink, which by default passes frames on when they are due.
pub const NEWEST: &str = "newest";

/// The parts of an analysis, with the names in facetrack's `stats`.
const ANALYSIS: [&str; 5] = ["detection", "landmarks", "track", "smooth", "complete"];

/// Settings at the start.
pub struct Options<'a> {
    pub engine: Option<&'a str>,
    pub freeze_at: Option<gst::ClockTime>,
}

/// A tracked video.
pub struct Tracking {
    stage: Arc<Stage>,
    track: gst::Element,
    mirror: gst::Element,
}

impl Tracking {
    /// A video that does not play yet.
    ///
    /// # Errors
    /// Returns an error if the pipeline cannot be built.
    pub fn new(
        source: &Source,
        options: &Options<'_>,
        shown: (Drawing, Outputs),
        events: EventLoopProxy<Event>,
    ) -> Result<Self, Box<dyn Error>> {
        let pipeline = source.pipeline(TRACKING)?;
        let track = element(&pipeline, "track");
        if let Some(engine) = options.engine {
            track.set_property("engine", engine);
        }
        if options.freeze_at.is_none() {
            // Files are played at their own speed, too.
            track.set_property_from_str("late-frames", "hold");
        }
        let mirror = element(&pipeline, "mirror");
        let until = options.freeze_at.map_or(Until::Forever, Until::Time);
        let stage = Stage::new(pipeline, source, until, shown, events);
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

    /// Starts to load and play. Events report the result.
    pub fn start(&self) {
        self.stage.start();
    }

    /// Stops the pipeline, which may wait for the analysis of a frame.
    pub fn stop(&self) {
        self.stage.stop();
    }

    /// Returns true if the source is live, such as a camera.
    pub fn is_live(&self) -> bool {
        self.stage.is_live()
    }

    /// Returns true if the video is paused or about to pause.
    pub fn is_paused(&self) -> bool {
        self.stage.until() == Until::Paused
    }

    /// Pauses or resumes.
    pub fn toggle(&self) {
        self.stage.change(if self.is_paused() {
            Until::Forever
        } else {
            Until::Paused
        });
    }

    /// Advances by a frame.
    pub fn step(&self) {
        self.stage.change(Until::Time(gst::ClockTime::ZERO));
    }

    /// Turns the mirror on or off.
    pub fn flip(&self) {
        let flipped = self.mirror.property_value("video-direction");
        let is_flipped = flipped.get::<gst_video::VideoOrientationMethod>()
            == Ok(gst_video::VideoOrientationMethod::Horiz);
        let direction = if is_flipped {
            gst_video::VideoOrientationMethod::Identity
        } else {
            gst_video::VideoOrientationMethod::Horiz
        };
        self.mirror.set_property("video-direction", direction);
    }

    /// Requests another engine, which is loaded while the present one keeps running.
    pub fn set_engine(&self, engine: &str) {
        self.track.set_property("engine", engine);
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
