// SPDX-License-Identifier: MPL-2.0
//! Merges detections of one face: `groupRectangles` in OpenCV's `cascadedetect.cpp`.

/// A detection: whole pixels of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Detection {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Extent rightward.
    pub width: i32,
    /// Extent downward.
    pub height: i32,
}

impl Detection {
    /// The part inside a frame of this size; `None` if it is empty: `clipObjects`.
    pub(crate) fn clipped(self, width: i32, height: i32) -> Option<Self> {
        let (x, y) = (self.x.max(0), self.y.max(0));
        let clipped = Self {
            x,
            y,
            width: (self.x + self.width).min(width) - x,
            height: (self.y + self.height).min(height) - y,
        };
        (clipped.width > 0 && clipped.height > 0).then_some(clipped)
    }
}

/// Maximum difference of the edges of two detections of one face, relative to their size:
/// `GROUP_EPS` in `CascadeClassifierImpl::detectMultiScale`.
const TOLERANCE: f64 = 0.2;

/// Means of the groups of `detections` with more than `min_neighbors` members, without groups
/// inside a group with more members. Their order is the order of their first members. With 0
/// neighbours, `detections` are returned unchanged.
pub(super) fn group(detections: Vec<Detection>, min_neighbors: usize) -> Vec<Detection> {
    if min_neighbors == 0 {
        return detections;
    }
    let groups: Vec<Group> = groups(&detections)
        .into_iter()
        .filter(|group| group.count > min_neighbors)
        .collect();
    let within_another = |group: &Group| groups.iter().any(|other| group.is_within(other));
    let kept = groups.iter().filter(|group| !within_another(group));
    kept.map(|group| group.mean).collect()
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    mean: Detection,
    count: usize,
}

impl Group {
    fn of(members: &[Detection]) -> Self {
        let count = members.len();
        let factor = 1.0 / count as f32;
        let mean = |side: fn(&Detection) -> i32| {
            let sum: i64 = members.iter().map(|d| i64::from(side(d))).sum();
            (sum as f32 * factor).round_ties_even() as i32
        };
        Self {
            mean: Detection {
                x: mean(|d| d.x),
                y: mean(|d| d.y),
                width: mean(|d| d.width),
                height: mean(|d| d.height),
            },
            count,
        }
    }

    /// Returns true if this is inside `other` and has fewer members. If it has fewer than 3
    /// members, every other group around it counts.
    fn is_within(&self, other: &Self) -> bool {
        let (a, b) = (self.mean, other.mean);
        let margin = |side: i32| (f64::from(side) * TOLERANCE).round_ties_even() as i32;
        let (dx, dy) = (margin(b.width), margin(b.height));
        !std::ptr::eq(self, other)
            && a.x >= b.x - dx
            && a.y >= b.y - dy
            && a.x + a.width <= b.x + b.width + dx
            && a.y + a.height <= b.y + b.height + dy
            && (other.count > self.count.max(3) || self.count < 3)
    }
}

/// Groups detections that are similar, directly or through others: OpenCV's `partition`. OpenCV
/// compares all pairs; here each detection is compared only with its neighbours, because no other
/// can be similar.
fn groups(detections: &[Detection]) -> Vec<Group> {
    let mut by_x: Vec<usize> = (0..detections.len()).collect();
    by_x.sort_unstable_by_key(|index| detections[*index].x);
    let mut is_grouped = vec![false; detections.len()];
    let mut groups = Vec::new();
    for first in 0..detections.len() {
        if is_grouped[first] {
            continue;
        }
        is_grouped[first] = true;
        let mut members = vec![detections[first]];
        let mut next = 0;
        while let Some(member) = members.get(next).copied() {
            for index in beside(&member, detections, &by_x) {
                if !is_grouped[*index] && similar(&member, &detections[*index]) {
                    is_grouped[*index] = true;
                    members.push(detections[*index]);
                }
            }
            next += 1;
        }
        groups.push(Group::of(&members));
    }
    groups
}

/// Indices from `by_x` of the `detections` whose left edges are close enough to `member`'s to be
/// similar.
fn beside<'a>(member: &Detection, detections: &[Detection], by_x: &'a [usize]) -> &'a [usize] {
    let most = most_apart(member, member);
    let x = |index: &usize| f64::from(detections[*index].x - member.x);
    let start = by_x.partition_point(|index| x(index) < -most);
    let end = by_x.partition_point(|index| x(index) <= most);
    &by_x[start..end]
}

/// Maximum distance of the edges of similar detections, px. It depends on the smaller one.
fn most_apart(a: &Detection, b: &Detection) -> f64 {
    let size = f64::from(a.width.min(b.width)) + f64::from(a.height.min(b.height));
    TOLERANCE * size * 0.5
}

/// Returns true if two detections are similar: OpenCV's `SimilarRects`.
fn similar(a: &Detection, b: &Detection) -> bool {
    let most = most_apart(a, b);
    let near = |a: i32, b: i32| f64::from((a - b).abs()) <= most;
    near(a.x, b.x)
        && near(a.y, b.y)
        && near(a.x + a.width, b.x + b.width)
        && near(a.y + a.height, b.y + b.height)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Rectangles [x, y, width, height] that OpenCV returns.
    #[derive(Deserialize)]
    struct Case {
        rects: Vec<[i32; 4]>,
        min_neighbors: usize,
        left: Vec<[i32; 4]>,
    }

    #[derive(Deserialize)]
    struct Golden {
        groups: Vec<Case>,
    }

    fn detections(rects: &[[i32; 4]]) -> Vec<Detection> {
        let detection = |&[x, y, width, height]: &[i32; 4]| Detection {
            x,
            y,
            width,
            height,
        };
        rects.iter().map(detection).collect()
    }

    #[test]
    fn detections_are_grouped_as_opencv_groups_them() {
        let golden = include_str!("../../../../../../tests/golden/haar.json");
        let golden: Golden = serde_json::from_str(golden).unwrap();
        for case in golden.groups {
            let groups = group(detections(&case.rects), case.min_neighbors);
            let (expected, rects) = (detections(&case.left), case.rects);
            assert_eq!(groups, expected, "{} of {rects:?}", case.min_neighbors);
        }
    }

    /// Each compared with each.
    fn groups_one_by_one(detections: &[Detection]) -> Vec<Group> {
        let mut groups = Vec::new();
        let mut rest = detections.to_vec();
        while !rest.is_empty() {
            let mut members = vec![rest.remove(0)];
            let mut next = 0;
            while let Some(member) = members.get(next).copied() {
                members.extend(rest.extract_if(.., |other| similar(&member, other)));
                next += 1;
            }
            groups.push(Group::of(&members));
        }
        groups
    }

    #[test]
    fn who_is_beside_whom_changes_nothing() {
        let mut state = 7u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            ((state >> 8) % below) as i32
        };
        for spread in [1, 60, 400, 5000] {
            let detections: Vec<Detection> = (0..300)
                .map(|_| Detection {
                    x: random(spread) - 3,
                    y: random(spread) - 3,
                    width: 24 + random(90),
                    height: 20 + random(90),
                })
                .collect();
            let got = groups(&detections);
            assert!(got.len() > 1, "{spread}");
            assert_eq!(got, groups_one_by_one(&detections), "{spread}");
        }
    }

    #[test]
    fn boxes_are_clipped_to_the_frame() {
        let clipped = |rect| detections(&[rect])[0].clipped(100, 50);
        for (rect, expected) in [
            ([10, 10, 20, 20], Some([10, 10, 20, 20])),
            ([90, 40, 20, 20], Some([90, 40, 10, 10])),
            ([-5, 0, 20, 20], Some([0, 0, 15, 20])),
            ([100, 0, 20, 20], None),
        ] {
            assert_eq!(clipped(rect), expected.map(|rect| detections(&[rect])[0]));
        }
    }
}
