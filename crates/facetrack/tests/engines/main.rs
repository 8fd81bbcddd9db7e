// SPDX-License-Identifier: MPL-2.0
//! Engines and their networks on still images.

mod all_engines;
#[path = "../common/mod.rs"]
mod common;
mod cuda_bench;
mod eos;
mod insightface;
mod mediapipe;
mod networks;
mod opencv_haar;
mod opencv_yunet;
mod opencv_yunet_pyfeat;
mod openseeface_networks;
mod reference;
