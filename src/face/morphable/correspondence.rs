// SPDX-License-Identifier: MPL-2.0
//! Which vertices the outline's landmarks belong to: eos' `contour_correspondence.hpp` for the side that faces the camera,
//! `closest_edge_fitting.hpp` for the other.
