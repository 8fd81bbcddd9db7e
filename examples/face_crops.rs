// SPDX-License-Identifier: MPL-2.0
//! Writes the largest view of each face in a video as a PNG file:
//! `cargo run --release --example face_crops -- video.mp4 faces`.
//!
//! Faces are cut out of other frames than the analysed ones: other elements have made squares of
//! these. [`FaceTrackMeta::in_frame`] returns the faces' positions there, or the reason why they
//! are unknown. A third argument replaces these elements, for example by
//! `"videoscale ! video/x-raw,width=1280,height=720"`, or by `videoflip`, after which the positions
//! are unknown.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs::{self, File};
use std::path::Path;
use std::process::ExitCode;

use facetrack::geometry::Rect;
use gst::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoFrameRef, VideoInfo};
use gstfacetrack::meta::{FaceTrackMeta, Fit};

/// Between the analysis and the application.
const ELEMENTS: &str = "videoscale ! video/x-raw,width=480,height=480,pixel-aspect-ratio=1/1";

/// Time to wait for a frame before the bus is checked for an error.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// A part of a frame, 3 bytes a pixel.
struct Crop {
    width: usize,
    rgb: Vec<u8>,
}

/// The largest view of each face, by its id.
type Crops = BTreeMap<u32, Crop>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match &arguments[..] {
        [video, folder] => run(video, folder, ELEMENTS),
        [video, folder, elements] => run(video, folder, elements),
        _ => Err("Usage: face_crops <video> <folder> [elements]".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(video: &str, folder: &str, elements: &str) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let pipeline = gst::parse::launch(&format!(
        "filesrc name=source ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! {elements} \
         ! videoconvert ! video/x-raw,format=RGB ! appsink name=sink sync=false"
    ))?
    .downcast::<gst::Pipeline>()
    .map_err(|_| "not a pipeline")?;
    let source = pipeline.by_name("source").ok_or("no source")?;
    source.set_property("location", video);
    // Why it does not start is on the bus as well.
    let _ = pipeline.set_state(gst::State::Playing);
    let crops = crops_of(&pipeline);
    pipeline.set_state(gst::State::Null)?;

    fs::create_dir_all(folder)?;
    for (id, crop) in crops? {
        let path = Path::new(folder).join(format!("face-{id}.png"));
        crop.write(&path)?;
        println!("{}: {} px wide", path.display(), crop.width);
    }
    Ok(())
}

/// The faces of all frames.
fn crops_of(pipeline: &gst::Pipeline) -> Result<Crops, Box<dyn Error>> {
    let sink = pipeline.by_name("sink").and_downcast::<gst_app::AppSink>();
    let sink = sink.ok_or("no sink")?;
    let bus = pipeline.bus().ok_or("no bus")?;
    let mut crops = Crops::new();
    loop {
        if let Some(sample) = sink.try_pull_sample(PATIENCE) {
            collect(&sample, &mut crops)?;
        } else if let Some(message) = bus.pop_filtered(&[gst::MessageType::Error])
            && let gst::MessageView::Error(error) = message.view()
        {
            return Err(error.error().into());
        } else if sink.is_eos() {
            return Ok(crops);
        }
    }
}

/// Keeps the faces of a frame that are larger here than in any before.
fn collect(sample: &gst::Sample, crops: &mut Crops) -> Result<(), Box<dyn Error>> {
    let buffer = sample.buffer().ok_or("no frame")?;
    let info = VideoInfo::from_caps(sample.caps().ok_or("no caps")?)?;
    // `videoscale` keeps the picture's shape, with borders around it.
    let report = FaceTrackMeta::in_frame(buffer, &info, Fit::Borders)?;
    let frame = VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
    for tracked in &report.faces {
        let crop = Crop::of(&frame, &tracked.face.bbox)?;
        let largest = crops
            .get(&tracked.id)
            .map_or(0, |largest| largest.rgb.len());
        if crop.rgb.len() > largest {
            crops.insert(tracked.id, crop);
        }
    }
    Ok(())
}

impl Crop {
    /// Pixels of a frame inside a box, which may reach beyond the frame.
    fn of(
        frame: &VideoFrameRef<&gst::BufferRef>,
        bbox: &Rect,
    ) -> Result<Self, gst::glib::BoolError> {
        // A cast to an integer makes what is negative 0.
        let column = |x: f32| (x as usize).min(frame.width() as usize);
        let (left, right) = (column(bbox.x), column(bbox.right()));
        let top = bbox.y as usize;
        let height = (bbox.bottom() as usize).saturating_sub(top);
        let rows = frame
            .plane_data(0)?
            .chunks(frame.plane_stride()[0] as usize);
        let rows = rows.take(frame.height() as usize).skip(top).take(height);
        Ok(Self {
            width: right - left,
            rgb: rows
                .flat_map(|row| &row[3 * left..3 * right])
                .copied()
                .collect(),
        })
    }

    fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let height = self.rgb.len() / (3 * self.width);
        let mut encoder = png::Encoder::new(File::create(path)?, self.width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&self.rgb)?;
        Ok(())
    }
}
