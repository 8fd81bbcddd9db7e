// SPDX-License-Identifier: MPL-2.0
//! The detector: SCRFD of any size, as `scrfd.py` runs it. `letterbox` places a frame in the input,
//! `heads` decodes the outputs, `rest` saves work where the input is black, `boxes` where there are
//! no faces.

pub(super) mod boxes;
pub(super) mod close;
mod heads;
mod letterbox;
pub(super) mod rest;

use ndarray::ArrayD;

use super::opened::Opened;
use super::{DET_SIZE, MAX_WIDTH, NMS_THRESHOLD};
use crate::engine::network::{LastRun, Network, Outputs, other_tensors};
use crate::engine::{EngineConfig, Found};
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::nms::{self, Detection};
use crate::sample::{Border, CHANNELS, Crop, ValueRange};
pub(super) use boxes::Boxes;
use heads::Candidate;
pub(super) use heads::Heads;
use letterbox::Letterbox;
pub(super) use rest::Rest;

/// The side of an input is a multiple of this, or of a larger number.
pub(super) const MULTIPLE: usize = 32;

/// Side of the second input of `det-size=0`, px: `DEFAULT_DET_SIZES` in `face_analysis.py`. Faces that
/// fill the frame are found in it.
pub(super) const CLOSE: usize = 128;

/// The largest number that the side of an input has to be a multiple of, px.
pub(super) const LARGEST_MULTIPLE: usize = 128;

/// Number of input sizes whose last search is kept: `det-size=0` uses two.
pub(super) const SIZES: usize = 2;

/// Columns and rows of a frame in an input, and of the input.
type Placement = [[usize; 2]; 2];

/// Finds faces.
pub(super) struct Detector {
    /// The network, or its first layers.
    network: Network,
    /// The last search of each input size, and how the frame was placed in it.
    last: Vec<(Placement, LastRun)>,
    /// The layers after the first ones.
    rest: Option<Rest>,
    /// The convolutions that yield boxes and key points, if the network yields only the scores.
    boxes: Option<Boxes>,
    range: ValueRange,
    heads: Heads,
    /// Width and height of the input of a network that takes no other.
    fixed: Option<[usize; 2]>,
    /// Side of the square that frames are fitted into from the next frame on, px. A network with an
    /// input of a fixed size keeps that size.
    pub side: usize,
    /// True if frames are also searched at [`CLOSE`] px.
    close: bool,
    /// Maximum side, px.
    limit: usize,
    max_iou: f32,
    max_faces: usize,
}

impl Detector {
    /// Creates the detector from `opened`, with an input of `side` px. It is run on black inputs
    /// once, so that the GPU's convolutions are chosen.
    ///
    /// # Errors
    /// Returns [`ModelError::Tensors`] if the network is not an SCRFD, [`ModelError::Run`] if it
    /// does not run or its outputs are not finite.
    pub(super) fn new(
        opened: Opened,
        config: &EngineConfig,
        side: usize,
    ) -> Result<Self, ModelError> {
        let outputs = match &opened.rest {
            None => opened.model.outputs(),
            Some(rest) => rest.outputs(),
        };
        let heads = match &opened.boxes {
            None => Heads::of(outputs.len()),
            Some(boxes) => Some(boxes.heads),
        };
        let size = input_size(&*opened.model);
        let (Some(heads), Some([width, height])) = (heads, size) else {
            let expected = "SCRFD ([1, 3, height, width] to 6, 9, 10 or 15 outputs)".to_owned();
            return Err(other_tensors(&*opened.model, &opened.path, expected));
        };
        let fixed = width.zip(height).map(|(width, height)| [width, height]);
        let mut detector = Self {
            network: Network::new(opened.model, &opened.path),
            last: Vec::new(),
            rest: opened.rest,
            boxes: opened.boxes,
            range: opened.range,
            heads,
            fixed,
            side,
            close: is_searched_close(config) && fixed.is_none(),
            limit: limit(config),
            max_iou: config.nms_threshold.unwrap_or(NMS_THRESHOLD),
            max_faces: config.max_faces.unwrap_or(usize::MAX),
        };
        for input in detector.inputs() {
            let outputs = detector.run_on_black(input)?;
            let candidates = detector.candidates(&outputs, input, 1.0)?;
            detector.faces(&candidates, &outputs, input)?;
            detector.network.check_numbers(&outputs.0)?;
        }
        Ok(detector)
    }

    /// Key points that a face has.
    pub(super) fn key_points(&self) -> usize {
        self.heads.key_points()
    }

    /// Longer side of the network's input, px.
    pub(super) fn side(&self) -> usize {
        let [width, height] = self.input_size();
        width.max(height)
    }

    /// Faces with a score of at least `least_score`, in image px, best first. If there are more
    /// than the configuration allows, the largest and most central ones.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn detect(
        &mut self,
        image: &ImageView<'_>,
        least_score: f32,
    ) -> Result<Found<Detection>, ModelError> {
        let mut found = Vec::new();
        for input in self.inputs() {
            found.extend(self.search(image, input, least_score)?);
        }
        let mut faces = nms::hard(found, self.max_iou, with_last_pixels);
        if faces.len() > self.max_faces {
            central_first(&mut faces, [image.width(), image.height()]);
        }
        Ok(Found::first(faces, self.max_faces))
    }

    /// All faces that the network finds in an input of the size `input`, in image px.
    fn search(
        &mut self,
        image: &ImageView<'_>,
        input: [usize; 2],
        least_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let size = [image.width(), image.height()];
        if self.rest.as_ref().is_some_and(|rest| !rest.knows(input)) {
            self.run_on_black(input)?;
        }
        let mut letterbox = Letterbox::new(size, input);
        if let Some(rest) = &self.rest {
            letterbox.input = rest.seen(letterbox.frame, input);
        }
        self.resize(letterbox.input)?;
        let (region, border) = (letterbox.region(), Border::Replicate);
        let crop = Crop {
            rows: Some(letterbox.frame[1]),
            ..Crop::planar(region, letterbox.input, self.range, border)
        };
        self.network.show(&crop, image)?;
        letterbox.blacken(self.network.input(), self.range.min[0]);
        let placement = [letterbox.frame, input];
        let mut last = self.take_last(placement);
        let search = |detector: &mut Self| detector.run(placement);
        let outputs = last.output(self, Self::tensor, search)?;
        let found = self.faces_in(outputs, input, least_score)?.into_iter();
        self.last.push((placement, last));
        Ok(found.map(|found| letterbox.to_frame(found)).collect())
    }

    /// Takes the last search of a frame that was placed like this, if it is kept.
    fn take_last(&mut self, placement: Placement) -> LastRun {
        let known = self.last.iter().position(|(known, _)| *known == placement);
        if let Some(known) = known {
            return self.last.remove(known).1;
        }
        if self.last.len() == SIZES {
            self.last.remove(0);
        }
        LastRun::default()
    }

    /// Runs all layers on the network's input, in which a frame has this placement.
    fn run(&mut self, [frame, input]: Placement) -> Result<Outputs, ModelError> {
        let outputs = self.network.run()?;
        match &mut self.rest {
            Some(rest) => rest.run(&outputs, frame, input),
            None => Ok(outputs),
        }
    }

    fn tensor(&mut self) -> &mut ArrayD<f32> {
        self.network.tensor()
    }

    /// The faces in the network's outputs, in pixels of its input.
    fn faces_in(
        &self,
        outputs: &Outputs,
        input: [usize; 2],
        least_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let candidates = self.candidates(outputs, input, least_score)?;
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        self.faces(&candidates, outputs, input)
    }

    /// Runs the network on a black input of the size `input`.
    fn run_on_black(&mut self, input: [usize; 2]) -> Result<Outputs, ModelError> {
        self.resize(input)?;
        self.network.input().fill(self.range.min[0]);
        let outputs = self.network.run()?;
        match &mut self.rest {
            None => Ok(outputs),
            Some(rest) => rest.run_on_black(outputs, input),
        }
    }

    fn resize(&mut self, [width, height]: [usize; 2]) -> Result<(), ModelError> {
        self.network.resize(&[1, CHANNELS, height, width])
    }

    /// Sizes of the inputs that a frame is searched in.
    fn inputs(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let usual = self.input_size();
        let close = Some([CLOSE; 2]).filter(|close| self.close && *close != usual);
        close.into_iter().chain([usual])
    }

    /// Width and height of the square that frames are fitted into.
    fn input_size(&self) -> [usize; 2] {
        let side = self.side.min(self.limit);
        let square = [side.next_multiple_of(self.heads.multiple()); 2];
        self.fixed.unwrap_or(square)
    }

    /// Boxes with a score of at least `least_score` in the network's outputs.
    fn candidates(
        &self,
        outputs: &Outputs,
        input: [usize; 2],
        least_score: f32,
    ) -> Result<Vec<Candidate>, ModelError> {
        let candidates = self.heads.candidates(&outputs.0, input, least_score);
        candidates.ok_or_else(|| self.other_outputs(outputs, input))
    }

    /// The faces of `candidates` in the network's outputs, in pixels of its input.
    fn faces(
        &self,
        candidates: &[Candidate],
        outputs: &Outputs,
        input: [usize; 2],
    ) -> Result<Vec<Detection>, ModelError> {
        let sizes = self.heads.sizes(input);
        let lengths = match &self.boxes {
            None => self.heads.lengths(&sizes),
            Some(boxes) => boxes.lengths(&sizes),
        };
        let first = self.heads.levels();
        let others: Vec<&[f32]> = (first..first + lengths.len())
            .map(|index| outputs.get(index))
            .collect();
        if !others.iter().map(|values| values.len()).eq(lengths) {
            return Err(self.other_outputs(outputs, input));
        }
        let face = |candidate: &Candidate| {
            let values = match &self.boxes {
                None => self.heads.values(candidate, &others, &sizes),
                Some(boxes) => boxes.values(candidate, &others, &sizes),
            };
            self.heads.face(candidate, &values)
        };
        Ok(candidates.iter().filter_map(face).collect())
    }

    fn other_outputs(&self, outputs: &Outputs, input: [usize; 2]) -> ModelError {
        self.network
            .other_outputs(outputs, self.heads.expected(input))
    }
}

/// Side of the square that frames are fitted into, px, for any network.
pub(super) fn wanted_side(config: &EngineConfig) -> usize {
    match config.insightface.det_size {
        0 => DET_SIZE.min(limit(config)),
        side => side.min(limit(config)),
    }
}

/// Returns true if frames are also searched at [`CLOSE`] px, in a network that takes any size.
pub(super) fn is_searched_close(config: &EngineConfig) -> bool {
    config.insightface.det_size == 0
}

/// Maximum side of an input, px.
fn limit(config: &EngineConfig) -> usize {
    let width = config.max_width(MAX_WIDTH).unwrap_or(usize::MAX);
    width.max(MULTIPLE) / MULTIPLE * MULTIPLE
}

/// Width and height of the input, `None` where the network takes any; `None` for a network that
/// takes no image.
fn input_size(model: &dyn Model) -> Option<[Option<usize>; 2]> {
    let [input] = model.inputs() else { return None };
    match input.shape[..] {
        [None | Some(1), Some(CHANNELS), height, width] => Some([width, height]),
        _ => None,
    }
}

/// `nms` in `scrfd.py` compares boxes that include their last pixels.
fn with_last_pixels(bbox: &Rect) -> Rect {
    Rect::new(bbox.x, bbox.y, bbox.width + 1.0, bbox.height + 1.0)
}

/// Sorts too many faces as `detect` in `scrfd.py` does: by area minus twice the squared distance
/// from the centre of the frame.
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
