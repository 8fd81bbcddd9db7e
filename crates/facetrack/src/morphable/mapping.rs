// SPDX-License-Identifier: MPL-2.0
//! The vertex of each landmark: eos' `ibug_to_sfm.txt`, in TOML.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{LANDMARKS, MAX_TEXT, ShapeModel};

/// Minimum number of points to estimate a camera from: `estimate_orthographic_projection_linear` in
/// eos.
const MIN_VERTICES: usize = 4;

/// The vertex of each landmark. Landmarks are counted from 0 here, from 1 in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandmarkMapping {
    /// Landmark and vertex, in the order of the landmarks.
    pub vertices: Vec<(usize, usize)>,
    /// Landmarks of the outline on the right side of the face, which is the image's left.
    pub right_contour: Vec<usize>,
    /// Landmarks of the outline on the left side of the face.
    pub left_contour: Vec<usize>,
}

/// The parts of the file that are used.
#[derive(Deserialize)]
struct Document {
    landmark_mappings: BTreeMap<String, Id>,
    contour_landmarks: Contours,
}

#[derive(Deserialize)]
struct Contours {
    right: Vec<Id>,
    left: Vec<Id>,
}

/// An index. eos accepts numbers and strings.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a landmark or vertex is a whole number or a string"
)]
enum Id {
    Number(i64),
    Text(String),
}

impl LandmarkMapping {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Returns a description of the problem if the text is not such a file.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        if text.len() > MAX_TEXT {
            return Err(format!("it has more than {MAX_TEXT} bytes"));
        }
        let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
        let pairs = document.landmark_mappings.into_iter().map(|(key, id)| {
            let landmark = landmark(&Id::Text(key))?;
            Ok((landmark, vertex(&id)?))
        });
        let mut vertices: Vec<(usize, usize)> = pairs.collect::<Result<_, String>>()?;
        vertices.sort_unstable();
        let landmarks = |ids: Vec<Id>| ids.iter().map(landmark).collect::<Result<_, _>>();
        Ok(Self {
            vertices,
            right_contour: landmarks(document.contour_landmarks.right)?,
            left_contour: landmarks(document.contour_landmarks.left)?,
        })
    }

    /// Checks that there are enough landmarks, each once, all with vertices of `shape`.
    pub(super) fn check(&self, shape: &ShapeModel) -> Result<(), String> {
        if self.vertices.len() < MIN_VERTICES {
            let count = self.vertices.len();
            return Err(format!(
                "{count} landmarks have a vertex; at least {MIN_VERTICES} are needed"
            ));
        }
        let vertices = shape.mean.len();
        if let Some((landmark, vertex)) = self.vertices.iter().find(|pair| pair.1 >= vertices) {
            let landmark = landmark + 1;
            return Err(format!(
                "landmark {landmark} is vertex {vertex} of {vertices}"
            ));
        }
        check_landmarks(self.vertices.iter().map(|pair| pair.0))?;
        check_landmarks(self.right_contour.iter().chain(&self.left_contour).copied())
    }
}

/// Checks that all are landmarks, each once.
fn check_landmarks(landmarks: impl Iterator<Item = usize>) -> Result<(), String> {
    let mut seen = [false; LANDMARKS];
    for landmark in landmarks {
        let number = landmark + 1;
        let Some(seen) = seen.get_mut(landmark) else {
            return Err(format!("there is no landmark {number} of {LANDMARKS}"));
        };
        if std::mem::replace(seen, true) {
            return Err(format!("landmark {number} occurs twice"));
        }
    }
    Ok(())
}

/// The index of a landmark, from 0.
fn landmark(id: &Id) -> Result<usize, String> {
    let number = id.number().filter(|number| *number <= LANDMARKS);
    let landmark = number.and_then(|number| number.checked_sub(1));
    landmark.ok_or_else(|| {
        let id = id.shown();
        format!("{id} is not a landmark: landmarks are numbers from 1 to {LANDMARKS}")
    })
}

fn vertex(id: &Id) -> Result<usize, String> {
    id.number().ok_or_else(|| {
        let id = id.shown();
        format!("{id} is not a vertex: vertices are numbers; names of landmark definitions are not supported")
    })
}

impl Id {
    fn number(&self) -> Option<usize> {
        match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            Self::Text(text) if text.starts_with('+') => None,
            Self::Text(text) => text.parse().ok(),
        }
    }

    fn shown(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("{text:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shape;
    use super::*;

    const TEXT: &str = r#"
# A comment.
[landmark_mappings]
10 = 2  # A number,
9 = "1" # and its digits.
"27" = 0
68 = 3
[contour_landmarks]
right = [1, "2"]
left = [
    17,
]
[others]
are = "not read"
"#;

    #[test]
    fn landmarks_are_counted_from_0_and_sorted() {
        let mapping = LandmarkMapping::from_toml(TEXT).unwrap();
        assert_eq!(mapping.vertices, [(8, 1), (9, 2), (26, 0), (67, 3)]);
        assert_eq!(mapping.right_contour, [0, 1]);
        assert_eq!(mapping.left_contour, [16]);
        assert_eq!(mapping.check(&small_shape()), Ok(()));
    }

    #[test]
    fn what_is_no_mapping_is_refused_with_the_reason() {
        for (what, instead, reason) in [
            ("[landmark_mappings]", "[mappings]", "`landmark_mappings`"),
            ("[contour_landmarks]", "[contours]", "`contour_landmarks`"),
            ("right =", "rights =", "`right`"),
            ("10 = 2", "10 = 2.5", "a whole number or a string"),
            ("10 = 2", "10 = [2]", "a whole number or a string"),
            ("10 = 2", "10 = -2", "-2 is not a vertex"),
            ("10 = 2", "10 = \"+2\"", "\"+2\" is not a vertex"),
            ("10 = 2", "10 = \"center.chin\"", "landmark definitions"),
            ("10 = 2", "10 = 99999999999999999999", "invalid"),
            ("10 = 2", "10 = 4", "landmark 10 is vertex 4 of 4"),
            ("10 = 2", "chin = 2", "\"chin\" is not a landmark"),
            ("10 = 2", "0 = 2", "\"0\" is not a landmark"),
            ("10 = 2", "69 = 2", "\"69\" is not a landmark"),
            ("10 = 2", "9 = 2", "duplicate key"),
            ("10 = 2", "09 = 2", "landmark 9 occurs twice"),
            ("10 = 2", "", "3 landmarks have a vertex"),
            ("[1, \"2\"]", "[1, 0]", "0 is not a landmark"),
            ("[1, \"2\"]", "[1, 1]", "landmark 1 occurs twice"),
            ("[1, \"2\"]", "[1, 17]", "landmark 17 occurs twice"),
            ("[1, \"2\"]", "1", "expected a sequence"),
        ] {
            let broken = TEXT.replacen(what, instead, 1);
            assert_ne!(broken, TEXT, "{what}");
            let mapping = LandmarkMapping::from_toml(&broken);
            let error = mapping.and_then(|mapping| mapping.check(&small_shape()));
            let error = error.unwrap_err();
            assert!(error.contains(reason), "{what} → {instead}: {error}");
        }
    }

    #[test]
    fn floods_and_damage_never_panic() {
        let long = format!("{TEXT}# {}", "x".repeat(MAX_TEXT));
        assert!(LandmarkMapping::from_toml(&long).is_err());
        let deep = format!("{TEXT}deep = {}", "[".repeat(100_000));
        assert!(LandmarkMapping::from_toml(&deep).is_err());
        for place in 0..TEXT.len() {
            let _ = LandmarkMapping::from_toml(&TEXT[..place]);
            for instead in ["\0", "=", "[", "\"", "-", "9"] {
                let damaged = [&TEXT[..place], instead, &TEXT[place + 1..]].concat();
                let mapping = LandmarkMapping::from_toml(&damaged);
                let _ = mapping.and_then(|mapping| mapping.check(&small_shape()));
            }
        }
    }
}
