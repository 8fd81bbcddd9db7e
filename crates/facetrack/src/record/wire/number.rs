// SPDX-License-Identifier: MPL-2.0
//! Numbers, points and names in the JSON.

use serde::{Deserialize, Serialize, Serializer};

use crate::geometry::Point;

/// A number that is written with three decimals.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub(super) struct Thousandths(pub(super) f32);

impl Serialize for Thousandths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(thousandths(self.0))
    }
}

/// `value` with three decimals.
pub(super) fn thousandths(value: f32) -> f64 {
    let rounded = (f64::from(value) * 1000.0).round() / 1000.0;
    // Adding 0 turns −0 into 0.
    rounded + 0.0
}

/// The numbers, if all of them are finite.
pub(super) fn finite<T: AsRef<[f32]>>(numbers: T) -> Option<T> {
    let are_finite = numbers.as_ref().iter().all(|number| number.is_finite());
    are_finite.then_some(numbers)
}

/// The numbers as they are written, if all of them are finite.
pub(super) fn rounded<const N: usize>(numbers: [f32; N]) -> Option<[Thousandths; N]> {
    Some(finite(numbers)?.map(Thousandths))
}

/// The numbers as they were read.
pub(super) fn exact<const N: usize>(numbers: [Thousandths; N]) -> [f32; N] {
    numbers.map(|number| number.0)
}

/// x, y in pixels.
pub(super) type Place = [Thousandths; 2];

pub(super) fn places(points: &[Point]) -> Option<Vec<Place>> {
    points.iter().map(|p| rounded([p.x, p.y])).collect()
}

pub(super) fn points(places: Vec<Place>) -> Vec<Point> {
    let points = places.into_iter().map(exact);
    points.map(|[x, y]| Point::new(x, y)).collect()
}

/// The metadata list names with commas between them.
pub(super) fn check_names(names: &[String]) -> Result<(), String> {
    let broken =
        |name: &&String| name.is_empty() || name.contains(|c: char| c == ',' || c.is_control());
    names
        .iter()
        .find(broken)
        .map_or(Ok(()), |name| Err(format!("{name:?} is no name")))
}
