// SPDX-License-Identifier: MPL-2.0
//! Landmarks and vertices that belong together: eos' `ibug_to_sfm.txt`, in TOML.

/// Landmarks are counted from 0 here, from 1 in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandmarkMapping {
    /// Landmark and vertex, in the order of the landmarks.
    pub vertices: Vec<(usize, usize)>,
    /// Landmarks of the outline on the right side of the face, which is the image's left.
    pub right_contour: Vec<usize>,
    /// Landmarks of the outline on the left side of the face.
    pub left_contour: Vec<usize>,
}

impl LandmarkMapping {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn from_toml(_text: &str) -> Result<Self, String> {
        Err("not read yet".to_owned())
    }
}
