// SPDX-License-Identifier: MPL-2.0
//! Helpers that several test programs share.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod drawn;
pub mod engine;
pub mod eos;
pub mod faces;
pub mod image;
pub mod insightface;
pub mod noise;
pub mod openseeface;
pub mod recording;
pub mod same;
pub mod yunet;
