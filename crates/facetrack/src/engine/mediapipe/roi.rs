// SPDX-License-Identifier: MPL-2.0
//! Regions that the landmark network receives. All values are in image pixels.

use crate::geometry::{Point, Rect, RotatedRect, Size};
use crate::nms::Detection;
use crate::observation::{Landmark, Origin};

/// A region that may show a face.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Roi {
    /// The region.
    pub rect: RotatedRect,
    /// Origin of the region.
    pub origin: Origin,
}

/// Extents of the region per extents of a detection or of landmarks: `scale_x` and `scale_y` in
/// `face_detector_graph.cc` and `face_landmarks_detector_graph.cc`.
const EXPANSION: f32 = 1.5;

/// The detector's key points on the eyes, which are horizontal in the region, left in the image
/// first: `face_detector_graph.cc`.
const EYE_KEY_POINTS: (usize, usize) = (0, 1);

/// The landmarks on the outer eye corners, which are horizontal in the region:
/// `face_landmarks_detector_graph.cc`.
const EYE_LANDMARKS: (usize, usize) = (33, 263);

impl Roi {
    /// The region around a detection; `None` if the detection has no extent or no eyes.
    pub(crate) fn from_detection(detection: &Detection) -> Option<Self> {
        let eye = |index: usize| detection.key_points.get(index).copied();
        let Rect { width, height, .. } = detection.bbox;
        Self::usable(
            RotatedRect {
                center: detection.bbox.center(),
                size: Size::new(width * EXPANSION, height * EXPANSION),
                rotation: eye(EYE_KEY_POINTS.0)?.angle_to(eye(EYE_KEY_POINTS.1)?),
            },
            Origin::Detected,
        )
    }

    /// The square region around landmarks, for the next frame; `None` if they have no extent or are
    /// not finite.
    pub(crate) fn from_landmarks(landmarks: &[Landmark]) -> Option<Self> {
        let point = |p: &Landmark| Point::new(p.x, p.y);
        let eye = |index: usize| landmarks.get(index).map(point);
        let extent = Rect::enclosing(landmarks.iter().map(point))?;
        let side = extent.width.max(extent.height) * EXPANSION;
        Self::usable(
            RotatedRect {
                rotation: eye(EYE_LANDMARKS.0)?.angle_to(eye(EYE_LANDMARKS.1)?),
                ..RotatedRect::square(extent.center(), side)
            },
            Origin::Tracked,
        )
    }

    fn usable(rect: RotatedRect, origin: Origin) -> Option<Self> {
        let sides = rect.size.width.min(rect.size.height);
        let sum = rect.center.x + rect.center.y + rect.size.width + rect.size.height;
        let is_usable = sides > 0.0 && (sum + rect.rotation).is_finite();
        is_usable.then_some(Self { rect, origin })
    }

    /// Overlap with another region, 0…1.
    pub(crate) fn iou(&self, other: &Self) -> f32 {
        self.upright().iou(&other.upright())
    }

    /// The region before its rotation, which is used for overlaps: `GetRectangle` in
    /// `association_norm_rect_calculator.cc`.
    fn upright(&self) -> Rect {
        let RotatedRect { center, size, .. } = self.rect;
        Rect::around(center, size.width, size.height)
    }
}

/// Of regions that overlap with an IoU above `max_iou`, keeps only the last: a detection replaces
/// the region to which a face was followed (`AssociationNormRectCalculator`).
pub(super) fn associate(rois: impl IntoIterator<Item = Roi>, max_iou: f32) -> Vec<Roi> {
    rois.into_iter().fold(Vec::new(), |mut kept, roi| {
        kept.retain(|earlier: &Roi| earlier.iou(&roi) <= max_iou);
        kept.push(roi);
        kept
    })
}

/// Returns true if regions of different faces overlap. Those with an IoU above `max_iou` show one
/// face.
pub(super) fn any_meet(rois: &[Roi], max_iou: f32) -> bool {
    rois.iter().enumerate().any(|(number, roi)| {
        let mut overlaps = rois[..number].iter().map(|other| roi.iou(other));
        overlaps.any(|iou| iou > 0.0 && iou <= max_iou)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn square(x: f32, origin: Origin) -> Roi {
        let rect = RotatedRect {
            center: Point::new(x, 50.0),
            size: Size::new(10.0, 10.0),
            rotation: 0.0,
        };
        Roi { rect, origin }
    }

    #[test]
    fn the_region_of_a_detection_is_half_as_large_again_and_turned_with_the_eyes() {
        let level = Detection {
            bbox: Rect::new(10.0, 20.0, 40.0, 60.0),
            score: 0.9,
            key_points: vec![Point::new(20.0, 30.0), Point::new(40.0, 30.0)],
        };
        let roi = Roi::from_detection(&level).unwrap();
        assert_eq!(roi.rect.center, Point::new(30.0, 50.0));
        assert_eq!(roi.rect.size, Size::new(60.0, 90.0));
        assert_eq!(roi.rect.rotation, 0.0);
        assert_eq!(roi.origin, Origin::Detected);

        for (right_eye, degrees) in [
            ((30.0, 40.0), 45.0),
            ((20.0, 20.0), -90.0),
            ((0.0, 30.0), 180.0),
        ] {
            let mut turned = level.clone();
            turned.key_points[1] = Point::new(right_eye.0, right_eye.1);
            let roi = Roi::from_detection(&turned).unwrap();
            assert!((roi.rect.rotation.to_degrees() - degrees).abs() < 1e-4);
        }
    }

    #[test]
    fn the_region_of_landmarks_is_square() {
        let mut landmarks = vec![
            Landmark {
                x: 100.0,
                y: 50.0,
                z: 0.0
            };
            478
        ];
        landmarks[263].x = 140.0;
        landmarks[300].y = 110.0;
        let roi = Roi::from_landmarks(&landmarks).unwrap();
        assert_eq!(roi.rect.center, Point::new(120.0, 80.0));
        assert_eq!(roi.rect.size, Size::new(90.0, 90.0));
        assert_eq!(roi.rect.rotation, 0.0);
        assert_eq!(roi.origin, Origin::Tracked);
    }

    #[test]
    fn degenerate_faces_have_no_region() {
        assert_eq!(Roi::from_landmarks(&[]), None);
        assert_eq!(Roi::from_landmarks(&[Landmark::default(); 478]), None);
        for bad in [f32::NAN, f32::INFINITY, f32::MAX] {
            let mut landmarks = [Landmark::default(); 478];
            landmarks[33].x = bad;
            landmarks[263].x = -1.0;
            assert_eq!(Roi::from_landmarks(&landmarks), None, "{bad}");
        }
        let blind = Detection {
            bbox: Rect::new(0.0, 0.0, 1.0, 1.0),
            score: 1.0,
            key_points: vec![Point::default()],
        };
        assert_eq!(Roi::from_detection(&blind), None);
    }

    #[test]
    fn association_table() {
        use Origin::{Detected, Tracked};
        // Squares 10 wide that are d apart have the IoU (10 − d) / (10 + d).
        for (name, rois, want) in [
            ("nothing", vec![], vec![]),
            (
                "a detection replaces the face followed, and comes last",
                vec![(0.0, Tracked), (50.0, Tracked), (2.0, Detected)],
                vec![(50.0, Tracked), (2.0, Detected)],
            ),
            (
                "a detection elsewhere is added",
                vec![(0.0, Tracked), (8.0, Detected)],
                vec![(0.0, Tracked), (8.0, Detected)],
            ),
            (
                "two faces followed to one place become one",
                vec![(0.0, Tracked), (1.0, Tracked)],
                vec![(1.0, Tracked)],
            ),
        ] {
            let rois = rois.into_iter().map(|(x, origin)| square(x, origin));
            let want: Vec<_> = want
                .into_iter()
                .map(|(x, origin)| square(x, origin))
                .collect();
            assert_eq!(associate(rois, 0.5), want, "{name}");
        }
    }

    #[test]
    fn faces_meet_when_their_regions_overlap() {
        for (places, want) in [
            (&[][..], false),
            (&[0.0][..], false),
            (&[0.0, 10.0], false),
            (&[0.0, 1.0], false),
            (&[0.0, 9.0], true),
            (&[0.0, 20.0, 29.0], true),
        ] {
            let rois: Vec<_> = places.iter().map(|x| square(*x, Origin::Tracked)).collect();
            assert_eq!(any_meet(&rois, 0.5), want, "{places:?}");
        }
    }
}
