// SPDX-License-Identifier: MPL-2.0
//! Runs networks with the kernels of the crate `facetrack-net`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, Weak};

use facetrack_graph::Graph;
use facetrack_net::{Network, RunError, Unsupported};
use ndarray::{ArrayD, ArrayViewD};
use sha2::{Digest, Sha256};

use super::{Model, ModelError, TensorSpec};
use crate::instructions::level;
use crate::memory::OutOfMemory;
use crate::parallel;
use facetrack_assets::lock::lock;

/// A network of this process. Users that open the same network wait for one another.
type Slot = Arc<Mutex<Weak<Network>>>;

/// The networks of this process, by the hash of their files.
static SLOTS: LazyLock<Mutex<HashMap<[u8; 32], Slot>>> = LazyLock::new(Mutex::default);

/// A network in the built-in runtime. All networks of the process that were read from the same
/// bytes share their weights and their memory.
#[derive(Debug)]
pub struct BuiltInModel {
    name: String,
    network: Arc<Network>,
    /// Maximum number of threads of all its runs.
    threads: usize,
}

impl BuiltInModel {
    /// Prepares the network that `read` reads from `bytes`; the same bytes must yield the same
    /// network. `path` is for messages. The inner error is the reason why the network cannot run
    /// here.
    ///
    /// # Errors
    /// Returns the errors of `read`.
    pub fn open(
        path: &Path,
        bytes: &[u8],
        read: impl FnOnce() -> Result<Graph, ModelError>,
        threads: usize,
    ) -> Result<Result<Self, Unsupported>, ModelError> {
        let slot = slot_of(bytes);
        let mut shared = lock(&slot);
        let network = match shared.upgrade() {
            Some(network) => Ok(network),
            None => Network::new(&read()?).map(|network| Arc::new(network.with_level(level()))),
        };
        Ok(network.map(|network| {
            *shared = Arc::downgrade(&network);
            let name = path.display().to_string();
            Self {
                name,
                network,
                threads,
            }
        }))
    }
}

fn slot_of(bytes: &[u8]) -> Slot {
    let mut slots = lock(&SLOTS);
    // A slot that only the map holds is not locked.
    slots.retain(|_, slot| Arc::strong_count(slot) > 1 || lock(slot).strong_count() > 0);
    let key = Sha256::digest(bytes).into();
    slots.entry(key).or_default().clone()
}

impl Model for BuiltInModel {
    fn inputs(&self) -> &[TensorSpec] {
        self.network.inputs()
    }

    fn outputs(&self) -> &[TensorSpec] {
        self.network.outputs()
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let outputs = parallel::with_threads(self.threads, |threads, spawn| {
            self.network.run_on(inputs, threads, spawn)
        });
        outputs.map_err(|error| match error {
            RunError::Memory(error) => {
                OutOfMemory::of(format_args!("model {}", self.name), error).into()
            }
            RunError::Failed(reason) => ModelError::Run {
                model: self.name.clone(),
                reason,
            },
        })
    }
}
