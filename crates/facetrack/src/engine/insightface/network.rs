// SPDX-License-Identifier: MPL-2.0
//! A network that measures all faces of a frame in one run.

use ndarray::{ArrayD, Axis};

use super::pack::{self, Opened};
use super::{Module, regions};
use crate::engine::network::{Network, other_tensors};
use crate::geometry::{Affine, RotatedRect};
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::sample::{Border, CHANNELS, Crop, ValueRange};

/// The network.
pub struct FaceNetwork {
    /// Its task.
    pub module: Module,
    network: Network,
    range: ValueRange,
    /// Width and height of the input, px.
    pub side: usize,
    /// Number of values for a face.
    pub values: usize,
    /// Maximum number of faces in a run.
    most: usize,
}

/// The network's answer for a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// As many as [`FaceNetwork::values`].
    pub values: Vec<f32>,
    /// Takes pixels of the network's input to the frame.
    pub frame_from_input: Affine,
}

impl FaceNetwork {
    /// A network `[faces, 3, side, side]` to `[faces, values]`, which gets up to `most` faces in a
    /// run. It is run once on zeros. A network that cannot run is found here, and so is a network
    /// that takes only one face whatever its file says.
    ///
    /// # Errors
    /// [`ModelError::Tensors`] when it has other tensors, or if faces cannot be aligned to the input
    /// of an embedding network. [`ModelError::Run`] when it does not run, or if its outputs are not
    /// finite.
    pub fn new(opened: Opened, most: usize) -> Result<Self, ModelError> {
        let sizes = sizes(&*opened.model);
        let Some((takes_many, side, values)) = sizes else {
            let expected = "a network of faces ([any, 3, side, side] to [any, values])".to_owned();
            return Err(other_tensors(&*opened.model, &opened.path, expected));
        };
        if opened.module == Module::Recognition && !regions::is_aligned_side(side) {
            return Err(ModelError::Tensors {
                path: opened.path,
                expected: "embeddings of faces of a multiple of 112 or 128 pixels".to_owned(),
                actual: format!("{side}×{side} pixels"),
            });
        }
        let mut network = Self {
            module: opened.module,
            network: Network::new(opened.model, &opened.path),
            range: opened.range,
            side,
            values,
            most: if takes_many { most } else { 1 },
        };
        network.try_out()?;
        Ok(network)
    }

    fn try_out(&mut self) -> Result<(), ModelError> {
        let faces = self.most.min(2);
        self.resize(faces);
        let output = match self.run_once(faces) {
            Err(ModelError::Run { .. } | ModelError::Gpu { .. }) if faces > 1 => {
                self.most = 1;
                self.run_once(1)?
            }
            output => output?,
        };
        self.network.check_numbers(&[output])
    }

    /// Runs the network on `regions` of `image`: in one run, except for crowds and for a network
    /// that takes only one face. There is no answer for a region that is `None` or out of reach, or
    /// if a value is not finite.
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
            answers.extend(self.run_chunk(image, regions)?);
        }
        Ok(answers)
    }

    fn run_chunk(
        &mut self,
        image: &ImageView<'_>,
        regions: &[Option<RotatedRect>],
    ) -> Result<Vec<Option<Answer>>, ModelError> {
        self.resize(regions.len());
        let len = CHANNELS * self.side * self.side;
        let mut shown: Vec<Option<Affine>> = Vec::with_capacity(regions.len());
        let mut faces = 0;
        for region in regions {
            let slot = &mut self.network.input()[faces * len..][..len];
            // `cv2.warpAffine` of `face_align.py`, and `blobFromImage`.
            let crop =
                region.map(|roi| Crop::planar(roi, [self.side; 2], self.range, Border::Black));
            let frame_from_input = crop.and_then(|crop| crop.sample(image, slot).ok());
            faces += usize::from(frame_from_input.is_some());
            shown.push(frame_from_input);
        }
        let output = (faces > 0).then(|| self.run_once(faces)).transpose()?;
        let mut rows = output.iter().flat_map(|output| output.axis_iter(Axis(0)));
        let answers = shown.into_iter().map(|frame_from_input| {
            let frame_from_input = frame_from_input?;
            let values: Vec<f32> = rows.next()?.iter().copied().collect();
            let is_finite = values.iter().all(|value| value.is_finite());
            is_finite.then_some(Answer {
                values,
                frame_from_input,
            })
        });
        Ok(answers.collect())
    }

    /// Runs the network on the first `faces` of the input, for `[faces, values]`.
    fn run_once(&mut self, faces: usize) -> Result<ArrayD<f32>, ModelError> {
        let outputs = self.network.run_first(faces)?;
        match outputs.0.into_iter().next() {
            Some(output) if output.shape() == [faces, self.values] => Ok(output),
            other => {
                let shape = other.map_or_else(Vec::new, |output| output.shape().to_vec());
                Err(self.network.failed(format!(
                    "it yields {shape:?} for {faces} faces in place of {:?}",
                    [faces, self.values]
                )))
            }
        }
    }

    /// Makes the input one for so many faces.
    fn resize(&mut self, faces: usize) {
        self.network
            .resize(&[faces, CHANNELS, self.side, self.side]);
    }
}

/// Whether several faces go through a run, side of the input, and number of values for a face.
fn sizes(model: &dyn Model) -> Option<(bool, usize, usize)> {
    let ([input], [output]) = (model.inputs(), model.outputs()) else {
        return None;
    };
    let takes_many = match input.shape.first()? {
        None => true,
        Some(1) => false,
        Some(_) => return None,
    };
    Some((takes_many, pack::side(input)?, pack::values(output)?))
}

#[cfg(test)]
mod tests;
