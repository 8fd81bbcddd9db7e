// SPDX-License-Identifier: MPL-2.0
//! Non-maximum suppression, which reduces the detections of a face to one.

use super::geometry::{Point, Rect};
use super::observation::Observation;

/// A detection before suppression.
#[derive(Debug, Clone, PartialEq)]
pub struct Detection {
    /// Bounding box.
    pub bbox: Rect,
    /// Score, 0…1.
    pub score: f32,
    /// Key points; every detection of a detector has the same number.
    pub key_points: Vec<Point>,
}

impl Detection {
    /// Returns the detection in pixels of another scale; `scale` converts positions and extents.
    pub(crate) fn scaled(self, scale: impl Fn(Point) -> Point) -> Self {
        let corner = scale(Point::new(self.bbox.x, self.bbox.y));
        let extent = scale(Point::new(self.bbox.width, self.bbox.height));
        Self {
            bbox: Rect::new(corner.x, corner.y, extent.x, extent.y),
            score: self.score,
            key_points: self.key_points.into_iter().map(scale).collect(),
        }
    }
}

impl From<Detection> for Observation {
    fn from(detection: Detection) -> Self {
        Self {
            confidence: Some(detection.score),
            key_points: detection.key_points,
            ..Self::from_bbox(detection.bbox)
        }
    }
}

/// The score, 0…1, of a network's logit.
pub fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + libm::expf(-logit))
}

/// Merges each detection into a better one if their IoU exceeds `max_iou`, weighted by score.
/// Returns the best detections first.
///
/// A merged detection has the best score of its group. Detections without area or positive score,
/// or with a coordinate that is not finite, are ignored. This is BlazeFace's blending,
/// `WeightedNonMaxSuppression` in MediaPipe's `non_max_suppression_calculator.cc`.
pub fn weighted(detections: Vec<Detection>, max_iou: f32) -> Vec<Detection> {
    let mut detections = usable_best_first(detections);
    let mut merged = Vec::new();
    while !detections.is_empty() {
        let best = detections.remove(0);
        let bbox = best.bbox;
        let overlapping = detections.extract_if(.., |d| d.bbox.iou(&bbox) > max_iou);
        let group: Vec<_> = std::iter::once(best).chain(overlapping).collect();
        merged.push(blend(&group));
    }
    merged
}

/// Removes each detection whose IoU with a better remaining one exceeds `max_iou`. Returns the best
/// detections first. `compared` maps the box of a detection to the box that is compared.
///
/// Detections without area or positive score, or with a coordinate that is not finite, are ignored.
/// This is `cv::dnn::NMSBoxes` in OpenCV's `nms.inl.hpp`.
pub fn hard(
    detections: Vec<Detection>,
    max_iou: f32,
    compared: impl Fn(&Rect) -> Rect,
) -> Vec<Detection> {
    let mut detections = usable_best_first(detections);
    let mut boxes: Vec<Rect> = Vec::new();
    detections.retain(|detection| {
        let bbox = compared(&detection.bbox);
        let is_new = boxes.iter().all(|better| better.iou(&bbox) <= max_iou);
        if is_new {
            boxes.push(bbox);
        }
        is_new
    });
    detections
}

fn usable_best_first(mut detections: Vec<Detection>) -> Vec<Detection> {
    detections.retain(is_usable);
    detections.sort_by(|a, b| b.score.total_cmp(&a.score));
    detections
}

/// Returns true if a detection has an area, a positive score and finite coordinates.
pub(crate) fn is_usable(detection: &Detection) -> bool {
    let Detection {
        bbox,
        score,
        key_points,
    } = detection;
    let is_placed = (bbox.right() + bbox.bottom()).is_finite();
    let has_points = key_points.iter().all(|p| (p.x + p.y).is_finite());
    *score > 0.0 && bbox.area() > 0.0 && is_placed && has_points
}

/// The score-weighted mean of detections, with the score of the first.
fn blend(group: &[Detection]) -> Detection {
    let total: f32 = group.iter().map(|d| d.score).sum();
    let mean = |value: &dyn Fn(&Detection) -> f32| -> f32 {
        group.iter().map(|d| value(d) * d.score).sum::<f32>() / total
    };
    let (left, top) = (mean(&|d| d.bbox.x), mean(&|d| d.bbox.y));
    let (right, bottom) = (mean(&|d| d.bbox.right()), mean(&|d| d.bbox.bottom()));
    let points = group.iter().map(|d| d.key_points.len()).min().unwrap_or(0);
    let key_points = (0..points)
        .map(|i| Point::new(mean(&|d| d.key_points[i].x), mean(&|d| d.key_points[i].y)))
        .collect();
    Detection {
        bbox: Rect::new(left, top, right - left, bottom - top),
        score: group.first().map_or(0.0, |d| d.score),
        key_points,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detection(x: f32, score: f32) -> Detection {
        Detection {
            bbox: Rect::new(x, 0.0, 10.0, 10.0),
            score,
            key_points: vec![Point::new(x + 1.0, 2.0)],
        }
    }

    #[test]
    fn groups_table() {
        // Boxes 10 wide that are d apart have the IoU (10 − d) / (10 + d).
        for (name, input, max_iou, want) in [
            ("nothing", vec![], 0.5, vec![]),
            ("one", vec![(0.0, 0.7)], 0.5, vec![(0.0, 0.7)]),
            (
                "two apart, the better first",
                vec![(0.0, 0.6), (50.0, 0.9)],
                0.5,
                vec![(50.0, 0.9), (0.0, 0.6)],
            ),
            (
                "two together: weighted mean, best score",
                vec![(0.0, 0.75), (2.0, 0.25)],
                0.5,
                vec![(0.5, 0.75)],
            ),
            (
                "a looser limit keeps both",
                vec![(0.0, 0.75), (2.0, 0.25)],
                0.7,
                vec![(0.0, 0.75), (2.0, 0.25)],
            ),
            (
                "overlap with a merged one only does not count",
                vec![(0.0, 0.9), (3.0, 0.5), (6.0, 0.4)],
                0.5,
                vec![((3.0 * 0.5) / 1.4, 0.9), (6.0, 0.4)],
            ),
            (
                "an IoU of just the limit does not suppress",
                vec![(0.0, 0.9), (0.0, 0.4)],
                1.0,
                vec![(0.0, 0.9), (0.0, 0.4)],
            ),
            (
                "scores that are no numbers",
                vec![(0.0, f32::NAN), (0.0, 0.0), (f32::NAN, 0.5)],
                0.5,
                vec![],
            ),
        ] {
            let input = input.into_iter().map(|(x, s)| detection(x, s)).collect();
            let got = weighted(input, max_iou);
            assert_eq!(got.len(), want.len(), "{name}: {got:?}");
            for (got, (x, score)) in got.iter().zip(want) {
                assert!((got.bbox.x - x).abs() < 1e-5, "{name}: {got:?}");
                assert!((got.bbox.width - 10.0).abs() < 1e-5, "{name}: {got:?}");
                assert!(
                    (got.key_points[0].x - x - 1.0).abs() < 1e-5,
                    "{name}: {got:?}"
                );
                assert_eq!(got.score, score, "{name}");
            }
        }
    }

    #[test]
    fn the_best_of_each_group_is_left() {
        for (name, input, max_iou, want) in [
            ("nothing", vec![], 0.3, vec![]),
            (
                "the better of two stays as it is",
                vec![(2.0, 0.25), (0.0, 0.75)],
                0.5,
                vec![(0.0, 0.75)],
            ),
            (
                "what was left out suppresses nothing",
                vec![(0.0, 0.9), (4.0, 0.8), (8.0, 0.7)],
                0.3,
                vec![(0.0, 0.9), (8.0, 0.7)],
            ),
            (
                "equal scores keep their order",
                vec![(50.0, 0.5), (0.0, 0.5)],
                0.3,
                vec![(50.0, 0.5), (0.0, 0.5)],
            ),
            (
                "an IoU of just the limit does not suppress",
                vec![(0.0, 0.9), (0.0, 0.4)],
                1.0,
                vec![(0.0, 0.9), (0.0, 0.4)],
            ),
            (
                "scores and places that are no numbers",
                vec![(0.0, f32::NAN), (0.0, 0.0), (f32::NAN, 0.5)],
                0.3,
                vec![],
            ),
        ] {
            let input = input.into_iter().map(|(x, s)| detection(x, s)).collect();
            let want: Vec<_> = want.into_iter().map(|(x, s)| detection(x, s)).collect();
            assert_eq!(hard(input, max_iou, |bbox| *bbox), want, "{name}");
        }
    }

    #[test]
    fn what_is_compared_is_up_to_the_caller() {
        let two = vec![detection(0.0, 0.9), detection(0.0, 0.4)];
        let apart = |bbox: &Rect| Rect::new(bbox.x, bbox.y, 0.0, 0.0);
        assert_eq!(hard(two.clone(), 0.3, apart), two);
    }
}
