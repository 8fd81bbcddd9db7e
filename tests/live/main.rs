// SPDX-License-Identifier: MPL-2.0
//! Live pipelines.

#[path = "../common/mod.rs"]
mod common;
mod pacing;
mod played;
