// SPDX-License-Identifier: MPL-2.0
//! The documentation, the examples and the installation.

mod annotate;
#[path = "../common/mod.rs"]
mod common;
mod desktop;
mod docs;
mod examples;
mod install;
mod launch_lines;
mod pictures;
mod plot;
mod preview;
mod python;
mod readme;
