// SPDX-License-Identifier: MPL-2.0
//! Attacks on the elements: random streams, files and threads that break every rule. No element
//! panics, no frame is lost, and each element works on a clean stream afterwards.
//! `CONTRIBUTING.md` says how to repeat a failed round, and how to attack for longer.

#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod files;
mod flushes;
mod layouts;
mod properties;
mod renegotiation;
mod rounds;
mod seeks;
mod states;
mod stream;
mod switches;
mod times;
