// SPDX-License-Identifier: MPL-2.0
//! The detector: SCRFD of any size, as `scrfd.py` runs it. One file for how a frame lies in its input, one for its
//! outputs.

mod heads;
mod letterbox;

use std::path::PathBuf;

use ndarray::{ArrayD, IxDyn};

use super::MAX_WIDTH;
use super::pack::{self, Opened};
use crate::engine::EngineConfig;
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::nms::{self, Detection};
use crate::sample::{Border, CHANNELS, Crop, Layout, Levels, ValueRange};
use heads::Heads;
use letterbox::Letterbox;

/// What the side of an input is a multiple of, at least.
pub const MULTIPLE: usize = 32;

/// Side of the input that a network is tried with, px: a multiple of every stride.
pub const TRIAL: usize = 128;

/// Finds faces.
pub struct Detector {
    model: Box<dyn Model>,
    path: PathBuf,
    range: ValueRange,
    heads: Heads,
    /// Width and height of the input of a network that takes no other.
    fixed: Option<[usize; 2]>,
    /// Side of the square that a frame is fitted into, px; the network may have another.
    side: usize,
    /// Greatest side, px.
    limit: usize,
    max_iou: f32,
    max_faces: usize,
    /// The last frame's input.
    input: ArrayD<f32>,
}

impl Detector {
    /// The detector that runs `opened`, which is run once, on nothing.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] when it is no SCRFD, [`ModelError::Run`] when it does not run, or what it yields is no
    /// number.
    pub fn new(opened: Opened, config: &EngineConfig) -> Result<Self, ModelError> {
        let heads = Heads::of(opened.model.outputs().len());
        let size = input_size(&*opened.model);
        let (Some(heads), Some([width, height])) = (heads, size) else {
            return Err(mismatch(&opened));
        };
        let fixed = width.zip(height).map(|(width, height)| [width, height]);
        let mut detector = Self {
            model: opened.model,
            path: opened.path,
            range: opened.range,
            heads,
            fixed,
            side: config.pack.det_size,
            limit: limit(config),
            max_iou: config.nms_threshold,
            max_faces: config.max_faces.unwrap_or(usize::MAX),
            input: ArrayD::zeros(IxDyn(&[])),
        };
        detector.resize(fixed.unwrap_or([TRIAL; 2]));
        let outputs = detector.forward()?;
        detector.decode(&outputs, 1.0)?;
        pack::check_numbers(&detector.path, &outputs)?;
        Ok(detector)
    }

    /// Key points that a face has.
    pub fn key_points(&self) -> usize {
        self.heads.key_points()
    }

    /// Side of the square that frames are fitted into, px, the longer one of a network that takes another input alone.
    pub fn side(&self) -> usize {
        let [width, height] = self.input_size();
        width.max(height)
    }

    /// Fits frames into another square from the next one on; a network that takes one size alone keeps it.
    pub fn set_side(&mut self, side: usize) {
        self.side = side;
    }

    /// Faces whose score is not below `least_score`, in image px and as many as the configuration allows: best first, or
    /// large and central first where there are more.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn detect(
        &mut self,
        image: &ImageView<'_>,
        least_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let size = [image.width(), image.height()];
        let letterbox = Letterbox::new(size, self.input_size());
        self.resize(letterbox.input);
        let [width, height] = letterbox.input;
        let crop = Crop {
            roi: letterbox.region(),
            width,
            height,
            range: self.range,
            border: Border::Replicate,
            layout: Layout::Planar,
            levels: Levels::Whole,
            window: None,
        };
        let input = self.input.as_slice_mut().unwrap_or_default();
        crop.sample(image, input)
            .map_err(|reason| ModelError::Run {
                model: self.path.display().to_string(),
                reason: reason.to_string(),
            })?;
        letterbox.blacken(input, self.range.min[0]);
        let outputs = self.forward()?;
        let found = self.decode(&outputs, least_score)?;
        let found = found.into_iter().map(|found| letterbox.to_frame(found));
        let mut faces = nms::hard(found.collect(), self.max_iou, with_last_pixels);
        if faces.len() > self.max_faces {
            central_first(&mut faces, size);
            faces.truncate(self.max_faces);
        }
        Ok(faces)
    }

    /// Width and height of the input: the whole square, though much of it can be black. What is left out of it would move
    /// boxes by half a pixel, and by that the age by years.
    fn input_size(&self) -> [usize; 2] {
        let side = self.side.min(self.limit);
        let square = [side.next_multiple_of(self.heads.multiple()); 2];
        self.fixed.unwrap_or(square)
    }

    /// Makes room for an input.
    fn resize(&mut self, [width, height]: [usize; 2]) {
        let shape = [1, CHANNELS, height, width];
        if self.input.shape() != shape {
            self.input = ArrayD::zeros(IxDyn(&shape));
        }
    }

    /// Runs the network on its input.
    fn forward(&mut self) -> Result<Vec<ArrayD<f32>>, ModelError> {
        self.model.run(&[self.input.view()])
    }

    /// What the network's outputs say, in pixels of its input.
    fn decode(
        &self,
        outputs: &[ArrayD<f32>],
        least_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let input = match *self.input.shape() {
            [_, _, height, width] => [width, height],
            _ => [0, 0],
        };
        let found = self.heads.decode(outputs, input, least_score);
        found.ok_or_else(|| {
            let shapes: Vec<&[usize]> = outputs.iter().map(ArrayD::shape).collect();
            ModelError::Tensors {
                path: self.path.clone(),
                expected: self.heads.expected(input),
                actual: format!("{shapes:?}"),
            }
        })
    }
}

/// Side of the square that frames are to be fitted into, px, whatever network there is.
pub fn wanted_side(config: &EngineConfig) -> usize {
    config.pack.det_size.min(limit(config))
}

/// Greatest side of an input, px.
fn limit(config: &EngineConfig) -> usize {
    let width = match config.detect_max_width {
        None => MAX_WIDTH,
        Some(0) => usize::MAX,
        Some(width) => width,
    };
    width.max(MULTIPLE) / MULTIPLE * MULTIPLE
}

/// Width and height of the input, `None` where it may be any; nothing for a network of something else than an image.
fn input_size(model: &dyn Model) -> Option<[Option<usize>; 2]> {
    match model.inputs() {
        [input] => match input.shape[..] {
            [None | Some(1), Some(CHANNELS), height, width] => Some([width, height]),
            _ => None,
        },
        _ => None,
    }
}

fn mismatch(opened: &Opened) -> ModelError {
    ModelError::Tensors {
        path: opened.path.clone(),
        expected: "SCRFD ([1, 3, height, width] to 6, 9, 10 or 15 outputs)".to_owned(),
        actual: format!(
            "{:?} to {:?}",
            opened.model.inputs(),
            opened.model.outputs()
        ),
    }
}

/// `nms` in `scrfd.py` compares boxes of whole pixels, the last of which belongs to the box.
fn with_last_pixels(bbox: &Rect) -> Rect {
    Rect::new(bbox.x, bbox.y, bbox.width + 1.0, bbox.height + 1.0)
}

/// Sorts as `detect` in `scrfd.py` where there are too many faces: by area, less twice the squared distance from the middle
/// of the frame.
fn central_first(faces: &mut [Detection], [width, height]: [usize; 2]) {
    let middle = [(width / 2) as f32, (height / 2) as f32];
    let value = |face: &Detection| {
        let center = face.bbox.center();
        let (dx, dy) = (center.x - middle[0], center.y - middle[1]);
        face.bbox.area() - 2.0 * (dx * dx + dy * dy)
    };
    faces.sort_by(|a, b| value(b).total_cmp(&value(a)));
}

#[cfg(test)]
mod tests;
