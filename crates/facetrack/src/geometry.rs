// SPDX-License-Identifier: MPL-2.0
//! Points, rectangles and affine transforms in `f32`.

/// A position.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// Rightward coordinate.
    pub x: f32,
    /// Downward coordinate.
    pub y: f32,
}

impl Point {
    /// A point from its coordinates.
    pub const fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }

    /// Euclidean distance to `other`.
    pub fn distance(self, other: Self) -> f32 {
        libm::hypotf(self.x - other.x, self.y - other.y)
    }

    /// The angle of the line to `other`, clockwise on screen (y down), radians.
    pub fn angle_to(self, other: Self) -> f32 {
        libm::atan2f(other.y - self.y, other.x - self.x)
    }
}

/// A width and a height.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Size {
    /// Extent along x.
    pub width: f32,
    /// Extent along y.
    pub height: f32,
}

impl Size {
    /// A size from its extents.
    pub const fn new(width: f32, height: f32) -> Self {
        Self { width, height }
    }
}

/// An axis-aligned rectangle given by its top-left corner and its extents.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rect {
    /// Left edge.
    pub x: f32,
    /// Top edge.
    pub y: f32,
    /// Extent along x.
    pub width: f32,
    /// Extent along y.
    pub height: f32,
}

impl Rect {
    /// A rectangle from its top-left corner and extents.
    pub const fn new(x: f32, y: f32, width: f32, height: f32) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// A rectangle from its centre and extents.
    pub fn around(center: Point, width: f32, height: f32) -> Self {
        let (x, y) = (center.x - width / 2.0, center.y - height / 2.0);
        Self::new(x, y, width, height)
    }

    /// The smallest rectangle around `points`; `None` without points.
    pub fn enclosing(points: impl IntoIterator<Item = Point>) -> Option<Self> {
        let mut points = points.into_iter();
        let first = points.next()?;
        let (min, max) = points.fold((first, first), |(min, max), p| {
            (
                Point::new(min.x.min(p.x), min.y.min(p.y)),
                Point::new(max.x.max(p.x), max.y.max(p.y)),
            )
        });
        Some(Self::new(min.x, min.y, max.x - min.x, max.y - min.y))
    }

    /// The middle of the rectangle.
    pub fn center(&self) -> Point {
        Point::new(self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// The right edge.
    pub fn right(&self) -> f32 {
        self.x + self.width
    }

    /// The bottom edge.
    pub fn bottom(&self) -> f32 {
        self.y + self.height
    }

    /// Returns true if all edges are finite, and width and height are positive.
    pub fn has_extent(&self) -> bool {
        let edges = [self.x, self.y, self.right(), self.bottom()];
        edges.iter().all(|edge| edge.is_finite()) && self.width > 0.0 && self.height > 0.0
    }

    /// Width times height; 0 for an inverted rectangle.
    pub fn area(&self) -> f32 {
        self.width.max(0.0) * self.height.max(0.0)
    }

    /// The intersection with `other`, with extents of 0 if they do not overlap.
    pub fn intersection(&self, other: &Self) -> Self {
        let x = self.x.max(other.x);
        let y = self.y.max(other.y);
        let width = (self.right().min(other.right()) - x).max(0.0);
        let height = (self.bottom().min(other.bottom()) - y).max(0.0);
        Self::new(x, y, width, height)
    }

    /// Intersection over union, 0…1; 0 when both are empty.
    pub fn iou(&self, other: &Self) -> f32 {
        let shared = self.intersection(other).area();
        let union = self.area() + other.area() - shared;
        if union > 0.0 { shared / union } else { 0.0 }
    }
}

/// A rectangle rotated around its center.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RotatedRect {
    /// Center.
    pub center: Point,
    /// Extents before the rotation.
    pub size: Size,
    /// Clockwise rotation as seen on screen (y down), in radians.
    pub rotation: f32,
}

impl RotatedRect {
    /// An upright square of `side` around `center`.
    pub fn square(center: Point, side: f32) -> Self {
        Self {
            center,
            size: Size::new(side, side),
            rotation: 0.0,
        }
    }

    /// The part of a frame that a resized copy of `size` pixels shows. Each of its pixels covers
    /// `step` pixels of the frame, per axis.
    ///
    /// The resampler places the corner at the index of the first pixel, whereas OpenCV's `resize`
    /// aligns the pixel *centers* of a frame and its copy; the result includes that offset.
    pub fn of_resized(size: [usize; 2], step: [f32; 2]) -> Self {
        let [x, y] = step;
        let (width, height) = (size[0] as f32 * x, size[1] as f32 * y);
        Self {
            center: Point::new((x - 1.0 + width) / 2.0, (y - 1.0 + height) / 2.0),
            size: Size::new(width, height),
            rotation: 0.0,
        }
    }

    /// The transform from the unit square of the rectangle, with (0, 0) at its top-left corner
    /// before rotation, to the space of the rectangle.
    pub fn outer_from_unit(&self) -> Affine {
        let (sin, cos) = libm::sincosf(self.rotation);
        let (w, h) = (self.size.width, self.size.height);
        Affine {
            xx: w * cos,
            xy: -h * sin,
            x0: self.center.x - (w * cos - h * sin) / 2.0,
            yx: w * sin,
            yy: h * cos,
            y0: self.center.y - (w * sin + h * cos) / 2.0,
        }
    }
}

/// A 2-D affine transform: x′ = xx·x + xy·y + x0, y′ = yx·x + yy·y + y0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// x′ per x.
    pub xx: f32,
    /// x′ per y.
    pub xy: f32,
    /// x′ at the origin.
    pub x0: f32,
    /// y′ per x.
    pub yx: f32,
    /// y′ per y.
    pub yy: f32,
    /// y′ at the origin.
    pub y0: f32,
}

impl Affine {
    /// The image of a point.
    pub fn apply(&self, p: Point) -> Point {
        Point::new(
            self.xx * p.x + self.xy * p.y + self.x0,
            self.yx * p.x + self.yy * p.y + self.y0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_table() {
        let unit = Rect::new(0.0, 0.0, 1.0, 1.0);
        for (a, b, want) in [
            (unit, unit, 1.0),
            (unit, Rect::new(2.0, 0.0, 1.0, 1.0), 0.0),
            (unit, Rect::new(0.5, 0.0, 1.0, 1.0), 1.0 / 3.0),
            (unit, Rect::new(0.0, 0.0, 0.5, 0.5), 0.25),
            (Rect::default(), Rect::default(), 0.0),
            (unit, Rect::new(0.5, 0.5, -1.0, -1.0), 0.0),
        ] {
            assert!((a.iou(&b) - want).abs() < 1e-6, "{a:?} {b:?}");
            assert_eq!(a.iou(&b), b.iou(&a));
        }
    }

    #[test]
    fn rotation_is_clockwise_on_screen() {
        let quarter = RotatedRect {
            center: Point::new(0.0, 0.0),
            size: Size::new(2.0, 2.0),
            rotation: std::f32::consts::FRAC_PI_2,
        };
        let top_left = quarter.outer_from_unit().apply(Point::new(0.0, 0.0));
        assert!(top_left.distance(Point::new(1.0, -1.0)) < 1e-6);
    }
}
