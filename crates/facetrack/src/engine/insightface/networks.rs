// SPDX-License-Identifier: MPL-2.0
//! The networks of a pack, ready to run.

use std::panic::resume_unwind;
use std::thread;

use super::measures::{self, Measures};
use super::network::FaceNetwork;
use super::pack::{Opened, Pack};
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
        let opened = pack.open(placement)?;
        let files = opened.iter().map(|opened| opened.file.clone()).collect();
        let ready = |opened: Opened| match opened.module {
            Module::Detection => {
                Detector::new(opened, config, det_size).map(|own| Ready::Detector(Box::new(own)))
            }
            module => {
                let network = measures::network(opened, placed::most_faces(placement))?;
                Ok(Ready::OfFaces(module, Box::new(network)))
            }
        };
        let networks = if placed::are_tried_at_once(placement) {
            all_at_once(opened, ready)
        } else {
            opened.into_iter().map(ready).collect()
        };
        let mut detector = None;
        let mut measures = Measures::default();
        for network in networks {
            match network.map_err(|error| of_pack(pack, error))? {
                Ready::Detector(own) => detector = Some(*own),
                Ready::OfFaces(module, network) => measures.add(module, *network),
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

/// A network that has run once.
enum Ready {
    Detector(Box<Detector>),
    OfFaces(Module, Box<FaceNetwork>),
}

/// Calls `ready` for each network, in a thread of its own.
fn all_at_once<T: Send>(opened: Vec<Opened>, ready: impl Fn(Opened) -> T + Sync) -> Vec<T> {
    let ready = &ready;
    thread::scope(|scope| {
        let threads: Vec<_> = opened
            .into_iter()
            .map(|opened| scope.spawn(move || ready(opened)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
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
