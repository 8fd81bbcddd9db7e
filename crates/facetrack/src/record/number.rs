// SPDX-License-Identifier: MPL-2.0
//! Numbers and positions of a record.

use serde::ser::{Serialize, Serializer};

use crate::geometry::Point;

/// A number with three decimals.
#[derive(Clone, Copy)]
pub(super) struct Thousandths(pub(super) f32);

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(thousandths(self.0))
    }
}

/// `value` with three decimals.
pub(crate) fn thousandths(value: f32) -> f64 {
    let rounded = (f64::from(value) * 1000.0).round() / 1000.0;
    // Adding 0 turns −0 into 0.
    rounded + 0.0
}

/// `[[x,y]…]`, px.
pub(super) struct PointsJson<'a>(&'a [Point]);

impl<'a> PointsJson<'a> {
    /// `None` where a point has no finite position.
    pub(super) fn new(points: &'a [Point]) -> Option<Self> {
        let finite = points.iter().all(|p| all_finite(&[p.x, p.y]));
        finite.then_some(Self(points))
    }
}

impl Serialize for PointsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|p| [p.x, p.y].map(Thousandths)))
    }
}

pub(super) fn all_finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}
