// SPDX-License-Identifier: MPL-2.0
//! The networks of a pack, ready to run.

use super::measures::Measures;
use super::pack::Pack;
use super::scrfd::Detector;
use super::{Module, placed};
use crate::device::Placement;
use crate::engine::{EngineConfig, EngineError, EngineInfo};
use crate::model::{ModelError, ModelFile};

/// The networks of a pack, ready to run.
pub struct Networks {
    /// Finds faces.
    pub detector: Detector,
    /// Measures each face.
    pub measures: Measures,
    /// The files, in reading order.
    pub files: Vec<ModelFile>,
}

impl Networks {
    /// Opens the networks of `pack` on `placement`, with a detector's input of `det_size` px.
    ///
    /// # Errors
    /// If one cannot be opened or has other tensors, if there is no detector, or if a network that
    /// was asked for is missing.
    pub fn open(
        pack: &dyn Pack,
        config: &EngineConfig,
        placement: &Placement,
        det_size: usize,
    ) -> Result<Self, EngineError> {
        let batches = placed::batches(placement);
        let mut detector = None;
        let mut measures = Measures::default();
        let mut files = Vec::new();
        for opened in pack.open(placement)? {
            files.push(opened.file.clone());
            let of_pack = |error| of_pack(pack, error);
            match opened.module {
                Module::Detection => {
                    detector = Some(Detector::new(opened, config, det_size).map_err(of_pack)?);
                }
                _ => measures.add(opened, batches).map_err(of_pack)?,
            }
        }
        let Some(detector) = detector else {
            return Err(pack.unusable("it has no detector").into());
        };
        if config.pack.embedding && measures.values(Module::Recognition).is_none() {
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

    /// Describes an engine with these networks.
    pub fn info(&self) -> EngineInfo {
        EngineInfo {
            key_points: self.detector.key_points(),
            models: self.files.clone(),
            ..super::info(|module| self.measures.values(module))
        }
    }
}

/// Converts the error of a network with other tensors: the whole pack has to be replaced.
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
