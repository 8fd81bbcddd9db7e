// SPDX-License-Identifier: MPL-2.0
//! Time per frame outside the networks: mapping, sampling, tracking, smoothing, pose, metadata and
//! JSON.
//!
//! Run `cargo bench --bench overhead`, pinned to a core. Frames of the sample clip go through
//! `facetrack ! trackjsonsink`. After each frame the two networks of a followed face run
//! separately. The result is the difference of the medians.

mod common;
#[path = "common/sample.rs"]
mod sample;

use std::error::Error;
use std::time::Instant;

use facetrack::model::SessionOptions;
use facetrack::model::task::Bundle;
use facetrack::model::{Model, Opener, RuntimeChoice};
use facetrack_assets::locate::SearchPaths;
use facetrack_graph::tflite;
use ndarray::ArrayD;

/// Number of rounds through the clip, and of frames.
const ROUNDS: usize = 8;
const FRAMES: usize = 60;

const CASES: [(&str, i32, i32); 4] = [
    ("I420", 640, 360),
    ("NV12", 1280, 720),
    ("NV12", 1920, 1080),
    ("NV12", 3840, 2160),
];

fn main() -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let mut networks = Networks::load()?;
    let clip = sample::clip()?;
    println!("median ms a frame, one face, one thread");
    println!("format  frame         whole  networks    rest  rest %");
    for (format, width, height) in CASES {
        let caps = format!("format={format},width={width},height={height}");
        let (whole, alone) = measure(&mut networks, &common::frames(&clip, &caps, FRAMES)?);
        let rest = whole - alone;
        println!(
            "{format:<8}{:<12}{whole:>7.2}{alone:>10.2}{rest:>8.2}{:>7.1}%",
            format!("{width}×{height}"),
            100.0 * rest / whole
        );
    }
    Ok(())
}

/// A network and its inputs.
type Fed = (Box<dyn Model>, Vec<ArrayD<f32>>);

/// The networks of a followed face.
struct Networks(Vec<Fed>);

impl Networks {
    fn load() -> Result<Self, Box<dyn Error>> {
        let paths = SearchPaths::from_vars(std::env::var_os);
        let path = paths.model("face_landmarker.task", "mediapipe", None)?;
        let bundle = Bundle::open(&path)?;
        let opener = Opener::new(&paths, RuntimeChoice::Auto);
        let network = |name: &str, bytes: &[u8]| -> Result<Fed, Box<dyn Error>> {
            let part = Bundle::part_path(&path, name);
            let read = || Ok(tflite::read(bytes).expect("a network of a bundle"));
            let model = opener.open(&part, bytes, read, SessionOptions::default())?;
            let inputs = model.inputs().iter().map(|input| {
                let shape: Vec<usize> = input.shape.iter().map(|side| side.unwrap_or(1)).collect();
                ArrayD::from_elem(shape, 0.5)
            });
            let inputs = inputs.collect();
            Ok((model, inputs))
        };
        Ok(Self(vec![
            network("face_landmarks_detector", &bundle.face_landmarks_detector)?,
            network("face_blendshapes", &bundle.face_blendshapes)?,
        ]))
    }

    fn run(&mut self) {
        for (model, inputs) in &mut self.0 {
            let views: Vec<_> = inputs.iter().map(|input| input.view()).collect();
            model.run(&views).expect("it ran before");
        }
    }
}

/// Median time per frame, ms, of the elements and of the networks.
fn measure(networks: &mut Networks, frames: &[gst::Sample]) -> (f64, f64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut harness = gst_check::Harness::new_parse(&format!(
        "facetrack engine=mediapipe max-faces=1 ! trackjsonsink location={}/track.json",
        folder.path().display()
    ));
    harness.set_src_caps(frames[0].caps_owned().expect("decoded frames have caps"));
    let (mut whole, mut alone) = (Vec::new(), Vec::new());
    for index in 0..ROUNDS * FRAMES {
        let mut buffer = frames[index % frames.len()]
            .buffer_owned()
            .expect("a frame");
        let time = index as u64 * (gst::ClockTime::SECOND / 30);
        buffer.make_mut().set_pts(time);
        whole.push(milliseconds(|| {
            harness.push(buffer).expect("it is taken");
        }));
        alone.push(milliseconds(|| networks.run()));
    }
    (median(whole), median(alone))
}

fn milliseconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1000.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
