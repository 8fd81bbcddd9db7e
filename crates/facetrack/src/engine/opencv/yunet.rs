// SPDX-License-Identifier: MPL-2.0
//! OpenCV's YuNet: faces with five key points, as `FaceDetectorYN` finds them.
//!
//! The stages are those of OpenCV 4.12's `face_detect.cpp`, one file each. On frames of at most 32 px along a side OpenCV
//! finds something else: its convolutions depart from ONNX's definition where an image is one pixel wide or high.

mod decode;
mod fit;
mod heads;
mod load;

use std::path::{Path, PathBuf};

use ndarray::{ArrayD, IxDyn};

use crate::engine::{
    EngineConfig, EngineEntry, EngineError, EngineInfo, EngineKind, Finder, Frame, Setting,
    Thresholds,
};
use crate::image::ImageView;
use crate::model::graph::Graph;
use crate::model::{Model, ModelError, ModelFile};
use crate::nms::{self, Detection};
use crate::observation::{Observation, Origin};
use crate::sample::{Border, CHANNELS, Crop, Layout, Levels, ValueRange};
use decode::Level;
use fit::Fit;

pub use load::load;

/// Least scores, as the pipeline that this engine replaces had them.
pub const THRESHOLDS: Thresholds = Thresholds {
    detection: 0.7,
    presence: 0.5,
    tracking: 0.5,
};

/// Greatest IoU of two detected faces: the default of OpenCV's `FaceDetectorYN`.
pub const NMS_THRESHOLD: f32 = 0.3;

/// Widest frame that the network sees unless told otherwise, px.
pub const MAX_WIDTH: usize = 640;

/// Key points of a face: the eyes, the tip of the nose, the corners of the mouth. Of two, the one on the right side of
/// the face comes first: in a picture of an upright face that is the one on the left.
pub const KEY_POINTS: usize = 5;

/// Pixels of the input from cell to cell of the network's outputs: `strides` in OpenCV's `face_detect.cpp`.
const STRIDES: [usize; 3] = [8, 16, 32];

/// Most pixels of the network's input: a little more than the frames of 8K television have. ONNX Runtime takes 60 to 90
/// bytes for each, and keeps them.
const MAX_PIXELS: usize = 8192 * 4352;

/// Finds faces with YuNet.
pub struct Detector {
    model: Box<dyn Model>,
    path: PathBuf,
    /// The last frame's input.
    input: ArrayD<f32>,
    max_width: Option<usize>,
    max_iou: f32,
    max_faces: usize,
}

impl Detector {
    /// The detector that runs `model`, the graph that [`rewrite`] makes, in any runtime; it was read from `path`. It is
    /// run on inputs of two sizes.
    ///
    /// # Errors
    /// When the model has other tensors or does not run.
    pub fn new(
        model: Box<dyn Model>,
        path: &Path,
        config: &EngineConfig,
    ) -> Result<Self, ModelError> {
        let mut detector = Self {
            model,
            path: path.to_owned(),
            input: ArrayD::zeros(IxDyn(&[])),
            max_width: match config.detect_max_width {
                None => Some(MAX_WIDTH),
                Some(0) => None,
                width => width,
            },
            max_iou: config.nms_threshold,
            max_faces: config.max_faces.unwrap_or(usize::MAX),
        };
        for (width, height) in [(64, 32), (32, 96)] {
            detector.resize(&Fit::new(width, height, None))?;
            detector.run()?;
        }
        Ok(detector)
    }

    /// Faces whose score is not below `min_score`, best first and as many as the configuration allows, in image px.
    ///
    /// # Errors
    /// [`ModelError::Run`]; [`ModelError::InputSize`] for a frame that would need too much memory.
    pub fn detect(
        &mut self,
        image: &ImageView<'_>,
        min_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let fit = Fit::new(image.width(), image.height(), self.max_width);
        self.resize(&fit)?;
        let crop = Crop {
            roi: fit.region(),
            width: fit.input[0],
            height: fit.input[1],
            range: ValueRange::BYTE,
            border: Border::Black,
            layout: Layout::Planar,
            levels: Levels::Whole,
            window: None,
        };
        let input = self.input.as_slice_mut().unwrap_or_default();
        crop.sample(image, input)
            .map_err(|reason| self.failed(reason.to_string()))?;
        let outputs = self.run()?;
        let level = |index: usize| Level {
            stride: STRIDES[index],
            columns: fit.input[0] / STRIDES[index],
            values: outputs[index].as_slice().unwrap_or_default(),
        };
        let levels = [level(0), level(1), level(2)];
        Ok(decode::decode(&levels, min_score, self.max_iou)
            .into_iter()
            .map(|detection| fit.to_frame(detection))
            .filter(nms::is_usable)
            .take(self.max_faces)
            .collect())
    }

    /// Makes room for an input.
    fn resize(&mut self, fit: &Fit) -> Result<(), ModelError> {
        let [width, height] = fit.input;
        if width * height > MAX_PIXELS {
            return Err(ModelError::InputSize {
                model: self.path.display().to_string(),
                width,
                height,
            });
        }
        let shape = [1, CHANNELS, height, width];
        if self.input.shape() != shape {
            self.input = ArrayD::zeros(IxDyn(&shape));
        }
        Ok(())
    }

    /// Runs the network on its input.
    fn run(&mut self) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let outputs = self.model.run(&[self.input.view()])?;
        let [_, _, height, width] = *self.input.shape() else {
            return Err(self.failed("no input".to_owned()));
        };
        let shapes: Vec<&[usize]> = outputs.iter().map(ArrayD::shape).collect();
        let wanted = STRIDES.map(|stride| [1, heads::CHANNELS, height / stride, width / stride]);
        if shapes == wanted {
            return Ok(outputs);
        }
        Err(ModelError::Tensors {
            path: self.path.clone(),
            expected: format!("YuNet ({wanted:?} of {:?})", self.input.shape()),
            actual: format!("{shapes:?}"),
        })
    }

    fn failed(&self, reason: String) -> ModelError {
        ModelError::Run {
            model: self.path.display().to_string(),
            reason,
        }
    }
}

/// Makes of the published ONNX file `bytes`, read from `path`, one that computes the same of images of any size, red
/// first: its outputs are the channels `cls`, `obj`, `bbox` and `kps` of a stride in one tensor, the first two before the
/// sigmoid.
///
/// # Errors
/// When it is damaged or another file.
pub fn rewrite(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, ModelError> {
    let mut graph = Graph::read(path, bytes)?;
    heads::rewrite(&mut graph).map_err(|actual| ModelError::Tensors {
        path: path.to_owned(),
        expected: "YuNet of March 2023".to_owned(),
        actual,
    })?;
    Ok(graph.encode())
}

/// The engine.
pub struct Yunet {
    info: EngineInfo,
    detector: Detector,
    thresholds: Thresholds,
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

/// What the engine measures; no models are listed.
pub fn describe() -> EngineInfo {
    EngineInfo {
        key_points: KEY_POINTS,
        ..EngineInfo::of_boxes(EngineKind::OpenCvYunet)
    }
}

impl Yunet {
    /// The engine that finds faces with `detector`, whose network is in `file`.
    pub fn new(detector: Detector, file: ModelFile) -> Self {
        Self {
            info: EngineInfo {
                models: vec![file],
                ..describe()
            },
            detector,
            thresholds: THRESHOLDS,
        }
    }
}

impl Finder for Yunet {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        let min_score = self.thresholds.detection;
        let faces = self.detector.detect(&frame.image, min_score)?;
        Ok(faces.into_iter().map(observation).collect())
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

/// A face with what YuNet tells of it.
pub(super) fn observation(detection: Detection) -> Observation {
    Observation {
        confidence: Some(detection.score),
        origin: Origin::Detected,
        key_points: detection.key_points,
        ..Observation::from_bbox(detection.bbox)
    }
}

#[cfg(test)]
mod tests;
