// SPDX-License-Identifier: MPL-2.0
//! The engines of OpenCV's family. OpenCV itself is not needed.

#[cfg(feature = "opencv-haar")]
pub mod haar;
#[cfg(feature = "opencv-yunet")]
pub mod yunet;
#[cfg(any(feature = "opencv-yunet-pyfeat", feature = "eos"))]
pub(super) mod yunet_mesh;
#[cfg(feature = "opencv-yunet-pyfeat")]
pub mod yunet_pyfeat;
