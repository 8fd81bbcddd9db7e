// SPDX-License-Identifier: MPL-2.0
//! Region that the landmark network receives for a face of YuNet. All values are in image pixels.
//!
//! MediaPipe uses two regions for a face: in single images the region around its detector's box, in
//! videos, from a face's second frame on, the region around its last landmarks. Both were measured
//! on 1088 faces of 4 clips against YuNet's box, whose longer side is 1 here (± is the standard
//! deviation within a clip):
//!
//! | | side | distance of the centre below the box's centre |
//! |---|---|---|
//! | around MediaPipe's detection | 1.14 to 1.21, ±4 % | 0.09 to 0.11, ±0.02 |
//! | around the landmarks | 1.28 to 1.33, ±4 % | 0.05 to 0.06, ±0.02 |
//!
//! This region is halfway between them, so that landmarks agree with both about equally: they
//! differ from either by 0.009 of the distance of the eyes, and MediaPipe's own two differ by
//! 0.015. The box is the better measure of size: the spread is 6 % with the distance from eyes to
//! mouth and 5 % with the distance between the eyes, and one of these shrinks when a head turns.

use crate::engine::mediapipe::Roi;
use crate::geometry::{Point, RotatedRect};
use crate::nms::Detection;
use crate::observation::Landmarks;

/// Side of the region per longer side of YuNet's box: see above.
const SIDE: f32 = 1.25;

/// Distance of the region's centre below the box's centre, towards the chin, per longer side of
/// YuNet's box: see above.
const DOWN: f32 = 0.07;

/// Minimum angle between a region and the face found in it for a second measurement, radians.
///
/// YuNet's key points lag behind heads that roll by more than 30°: by 10° at 45°, by 30° at 60°. A
/// second measurement corrects that: at 60° it reduces the landmarks' error from 0.08 to 0.015 of
/// the distance of the eyes. A value below 0.2 brings no improvement. In the clips named above,
/// whose heads roll by up to 26°, less than 1 face in 100 is measured twice. From 75° on, YuNet
/// mistakes heads for upright ones, and the landmark network finds no face.
const TURNED: f32 = 0.2;

/// The square around a detection, rotated so that the eyes are on a horizontal line; `None` for a
/// detection without eyes.
pub(super) fn around(detection: &Detection) -> Option<RotatedRect> {
    let [left_eye, right_eye, ..] = detection.key_points[..] else {
        return None;
    };
    let rotation = left_eye.angle_to(right_eye);
    let (sin, cos) = libm::sincosf(rotation);
    let longer = detection.bbox.width.max(detection.bbox.height);
    let Point { x, y } = detection.bbox.center();
    let center = Point::new(x - sin * DOWN * longer, y + cos * DOWN * longer);
    Some(RotatedRect {
        rotation,
        ..RotatedRect::square(center, SIDE * longer)
    })
}

/// The region around `landmarks`, which were found in `region`, if `region` is rotated against the
/// face.
pub(super) fn straightened(region: &RotatedRect, landmarks: &Landmarks) -> Option<RotatedRect> {
    let straight = Roi::from_landmarks(&landmarks.points)?.rect;
    let is_turned = libm::cosf(straight.rotation - region.rotation) < libm::cosf(TURNED);
    is_turned.then_some(straight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Rect, Size};
    use crate::observation::{Landmark, LandmarkScheme};

    fn detection(left_eye: (f32, f32), right_eye: (f32, f32)) -> Detection {
        let points = [
            left_eye,
            right_eye,
            (50.0, 60.0),
            (40.0, 80.0),
            (60.0, 80.0),
        ];
        Detection {
            bbox: Rect::new(10.0, 0.0, 80.0, 100.0),
            score: 0.9,
            key_points: points.map(|(x, y)| Point::new(x, y)).into(),
        }
    }

    #[test]
    fn the_region_is_square_level_with_the_eyes_and_towards_the_chin() {
        for (left_eye, right_eye, degrees, center) in [
            ((30.0, 40.0), (70.0, 40.0), 0.0, (50.0, 57.0)),
            ((50.0, 20.0), (50.0, 60.0), 90.0, (43.0, 50.0)),
            ((70.0, 60.0), (30.0, 60.0), 180.0, (50.0, 43.0)),
        ] {
            let region = around(&detection(left_eye, right_eye)).unwrap();
            assert_eq!(region.size, Size::new(125.0, 125.0));
            assert_eq!(region.rotation.to_degrees(), degrees);
            let want = Point::new(center.0, center.1);
            assert!(region.center.distance(want) < 1e-4, "{region:?}");
        }
    }

    #[test]
    fn the_longer_side_counts() {
        let mut lying = detection((30.0, 40.0), (70.0, 40.0));
        lying.bbox = Rect::new(0.0, 0.0, 200.0, 100.0);
        assert_eq!(around(&lying).unwrap().size, Size::new(250.0, 250.0));
    }

    #[test]
    fn without_eyes_there_is_no_region() {
        let mut blind = detection((0.0, 0.0), (1.0, 0.0));
        blind.key_points.truncate(1);
        assert_eq!(around(&blind), None);
    }

    /// Landmarks with an extent whose eyes rise by `radians`.
    fn face_turned_by(radians: f32) -> Landmarks {
        let mut points = vec![Landmark::default(); 478];
        (points[263].x, points[263].y) = (40.0 * radians.cos(), 40.0 * radians.sin());
        points[152].y = 90.0;
        Landmarks::new(LandmarkScheme::MediaPipe478, points)
    }

    #[test]
    fn only_a_turned_region_is_straightened() {
        let at = |rotation| RotatedRect {
            rotation,
            ..RotatedRect::default()
        };
        for (region, face, is_straightened) in [
            (0.0, 0.0, false),
            (0.0, 0.19, false),
            (0.0, 0.21, true),
            (0.0, -0.21, true),
            (1.0, 1.1, false),
            (3.1, -3.1, false),
            (0.0, 3.1, true),
        ] {
            let straight = straightened(&at(region), &face_turned_by(face));
            assert_eq!(straight.is_some(), is_straightened, "{region} {face}");
            if let Some(straight) = straight {
                assert!((straight.rotation - face).abs() < 1e-5);
            }
        }
        let nowhere = Landmarks::new(LandmarkScheme::MediaPipe478, vec![Landmark::default(); 478]);
        assert_eq!(straightened(&at(1.0), &nowhere), None);
    }
}
