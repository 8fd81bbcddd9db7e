// SPDX-License-Identifier: MPL-2.0
//! A network that measures several faces of a frame in one run.

use ndarray::{ArrayD, Axis};

use super::opened::Opened;
use super::pack;
use super::{Module, regions};
use crate::engine::network::{Network, other_tensors};
use crate::geometry::{Affine, RotatedRect};
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::sample::{Border, CHANNELS, Crop, SampleError, ValueRange};

/// A run of a network that takes only one face.
const ALONE: Batch = Batch::UpTo(1);

/// The network.
pub(super) struct FaceNetwork {
    /// Task of the network.
    pub module: Module,
    network: Network,
    range: ValueRange,
    /// Width and height of the input, px.
    pub side: usize,
    /// Number of values for a face.
    pub values: usize,
    batch: Batch,
}

/// Number of faces in a run of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Batch {
    /// The number of faces, up to this maximum.
    UpTo(usize),
    /// Always this number. Fewer faces are padded, because ONNX Runtime prepares the convolutions
    /// of a GPU again whenever the shape of their input changes.
    Exactly(usize),
}

impl Batch {
    /// Maximum number of faces.
    fn most(self) -> usize {
        match self {
            Self::UpTo(most) | Self::Exactly(most) => most,
        }
    }

    /// Length of the batch for so many faces.
    fn length(self, faces: usize) -> usize {
        match self {
            Self::UpTo(_) => faces,
            Self::Exactly(length) => length,
        }
    }
}

/// The network's answer for a face.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    /// Values; their number is [`FaceNetwork::values`].
    pub values: Vec<f32>,
    /// Takes pixels of the network's input to the frame.
    pub frame_from_input: Affine,
}

impl FaceNetwork {
    /// A network `[faces, 3, side, side]` to `[faces, values]`, which gets `batch` faces in a run.
    /// It is run once on zeros. A network that cannot run is found here, and so is a network
    /// that takes only one face whatever its file says.
    ///
    /// # Errors
    /// Returns [`ModelError::Tensors`] when it has other tensors, or if faces cannot be aligned to
    /// the input of an embedding network. [`ModelError::Run`] when it does not run, or if its
    /// outputs are not finite.
    pub(super) fn new(opened: Opened, batch: Batch) -> Result<Self, ModelError> {
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
            batch: if takes_many { batch } else { ALONE },
        };
        network.try_out()?;
        Ok(network)
    }

    fn try_out(&mut self) -> Result<(), ModelError> {
        let faces = self.batch.most().min(2);
        self.resize(faces)?;
        let output = match self.run_once(faces) {
            Err(ModelError::Run { .. } | ModelError::Gpu { .. }) if faces > 1 => {
                self.batch = ALONE;
                self.run_once(1)?
            }
            output => output?,
        };
        self.network.check_numbers(&[output])
    }

    /// Runs the network on `regions` of `image`: in one run, except for crowds and for a network
    /// that takes only one face. The answer is `None` for a region that is `None` or out of reach,
    /// and if a value is not finite.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn run(
        &mut self,
        image: &ImageView<'_>,
        regions: &[Option<RotatedRect>],
    ) -> Result<Vec<Option<Answer>>, ModelError> {
        let mut answers = Vec::with_capacity(regions.len());
        for regions in regions.chunks(self.batch.most()) {
            answers.extend(self.run_chunk(image, regions)?);
        }
        Ok(answers)
    }

    fn run_chunk(
        &mut self,
        image: &ImageView<'_>,
        regions: &[Option<RotatedRect>],
    ) -> Result<Vec<Option<Answer>>, ModelError> {
        self.resize(regions.len())?;
        let len = CHANNELS * self.side * self.side;
        let mut shown: Vec<Option<Affine>> = Vec::with_capacity(regions.len());
        let mut faces = 0;
        for region in regions {
            let slot = &mut self.network.input()[faces * len..][..len];
            // `cv2.warpAffine` of `face_align.py`, and `blobFromImage`.
            let crop =
                region.map(|roi| Crop::planar(roi, [self.side; 2], self.range, Border::Black));
            let frame_from_input = match crop.map(|crop| crop.sample(image, slot)).transpose() {
                Err(SampleError::Memory(error)) => return Err(error.into()),
                sampled => sampled.unwrap_or_default(),
            };
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

    /// Runs the network on the first `faces` of the input, for `[faces, values]`; more rows if the
    /// batch is padded.
    fn run_once(&mut self, faces: usize) -> Result<ArrayD<f32>, ModelError> {
        let length = self.batch.length(faces);
        let outputs = self.network.run_first(length)?;
        match outputs.0.into_iter().next() {
            Some(output) if output.shape() == [length, self.values] => Ok(output),
            other => {
                let shape = other.map_or_else(Vec::new, |output| output.shape().to_vec());
                Err(self.network.failed(format!(
                    "it yields {shape:?} for {length} faces in place of {:?}",
                    [length, self.values]
                )))
            }
        }
    }

    /// Resizes the input for so many faces.
    fn resize(&mut self, faces: usize) -> Result<(), ModelError> {
        let length = self.batch.length(faces);
        self.network
            .resize(&[length, CHANNELS, self.side, self.side])
    }
}

/// Returns true if a run takes several faces; also the side of the input and the number of values
/// for a face.
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
