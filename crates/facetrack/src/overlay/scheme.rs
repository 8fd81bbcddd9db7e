// SPDX-License-Identifier: MPL-2.0
//! Lines between landmarks, for each scheme.

mod mesh;

use crate::observation::LandmarkScheme;

/// Lines from landmark to landmark. A closed line ends with its first landmark.
type Lines = &'static [&'static [u16]];

impl LandmarkScheme {
    /// The edges of the outlines of face, brows, eyes, nose and lips.
    pub fn contour_edges(self) -> impl Iterator<Item = [u16; 2]> {
        let pairs = self.contours().iter().flat_map(|line| line.windows(2));
        pairs.map(|pair| [pair[0], pair[1]])
    }

    /// The outlines of face, brows, eyes, nose and lips.
    fn contours(self) -> Lines {
        match self {
            Self::MediaPipe478 => MEDIAPIPE,
            Self::OpenSeeFace66 => OPENSEEFACE,
            Self::Ibug68 => IBUG,
            Self::InsightFace106 => INSIGHTFACE,
        }
    }

    /// The edges of a mesh over the whole face; none if the scheme has no mesh.
    pub fn mesh(self) -> impl Iterator<Item = [u16; 2]> {
        let edges = (self == Self::MediaPipe478).then(|| mesh::MEDIAPIPE.iter().copied());
        edges.into_iter().flatten()
    }

    /// The rims of the eyes, right eye of the face first.
    pub fn eyes(self) -> [&'static [u16]; 2] {
        let contours = self.contours();
        let [right, left] = match self {
            Self::MediaPipe478 => [1, 2],
            Self::OpenSeeFace66 | Self::Ibug68 => [5, 6],
            Self::InsightFace106 => [3, 4],
        };
        [contours[right], contours[left]]
    }
}

/// `FACE_LANDMARKS_FACE_OVAL`, `…_RIGHT_EYE`, `…_LEFT_EYE`, the eyebrows, the lips and the irises
/// of MediaPipe's Face Landmarker.
#[rustfmt::skip]
const MEDIAPIPE: Lines = &[
    &[10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150,
      136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10],
    &[33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246, 33],
    &[263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263],
    &[46, 53, 52, 65, 55],
    &[70, 63, 105, 66, 107],
    &[276, 283, 282, 295, 285],
    &[300, 293, 334, 296, 336],
    &[61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61],
    &[78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191, 78],
    &[469, 470, 471, 472, 469],
    &[474, 475, 476, 477, 474],
];

/// OpenSeeFace's points in the order of `lm_model*`: iBUG's up to the eyes, then the lips without
/// their inner corners.
#[rustfmt::skip]
const OPENSEEFACE: Lines = &[
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    &[17, 18, 19, 20, 21],
    &[22, 23, 24, 25, 26],
    &[27, 28, 29, 30],
    &[31, 32, 33, 34, 35],
    &[36, 37, 38, 39, 40, 41, 36],
    &[42, 43, 44, 45, 46, 47, 42],
    &[58, 48, 49, 50, 51, 52, 62, 53, 54, 55, 56, 57, 58],
    &[58, 59, 60, 61, 62, 63, 64, 65, 58],
];

/// The order of iBUG's 300-W: see [`LandmarkScheme::Ibug68`].
#[rustfmt::skip]
const IBUG: Lines = &[
    &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    &[17, 18, 19, 20, 21],
    &[22, 23, 24, 25, 26],
    &[27, 28, 29, 30],
    &[31, 32, 33, 34, 35],
    &[36, 37, 38, 39, 40, 41, 36],
    &[42, 43, 44, 45, 46, 47, 42],
    &[48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 48],
    &[60, 61, 62, 63, 64, 65, 66, 67, 60],
];

/// The points of InsightFace's `2d106det`. InsightFace does not document their order; it was found
/// from their positions on faces. 34, 38, 88 and 92 are the pupils.
#[rustfmt::skip]
const INSIGHTFACE: Lines = &[
    &[1, 9, 10, 11, 12, 13, 14, 15, 16, 2, 3, 4, 5, 6, 7, 8, 0, 24, 23, 22, 21, 20, 19, 18, 32, 31, 30, 29, 28, 27, 26,
      25, 17],
    &[43, 48, 49, 51, 50, 46, 47, 45, 44, 43],
    &[101, 105, 104, 103, 102, 97, 98, 99, 100, 101],
    &[35, 41, 40, 42, 39, 37, 33, 36, 35],
    &[89, 95, 94, 96, 93, 91, 87, 90, 89],
    &[72, 73, 74, 86],
    &[75, 76, 77, 78, 79, 80, 85, 84, 83, 82, 81],
    &[52, 64, 63, 71, 67, 68, 61, 58, 59, 53, 56, 55, 52],
    &[65, 66, 62, 70, 69, 57, 60, 54, 65],
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Edges, each once, and their number including duplicates.
    fn distinct(edges: impl Iterator<Item = [u16; 2]>) -> (BTreeSet<[u16; 2]>, usize) {
        let edges: Vec<_> = edges.map(|[a, b]| [a.min(b), a.max(b)]).collect();
        (edges.iter().copied().collect(), edges.len())
    }

    #[test]
    fn lines_join_landmarks_that_there_are_and_none_twice() {
        for &scheme in LandmarkScheme::ALL {
            for (edges, count) in [distinct(scheme.contour_edges()), distinct(scheme.mesh())] {
                assert_eq!(edges.len(), count, "{scheme:?}: an edge twice");
                assert!(edges.iter().all(|[a, b]| a != b), "{scheme:?}");
                let mut indices = edges.iter().flatten();
                assert!(
                    indices.all(|i| usize::from(*i) < scheme.count()),
                    "{scheme:?}"
                );
            }
        }
    }

    /// Vertices, edges and triangles of a disc with holes: V − E + F = 1 − holes, which are the
    /// eyes and the mouth.
    #[test]
    fn the_mesh_is_that_of_a_face_with_eyes_and_mouth() {
        let (edges, _) = distinct(LandmarkScheme::MediaPipe478.mesh());
        let vertices: BTreeSet<_> = edges.iter().flatten().copied().collect();
        let triangles = edges.iter().map(|[a, b]| {
            let joined = |to: u16, c: u16| edges.contains(&[to.min(c), to.max(c)]);
            vertices
                .iter()
                .filter(|c| **c > *b && joined(*a, **c) && joined(*b, **c))
                .count()
        });
        let triangles: usize = triangles.sum();
        assert_eq!((vertices.len(), edges.len()), (468, 1322));
        assert!(triangles >= 852, "{triangles}");
        assert_eq!(468 - 1322 + 852, 1 - 3);
    }

    #[test]
    fn every_landmark_of_the_sparse_schemes_is_on_a_contour_but_pupils() {
        for (scheme, apart) in [
            (LandmarkScheme::OpenSeeFace66, &[][..]),
            (LandmarkScheme::Ibug68, &[]),
            (LandmarkScheme::InsightFace106, &[34, 38, 88, 92]),
        ] {
            let joined: BTreeSet<_> = scheme.contours().concat().into_iter().collect();
            let missing: Vec<_> = (0..scheme.count() as u16)
                .filter(|i| !joined.contains(i))
                .collect();
            assert_eq!(missing, apart, "{scheme:?}");
        }
    }
}
