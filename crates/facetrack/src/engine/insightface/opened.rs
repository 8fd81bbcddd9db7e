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
    /// Its task.
    pub module: Module,
    /// The network, or its first layers.
    pub model: Box<dyn Model>,
    /// Its other layers.
    pub rest: Option<Rest>,
    /// The convolutions of a detector that yield boxes and key points, if the network doesn't.
    pub boxes: Option<Boxes>,
    /// Range of its input values.
    pub range: ValueRange,
    /// Its file, for messages.
    pub path: PathBuf,
    /// Its file, for the record.
    pub file: ModelFile,
}

/// The fields `model`, `rest` and `boxes` of an [`Opened`].
pub(super) type Layers = (Box<dyn Model>, Option<Rest>, Option<Boxes>);
