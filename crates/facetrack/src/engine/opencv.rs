// SPDX-License-Identifier: MPL-2.0
//! The engines of OpenCV's family. OpenCV itself is not needed.

pub mod haar;
pub mod yunet;
pub(super) mod yunet_mesh;
pub mod yunet_pyfeat;
