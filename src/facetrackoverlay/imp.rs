// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrackoverlay
 *
 * facetrackoverlay draws the results that facetrack attached to a frame into that frame: boxes with
 * number and score, landmarks, contours or the edges of a face mesh, key points, axes of the head,
 * gaze, the strongest blendshapes, and the engine with its speed. #GstFaceTrackOverlay:layers
 * selects them.
 *
 * The element draws into frames in their own format, without converting them. It accepts raw video
 * in system memory in every format whose samples can be addressed one by one; for other formats,
 * such as v210, tiled formats and formats with a palette, put videoconvert before the element.
 * Frames without facetrack's metadata pass unchanged and without a copy. Frames may have been scaled, converted, encoded or decoded since their
 * analysis: faces are drawn at their present position. Set #GstFaceTrackOverlay:add-borders as for
 * the scaler. If an element cropped or rotated the frames, nothing is drawn and a warning is posted
 * once. A warning is also posted if a stream begins with 60 frames without metadata, or ends before
 * that: facetrack is missing, or comes after this element.
 *
 * Text stays inside frames of 160×90 pixels or more. The sizes of lines and text are relative to
 * the shorter side of the frame.
 *
 * If a face was not measured in this frame but is repeated from an earlier one, its box is dashed
 * and all of it is dimmed. Every property may change while frames flow.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! facetrackoverlay ! videoconvert ! autovideosink
 * ]|
 * Shows a video with its tracked faces.
 *
 * |[
 * gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue ! facetrack max-faces=1 ! facetrackoverlay layers=boxes+mesh+info ! videoconvert ! autovideosink sync=false
 * ]|
 * Shows the mesh of a face in front of a camera.
 *
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! facetrack engine=scripted script="face dx=0.01; landmarks" ! facetrackoverlay layers=boxes+labels+points color=E69F00 line-width=0.004 ! videoconvert ! pngenc snapshot=true ! filesink location=face.png
 * ]|
 * Draws a scripted face, without any model, and saves a picture.
 */
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::{BaseTransformMode, GenerateOutputSuccess};
use gst_base::subclass::prelude::*;

use super::pace::{AnalysisTimes, Counter};
use crate::drawing::{self, DrawingError, FrameFormat, Warning, Warnings};
use crate::meta::FaceTrackMeta;
use crate::options::{self, Options, OverlaySettings};
use crate::{element, video};
use facetrack::overlay::{Overlay, Pace};
use facetrack_assets::lock::lock;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| element::category("facetrackoverlay", "Face overlay"));

/// State of a stream.
#[derive(Default)]
struct State {
    /// `None` before the first caps.
    format: Option<FrameFormat>,
    overlay: Overlay,
    counter: Counter,
    analysis_times: AnalysisTimes,
    warnings: Warnings,
}

impl State {
    /// Draws the metadata of a buffer into its frame. `pace` is called only for frames that are
    /// drawn into.
    fn draw(
        &mut self,
        buffer: &mut gst::Buffer,
        settings: &OverlaySettings,
        pace: impl FnOnce(&gst::BufferRef) -> Pace,
    ) -> Result<(), DrawingError> {
        let Some(format) = &self.format else {
            return Ok(());
        };
        let fit = drawing::fit(settings.add_borders);
        let report = FaceTrackMeta::in_frame(buffer, &format.info, fit)?;
        if Overlay::is_empty(&report, &settings.style) {
            return Ok(());
        }
        // An invalid colour was reported when it was set.
        let style = settings.style().unwrap_or(settings.style);
        let pace = pace(buffer);
        format.draw_into(buffer.make_mut(), |canvas| {
            self.overlay.draw(canvas, &report, &pace, &style)
        })
    }
}

/// The element.
///
/// Lock order: `state`, which belongs to the streaming thread, then `options`, which is held only
/// for a copy.
#[derive(Default)]
pub struct FaceTrackOverlay {
    options: Mutex<Options<OverlaySettings>>,
    state: Mutex<State>,
}

impl FaceTrackOverlay {
    /// Draws the metadata of a buffer, if it has any, into its frame.
    fn overlay(&self, mut buffer: gst::Buffer) -> Result<gst::Buffer, gst::FlowError> {
        let mut state = lock(&self.state);
        let fps = state.counter.count(Instant::now());
        if buffer.size() == 0 {
            return Ok(buffer);
        }
        let settings = lock(&self.options).settings.clone();
        if settings.style.layers.is_empty() {
            return Ok(buffer);
        }
        let cost = FaceTrackMeta::cost(&buffer);
        let analysis = state.analysis_times.mean_with(cost.time);
        let pace = |buffer: &gst::BufferRef| Pace {
            fps,
            latency: self.latency(buffer),
            analysis,
            gpu_memory: cost.gpu_memory,
        };
        let drawn = state.draw(&mut buffer, &settings, pace);
        let warning = match &drawn {
            Err(DrawingError::Memory(_)) => None,
            drawn => state.warnings.count(drawn.as_ref().err()),
        };
        drop(state);
        self.warn(warning);
        if let Err(error @ DrawingError::Memory(_)) = drawn {
            self.post_error_message(error.message("nothing is drawn"));
            return Err(gst::FlowError::Error);
        }
        Ok(buffer)
    }

    /// Posts a warning that nothing is drawn. The caller holds no lock: handlers of the message may
    /// use the element.
    fn warn(&self, warning: Option<Warning>) {
        if let Some(why) = warning.map(|warning| warning.text(&*self.obj())) {
            gst::element_imp_warning!(self, gst::StreamError::Format, ("Nothing is drawn: {why}"));
        }
    }

    /// Time since a frame was due; `None` for a frame that is early, as frames from files usually
    /// are.
    fn latency(&self, buffer: &gst::BufferRef) -> Option<Duration> {
        let element = self.obj();
        let segment = element.sink_pad().sticky_event::<gst::event::Segment>(0)?;
        let segment = segment.segment().downcast_ref::<gst::ClockTime>()?;
        let due = segment.to_running_time(buffer.pts())?;
        let late = element.current_running_time()?.checked_sub(due)?;
        Some(late.into())
    }
}

#[glib::object_subclass]
impl ObjectSubclass for FaceTrackOverlay {
    const NAME: &'static str = "GstFaceTrackOverlay";
    type Type = super::FaceTrackOverlay;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for FaceTrackOverlay {
    fn constructed(&self) {
        self.parent_constructed();
        element::report_refused_caps(self.obj().sink_pad());
    }

    fn properties() -> &'static [glib::ParamSpec] {
        options::properties::<OverlaySettings, Self>(&[])
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        options::set_property(&*self.obj(), &self.options, id, value);
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        lock(&self.options).property(id)
    }
}

impl GstObjectImpl for FaceTrackOverlay {}

impl ElementImpl for FaceTrackOverlay {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        element::metadata(
            "Face overlay",
            "Filter/Editor/Video",
            "Draws the faces found by facetrack into the frames",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::filter_templates(&drawing::caps())
    }
}

impl BaseTransformImpl for FaceTrackOverlay {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let style = lock(&self.options).settings.style();
        style
            .map(|_| ())
            .map_err(|error| gst::error_msg!(gst::LibraryError::Settings, ("{error}")))
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = State::default();
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let format = FrameFormat::of(incaps)
            .ok_or_else(|| gst::loggable_error!(CAT, "{incaps} cannot be drawn into"))?;
        lock(&self.state).format = Some(format);
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        let warning = lock(&self.state).warnings.handle(&event);
        self.warn(warning);
        self.parent_sink_event(event)
    }

    fn propose_allocation(
        &self,
        decide_query: Option<&gst::query::Allocation>,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        self.parent_propose_allocation(decide_query, query)?;
        video::refuse_crops(query);
        Ok(())
    }

    fn query(&self, direction: gst::PadDirection, query: &mut gst::QueryRef) -> bool {
        let is_unlinked = direction == gst::PadDirection::Sink
            && element::answer_before_late_link(self.obj().sink_pad(), query);
        is_unlinked || BaseTransformImplExt::parent_query(self, direction, query)
    }

    /// Replaces the base class' in-place transform, which would make every buffer writable, even if
    /// nothing is drawn.
    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        Ok(match self.take_queued_buffer() {
            Some(buffer) => GenerateOutputSuccess::Buffer(self.overlay(buffer)?),
            None => GenerateOutputSuccess::NoOutput,
        })
    }
}
