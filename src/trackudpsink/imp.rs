// SPDX-License-Identifier: MPL-2.0
use std::sync::Mutex;
/**
 * SECTION:element-trackudpsink
 *
 * trackudpsink sends the faces found by `facetrack engine=openseeface` to programs that read the
 * UDP packets of OpenSeeFace's `facetracker.py`, such as VSeeFace, VTube Studio and vpuppr. Each
 * face of each frame is one packet of 1785 bytes, for any number of faces. A frame without a face
 * sends nothing. If a stream begins with 60 frames without metadata of facetrack, or ends before
 * that, a warning is posted.
 *
 * The stream never waits for the network, and does not need a receiver: packets that the system
 * does not accept are counted in `packets-dropped`. A packet is larger than an Ethernet frame and
 * travels in two fragments, as with the original.
 *
 * Faces are numbered from `face-id-offset`. A face gets the lowest free number when it enters, and
 * keeps it while it is seen, so a single face is always face 0, where receivers look for it. The
 * time in a packet is the time of day at which its frame was sent. It increases from frame to
 * frame, because receivers ignore a packet that is not later than the previous one.
 *
 * `sync` is true, as in other GStreamer sinks, so a file moves an avatar at the speed of the video.
 * With `sync=false`, each frame is sent as soon as it arrives, which gives the least delay with a
 * camera.
 *
 * ## Example launch lines
 *
 * |[
 * gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack engine=openseeface ! trackudpsink
 * ]|
 * Moves an avatar on this machine like the face in a video.
 *
 * |[
 * gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue ! facetrack engine=openseeface ! trackudpsink host=localhost port=11573 sync=false
 * ]|
 * Moves the avatar like the face in front of a camera, with the least delay.
 */
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use gst::glib;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;

use super::CAT;
use super::receiver::{Receiver, ReceiverError};
use super::sending::{Sending, Sent};
use crate::element;
use crate::meta::{self, FaceTrackMeta, MetaError};
use crate::options::{self, Options, UdpSettings};
use facetrack::lock::lock;
use facetrack::report::FrameReport;

/// No two of these locks are held at once.
#[derive(Default)]
pub struct TrackUdpSink {
    options: Mutex<Options<UdpSettings>>,
    /// In PAUSED and PLAYING.
    state: Mutex<Option<Sending>>,
    packets_sent: AtomicU64,
    packets_dropped: AtomicU64,
}

type Reading = options::Reading<TrackUdpSink>;

/// The properties that can only be read.
const READINGS: &[Reading] = &[
    Reading::count("packets-sent", |it| options::count(&it.packets_sent))
        .blurb("Number of packets sent, whether or not they were received"),
    Reading::count("packets-dropped", |it| options::count(&it.packets_dropped))
        .blurb("Number of packets that the system did not accept, because its buffer was full or the receiver was unreachable"),
];

impl TrackUdpSink {
    /// Finds the receiver.
    fn open(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.options).settings.clone();
        let port = u16::try_from(settings.port).unwrap_or(u16::MAX);
        let receiver =
            Receiver::find(&settings.host, port).map_err(|error| receiver_error(&error))?;
        gst::info!(CAT, imp = self, "sending to {}", receiver.address);
        self.packets_sent.store(0, Ordering::Relaxed);
        self.packets_dropped.store(0, Ordering::Relaxed);
        let offset = settings.face_id_offset as i32;
        *lock(&self.state) = Some(Sending::new(receiver, offset));
        Ok(())
    }

    fn warn_of_absence(&self) {
        let remedy = meta::remedy(None);
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("nothing is sent: {remedy}")
        );
    }

    /// Counts packets, and warns that faces cannot be sent.
    fn on_sent(&self, report: &FrameReport, sent: Sent) {
        self.packets_sent.fetch_add(sent.packets, Ordering::Relaxed);
        self.packets_dropped
            .fetch_add(sent.dropped, Ordering::Relaxed);
        if !sent.is_first_unfit {
            return;
        }
        let engine = &report.source.engine;
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("faces of engine={engine} cannot be sent, because packets need OpenSeeFace's landmarks. Set engine=openseeface on facetrack")
        );
    }
}

/// Seconds since 1970; 0 before.
fn time_of_day() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

fn receiver_error(error: &ReceiverError) -> gst::ErrorMessage {
    let code = match error {
        ReceiverError::Host(..) => gst::ResourceError::NotFound,
        ReceiverError::Socket(..) => gst::ResourceError::OpenWrite,
    };
    gst::error_msg!(code, ("{error}"))
}

#[glib::object_subclass]
impl ObjectSubclass for TrackUdpSink {
    const NAME: &'static str = "GstTrackUdpSink";
    type Type = super::TrackUdpSink;
    type ParentType = gst_base::BaseSink;
}

impl ObjectImpl for TrackUdpSink {
    fn properties() -> &'static [glib::ParamSpec] {
        options::properties::<UdpSettings, _>(READINGS)
    }

    fn set_property(&self, id: usize, value: &glib::Value, _spec: &glib::ParamSpec) {
        lock(&self.options).set_property(id, value);
    }

    fn property(&self, id: usize, _spec: &glib::ParamSpec) -> glib::Value {
        options::property(self, &self.options, READINGS, id)
    }
}

impl GstObjectImpl for TrackUdpSink {}

impl ElementImpl for TrackUdpSink {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        element::metadata(
            "Tracking UDP sink",
            "Sink/Network/Metadata",
            "Sends the faces found by facetrack as OpenSeeFace UDP packets",
        )
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        element::sink_templates(&element::any_video())
    }

    fn change_state(
        &self,
        transition: gst::StateChange,
    ) -> Result<gst::StateChangeSuccess, gst::StateChangeError> {
        if transition == gst::StateChange::ReadyToPaused
            && let Err(error) = self.open()
        {
            self.post_error_message(error);
            return Err(gst::StateChangeError);
        }
        let result = self.parent_change_state(transition);
        if transition == gst::StateChange::PausedToReady {
            *lock(&self.state) = None;
        }
        result
    }
}

/// Nothing here waits but the base class, for the clock, so there is nothing to unlock.
impl BaseSinkImpl for TrackUdpSink {
    /// Frames of any layout are welcome, as none is read; without this, decoders copy them into
    /// packed ones.
    fn propose_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let report = FaceTrackMeta::read(buffer);
        let is_absent = matches!(report, Err(MetaError::Absent));
        let mut state = lock(&self.state);
        let sending = state.as_mut().ok_or(gst::FlowError::Flushing)?;
        let is_remarkable = sending.absence.count(!is_absent);
        let sent = report
            .as_ref()
            .map(|it| (it, sending.send(it, time_of_day())));
        drop(state);
        if is_remarkable {
            self.warn_of_absence();
        }
        match sent {
            Ok((report, sent)) => self.on_sent(report, sent),
            Err(error) if !is_absent => {
                gst::warning!(CAT, imp = self, "frame without packets: {error}");
            }
            _ => (),
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn event(&self, event: gst::Event) -> bool {
        let mut is_remarkable = false;
        if let Some(sending) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::StreamStart(_) => sending.restart(),
                gst::EventView::Eos(_) => is_remarkable = sending.absence.end(),
                _ => (),
            }
        }
        if is_remarkable {
            self.warn_of_absence();
        }
        self.parent_event(event)
    }
}
