// SPDX-License-Identifier: MPL-2.0
//! Which vertices the camera sees: eos' `vertex_visibility.hpp`.
