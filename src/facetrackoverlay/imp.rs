// SPDX-License-Identifier: MPL-2.0

/**
 * SECTION:element-facetrackoverlay
 *
 * facetrackoverlay draws what facetrack attached to a frame into that frame: boxes with number and score, landmarks, contours or
 * the edges of a face mesh, key points, axes of the head, gaze, the strongest blendshapes, and who measured all this how
 * fast. #GstFaceTrackOverlay:layers says which of them.
 *
 * Frames are drawn into in the format that they have, any raw one in system memory but tiles and palettes, and are never
 * converted as a whole: where samples can't be picked out one by one, as in v210, only what is drawn into is unpacked. Frames
 * that carry nothing of facetrack's, and buffers with the flag GST_BUFFER_FLAG_GAP, pass untouched and uncopied. Frames may
 * have been scaled, converted, encoded or decoded since their analysis: faces are drawn where they are now, with
 * #GstFaceTrackOverlay:add-borders as scaling had it. Where an element cut or turned the picture nothing is drawn, and a
 * warning says so once. A stream that begins with 60 frames without metadata, or ends before, is a warning too: facetrack is
 * missing, or comes after this element.
 *
 * Text lies inside the frame at every size from 160×90 pixels. Lines and text are sized by the frame's shorter side.
 *
 * The box of a face that was not measured in its frame, but repeated from an earlier one, is dashed, and everything of that
 * face is dimmed. Every property may change while frames flow.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=video.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! facetrackoverlay ! videoconvert ! autovideosink
 * ]|
 * Shows a video with all that is known of its faces.
 *
 * |[
 * gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue ! facetrack max-faces=1 ! facetrackoverlay layers=boxes+mesh+info ! videoconvert ! autovideosink sync=false
 * ]|
 * Shows the mesh of a face in front of a camera.
 *
 * |[
 * gst-launch-1.0 videotestsrc num-buffers=50 ! facetrack engine=scripted script="face dx=0.01; landmarks" ! facetrackoverlay layers=boxes+labels+points color=E69F00 line-width=0.004 ! videoconvert ! pngenc snapshot=true ! filesink location=face.png
 * ]|
 * Draws a face by script, without any model, and keeps a picture.
 */
use std::collections::BTreeSet;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::base_transform::{BaseTransformMode, GenerateOutputSuccess};
use gst_base::subclass::prelude::*;
use thiserror::Error;

use super::frame::{self, Drawable, FrameError};
use super::pace::Counter;
use crate::lock::lock;
use crate::meta::{self, Absence, FaceTrackMeta, Fit, MetaError};
use crate::options::{self, Options, OverlaySettings};
use crate::{element, video};
use facetrack::overlay::{Layers, Overlay, Pace, Rgb, Style};
use facetrack::report::FrameReport;

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new(
        "facetrackoverlay",
        gst::DebugColorFlags::empty(),
        Some("Face overlay"),
    )
});

/// Most reasons that users are told of, each once: a stream may have as many as frames.
const MAX_TOLD: usize = 8;

/// Why nothing is drawn into a frame.
#[derive(Debug, Error)]
enum Undrawn {
    #[error(transparent)]
    Meta(#[from] MetaError),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// The frames of a stream.
struct State {
    info: gst_video::VideoInfo,
    drawable: Drawable,
    overlay: Overlay,
    counter: Counter,
    /// What users were told.
    told: BTreeSet<String>,
    absence: Absence,
}

impl State {
    /// Draws a report, where there is anything in it.
    fn draw(
        &mut self,
        buffer: &mut gst::Buffer,
        report: &FrameReport,
        pace: &Pace,
        style: &Style,
    ) -> Result<(), FrameError> {
        if Overlay::is_empty(report, style) {
            return Ok(());
        }
        let (drawable, overlay) = (&mut self.drawable, &mut self.overlay);
        frame::with_canvas(buffer.make_mut(), &self.info, drawable, |canvas| {
            overlay.draw(canvas, report, pace, style);
        })
    }

    /// What users are to be told of this, unless they were told before.
    fn news(&mut self, why: &Undrawn) -> Option<String> {
        let text = why.to_string();
        let is_news = self.told.len() < MAX_TOLD && self.told.insert(text.clone());
        is_news.then_some(text)
    }
}

/// The element.
///
/// Lock order: `state`, which belongs to the streaming thread, then `options`, which is only held for a copy.
#[derive(Default)]
pub struct FaceTrackOverlay {
    options: Mutex<Options<OverlaySettings>>,
    state: Mutex<Option<State>>,
}

/// The style of the settings.
///
/// # Errors
/// An invalid colour.
fn style(settings: &OverlaySettings) -> Result<Style, String> {
    let color = settings.color.as_deref().map(str::parse::<Rgb>);
    let color = color
        .transpose()
        .map_err(|reason| format!("`color`: {reason}"))?;
    Ok(Style {
        color,
        ..settings.style
    })
}

impl FaceTrackOverlay {
    /// Draws what is known of a frame, where something is.
    fn overlay(&self, mut buffer: gst::Buffer) -> gst::Buffer {
        let now = Instant::now();
        let mut guard = lock(&self.state);
        let Some(state) = guard.as_mut() else {
            return buffer;
        };
        let fps = state.counter.count(now);
        if buffer.flags().contains(gst::BufferFlags::GAP) || buffer.size() == 0 {
            return buffer;
        }
        let settings = lock(&self.options).settings.clone();
        // An invalid colour was reported when it was set.
        let style = style(&settings).unwrap_or(settings.style);
        let fit = if settings.add_borders {
            Fit::Borders
        } else {
            Fit::Stretch
        };
        if style.layers == Layers::NONE {
            return buffer;
        }
        let drawn = match FaceTrackMeta::in_frame(&buffer, &state.info, fit) {
            Ok(report) => {
                let latency = self.latency(&buffer);
                let pace = Pace { fps, latency };
                let drawn = state.draw(&mut buffer, &report, &pace, &style);
                drawn.map_err(Undrawn::from)
            }
            Err(MetaError::Absent) => {
                let is_remarkable = state.absence.count(false);
                drop(guard);
                if is_remarkable {
                    self.warn_of_absence();
                }
                return buffer;
            }
            Err(error) => Err(error.into()),
        };
        state.absence.count(true);
        let news = drawn.err().and_then(|why| state.news(&why));
        drop(guard);
        if let Some(news) = news {
            self.warn(&news);
        }
        buffer
    }

    /// Says why nothing is drawn. No lock is held: who hears it may do anything.
    fn warn(&self, why: &str) {
        gst::element_imp_warning!(self, gst::StreamError::Format, ("Nothing is drawn: {why}"));
    }

    fn warn_of_absence(&self) {
        self.warn(meta::remedy(Some(self.obj().src_pad())));
    }

    /// How long ago a frame was to be shown; `None` for one that is early, as those of files are.
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
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> =
            LazyLock::new(|| options::properties::<OverlaySettings, FaceTrackOverlay>(&[]));
        &PROPERTIES
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        let (old, new) = {
            let mut options = lock(&self.options);
            let old = options.settings.color.clone();
            options.set_property(id, value);
            (old, options.settings.clone())
        };
        // Another option is no reason to repeat the warning.
        if let Some(error) = style(&new).err().filter(|_| new.color != old) {
            gst::element_imp_warning!(self, gst::LibraryError::Settings, ("{error}"));
        }
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        lock(&self.options).property(id)
    }
}

impl GstObjectImpl for FaceTrackOverlay {}

impl ElementImpl for FaceTrackOverlay {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Face overlay",
                "Filter/Editor/Video",
                "Draws the faces that facetrack found into the frames",
                element::AUTHOR,
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> =
            LazyLock::new(|| element::filter_templates(&frame::caps()));
        &TEMPLATES
    }
}

impl BaseTransformImpl for FaceTrackOverlay {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        let style = style(&lock(&self.options).settings);
        style
            .map(|_| ())
            .map_err(|error| gst::error_msg!(gst::LibraryError::Settings, ("{error}")))
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let info = gst_video::VideoInfo::from_caps(incaps)
            .map_err(|_| gst::loggable_error!(CAT, "{incaps} are no caps of raw video"))?;
        let drawable = frame::drawable(info.format())
            .ok_or_else(|| gst::loggable_error!(CAT, "{incaps} can't be drawn into"))?;
        let mut state = lock(&self.state);
        let old = state.take();
        let (overlay, counter, told, absence) = old
            .map(|old| (old.overlay, old.counter, old.told, old.absence))
            .unwrap_or_default();
        *state = Some(State {
            info,
            drawable,
            overlay,
            counter,
            told,
            absence,
        });
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        let mut is_remarkable = false;
        if let Some(state) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::StreamStart(_) => state.absence = Absence::default(),
                gst::EventView::Eos(_) => is_remarkable = state.absence.end(),
                _ => (),
            }
        }
        if is_remarkable {
            self.warn_of_absence();
        }
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

    /// Not in place by the base class, which would make every buffer writable, those too that pass untouched.
    fn generate_output(&self) -> Result<GenerateOutputSuccess, gst::FlowError> {
        Ok(match self.take_queued_buffer() {
            Some(buffer) => GenerateOutputSuccess::Buffer(self.overlay(buffer)),
            None => GenerateOutputSuccess::NoOutput,
        })
    }
}
