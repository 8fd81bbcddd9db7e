// SPDX-License-Identifier: MPL-2.0
//! The outline of the mean face, seen from the front: eos' `sfm_model_contours.json`.

/// Vertices from the brows down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelContours {
    /// On the right side of the face.
    pub right: Vec<usize>,
    /// On the left side of the face.
    pub left: Vec<usize>,
}

impl ModelContours {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn from_json(_text: &str) -> Result<Self, String> {
        Err("not read yet".to_owned())
    }
}
