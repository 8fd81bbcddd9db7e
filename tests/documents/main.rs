// SPDX-License-Identifier: MPL-2.0
//! The documentation, the examples and the installation.

mod annotate;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod docs;
mod examples;
mod install;
mod launch_lines;
mod links;
mod pages;
mod pictures;
mod plot;
mod python;
mod release;
mod snippets;
mod tables;
