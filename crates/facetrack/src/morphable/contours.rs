// SPDX-License-Identifier: MPL-2.0
//! The outline of the mean face, seen from the front: eos' `sfm_model_contours.json`.

use serde::Deserialize;

use super::{MAX_TEXT, ShapeModel};

/// Vertices of the outline, from the brows down.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ModelContours {
    /// Right side of the face.
    #[serde(rename = "right_contour")]
    pub right: Vec<usize>,
    /// Left side of the face.
    #[serde(rename = "left_contour")]
    pub left: Vec<usize>,
}

#[derive(Deserialize)]
struct Document {
    model_contour: ModelContours,
}

impl ModelContours {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Returns a description of the problem if the text is not such a file.
    pub fn from_json(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("it has more than {MAX_TEXT} bytes"));
        }
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(document.model_contour)
    }

    /// Checks that both sides have vertices, all of them vertices of `shape`.
    pub(super) fn check(&self, shape: &ShapeModel) -> Result<(), String> {
        let vertices = shape.mean.len();
        for (side, contour) in [("right", &self.right), ("left", &self.left)] {
            if contour.is_empty() {
                return Err(format!("the {side} contour is empty"));
            }
            if let Some(vertex) = contour.iter().find(|vertex| **vertex >= vertices) {
                return Err(format!(
                    "the {side} contour has vertex {vertex} of {vertices}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shape;
    use super::*;

    const TEXT: &str = r#"{"model_contour": {"right_contour": [0, 3], "left_contour": [2]}}"#;

    #[test]
    fn both_sides_are_read() {
        let contours = ModelContours::from_json(TEXT).unwrap();
        assert_eq!(contours.right, [0, 3]);
        assert_eq!(contours.left, [2]);
        assert_eq!(contours.check(&small_shape()), Ok(()));
    }

    #[test]
    fn what_are_no_contours_is_refused_with_the_reason() {
        for (what, instead, reason) in [
            ("model_contour", "contour", "`model_contour`"),
            ("left_contour", "other", "`left_contour`"),
            ("[2]", "[]", "the left contour is empty"),
            ("[2]", "[4]", "the left contour has vertex 4 of 4"),
            ("[2]", "[-1]", "-1"),
            ("[2]", "[2.5]", "2.5"),
            ("[2]", "[1e300]", "1e+300"),
            ("[2]", "2", "expected a sequence"),
            ("}}", "}", "EOF"),
            ("}}", "}} {}", "trailing characters"),
        ] {
            let broken = TEXT.replacen(what, instead, 1);
            assert_ne!(broken, TEXT, "{what}");
            let contours = ModelContours::from_json(&broken);
            let error = contours.and_then(|contours| contours.check(&small_shape()));
            let error = error.unwrap_err();
            assert!(error.contains(reason), "{what} → {instead}: {error}");
        }
    }

    #[test]
    fn floods_and_damage_are_refused() {
        let long = format!("{TEXT}{}", " ".repeat(MAX_TEXT));
        assert!(ModelContours::from_json(&long).is_err());
        assert!(ModelContours::from_json(&"[".repeat(100_000)).is_err());
        for end in 0..TEXT.len() {
            assert!(ModelContours::from_json(&TEXT[..end]).is_err(), "{end}");
        }
    }
}
