// SPDX-License-Identifier: MPL-2.0
//! The drawing pipeline: turns a frame with its metadata into a picture of the window's size.

use std::error::Error;
use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst::{MessageView, glib};
use gst_app::{AppSink, AppSinkCallbacks, AppSrc};
use winit::event_loop::EventLoopProxy;

use crate::pipelines::{Event, element, launch, lock, set};

/// Faces are drawn after scaling, so that lines are fine and text is sharp at every size of the
/// video.
const DRAWING: &str = "appsrc name=frames format=time max-buffers=1 leaky-type=downstream ! videoconvertscale ! \
                       capsfilter name=size ! facetrackoverlay name=overlay ! \
                       appsink name=pictures sync=false async=false max-buffers=1 drop=true";

/// The layers at the start. Blendshapes and figures are next to the picture.
const LAYERS: &str = "boxes+labels+contours+key-points+pose+gaze";

/// Minimum side of a picture, px: smaller windows show a part of it.
const LEAST_SIDE: u32 = 16;

/// A frame of the video, tracked.
#[derive(Debug, Clone)]
pub struct Frame {
    pub sample: gst::Sample,
    /// Number of the frame, from 0.
    pub number: u64,
    /// Position in the video.
    pub time: Option<gst::ClockTime>,
    /// Nominal time from frame to frame; `None` if it varies.
    pub period: Option<gst::ClockTime>,
    /// Displayed width and height, in square pixels.
    pub size: [u32; 2],
    /// Age when it was tracked: time since a camera took it, or since it was due in a file.
    age: gst::ClockTime,
}

impl Frame {
    /// The frame in `sample` at the running time `now`; `None` if it is not video.
    pub fn new(sample: gst::Sample, number: u64, now: Option<gst::ClockTime>) -> Option<Self> {
        let info = gst_video::VideoInfo::from_caps(sample.caps()?).ok()?;
        let segment = sample.segment()?.downcast_ref::<gst::ClockTime>()?;
        let pts = sample.buffer()?.pts();
        let due = segment.to_running_time(pts);
        let age = now.zip(due).map(|(now, due)| now.saturating_sub(due));
        let par = info.par();
        let width = u64::from(info.width()) * par.numer() as u64 / par.denom() as u64;
        let (frames, seconds) = (info.fps().numer() as u64, info.fps().denom() as u64);
        Some(Self {
            number,
            period: (frames > 0)
                .then(|| gst::ClockTime::SECOND.mul_div_round(seconds, frames))
                .flatten(),
            time: segment.to_stream_time(pts),
            size: [width.try_into().ok()?, info.height()],
            age: age.unwrap_or_default(),
            sample,
        })
    }
}

/// The drawing pipeline. Clones share it.
#[derive(Clone)]
pub struct Drawing(Arc<Inner>);

struct Inner {
    pipeline: gst::Pipeline,
    frames: AppSrc,
    size: gst::Element,
    overlay: gst::Element,
    state: Mutex<State>,
    /// The newest picture, until the window takes it.
    picture: Arc<Mutex<Option<gst::Sample>>>,
}

#[derive(Default)]
struct State {
    /// Size of the part of the window for the picture; `None` before it opens.
    space: Option<[u32; 2]>,
    /// Size of the picture, which has the video's aspect ratio.
    picture: Option<[u32; 2]>,
    frame: Option<Frame>,
}

impl Drawing {
    /// A pipeline that draws `layers`; `None` for the layers that the program starts with.
    ///
    /// # Errors
    /// Returns an error if the pipeline cannot be built, or a layer does not exist.
    pub fn new(
        layers: Option<&str>,
        events: EventLoopProxy<Event>,
    ) -> Result<Self, Box<dyn Error>> {
        let pipeline = launch(DRAWING)?;
        let overlay = element(&pipeline, "overlay");
        set(&overlay, "layers", layers.unwrap_or(LAYERS))?;
        let frames = element(&pipeline, "frames");
        let drawing = Self(Arc::new(Inner {
            frames: frames.downcast().expect("an appsrc"),
            size: element(&pipeline, "size"),
            overlay,
            state: Mutex::default(),
            picture: Arc::default(),
            pipeline,
        }));
        drawing.listen(events)?;
        Ok(drawing)
    }

    fn listen(&self, events: EventLoopProxy<Event>) -> Result<(), Box<dyn Error>> {
        let pictures = element(&self.0.pipeline, "pictures");
        let pictures = pictures.downcast::<AppSink>().expect("an appsink");
        let complaints = events.clone();
        let bus = self.0.pipeline.bus().expect("a pipeline has a bus");
        bus.set_sync_handler(move |_, message| {
            if let Some(event) = complaint(message) {
                let _ = complaints.send_event(event);
            }
            gst::BusSyncReply::Drop
        });

        let newest = self.0.picture.clone();
        let keep = move |sink: &AppSink| {
            let picture = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            // One event is enough until the window takes the picture.
            if lock(&newest).replace(picture).is_none() {
                let _ = events.send_event(Event::Drawn);
            }
            Ok(gst::FlowSuccess::Ok)
        };
        pictures.set_callbacks(AppSinkCallbacks::builder().new_sample(keep).build());
        self.0.pipeline.set_state(gst::State::Playing)?;
        Ok(())
    }

    /// Sets the frame to draw.
    pub fn show(&self, frame: Frame) {
        let mut state = lock(&self.0.state);
        state.frame = Some(frame);
        self.draw(&mut state);
    }

    /// Sets the size of the part of the window for the picture.
    pub fn resize(&self, space: [u32; 2]) {
        let mut state = lock(&self.0.state);
        if state.space.replace(space) != Some(space) {
            self.draw(&mut state);
        }
    }

    /// The frame that is drawn.
    pub fn frame(&self) -> Option<Frame> {
        lock(&self.0.state).frame.clone()
    }

    /// Takes the newest picture. The offset of its buffer is the number of the frame.
    pub fn take_picture(&self) -> Option<gst::Sample> {
        lock(&self.0.picture).take()
    }

    /// Present age of a picture's frame.
    pub fn age(&self, picture: &gst::Sample) -> Option<gst::ClockTime> {
        let taken = picture.buffer()?.pts()?;
        let now = self.0.pipeline.current_running_time()?;
        Some(now.saturating_sub(taken))
    }

    /// Shows or hides a layer.
    pub fn toggle(&self, layer: &str) {
        let layers = self.0.overlay.property_value("layers");
        let class = glib::FlagsClass::with_type(layers.type_()).expect("layers are flags");
        let is_on = class.is_set_by_nick(&layers, layer);
        let flags = class
            .builder_with_value(layers)
            .expect("it is of that type");
        let flags = if is_on {
            flags.unset_by_nick(layer)
        } else {
            flags.set_by_nick(layer)
        };
        let layers = flags.build().expect("facetrackoverlay has that layer");
        self.0.overlay.set_property_from_value("layers", &layers);
        self.draw(&mut lock(&self.0.state));
    }

    pub fn stop(&self) {
        let _ = self.0.pipeline.set_state(gst::State::Null);
    }

    fn draw(&self, state: &mut State) {
        let (Some(space), Some(frame)) = (state.space, &state.frame) else {
            return;
        };
        let picture = fit(frame.size, space);
        if state.picture.replace(picture) != Some(picture) {
            let caps = gst_video::VideoCapsBuilder::new()
                .format(gst_video::VideoFormat::Bgrx)
                .width(picture[0] as i32)
                .height(picture[1] as i32)
                .pixel_aspect_ratio(gst::Fraction::new(1, 1));
            self.0.size.set_property("caps", caps.build());
        }
        if let Some(sample) = self.stamped(frame) {
            // It fails only when the program ends.
            let _ = self.0.frames.push_sample(&sample);
        }
    }

    /// A frame with its number and a timestamp of this pipeline that gives its age. The age refers
    /// to the time of tracking, even if the frame is drawn again later.
    fn stamped(&self, frame: &Frame) -> Option<gst::Sample> {
        let mut buffer = frame.sample.buffer()?.copy();
        let fields = buffer.get_mut()?;
        let now = self.0.pipeline.current_running_time()?;
        fields.set_pts(now.saturating_sub(frame.age));
        fields.set_dts(gst::ClockTime::NONE);
        fields.set_offset(frame.number);
        let sample = gst::Sample::builder().buffer(&buffer);
        Some(sample.caps(&frame.sample.caps_owned()?).build())
    }
}

/// An error or a warning as an event for the window.
fn complaint(message: &gst::Message) -> Option<Event> {
    match message.view() {
        MessageView::Warning(warning) => Some(Event::Warned(warning.error().message().to_owned())),
        MessageView::Error(error) => Some(Event::Failed(format!(
            "nothing can be drawn: {}",
            error.error().message()
        ))),
        _ => None,
    }
}

/// The largest size with a frame's aspect ratio that fits into a space.
fn fit(frame: [u32; 2], space: [u32; 2]) -> [u32; 2] {
    let [width, height] = frame.map(|side| f64::from(side.max(1)));
    let scale = (f64::from(space[0]) / width).min(f64::from(space[1]) / height);
    [width, height].map(|side| ((side * scale).round() as u32).max(LEAST_SIDE))
}
