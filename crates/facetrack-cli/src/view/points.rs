// SPDX-License-Identifier: MPL-2.0
//! Positions of points, in parts of a few seconds, so that a page decodes only those that it shows.

use std::collections::HashMap;
use std::{iter, mem};

use facetrack::observation::{LandmarkScheme, Observation};
use indexmap::IndexSet;
use serde_json::{Value as Json, json};

use super::encode::{Numbers, PIXEL, quantised};

/// Frames of a part: about 10 s. Our choice: a part with a mesh is decoded in some milliseconds.
pub(crate) const PART_FRAMES: usize = 256;

/// The points of all faces.
#[derive(Debug, Default)]
pub(crate) struct Points {
    sets: IndexSet<Set>,
    part: Numbers,
    /// The last points of each face in this part, by its id and the index of their set.
    last: HashMap<(u32, usize), Vec<[i64; 2]>>,
}

/// Points of a face that are drawn together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Set {
    name: &'static str,
    scheme: Option<LandmarkScheme>,
    count: usize,
}

impl Points {
    /// Adds a face: the number of its sets, then of each set the index and the points.
    pub(crate) fn add(&mut self, id: u32, face: &Observation) {
        let sets = sets(face);
        self.part.push(sets.len());
        for (set, points) in sets {
            let (index, _) = self.sets.insert_full(set);
            self.part.push(index);
            let last = self.last.entry((id, index));
            let last = last.or_insert_with(|| vec![[0; 2]; set.count]);
            for (last, point) in iter::zip(last.as_flattened_mut(), points.as_flattened()) {
                let point = quantised(*point, PIXEL);
                self.part.push(point - mem::replace(last, point));
            }
        }
    }

    /// Ends a part, and returns it.
    pub(crate) fn take_part(&mut self) -> Numbers {
        self.last.clear();
        mem::take(&mut self.part)
    }

    /// Describes the sets for the page.
    pub(crate) fn header(&self) -> Json {
        let sets = self.sets.iter().map(|set| {
            let scheme = set.scheme;
            json!({
                "name": set.name,
                "count": set.count,
                "contours": scheme.map(|it| it.contour_edges().collect::<Vec<_>>()),
                "mesh": scheme.map(|it| it.mesh().collect::<Vec<_>>()),
                "eyes": scheme.map(LandmarkScheme::eyes),
            })
        });
        json!({"step": PIXEL, "frames": PART_FRAMES, "sets": sets.collect::<Vec<_>>()})
    }
}

/// The sets of points that the face has.
fn sets(face: &Observation) -> Vec<(Set, Vec<[f32; 2]>)> {
    let dense = [
        ("landmarks", &face.landmarks),
        ("landmarks_106", &face.secondary_landmarks),
    ];
    let dense = dense.into_iter().filter_map(|(name, landmarks)| {
        let landmarks = landmarks.as_ref()?;
        let points = landmarks.points.iter().map(|point| [point.x, point.y]);
        Some((name, Some(landmarks.scheme), points.collect::<Vec<_>>()))
    });
    let sparse = face.key_points.iter().map(|point| [point.x, point.y]);
    let all = dense.chain([("key_points", None, sparse.collect())]);
    let all = all.map(|(name, scheme, points)| {
        let count = points.len();
        (
            Set {
                name,
                scheme,
                count,
            },
            points,
        )
    });
    all.filter(|(set, _)| set.count > 0).collect()
}
