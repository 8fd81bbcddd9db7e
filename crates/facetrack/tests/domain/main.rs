// SPDX-License-Identifier: MPL-2.0
//! The domain without networks: pixels, fits and records.

#[path = "../common/mod.rs"]
mod common;
mod eos_files;
mod eos_fit;
mod openseeface_fit;
mod record;
mod replay;
mod sample;
