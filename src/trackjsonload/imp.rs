// SPDX-License-Identifier: MPL-2.0
/**
 * SECTION:element-trackjsonload
 *
 * trackjsonload re-attaches a record of `trackjsonsink` to its video. The elements after it
 * cannot distinguish it from `facetrack`, so overlays and sinks can be tried out without a camera
 * or a model, and a video that was tracked once can be annotated any number of times.
 *
 * Dense and jsonl files can be read; they are recognised by their content. Partial files of streams
 * that broke off and files that another program has reformatted can be read too. A file that was
 * recorded with `verbose=true` contains all measurements except the mesh of a morphable model, and
 * recording it again gives the same file. Other files contain boxes, ids, scores and blendshapes,
 * and all of their faces get the origin `detected`. A file has one header: if the engine of
 * facetrack was changed during the stream, all frames come back as frames of the last engine, and a
 * jsonl file that is recorded again names that engine in its first line.
 *
 * Each buffer gets the record with the same stream time, within #GstTrackJsonLoad:tolerance, so
 * seeking and looping work. Records of the schema `facetrack-1` are compared with timestamps
 * instead of stream times. If there are no times, or if #GstTrackJsonLoad:match is `frame`, buffers
 * are counted from the start of the stream, over all of its segments, as trackjsonsink counts them,
 * including missing frames that the record counts. After seeking, they are counted from the target
 * of the seek, at the frame rate of the record. This needs a record that begins with the stream; a
 * record that begins at a seek position can only be matched by time. Metadata of an earlier
 * analysis is replaced, and removed from a buffer without a recorded frame. If many buffers have
 * none, a warning is posted at the end.
 *
 * Positions are stored as fractions of the analysed frame, so they also fit if the video is played
 * at another size, with borders if the aspect ratio differs. The pixel aspect ratio is assumed to
 * be the same as in the analysed video.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! trackjsonsink location=clip.json verbose=true && gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! trackjsonload location=clip.json ! trackjsonsink location=again.json verbose=true && cmp clip.json again.json
 * ]|
 * Tracks a video, and then records it again from the file.
 *
 * |[
 * gst-launch-1.0 -q videotestsrc num-buffers=50 ! facetrack engine=scripted ! trackjsonsink > faces.jsonl && gst-launch-1.0 videotestsrc num-buffers=50 ! trackjsonload location=faces.jsonl match=frame ! autovideosink
 * ]|
 * Matches frames by their number, without any model.
 */
use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex};

use gst::{LibraryError, ResourceError, StreamError, error_msg, glib};
use gst_base::prelude::*;
use gst_base::subclass::base_transform::BaseTransformMode;
use gst_base::subclass::prelude::*;

use super::replaying::{Replaying, ReplayingError, Source};
use crate::meta;
use crate::options::{self, LoadSettings, Options};
use crate::{element, shown, stream, video};
use facetrack::replay::ReplayError;
use facetrack_assets::lock::lock;

static CAT: LazyLock<gst::DebugCategory> =
    LazyLock::new(|| element::category("trackjsonload", "Tracking JSON replay"));

/// Share of the buffers that have a record in a replay without mistakes, or of the recorded frames if
/// there are more buffers. Our choice; the rest may be at other times in another container.
const USUAL_MATCHES: f64 = 0.9;

/// The element. No two of these locks are held at once. `state` belongs to the streaming thread.
#[derive(Default)]
pub struct TrackJsonLoad {
    options: Mutex<Options<LoadSettings>>,
    state: Mutex<Option<Replaying>>,
    frames: AtomicU64,
    matched: AtomicU64,
    unmatched: AtomicU64,
}

type Reading = options::Reading<TrackJsonLoad>;

/// The properties that can only be read.
const READINGS: &[Reading] = &[
    Reading::count("frames", |it| options::count(&it.frames)).blurb("Number of frames in the file"),
    Reading::count("matched", |it| options::count(&it.matched))
        .blurb("Number of buffers with a recorded frame"),
    Reading::count("unmatched", |it| options::count(&it.unmatched))
        .blurb("Number of buffers without a recorded frame"),
];

impl TrackJsonLoad {
    fn open(&self) -> Result<(), ReplayingError> {
        let settings = lock(&self.options).settings.clone();
        let replaying = Replaying::open(settings)?;
        gst::info!(CAT, imp = self, "{} frames", replaying.len());
        if let Some(defect) = replaying.defect() {
            gst::element_imp_warning!(self, ResourceError::Read, ("{defect}"));
        }
        self.frames.store(replaying.len() as u64, Ordering::Relaxed);
        self.matched.store(0, Ordering::Relaxed);
        self.unmatched.store(0, Ordering::Relaxed);
        *lock(&self.state) = Some(replaying);
        Ok(())
    }

    /// Calls `work` with the record, if there is one.
    fn with(&self, work: impl FnOnce(&mut Replaying)) {
        if let Some(replaying) = lock(&self.state).as_mut() {
            work(replaying);
        }
    }

    /// Compares the video with the one of the record, if it has changed, and warns of a difference.
    fn check_video(&self) {
        let mut changed = None;
        self.with(|replaying| changed = replaying.take_unchecked());
        let Some(orientation) = changed else {
            return;
        };
        let source = Source::before(self.obj().sink_pad(), &orientation);
        let mut warning = None;
        self.with(|replaying| warning = replaying.check(source));
        self.warn(warning);
    }

    /// Posts a warning. The caller holds no lock.
    fn warn(&self, warning: Option<String>) {
        if let Some(warning) = warning {
            gst::element_imp_warning!(self, StreamError::Failed, ("{warning}"));
        }
    }

    /// Warns if many buffers have no record that could have one, which is probably a mistake.
    fn warn_unmatched(&self) {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let (matched, unmatched) = (count(&self.matched), count(&self.unmatched));
        let buffers = matched + unmatched;
        let possible = buffers.min(count(&self.frames));
        if unmatched == 0 || matched as f64 >= USUAL_MATCHES * possible as f64 && matched > 0 {
            return;
        }
        gst::element_imp_warning!(
            self,
            StreamError::Failed,
            ("the file has a record for {matched} of {buffers} buffers. Set match=frame if the times differ, a larger tolerance, or another location")
        );
    }
}

fn error_message(error: &ReplayingError) -> gst::ErrorMessage {
    use ReplayingError::{Attach, Content, NoLocation, NotRegular, Open};
    match error {
        NoLocation | NotRegular(_) => error_msg!(ResourceError::Settings, ("{error}")),
        Open(_, source) if source.kind() == ErrorKind::NotFound => {
            error_msg!(ResourceError::NotFound, ("{error}"))
        }
        Open(..) => error_msg!(ResourceError::OpenRead, ("{error}")),
        Content(_, ReplayError::Read(_)) => error_msg!(ResourceError::Read, ("{error}")),
        Content(..) => error_msg!(StreamError::Decode, ("{error}")),
        Attach(_) => error_msg!(LibraryError::Failed, ("{error}")),
    }
}

#[glib::object_subclass]
impl ObjectSubclass for TrackJsonLoad {
    const NAME: &'static str = "GstTrackJsonLoad";
    type Type = super::TrackJsonLoad;
    type ParentType = gst_base::BaseTransform;
}

impl ObjectImpl for TrackJsonLoad {
    fn properties() -> &'static [glib::ParamSpec] {
        options::properties::<LoadSettings, _>(READINGS)
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        options::set_property(&*self.obj(), &self.options, id, value);
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        options::property(self, &self.options, READINGS, id)
    }

    fn constructed(&self) {
        self.parent_constructed();
        // Otherwise the base class removes the flag from buffers.
        self.obj().set_gap_aware(true);
    }
}

impl GstObjectImpl for TrackJsonLoad {}

impl ElementImpl for TrackJsonLoad {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        element::metadata(
            "Tracking JSON replay",
            "Filter/Video/Metadata",
            "Re-attaches faces recorded by trackjsonsink to their video",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::filter_templates(&element::any_video())
    }
}

impl BaseTransformImpl for TrackJsonLoad {
    const MODE: BaseTransformMode = BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.open().map_err(|error| error_message(&error))
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.state) = None;
        Ok(())
    }

    fn set_caps(&self, incaps: &gst::Caps, _outcaps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let movie = shown::movie_at(self.obj().sink_pad());
        self.with(|replaying| {
            replaying.shown.set_movie(movie);
            replaying.set_caps(incaps);
        });
        Ok(())
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
        let is_asked = direction == gst::PadDirection::Sink && meta::asks_for_source(query);
        is_asked || BaseTransformImplExt::parent_query(self, direction, query)
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        match event.view() {
            gst::EventView::StreamStart(_) => self.with(Replaying::begin_stream),
            gst::EventView::FlushStop(_) => self.with(|replaying| {
                replaying.is_sought = true;
                replaying.shown.flush();
            }),
            gst::EventView::Segment(event) => {
                self.with(|replaying| replaying.begin(event.segment()));
            }
            gst::EventView::Gap(gap) => {
                let (start, duration, continuity) = stream::extent_of_gap(gap);
                self.with(|replaying| replaying.counter.gap(start, duration, continuity));
            }
            gst::EventView::Tag(tags) => self.with(|replaying| replaying.read_tags(tags.tag())),
            gst::EventView::Eos(_) => self.warn_unmatched(),
            _ => (),
        }
        self.parent_sink_event(event)
    }

    fn src_event(&self, event: gst::Event) -> bool {
        if event.type_() != gst::EventType::Seek {
            return self.parent_src_event(event);
        }
        // The flag is set first, because the new segment may arrive before the call returns.
        self.with(|replaying| replaying.is_sought = true);
        let sought = self.parent_src_event(event);
        if !sought {
            self.with(|replaying| replaying.is_sought = false);
        }
        sought
    }

    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        self.check_video();
        let segment = self.obj().segment();
        let mut state = lock(&self.state);
        let replaying = state.as_mut().ok_or(gst::FlowError::Flushing)?;
        let attached = replaying.attach(buffer, &segment);
        let warning = replaying.take_warning();
        drop(state);
        self.warn(warning);
        let counter = match attached {
            Ok(true) => &self.matched,
            Ok(false) => &self.unmatched,
            Err(error) => {
                self.post_error_message(error_message(&error));
                return Err(gst::FlowError::Error);
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(gst::FlowSuccess::Ok)
    }
}
