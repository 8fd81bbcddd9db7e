// SPDX-License-Identifier: MPL-2.0
use std::sync::Mutex;
/**
 * SECTION:element-trackudpsink
 *
 * trackudpsink sends the faces found by `facetrack` to programs that move an avatar. `protocol`
 * selects what they read. The default, `openseeface`, needs `facetrack engine=openseeface`. The
 * others send blendshapes, the rotation of the head and of the eyes. `engine=mediapipe` and
 * `engine=opencv-yunet-pyfeat` measure all of them. What an engine does not measure is not sent, or
 * 0 in the fixed layout of `livelink`, and one warning says so. A frame without a face sends
 * nothing. If a stream begins with 60 frames without metadata of facetrack, or ends before that, a
 * warning is posted.
 *
 * The stream never waits for the network, and does not need a receiver: packets that the system
 * does not accept are counted in `packets-dropped`, and the first one for each reason in a stream
 * posts a warning, unless only a buffer is full. `host` may be a broadcast address. No port of this
 * machine is opened for others unless `listen` is set.
 *
 * A face gets the lowest free number when it enters, and keeps it while it is seen, so a single
 * face is always the first, where receivers look for it. OpenSeeFace's packets contain this number
 * plus `face-id-offset`. With `livelink` each face is a subject, and with `vmc` and `ifacialmocap`
 * each face has a port.
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
 *
 * |[
 * gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue ! facetrack ! trackudpsink protocol=livelink subject=actor sync=false
 * ]|
 * Shows the face in front of a camera as the subject `actor` in Unreal Engine.
 */
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gst::glib;
use gst::subclass::prelude::*;
use gst_base::prelude::*;
use gst_base::subclass::prelude::*;
use smart_default::SmartDefault;

use super::CAT;
use super::listener::{self, Listener};
use super::network::{Network, Refusal};
use super::receiver::Receiver;
use super::sending::{Problem, Sending, Sent};
use crate::element;
use crate::meta::{self, FaceTrackMeta, MetaError};
use crate::options::{self, Options, UdpSettings};
use facetrack::packet::livelink::MAX_SUBJECT;
use facetrack::packet::{Encoder, Lack, Protocol, complete_engines};
use facetrack_assets::lock::lock;

/// The element. No two of these locks are held at once.
#[derive(SmartDefault)]
pub struct TrackUdpSink {
    options: Mutex<Options<UdpSettings>>,
    /// UUID of the element, for packets that name their sender.
    #[default(glib::uuid_string_random().to_string())]
    device: String,
    /// State of the stream in PAUSED and PLAYING.
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
    /// Finds the receiver, and opens the port where receivers may ask.
    fn open(&self) -> Result<(), gst::ErrorMessage> {
        let settings = lock(&self.options).settings.clone();
        check_subject(&settings.subject)?;
        let protocol = settings.protocol;
        let port = u16::try_from(settings.port).ok().filter(|port| *port > 0);
        let receiver = Receiver::find(&settings.host, port.unwrap_or(protocol.port()))
            .map_err(|(code, text)| gst::error_msg!(code, ("{text}")))?;
        let listener = self.listen(&settings)?;
        gst::info!(CAT, imp = self, "sending to {}", receiver.address);
        self.packets_sent.store(0, Ordering::Relaxed);
        self.packets_dropped.store(0, Ordering::Relaxed);
        let network = Network::new(receiver, listener);
        let encoder = Encoder {
            protocol,
            face_id_offset: settings.face_id_offset as i32,
            subject: settings.subject,
            device: self.device.clone(),
        };
        *lock(&self.state) = Some(Sending::new(network, encoder, settings.mirror));
        Ok(())
    }

    /// Opens the port if it is wanted. A receiver on this machine may already use it, which is only
    /// reported.
    fn listen(&self, settings: &UdpSettings) -> Result<Option<Listener>, gst::ErrorMessage> {
        let wanted = settings.listen.as_deref();
        let wanted = wanted.filter(|_| settings.protocol == Protocol::IFacialMocap);
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        let address = listener::address(wanted)
            .map_err(|error| gst::error_msg!(gst::ResourceError::Settings, ("{error}")))?;
        let listener = Listener::bind(address);
        if let Err(error) = &listener {
            gst::element_imp_info!(
                self,
                gst::ResourceError::Busy,
                (
                    "no receiver can ask for packets at {address}: {error}. Packets are sent to host={} without being asked for",
                    settings.host
                )
            );
        }
        Ok(listener.ok())
    }

    fn warn_missing_meta(&self) {
        let remedy = meta::remedy(None);
        gst::element_imp_warning!(
            self,
            gst::StreamError::Format,
            ("nothing is sent: {remedy}")
        );
    }

    /// Counts packets, and warns of those that are not sent.
    fn on_sent(&self, engine: &str, sent: Sent) {
        self.packets_sent.fetch_add(sent.packets, Ordering::Relaxed);
        self.packets_dropped
            .fetch_add(sent.dropped, Ordering::Relaxed);
        for problem in sent.problems {
            self.warn_of(problem, &format!("faces of engine={engine}"));
        }
    }

    fn warn_of(&self, problem: Problem, faces: &str) {
        let text = match problem {
            Problem::Unfit => format!(
                "{faces} cannot be sent, because packets need OpenSeeFace's landmarks. Set engine=openseeface on facetrack"
            ),
            Problem::TooMany(port) => too_many_text(self.protocol(), port),
            Problem::Lack(lack) => lack_text(faces, lack),
            Problem::Refused(refusal) => return self.warn_of_refusal(&refusal),
        };
        gst::element_imp_warning!(self, gst::StreamError::Format, ("{text}"));
    }

    fn warn_of_refusal(&self, refusal: &Refusal) {
        let Refusal { address, reason } = refusal;
        gst::element_imp_warning!(
            self,
            gst::ResourceError::Write,
            ("packets to {address} are not sent: {reason}. Check the network and the firewall of this machine, or set `host` to another address")
        );
    }

    fn protocol(&self) -> Protocol {
        lock(&self.options).settings.protocol
    }

    /// The running time of a frame; `None` if it has no timestamp.
    fn running_time(&self, buffer: &gst::BufferRef) -> Option<Duration> {
        let segment = self.obj().segment();
        let segment = segment.downcast_ref::<gst::ClockTime>()?;
        segment.to_running_time(buffer.pts()?).map(Duration::from)
    }
}

/// The warning about missing measurements, and the engines that measure everything.
fn lack_text(faces: &str, lack: Lack) -> String {
    let pose = if lack.has_pose { "a" } else { "no" };
    format!(
        "the avatar moves only in part: {faces} have {} of 52 channels and {pose} head pose. Set engine on facetrack to one that measures them: {}",
        lack.channels,
        complete_engines().join(", ")
    )
}

/// The warning about faces that are not sent, if the first face is sent to `port`.
fn too_many_text(protocol: Protocol, port: u16) -> String {
    let slots = 0..protocol.max_faces();
    let most = slots.map_while(|slot| protocol.port_of(port, slot)).count();
    let remedy = if most < protocol.max_faces() {
        "Lower `port`, or set"
    } else {
        "Set"
    };
    format!(
        "the number of faces that are sent is limited to {most}. {remedy} max-faces on facetrack"
    )
}

/// The error about a subject that receivers cannot read.
fn check_subject(subject: &str) -> Result<(), gst::ErrorMessage> {
    if subject.len() <= MAX_SUBJECT {
        return Ok(());
    }
    Err(gst::error_msg!(
        gst::ResourceError::Settings,
        (
            "`subject` has {} bytes. Set it to a name of at most {MAX_SUBJECT}",
            subject.len()
        )
    ))
}

/// Seconds since 1970; 0 before.
fn time_of_day() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
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
        options::set_property(&*self.obj(), &self.options, id, value);
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
            "Sends the faces found by facetrack to programs that move an avatar",
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

/// Only the base class waits, for the clock, and a frame has a limited number of packets. So
/// `unlock` is not implemented.
impl BaseSinkImpl for TrackUdpSink {
    /// Accepts frames of any memory layout, because their pixels are not read. Without this,
    /// decoders would copy them into packed frames.
    fn propose_allocation(
        &self,
        query: &mut gst::query::Allocation,
    ) -> Result<(), gst::LoggableError> {
        query.add_allocation_meta::<gst_video::VideoMeta>(None);
        Ok(())
    }

    fn set_caps(&self, caps: &gst::Caps) -> Result<(), gst::LoggableError> {
        let rate = caps.structure(0).and_then(|it| it.get("framerate").ok());
        if let Some(sending) = lock(&self.state).as_mut() {
            sending.set_rate(rate);
        }
        self.parent_set_caps(caps)
    }

    fn render(&self, buffer: &gst::Buffer) -> Result<gst::FlowSuccess, gst::FlowError> {
        let report = FaceTrackMeta::read(buffer);
        let is_absent = matches!(report, Err(MetaError::Absent));
        let running_time = self.running_time(buffer);
        let mut state = lock(&self.state);
        let sending = state.as_mut().ok_or(gst::FlowError::Flushing)?;
        let should_warn = sending.missing_meta.count(!is_absent);
        let sent = report.as_ref().map(|report| {
            let sent = sending.send(report, time_of_day(), running_time);
            (report, sent)
        });
        drop(state);
        if should_warn {
            self.warn_missing_meta();
        }
        match sent {
            Ok((report, sent)) => self.on_sent(&report.source.engine, sent),
            Err(error) if !is_absent => {
                gst::warning!(CAT, imp = self, "frame without packets: {error}");
            }
            _ => (),
        }
        Ok(gst::FlowSuccess::Ok)
    }

    fn event(&self, event: gst::Event) -> bool {
        let (mut should_warn, mut problem) = (false, None);
        if let Some(sending) = lock(&self.state).as_mut() {
            match event.view() {
                gst::EventView::StreamStart(_) => sending.restart(),
                gst::EventView::Eos(_) => {
                    should_warn = sending.missing_meta.end();
                    problem = sending.end();
                }
                _ => (),
            }
        }
        if should_warn {
            self.warn_missing_meta();
        }
        if let Some(problem) = problem {
            self.warn_of(problem, "the faces of this stream");
        }
        self.parent_event(event)
    }
}
