// SPDX-License-Identifier: MPL-2.0
//! `facetrack run` with its workers, as users run it.

mod blur;
mod clips;
#[path = "../common/mod.rs"]
mod common;
mod damaged;
mod deaths;
mod fetched;
mod hanging;
mod kinds;
mod neighbours;
mod outcomes;
mod program;
mod readable;
mod same_bytes;
mod segments;
mod settings;
mod terminal;
