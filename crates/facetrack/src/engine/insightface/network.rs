// SPDX-License-Identifier: MPL-2.0
//! A network that looks at faces, all those of a frame in one run.

use std::path::PathBuf;

use ndarray::{ArrayD, ArrayView, ArrayView4, Axis};

use super::pack::{self, Opened};
use crate::geometry::{Affine, RotatedRect};
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::sample::{Border, CHANNELS, Crop, Layout, Levels, ValueRange};

/// Most faces in a run: of a crowd there are several, since a face takes some 2 MB in a small network.
pub const MOST: usize = 64;

/// The network.
pub struct FaceNetwork {
    model: Box<dyn Model>,
    path: PathBuf,
    range: ValueRange,
    side: usize,
    values: usize,
    /// Most faces in a run.
    most: usize,
    /// Faces as the network sees them, of the last run.
    input: Vec<f32>,
}

/// What the network says of a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// As many as [`FaceNetwork::values`].
    pub values: Vec<f32>,
    /// Takes pixels of the network's input to the frame.
    pub frame_from_input: Affine,
}

impl FaceNetwork {
    /// A network `[faces, 3, side, side]` to `[faces, values]`. It is tried on nothing, so that one that can't run is found
    /// out here, and one that can on a single face alone, whatever its file says.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] when it has other tensors, [`ModelError::Run`] when it does not run, or what it yields is no
    /// number.
    pub fn new(opened: Opened) -> Result<Self, ModelError> {
        let sizes = sizes(&*opened.model);
        let Some([most, side, values]) = sizes else {
            return Err(ModelError::Tensors {
                expected: "a network of faces ([any, 3, side, side] to [any, values])".to_owned(),
                actual: format!(
                    "{:?} to {:?}",
                    opened.model.inputs(),
                    opened.model.outputs()
                ),
                path: opened.path,
            });
        };
        let mut network = Self {
            model: opened.model,
            path: opened.path,
            range: opened.range,
            side,
            values,
            most,
            input: Vec::new(),
        };
        network.try_out()?;
        Ok(network)
    }

    fn try_out(&mut self) -> Result<(), ModelError> {
        let faces = self.most.min(2);
        self.input = vec![0.0; faces * self.face_len()];
        let output = match self.run_once(faces) {
            Err(ModelError::Run { .. } | ModelError::Gpu { .. }) if faces > 1 => {
                self.most = 1;
                self.run_once(1)?
            }
            output => output?,
        };
        pack::check_numbers(&self.path, &[output])
    }

    /// Width and height of the input, px.
    pub fn side(&self) -> usize {
        self.side
    }

    /// Values that it yields for a face.
    pub fn values(&self) -> usize {
        self.values
    }

    /// What the network says of each of `regions` of `image`: in one run, but for crowds, and for a network that takes one
    /// face. No answer for a region that is `None` or out of reach, and none with values that are no numbers.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn run(
        &mut self,
        image: &ImageView<'_>,
        regions: &[Option<RotatedRect>],
    ) -> Result<Vec<Option<Answer>>, ModelError> {
        let mut answers = Vec::with_capacity(regions.len());
        for regions in regions.chunks(self.most) {
            self.run_chunk(image, regions, &mut answers)?;
        }
        Ok(answers)
    }

    fn run_chunk(
        &mut self,
        image: &ImageView<'_>,
        regions: &[Option<RotatedRect>],
        answers: &mut Vec<Option<Answer>>,
    ) -> Result<(), ModelError> {
        let len = self.face_len();
        self.input.resize(regions.len() * len, 0.0);
        let mut shown: Vec<Option<Affine>> = Vec::with_capacity(regions.len());
        let mut faces = 0;
        for region in regions {
            let slot = &mut self.input[faces * len..][..len];
            let crop = region.map(|roi| crop(roi, self.side, self.range));
            let frame_from_input = crop.and_then(|crop| crop.sample(image, slot).ok());
            faces += usize::from(frame_from_input.is_some());
            shown.push(frame_from_input);
        }
        if faces == 0 {
            answers.extend(regions.iter().map(|_| None));
            return Ok(());
        }
        let output = self.run_once(faces)?;
        let mut rows = output.axis_iter(Axis(0));
        answers.extend(shown.into_iter().map(|frame_from_input| {
            let frame_from_input = frame_from_input?;
            let values: Vec<f32> = rows.next()?.iter().copied().collect();
            values
                .iter()
                .all(|value| value.is_finite())
                .then_some(Answer {
                    values,
                    frame_from_input,
                })
        }));
        Ok(())
    }

    /// Runs the network on the first `faces` of the input, for `[faces, values]`.
    fn run_once(&mut self, faces: usize) -> Result<ArrayD<f32>, ModelError> {
        let shape = (faces, CHANNELS, self.side, self.side);
        let len = faces * self.face_len();
        let input: ArrayView4<'_, f32> = ArrayView::from_shape(shape, &self.input[..len])
            .map_err(|reason| self.failed(reason.to_string()))?;
        let mut outputs = self.model.run(&[input.into_dyn()])?.into_iter();
        match outputs.next() {
            Some(output) if output.shape() == [faces, self.values] => Ok(output),
            other => {
                let shape = other.map_or_else(Vec::new, |output| output.shape().to_vec());
                Err(self.failed(format!(
                    "it yields {shape:?} for {faces} faces in place of {:?}",
                    [faces, self.values]
                )))
            }
        }
    }

    fn face_len(&self) -> usize {
        CHANNELS * self.side * self.side
    }

    fn failed(&self, reason: String) -> ModelError {
        ModelError::Run {
            model: self.path.display().to_string(),
            reason,
        }
    }
}

/// Most faces in a run, side of the input, values of a face.
fn sizes(model: &dyn Model) -> Option<[usize; 3]> {
    let ([input], [output]) = (model.inputs(), model.outputs()) else {
        return None;
    };
    let most = match input.shape.first()? {
        None => MOST,
        Some(1) => 1,
        Some(_) => return None,
    };
    Some([most, pack::side(input)?, pack::values(output)?])
}

/// How a network is shown a region: `cv2.warpAffine` of `face_align.py` and `blobFromImage`.
fn crop(roi: RotatedRect, side: usize, range: ValueRange) -> Crop {
    Crop {
        roi,
        width: side,
        height: side,
        range,
        border: Border::Black,
        layout: Layout::Planar,
        levels: Levels::Whole,
        window: None,
    }
}

#[cfg(test)]
mod tests;
