// SPDX-License-Identifier: MPL-2.0
//! Merges several measurements of one face: `group_rects` and the following steps of `predict` in
//! `tracker.py`.

use crate::geometry::Rect;
use crate::observation::{Landmarks, Origin};

/// Minimum IoU of two boxes of one face: `intersects`.
const LEAST_IOU: f32 = 0.3;

/// Bonus of a tracked face over a detected one: the last item of `crop_info`.
const BONUS: f32 = 0.1;

/// A face that the landmark network found in a window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    /// The extent of the landmarks, px.
    pub bbox: Rect,
    /// The 66 landmarks.
    pub landmarks: Landmarks,
    /// The mean score.
    pub confidence: f32,
    /// Origin of the window.
    pub origin: Origin,
}

impl Candidate {
    /// A face with these landmarks; `None` if they have no extent.
    pub(super) fn new(landmarks: Landmarks, confidence: f32, origin: Origin) -> Option<Self> {
        let bbox = landmarks.extent();
        let has_extent = bbox.area() > 0.0 && (bbox.right() + bbox.bottom()).is_finite();
        has_extent.then_some(Self {
            bbox,
            landmarks,
            confidence,
            origin,
        })
    }

    fn rank(&self) -> f32 {
        if self.origin == Origin::Tracked {
            return self.confidence + BONUS;
        }
        self.confidence
    }
}

/// The best of each group of candidates that overlap, best first and at most `count`.
pub(super) fn best(candidates: Vec<Candidate>, count: usize) -> Vec<Candidate> {
    let boxes: Vec<Rect> = candidates.iter().map(|face| face.bbox).collect();
    let mut best: Vec<(usize, Candidate)> = Vec::new();
    for (group, face) in std::iter::zip(groups(&boxes), candidates) {
        match best.iter_mut().find(|(other, _)| *other == group) {
            None => best.push((group, face)),
            Some((_, held)) if face.rank() > held.rank() => *held = face,
            Some(_) => {}
        }
    }
    best.sort_by(|(_, a), (_, b)| b.rank().total_cmp(&a.rank()));
    best.truncate(count);
    best.into_iter().map(|(_, face)| face).collect()
}

/// The group of each box. A box moves the boxes that it overlaps into its own group, even out of
/// another one. Boxes of that group that only these overlapped stay in it.
fn groups(boxes: &[Rect]) -> Vec<usize> {
    let mut groups = vec![None; boxes.len()];
    for (index, bbox) in boxes.iter().enumerate() {
        let group = *groups[index].get_or_insert(index);
        let pairs = boxes.iter().zip(&mut groups).enumerate();
        for (_, (other, its)) in pairs.filter(|(other, _)| *other != index) {
            if bbox.iou(other) >= LEAST_IOU {
                *its = Some(group);
            }
        }
    }
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Landmark, LandmarkScheme};

    /// 10 px wide; two that are d apart have the IoU (10 − d)/(10 + d), 0.3 at 5.38.
    fn at(x: f32) -> Rect {
        Rect::new(x, 0.0, 10.0, 10.0)
    }

    #[test]
    fn boxes_that_overlap_are_a_group() {
        for (name, boxes, want) in [
            ("none", &[][..], &[][..]),
            ("apart", &[0.0, 20.0], &[0, 1]),
            ("too far", &[0.0, 5.5], &[0, 1]),
            ("near enough", &[0.0, 5.25], &[0, 0]),
            ("a chain is one group", &[0.0, 4.0, 8.0], &[0, 0, 0]),
            ("the middle one first", &[4.0, 0.0, 8.0], &[0, 0, 0]),
            // As tracker.py has it: the last box joins the first's group, the second takes it away,
            // and it takes the first along; a fourth box gets that one back.
            ("the ends first", &[0.0, 8.0, 4.0], &[1, 1, 1]),
            ("and one more", &[0.0, 8.0, 4.0, -4.0], &[0, 1, 1, 0]),
        ] {
            let boxes: Vec<Rect> = boxes.iter().map(|x| at(*x)).collect();
            assert_eq!(groups(&boxes), want, "{name}");
        }
    }

    fn face(x: f32, confidence: f32, origin: Origin) -> Candidate {
        let point = |x, y| Landmark { x, y, z: 0.0 };
        let points = vec![point(x, 0.0), point(x + 10.0, 10.0)];
        let landmarks = Landmarks::new(LandmarkScheme::OpenSeeFace66, points);
        Candidate::new(landmarks, confidence, origin).unwrap()
    }

    #[test]
    fn the_best_of_each_group_is_a_face() {
        use Origin::{Detected, Tracked};
        let far = 100.0;
        for (name, faces, count, want) in [
            ("none", vec![], 4, vec![]),
            (
                "of two, the better",
                vec![(0.0, 0.7, Detected), (1.0, 0.8, Detected)],
                4,
                vec![(1.0, 0.8)],
            ),
            (
                "of equal ones, the first",
                vec![(0.0, 0.7, Detected), (1.0, 0.7, Detected)],
                4,
                vec![(0.0, 0.7)],
            ),
            (
                "a followed one is ahead",
                vec![(0.0, 0.75, Tracked), (1.0, 0.8, Detected)],
                4,
                vec![(0.0, 0.75)],
            ),
            (
                "but not by much",
                vec![(0.0, 0.65, Tracked), (1.0, 0.8, Detected)],
                4,
                vec![(1.0, 0.8)],
            ),
            (
                "the best first",
                vec![(0.0, 0.7, Detected), (far, 0.8, Detected)],
                4,
                vec![(far, 0.8), (0.0, 0.7)],
            ),
            (
                "also among groups",
                vec![(0.0, 0.75, Tracked), (far, 0.8, Detected)],
                1,
                vec![(0.0, 0.75)],
            ),
        ] {
            let faces = faces
                .into_iter()
                .map(|(x, score, origin)| face(x, score, origin));
            let got: Vec<_> = best(faces.collect(), count)
                .iter()
                .map(|face| (face.bbox.x, face.confidence))
                .collect();
            assert_eq!(got, want, "{name}");
        }
    }

    #[test]
    fn landmarks_without_an_extent_are_no_face() {
        for [x, y] in [
            [0.0, 0.0],
            [1.0, 0.0],
            [f32::INFINITY, 1.0],
            [f32::MAX, f32::MAX],
        ] {
            let points = [[-x, -y], [x, y]].map(|[x, y]| Landmark { x, y, z: 0.0 });
            let landmarks = Landmarks::new(LandmarkScheme::OpenSeeFace66, points.to_vec());
            assert_eq!(
                Candidate::new(landmarks, 0.9, Origin::Detected),
                None,
                "{x} {y}"
            );
        }
    }
}
