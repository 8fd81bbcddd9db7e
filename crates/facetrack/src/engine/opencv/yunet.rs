// SPDX-License-Identifier: MPL-2.0
//! OpenCV's YuNet: finds faces with five key points as `FaceDetectorYN` does.
//!
//! The stages follow OpenCV 4.12's `face_detect.cpp`, one file each. On frames with a side of 32 px
//! or less, OpenCV's results differ: its convolutions deviate from ONNX's definition if an image is
//! one pixel wide or high.

mod decode;
mod fit;
mod heads;
mod load;

use std::path::Path;

use facetrack_graph::Graph;

use crate::engine::network::{LastRun, Network, Outputs};
use crate::engine::{EngineConfig, EngineEntry, EngineInfo, Found, Setting, Thresholds};
use crate::image::ImageView;
use crate::model::{Model, ModelError, read_onnx};
use crate::nms::{self, Detection};
use crate::sample::{Border, CHANNELS, Crop, ValueRange};
use decode::Level;
use fit::Fit;

pub use load::load;

/// Default minimum scores, as in the older pipeline of `docs/run.md`.
pub const THRESHOLDS: Thresholds = Thresholds {
    detection: 0.7,
    ..Thresholds::DEFAULT
};

pub use crate::engine::entry::NMS_THRESHOLD;

/// Default maximum width of the frame that the network sees, px.
pub const MAX_WIDTH: usize = 640;

/// Number of key points of a face: the eyes, the tip of the nose, the corners of the mouth. Of a
/// pair, the one on the right side of the face comes first, which is on the left in a picture of an
/// upright face.
pub const KEY_POINTS: usize = 5;

/// Pixels of the input from cell to cell of the network's outputs: `strides` in OpenCV's
/// `face_detect.cpp`.
const STRIDES: [usize; 3] = [8, 16, 32];

/// Maximum number of pixels of the network's input: slightly more than an 8K frame has.
const MAX_PIXELS: usize = 8192 * 4352;

/// Finds faces with YuNet.
pub struct Detector {
    network: Network,
    last: LastRun,
    max_width: Option<usize>,
    max_iou: f32,
    max_faces: usize,
}

impl Detector {
    /// Creates the detector from `model`, which was read from `path`: the graph that [`rewrite`]
    /// returns, in any runtime. It is run on inputs of two sizes.
    ///
    /// # Errors
    /// Returns an error if the model has other tensors or does not run.
    pub fn new(
        model: Box<dyn Model>,
        path: &Path,
        config: &EngineConfig,
    ) -> Result<Self, ModelError> {
        let mut detector = Self {
            network: Network::new(model, path),
            last: LastRun::default(),
            max_width: config.max_width(MAX_WIDTH),
            max_iou: config.nms_threshold.unwrap_or(NMS_THRESHOLD),
            max_faces: config.max_faces.unwrap_or(usize::MAX),
        };
        for (width, height) in [(64, 32), (32, 96)] {
            let fit = Fit::new(width, height, None);
            detector.resize(&fit)?;
            run(&mut detector.network, fit.input)?;
        }
        Ok(detector)
    }

    /// Faces with a score of at least `min_score`, in image px, as many as the configuration allows.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`]; [`ModelError::InputSize`] or [`ModelError::Memory`] for a frame
    /// that would need too much memory.
    pub fn detect(
        &mut self,
        image: &ImageView<'_>,
        min_score: f32,
    ) -> Result<Found<Detection>, ModelError> {
        let fit = Fit::new(image.width(), image.height(), self.max_width);
        self.resize(&fit)?;
        let crop = Crop::planar(fit.region(), fit.input, ValueRange::BYTE, Border::Black);
        self.network.show(&crop, image)?;
        let search = |network: &mut Network| run(network, fit.input);
        let network = &mut self.network;
        let outputs = self.last.output(network, Network::tensor, search)?;
        let levels = [0, 1, 2].map(|index| Level {
            stride: STRIDES[index],
            columns: fit.input[0] / STRIDES[index],
            values: outputs.get(index),
        });
        let faces = decode::decode(&levels, min_score, self.max_iou)
            .into_iter()
            .map(|detection| fit.to_frame(detection))
            .filter(nms::is_usable);
        Ok(Found::first(faces.collect(), self.max_faces))
    }

    /// Resizes the input.
    fn resize(&mut self, fit: &Fit) -> Result<(), ModelError> {
        let [width, height] = fit.input;
        if width * height > MAX_PIXELS {
            return Err(ModelError::InputSize {
                model: self.network.path.display().to_string(),
                width,
                height,
            });
        }
        self.network.resize(&[1, CHANNELS, height, width])
    }
}

/// Runs the network on its input of this size.
fn run(network: &mut Network, [width, height]: [usize; 2]) -> Result<Outputs, ModelError> {
    let outputs = network.run()?;
    let wanted = STRIDES.map(|stride| [1, heads::CHANNELS, height / stride, width / stride]);
    if outputs.shapes() == wanted {
        return Ok(outputs);
    }
    let expected = format!("YuNet ({wanted:?} of {width}×{height} pixels)");
    Err(network.other_outputs(&outputs, expected))
}

/// Rewrites the published ONNX file `bytes`, read from `path`, for RGB images of any size. Each
/// output holds the channels `cls`, `obj`, `bbox` and `kps` of one stride, the first two before the
/// sigmoid.
///
/// # Errors
/// Returns an error if the file is damaged, or not YuNet's.
pub fn rewrite(path: &Path, bytes: Vec<u8>) -> Result<Graph, ModelError> {
    let mut graph = read_onnx(path, bytes)?;
    heads::rewrite(&mut graph).map_err(|actual| ModelError::Tensors {
        path: path.to_owned(),
        expected: "YuNet of March 2023".to_owned(),
        actual,
    })?;
    Ok(graph)
}

/// The engine `opencv-yunet`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::Detection,
        Setting::Suppression,
        Setting::Networks,
        Setting::Models,
        Setting::Model,
    ],
    thresholds: THRESHOLDS,
    detect_max_width: MAX_WIDTH,
    ..EngineEntry::new("opencv-yunet", |_| Ok(describe()), load)
};

/// Describes the engine before it is loaded, without models.
pub fn describe() -> EngineInfo {
    EngineInfo {
        key_points: KEY_POINTS,
        ..EngineInfo::named(ENTRY.name)
    }
}

#[cfg(test)]
mod tests;
