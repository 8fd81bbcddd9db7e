// SPDX-License-Identifier: MPL-2.0
//! Expressions from landmarks: non-negative least squares, as eos' `fit_blendshapes_to_landmarks_nnls`.
