// SPDX-License-Identifier: MPL-2.0
//! Live pipelines and engines that load while frames flow.

#[path = "../common/mod.rs"]
mod common;
mod loading;
mod pacing;
mod played;
