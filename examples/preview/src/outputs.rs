// SPDX-License-Identifier: MPL-2.0
//! Outputs besides the window: a receiver that moves an avatar, and a record. Each has a pipeline
//! of its own, which gets every tracked frame.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gst::MessageView;
use gst::prelude::*;
use gst_app::AppSrc;
use winit::event_loop::EventLoopProxy;

use crate::pipelines::{Event, element, launch, lock};

/// The source of each output.
const FRAMES: &str = "appsrc name=frames format=time is-live=true";

/// Maximum time to finish a record.
const FINISH: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Period between changes of the displayed rate.
const INTERVAL: Duration = Duration::from_secs(1);

/// All outputs. Clones share them.
#[derive(Clone)]
pub struct Outputs(Arc<Inner>);

struct Inner {
    /// Properties of trackudpsink.
    receiver: String,
    /// The first record.
    record: PathBuf,
    events: EventLoopProxy<Event>,
    sending: Mutex<Option<Sending>>,
    recording: Mutex<Option<Recording>>,
}

struct Sending {
    output: Output,
    target: String,
    /// Time at which packets were counted last, their number and their rate.
    counted: Instant,
    packets: u32,
    rate: f64,
}

struct Recording {
    output: Output,
    path: PathBuf,
}

impl Outputs {
    /// Outputs to a receiver with these properties of trackudpsink, and to records that are named
    /// after `record`. None is running.
    pub fn new(receiver: &str, record: &Path, events: EventLoopProxy<Event>) -> Self {
        Self(Arc::new(Inner {
            receiver: receiver.to_owned(),
            record: record.to_owned(),
            events,
            sending: Mutex::default(),
            recording: Mutex::default(),
        }))
    }

    /// Gives a tracked frame to the running outputs.
    pub fn push(&self, frame: &gst::Sample) {
        let (sending, recording) = (lock(&self.0.sending), lock(&self.0.recording));
        let sending = sending.iter().map(|it| &it.output);
        let outputs = sending.chain(recording.iter().map(|it| &it.output));
        for output in outputs {
            output.push(frame);
        }
    }

    /// Starts or stops sending. Returns a text for the user.
    ///
    /// # Errors
    /// Returns an error if the properties are wrong, or the receiver has no address.
    pub fn toggle_sending(&self) -> Result<String, Box<dyn Error>> {
        // It stops without the lock, so that frames do not wait.
        let running = lock(&self.0.sending).take();
        if let Some(sending) = running {
            return Ok(format!("no longer sending to {}", sending.target));
        }
        // A frame that is not sent in time is replaced by the next one.
        let output = Output::new(&format!(
            "{FRAMES} max-buffers=1 max-bytes=0 leaky-type=downstream ! \
             trackudpsink name=sink sync=false async=false {}",
            self.0.receiver
        ))?;
        output.start(&self.0.events)?;
        let target = output.target();
        let text = format!("sending to {target}");
        *lock(&self.0.sending) = Some(Sending {
            output,
            target,
            counted: Instant::now(),
            packets: 0,
            rate: 0.0,
        });
        Ok(text)
    }

    /// Starts a record, or finishes it. Returns a text for the user.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn toggle_recording(&self) -> Result<String, Box<dyn Error>> {
        // It finishes without the lock, so that frames do not wait.
        let running = lock(&self.0.recording).take();
        if let Some(recording) = running {
            recording.output.finish()?;
            return Ok(format!("recorded {}", recording.path.display()));
        }
        let path = unused(&self.0.record);
        let output = Output::new(&format!(
            "{FRAMES} ! trackjsonsink name=sink sync=false async=false verbose=true"
        ))?;
        output
            .sink
            .set_property("location", path.to_string_lossy().as_ref());
        output.start(&self.0.events)?;
        let text = format!("recording {}", path.display());
        *lock(&self.0.recording) = Some(Recording { output, path });
        Ok(text)
    }

    /// The receiver and the rate of packets; `None` if nothing is sent.
    pub fn receiver(&self) -> Option<String> {
        let mut sending = lock(&self.0.sending);
        let sending = sending.as_mut()?;
        sending.count(Instant::now());
        Some(format!("{}, {:.0} packets/s", sending.target, sending.rate))
    }

    /// The record that is written; `None` if there is none.
    pub fn record(&self) -> Option<String> {
        let recording = lock(&self.0.recording);
        recording.as_ref().map(|it| it.path.display().to_string())
    }

    /// Finishes all outputs.
    ///
    /// # Errors
    /// Returns an error if a record cannot be finished.
    pub fn stop(&self) -> Result<(), Box<dyn Error>> {
        lock(&self.0.sending).take();
        let recording = lock(&self.0.recording).take();
        recording.map_or(Ok(()), |recording| recording.output.finish())
    }
}

impl Sending {
    fn count(&mut self, now: Instant) {
        let time = now - self.counted;
        if time < INTERVAL {
            return;
        }
        let packets = self.output.sink.property::<u32>("packets-sent");
        self.rate = f64::from(packets.wrapping_sub(self.packets)) / time.as_secs_f64();
        (self.counted, self.packets) = (now, packets);
    }
}

/// The frame with its running time as timestamp, which also increases when a file is repeated.
fn in_running_time(frame: &gst::Sample) -> Option<gst::Sample> {
    let segment = frame.segment()?.downcast_ref::<gst::ClockTime>()?;
    let mut buffer = frame.buffer()?.copy();
    let fields = buffer.get_mut()?;
    fields.set_pts(segment.to_running_time(fields.pts()));
    fields.set_dts(gst::ClockTime::NONE);
    let sample = gst::Sample::builder().buffer(&buffer);
    Some(sample.caps(&frame.caps_owned()?).build())
}

/// The first of `face.json`, `face-2.json`, … that does not exist.
fn unused(first: &Path) -> PathBuf {
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let numbered = (2..).map(|number| first.with_file_name(format!("{stem}-{number}.json")));
    let mut paths = std::iter::once(first.to_owned()).chain(numbered);
    paths
        .find(|path| !path.exists())
        .unwrap_or_else(|| first.to_owned())
}

/// A pipeline that frames are pushed to. It stops when it is dropped.
struct Output {
    pipeline: gst::Pipeline,
    frames: AppSrc,
    sink: gst::Element,
}

impl Output {
    /// An output that does not run yet.
    ///
    /// # Errors
    /// Returns an error if the description is wrong.
    fn new(description: &str) -> Result<Self, Box<dyn Error>> {
        let pipeline = launch(description)?;
        let frames = element(&pipeline, "frames");
        Ok(Self {
            frames: frames.downcast().map_err(|_| "the source is no appsrc")?,
            sink: element(&pipeline, "sink"),
            pipeline,
        })
    }

    /// Starts the pipeline. Later problems are events.
    ///
    /// # Errors
    /// Returns an error if the sink cannot start.
    fn start(&self, events: &EventLoopProxy<Event>) -> Result<(), Box<dyn Error>> {
        if self.pipeline.set_state(gst::State::Playing).is_err() {
            self.wait_for_end(gst::ClockTime::ZERO)?;
        }
        let events = events.clone();
        let bus = self.pipeline.bus().expect("a pipeline has a bus");
        bus.set_sync_handler(move |_, message| {
            if let Some(text) = complaint(message) {
                // Without an event loop the program is ending.
                let _ = events.send_event(Event::Warned(text));
            }
            match message.view() {
                MessageView::Eos(_) | MessageView::Error(_) => gst::BusSyncReply::Pass,
                _ => gst::BusSyncReply::Drop,
            }
        });
        Ok(())
    }

    fn push(&self, frame: &gst::Sample) {
        if let Some(frame) = in_running_time(frame) {
            // It fails after an error, which is on the bus.
            let _ = self.frames.push_sample(&frame);
        }
    }

    /// Ends the stream, and waits until the sink has finished.
    fn finish(&self) -> Result<(), Box<dyn Error>> {
        // It fails after an error, which is on the bus.
        let _ = self.frames.end_of_stream();
        self.wait_for_end(FINISH)
    }

    fn wait_for_end(&self, timeout: gst::ClockTime) -> Result<(), Box<dyn Error>> {
        let bus = self.pipeline.bus().expect("a pipeline has a bus");
        let ends = [gst::MessageType::Eos, gst::MessageType::Error];
        let end = bus.timed_pop_filtered(timeout, &ends);
        match end.as_deref().map(gst::MessageRef::view) {
            Some(MessageView::Eos(_)) => Ok(()),
            Some(MessageView::Error(error)) => Err(error.error().message().into()),
            _ => Err("the output does not end".into()),
        }
    }

    /// Protocol, host and port of a sink for avatars.
    fn target(&self) -> String {
        let [protocol, host, port] = ["protocol", "host", "port"]
            .map(|name| gstfacetrack::options::display(&self.sink.property_value(name)));
        // 0 is the port of the protocol.
        match port.as_str() {
            "0" => format!("{protocol} at {host}"),
            port => format!("{protocol} at {host}:{port}"),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

fn complaint(message: &gst::Message) -> Option<String> {
    match message.view() {
        MessageView::Warning(warning) => Some(warning.error().message().to_owned()),
        MessageView::Error(error) => Some(error.error().message().to_owned()),
        _ => None,
    }
}
