// SPDX-License-Identifier: MPL-2.0
//! What is known of one face from the frames before: its shape, which does not change, and its last pose and expression.

/// The past of one face in a video, for [`Fitter::follow`](super::Fitter::follow).
#[derive(Debug, Clone, Default)]
pub struct Past {}
