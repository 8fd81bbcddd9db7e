// SPDX-License-Identifier: MPL-2.0
//! Convex outlines of faces.

use std::f32::consts::TAU;

use super::Shape;
use crate::geometry::{Point, Rect};
use crate::observation::{LandmarkScheme, Landmarks, Observation};

/// Number of corners of the polygon that stands for an ellipse: its sides are at most 0.2 % of the
/// radius inside the ellipse.
const ELLIPSE_CORNERS: u16 = 48;

/// Minimum IoU of the extent of a mesh and the box of its face. In a damaged record, landmarks may be
/// elsewhere. Boxes of YuNet have 0.6 and more.
const SAME_FACE: f32 = 0.3;

/// The outline of a face with a margin on each side, relative to the size of the face.
pub(super) fn of(face: &Observation, shape: Shape, margin: f32) -> Vec<Point> {
    let growth = 1.0 + 2.0 * margin;
    let Rect { width, height, .. } = face.bbox;
    let bbox = Rect::around(face.bbox.center(), width * growth, height * growth);
    let mesh = face.landmarks.as_ref().and_then(mesh);
    let mesh = mesh.filter(|points| {
        let extent = Rect::enclosing(points.iter().copied());
        extent.is_some_and(|extent| extent.iou(&face.bbox) > SAME_FACE)
    });
    match (shape, mesh) {
        (Shape::Box, _) => corners(&bbox).into(),
        (Shape::Face, Some(points)) => {
            let center = Rect::enclosing(points.iter().copied())
                .unwrap_or(bbox)
                .center();
            let scaled = points.into_iter().map(|point| {
                let [x, y] = [point.x - center.x, point.y - center.y];
                Point::new(center.x + x * growth, center.y + y * growth)
            });
            hull(scaled.collect())
        }
        (Shape::Ellipse | Shape::Face, _) => ellipse(&bbox),
    }
}

/// A polygon that contains `outline` and all places at most `distance` px from it.
pub(super) fn grown(outline: &[Point], distance: f32) -> Vec<Point> {
    if distance == 0.0 {
        return outline.to_owned();
    }
    let reached = outline.iter().flat_map(|point| {
        let side = 2.0 * distance;
        corners(&Rect::around(*point, side, side))
    });
    hull(reached.collect())
}

/// The points of a face mesh; `None` if the scheme has no mesh, or a point is not finite.
fn mesh(landmarks: &Landmarks) -> Option<Vec<Point>> {
    let has_mesh = landmarks.scheme == LandmarkScheme::MediaPipe478;
    let points = landmarks.points.iter().map(|it| Point::new(it.x, it.y));
    let is_finite = |point: &Point| point.x.is_finite() && point.y.is_finite();
    (has_mesh && points.clone().all(|point| is_finite(&point))).then(|| points.collect())
}

fn corners(rect: &Rect) -> [Point; 4] {
    let (right, bottom) = (rect.right(), rect.bottom());
    [
        Point::new(rect.x, rect.y),
        Point::new(right, rect.y),
        Point::new(right, bottom),
        Point::new(rect.x, bottom),
    ]
}

fn ellipse(rect: &Rect) -> Vec<Point> {
    let center = rect.center();
    let corners = (0..ELLIPSE_CORNERS).map(|index| {
        let (sin, cos) = libm::sincosf(TAU * f32::from(index) / f32::from(ELLIPSE_CORNERS));
        let (x, y) = (cos * rect.width / 2.0, sin * rect.height / 2.0);
        Point::new(center.x + x, center.y + y)
    });
    corners.collect()
}

/// The convex hull. A. M. Andrew: Another efficient algorithm for convex hulls in two dimensions,
/// 1979.
fn hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    let mut hull = half(points.iter());
    hull.extend(half(points.iter().rev()));
    hull
}

/// One side of a hull, without its last point.
fn half<'a>(points: impl Iterator<Item = &'a Point>) -> Vec<Point> {
    let mut side: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = side[..]
            && turn(a, b, *point) <= 0.0
        {
            side.pop();
        }
        side.push(*point);
    }
    side.pop();
    side
}

/// Positive if the way from `a` over `b` to `c` turns to one side, negative if to the other.
fn turn(a: Point, b: Point, c: Point) -> f32 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

/// Returns true if a point is in a convex outline.
#[cfg(test)]
pub(super) fn contains(outline: &[Point], point: Point) -> bool {
    let next = outline.iter().cycle().skip(1);
    let mut turns = std::iter::zip(outline, next).map(|(a, b)| turn(*a, *b, point));
    turns.all(|turn| turn >= -1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Landmark;

    fn face() -> Observation {
        Observation::from_bbox(Rect::new(100.0, 50.0, 60.0, 80.0))
    }

    #[test]
    fn shapes_contain_what_they_should() {
        for (shape, margin, x, y, is_inside) in [
            (Shape::Box, 0.0, 101.0, 51.0, true),
            (Shape::Box, 0.0, 99.0, 51.0, false),
            (Shape::Box, 0.5, 71.0, 11.0, true),
            (Shape::Ellipse, 0.0, 130.0, 51.0, true),
            (Shape::Ellipse, 0.0, 101.0, 51.0, false),
            (Shape::Ellipse, 0.25, 101.0, 51.0, true),
            // Without a mesh.
            (Shape::Face, 0.0, 101.0, 51.0, false),
        ] {
            let outline = of(&face(), shape, margin);
            let point = Point::new(x, y);
            assert_eq!(contains(&outline, point), is_inside, "{shape:?} {point:?}");
        }
    }

    #[test]
    fn every_point_of_a_mesh_is_inside_of_its_outline() {
        let points = (0..478u16).map(|i| {
            let (sin, cos) = libm::sincosf(f32::from(i));
            let radius = 20.0 + f32::from(i % 7);
            Landmark {
                x: 130.0 + radius * cos,
                y: 90.0 + 2.0 * radius * sin,
                z: 0.0,
            }
        });
        let landmarks = Landmarks::new(LandmarkScheme::MediaPipe478, points.collect());
        let face = Observation {
            landmarks: Some(landmarks.clone()),
            ..face()
        };
        let outline = of(&face, Shape::Face, 0.0);
        for point in &landmarks.points {
            assert!(
                contains(&outline, Point::new(point.x, point.y)),
                "{point:?}"
            );
        }
        assert!(!contains(&outline, Point::new(157.0, 140.0)), "a corner");
        let wider = of(&face, Shape::Face, 0.2);
        assert!(outline.iter().all(|point| contains(&wider, *point)));
    }

    #[test]
    fn an_outline_grows_in_all_directions() {
        let outline = of(&face(), Shape::Ellipse, 0.0);
        let larger = grown(&outline, 10.0);
        for index in 0..16u8 {
            let (sin, cos) = libm::sincosf(f32::from(index));
            let moved = outline
                .iter()
                .map(|p| Point::new(p.x + 10.0 * cos, p.y + 10.0 * sin));
            assert!(moved.into_iter().all(|point| contains(&larger, point)));
        }
        assert!(!contains(&larger, Point::new(130.0, 39.0)));
    }
}
