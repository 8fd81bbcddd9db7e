// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrackblur
 *
 * facetrackblur makes the faces that facetrack found unrecognisable, in the frames themselves. It
 * pixelates, blurs or blackens them (#GstFaceTrackBlur:mode) in the shape of a box, an ellipse or
 * the face mesh (#GstFaceTrackBlur:shape), with a margin.
 *
 * Held and predicted faces are covered too. A face that is lost is covered for
 * #GstFaceTrackBlur:hold seconds, in an area that grows by the largest speed that the
 * face had lately. A frame
 * that may show other faces becomes black, and a warning says why: it was not analysed or has no
 * readable metadata, facetrack found as many faces as it may report, or it left out faces that it
 * found. #GstFaceTrackBlur:unknown turns this off. If a frame cannot be written to, or the record
 * that trackjsonload replays may be of another video, the stream ends with an error.
 *
 * Pictures, places and data of unknown content are removed from the tags of the stream, and tables
 * of contents are removed as a whole.
 *
 * The element accepts the same formats as facetrackoverlay, and changes frames in place. Frames in
 * which nothing is covered pass unchanged and without a copy. Each covered area is marked with a
 * #GstVideoRegionOfInterestMeta of the type `redacted`. Every property may change while frames
 * flow.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=opencv-yunet detect-max-width=0 detection-confidence=0.3 ! trackjsonsink location=video.json && gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! trackjsonload location=video.json look-ahead=1 ! facetrackblur ! videoconvert ! autovideosink
 * ]|
 * Pixelates faces in two passes, so that a face is covered before it is found for the first time.
 *
 * |[
 * gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue leaky=downstream max-size-buffers=1 ! facetrack engine=opencv-yunet detection-confidence=0.3 late-frames=analyze ! facetrackblur mode=fill ! videoconvert ! autovideosink sync=false
 * ]|
 * Blackens faces in front of a camera. Frames for whose analysis there is no time are dropped.
 *
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! facetrack engine=scripted script="face dx=0.01; landmarks" ! facetrackblur mode=blur shape=face ! videoconvert ! pngenc snapshot=true ! filesink location=blurred.png
 * ]|
 * Blurs a scripted face, without any model, and saves a picture.
 */
use std::mem;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use gst::glib;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::{BaseTransformMode, GenerateOutputSuccess};
use gst_base::subclass::prelude::*;
use gst_video::VideoInfo;

use super::tags;
use crate::clock::{self, FrameClock};
use crate::drawing::{self, DrawingError, FrameFormat, Warning, Warnings};
use crate::meta::{self, FaceTrackMeta, Fit, MetaError};
use crate::options::{self, BlurSettings, Options};
use crate::{element, video};
use facetrack::overlay::Overlay;
use facetrack::redaction::{self, Cover, Redactor, Settings, Unknown};
use facetrack::report::{FrameReport, SearchExtent};
use facetrack_assets::lock::lock;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| element::category("facetrackblur", "Face blur"));

/// State of a stream.
#[derive(Default)]
struct State {
    /// `None` before the first caps.
    format: Option<FrameFormat>,
    clock: FrameClock,
    redactor: Redactor,
    overlay: Overlay,
    /// True if a frame of the stream had readable metadata.
    has_report: bool,
    /// True if a frame had none since this was last reported.
    has_absent: bool,
    warnings: Warnings,
    /// Rate of the segment.
    rate: f64,
}

impl State {
    /// Begins another stream: the next frame does not continue the last one. Faces stay covered for the
    /// hold, because a video may be continued by another file.
    fn restart(&mut self) {
        self.clock.reset();
        (self.has_report, self.has_absent) = (false, false);
        self.redactor.restart();
    }

    /// Takes the rate of a segment. Times in the video have another scale if it differs from the one
    /// before.
    fn take_rate(&mut self, event: &gst::Event) {
        let gst::EventView::Segment(segment) = event.view() else {
            return;
        };
        let rate = segment.segment().rate().abs();
        if std::mem::replace(&mut self.rate, rate) != rate {
            self.restart();
        }
    }

    /// Covers the faces in the frame of a buffer. Returns the reason why the frame may show other
    /// faces than those that are known, if there is one.
    ///
    /// # Errors
    /// Returns an error if the frame must not leave: it cannot be written to, or its faces
    /// belong to another video.
    fn blur(
        &mut self,
        buffer: &mut gst::Buffer,
        time: Option<Duration>,
        settings: &Settings,
    ) -> Result<Option<DrawingError>, DrawingError> {
        let format = self.format.as_ref().ok_or(DrawingError::NoCaps)?;
        let report = report(buffer, &format.info);
        let search = redaction::search_of(report.as_ref().ok());
        if search == SearchExtent::OtherVideo && settings.unknown == Unknown::FillFrame {
            return Err(DrawingError::Unsearched(search));
        }
        let period = clock::period(format.info.fps());
        let time = self.clock.next(time, period);
        let cover = self.redactor.cover(report.as_ref().ok(), time, settings);
        if !matches!(&cover, Cover::Regions(regions) if regions.is_empty()) {
            let buffer = buffer.make_mut();
            format.draw_into(buffer, |canvas| {
                self.overlay.redact(canvas, &cover, settings.mode)
            })?;
            meta::redaction::mark(buffer, &format.info, &cover);
        }
        self.has_absent |= report == Err(MetaError::Absent);
        self.has_report |= report.is_ok();
        if self.has_report && mem::take(&mut self.has_absent) {
            return Ok(Some(DrawingError::SomeAbsent));
        }
        Ok(match report {
            Err(error) => Some(error.into()),
            Ok(_) => Some(search)
                .filter(|it| *it != SearchExtent::Whole)
                .map(DrawingError::Unsearched),
        })
    }
}

/// The report on a buffer, in pixels of its frame. If a scaler has changed the aspect ratio, each
/// face is where it is between borders and where it is without them.
fn report(buffer: &gst::BufferRef, info: &VideoInfo) -> Result<FrameReport, MetaError> {
    let mut report = FaceTrackMeta::in_frame(buffer, info, Fit::Borders)?;
    let stretched = FaceTrackMeta::in_frame(buffer, info, Fit::Stretch)?;
    if stretched.faces != report.faces {
        report.faces.extend(stretched.faces);
    }
    Ok(report)
}

/// The element.
///
/// Lock order: `state`, which belongs to the streaming thread, then `options` and `seek`, which are held
/// only for a copy.
#[derive(Default)]
pub struct FaceTrackBlur {
    options: Mutex<Options<BlurSettings>>,
    state: Mutex<State>,
    /// Sequence number of the last seek, which its flush has, too.
    seek: Mutex<Option<gst::Seqnum>>,
}

impl FaceTrackBlur {
    /// Covers the faces in the frame of a buffer.
    fn blur(&self, mut buffer: gst::Buffer) -> Result<gst::Buffer, gst::FlowError> {
        if buffer.size() == 0 {
            return Ok(buffer);
        }
        let settings = lock(&self.options).settings.clone();
        // Invalid ids were reported when they were set: all faces are covered.
        let settings = settings.redaction().unwrap_or(settings.redaction);
        let time = self.video_time(&buffer);
        let mut state = lock(&self.state);
        let blurred = state.blur(&mut buffer, time, &settings);
        let problem = blurred.as_ref().ok().and_then(Option::as_ref);
        let warning = state.warnings.count(problem);
        drop(state);
        self.warn(warning);
        blurred.map(|_| buffer).map_err(|error| {
            self.post_error_message(error.message("the faces of a frame cannot be covered"));
            gst::FlowError::Error
        })
    }

    /// Running time of a frame at the normal rate: the hold is a time in the video, also in slow motion.
    fn video_time(&self, buffer: &gst::BufferRef) -> Option<Duration> {
        let segment = self.obj().segment().downcast::<gst::ClockTime>().ok()?;
        let time = Duration::from(segment.to_running_time(buffer.pts())?);
        let rate = segment.rate().abs();
        Some(Duration::try_from_secs_f64(time.as_secs_f64() * rate).unwrap_or(time))
    }

    /// Posts a warning that faces are unknown. The caller holds no lock: handlers of the message may
    /// use the element.
    fn warn(&self, warning: Option<Warning>) {
        if let Some(why) = warning.map(|warning| warning.text(&*self.obj())) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                ("Frames may show faces that are not known, and are handled as `unknown` says: {why}")
            );
        }
    }
}

#[glib::object_subclass]
impl ObjectSubclass for FaceTrackBlur {
    const NAME: &'static str = "GstFaceTrackBlur";
    type Type = super::FaceTrackBlur;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for FaceTrackBlur {
    fn constructed(&self) {
        self.parent_constructed();
        element::report_refused_caps(self.obj().sink_pad());
    }

    fn properties() -> &'static [glib::ParamSpec] {
        options::properties::<BlurSettings, Self>(&[])
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        // An invalid `keep` replaces the one in use, so that no face stays visible.
        let changed = lock(&self.options).change(id, value);
        options::warn(&*self.obj(), changed.err());
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        lock(&self.options).property(id)
    }
}

impl GstObjectImpl for FaceTrackBlur {}

impl ElementImpl for FaceTrackBlur {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        element::metadata(
            "Face blur",
            "Filter/Effect/Video",
            "Makes the faces found by facetrack unrecognisable",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::filter_templates(&drawing::caps())
    }
}

impl BaseTransformImpl for FaceTrackBlur {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let redaction = lock(&self.options).settings.redaction();
        redaction
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
        let info = format.info.clone();
        let mut state = lock(&self.state);
        if let Some(before) = state.format.replace(format) {
            let scale = |new: u32, old: u32| new as f32 / old.max(1) as f32;
            let (width, height) = (before.info.width(), before.info.height());
            state
                .redactor
                .rescale(scale(info.width(), width), scale(info.height(), height));
        }
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        let warning = {
            let mut state = lock(&self.state);
            match event.type_() {
                gst::EventType::StreamStart => state.restart(),
                gst::EventType::FlushStop => {
                    state.restart();
                    // After the flush of a seek, the picture is another one. After any other flush, it
                    // continues, as with a camera.
                    if *lock(&self.seek) == Some(event.seqnum()) {
                        state.redactor = Redactor::default();
                    }
                }
                gst::EventType::Segment => state.take_rate(&event),
                _ => (),
            }
            state.warnings.handle(&event)
        };
        self.warn(warning);
        tags::without_pictures_and_places(event).is_none_or(|event| self.parent_sink_event(event))
    }

    fn src_event(&self, event: gst::Event) -> bool {
        // Set first, because the flush may arrive before the call returns.
        if event.type_() == gst::EventType::Seek {
            *lock(&self.seek) = Some(event.seqnum());
        }
        self.parent_src_event(event)
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
    /// nothing is covered.
    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        match self.take_queued_buffer() {
            Some(buffer) => self.blur(buffer).map(GenerateOutputSuccess::Buffer),
            None => Ok(GenerateOutputSuccess::NoOutput),
        }
    }
}
