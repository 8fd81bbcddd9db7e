// SPDX-License-Identifier: MPL-2.0
//! The networks of a pack, ready to run.

use super::Module;
use super::measures::Measures;
use super::pack::Pack;
use super::scrfd::Detector;
use crate::device::Placement;
use crate::engine::{EngineConfig, EngineError};
use crate::model::{ModelError, ModelFile};

/// The networks of a pack, ready to run.
pub struct Networks {
    /// Finds faces.
    pub detector: Detector,
    /// What looks at each face.
    pub measures: Measures,
    /// The files, in the order in which they were read.
    pub files: Vec<ModelFile>,
}

impl Networks {
    /// Opens the networks of `pack` on `placement`.
    ///
    /// # Errors
    /// When one can't be opened or is another one, when there is no detector, and when what was asked for is not there.
    pub fn open(
        pack: &dyn Pack,
        config: &EngineConfig,
        placement: &Placement,
    ) -> Result<Self, EngineError> {
        let mut detector = None;
        let mut measures = Measures::default();
        let mut files = Vec::new();
        for opened in pack.open(placement)? {
            files.push(opened.file.clone());
            let of_pack = |error| of_pack(pack, error);
            match opened.module {
                Module::Detection => {
                    detector = Some(Detector::new(opened, config).map_err(of_pack)?);
                }
                _ => measures.add(opened).map_err(of_pack)?,
            }
        }
        let Some(detector) = detector else {
            return Err(pack.unusable("it has no detector").into());
        };
        if config.pack.embedding && measures.embedding_len() == 0 {
            let error = pack.unusable("it has no recognition network");
            return Err(EngineError::config("embedding", error.to_string()));
        }
        if config.pack.embedding && detector.key_points() == 0 {
            let error = pack.unusable("its detector finds no key points, which align faces");
            return Err(EngineError::config("embedding", error.to_string()));
        }
        Ok(Self {
            detector,
            measures,
            files,
        })
    }
}

/// A network with other tensors came with its pack, which is what has to be another one.
fn of_pack(pack: &dyn Pack, error: ModelError) -> ModelError {
    match error {
        ModelError::Tensors {
            path,
            expected,
            actual,
            ..
        } => pack.unusable(&format!(
            "{} has other tensors than {expected}: {actual}",
            path.display()
        )),
        error => error,
    }
}
