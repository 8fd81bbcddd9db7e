// SPDX-License-Identifier: MPL-2.0
//! A network of a pack that was opened.

use std::path::PathBuf;

use super::Module;
use super::scrfd::boxes::Boxes;
use super::scrfd::rest::Rest;
use crate::model::{Model, ModelFile};
use crate::sample::ValueRange;

/// A network of a pack.
pub struct Opened {
    /// Task of the network.
    pub module: Module,
    /// The network, or its first layers.
    pub model: Box<dyn Model>,
    /// The other layers of the network.
    pub rest: Option<Rest>,
    /// The convolutions of a detector that yield boxes and key points, if the network doesn't.
    pub boxes: Option<Boxes>,
    /// Range of the network's input values.
    pub range: ValueRange,
    /// File of the network, for messages.
    pub path: PathBuf,
    /// File of the network, for the record.
    pub file: ModelFile,
}

/// The fields `model`, `rest` and `boxes` of an [`Opened`].
pub(super) type Layers = (Box<dyn Model>, Option<Rest>, Option<Boxes>);
