// SPDX-License-Identifier: MPL-2.0
//! Engines and elements on recorded videos.

mod blur;
#[path = "../common/mod.rs"]
mod common;
mod containers;
mod cuts;
mod encodings;
mod eos;
mod everyday;
mod identity;
mod insightface;
mod neutral;
mod opencv_haar;
mod opencv_yunet;
mod opencv_yunet_pyfeat;
mod openseeface;
mod pictures;
mod replay_engines;
mod selection;
mod turned;
