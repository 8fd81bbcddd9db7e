// SPDX-License-Identifier: MPL-2.0
//! Restores floats from a record's rounded figures.
//!
//! A record has each position with three decimals, and also whole pixels, which were truncated
//! before that rounding: 99.9996 is written as 100.0 and as 99. Of all floats with these three
//! decimals, one is chosen that also has these whole pixels, so that recording it again yields the
//! same text. Its error is never larger than the rounding error.

use super::number::thousandths;
use crate::geometry::Rect;
use crate::observation::{Landmark, Observation};

/// Half of the unit to which positions are rounded, px.
const HALF: f32 = 0.0005;

/// Displacement of landmarks whose mean is on the wrong side of a whole pixel, px. Half of
/// [`HALF`]: enough to move a float of 4096, little enough to keep its three decimals.
const NUDGE: f32 = 0.000_2;

/// Minimum distance of a mean from a whole pixel, px. The metadata's fractions of the frame are
/// 32-bit floats, and with them the mean of some hundred landmarks moves by less.
const MARGIN: f64 = 0.000_125;

/// Gives a face the box and the centroid that match its whole pixels. `bbox` is the box with three
/// decimals, if it is known.
pub(super) fn place(
    face: &mut Observation,
    bbox: Option<[f32; 4]>,
    whole: [i32; 4],
    centroid: (i32, i32),
) {
    let is_at_mean = face.is_at_mean();
    let center = Some(centroid).filter(|_| !is_at_mean);
    let [x, y, width, height] = whole;
    face.bbox = match bbox {
        Some(rounded) => rounded_bbox(rounded, whole, center),
        None => Rect::new(x as f32, y as f32, width as f32, height as f32),
    };
    if let Some(landmarks) = face.landmarks.as_mut().filter(|_| is_at_mean) {
        center_along(&mut landmarks.points, centroid.0, |point| &mut point.x);
        center_along(&mut landmarks.points, centroid.1, |point| &mut point.y);
    }
}

/// The box with these three decimals and whole pixels, and with this centre in whole pixels.
fn rounded_bbox(rounded: [f32; 4], whole: [i32; 4], center: Option<(i32, i32)>) -> Rect {
    let side = |i: usize| Rounded {
        value: rounded[i],
        whole: whole[i],
    };
    let (x, width) = span(side(0), side(2), center.map(|c| c.0));
    let (y, height) = span(side(1), side(3), center.map(|c| c.1));
    Rect::new(x, y, width, height)
}

/// Start and length of a box along one axis.
fn span(start: Rounded, length: Rounded, center: Option<i32>) -> (f32, f32) {
    let (nearest_start, nearest_length) = (start.nearest(), length.nearest());
    let middle = (nearest_start + nearest_length / 2.0) as i32;
    match center {
        Some(center) if center < middle => (start.least(), length.least()),
        Some(center) if center > middle => (start.greatest(), length.greatest()),
        _ => (nearest_start, nearest_length),
    }
}

/// A number with three decimals, and its whole part before the decimals were rounded.
#[derive(Debug, Clone, Copy)]
struct Rounded {
    value: f32,
    whole: i32,
}

impl Rounded {
    fn is(self, candidate: f32) -> bool {
        thousandths(candidate) == thousandths(self.value) && candidate as i32 == self.whole
    }

    /// The first of the candidates that it stands for; the number itself where the record
    /// contradicts itself.
    fn first(self, candidates: impl IntoIterator<Item = f32>) -> f32 {
        let found = candidates.into_iter().find(|candidate| self.is(*candidate));
        found.unwrap_or(self.value)
    }

    fn nearest(self) -> f32 {
        let Self { value, .. } = self;
        self.first([value, value.next_down(), value.next_up()])
    }

    fn least(self) -> f32 {
        let bound = match self.whole {
            whole if whole > 0 => whole as f32,
            whole => (whole as f32 - 1.0).next_up(),
        };
        let low = (self.value - HALF).max(bound);
        self.first([low, low.next_up(), low.next_up().next_up(), self.nearest()])
    }

    fn greatest(self) -> f32 {
        let bound = match self.whole {
            whole if whole < 0 => whole as f32,
            whole => (whole as f32 + 1.0).next_down(),
        };
        let high = (self.value + HALF).min(bound);
        let next = high.next_down();
        self.first([high, next, next.next_down(), self.nearest()])
    }
}

/// Moves landmarks with three decimals along an axis, so that their mean is in the whole pixel
/// `center`, and keeps those decimals.
fn center_along(points: &mut [Landmark], center: i32, axis: fn(&mut Landmark) -> &mut f32) {
    let sum: f64 = points.iter_mut().map(|point| f64::from(*axis(point))).sum();
    let mean = sum / points.len().max(1) as f64;
    let nudge = match () {
        () if (mean + MARGIN) as i32 > center => -NUDGE,
        () if ((mean - MARGIN) as i32) < center => NUDGE,
        () => return,
    };
    // A larger difference does not come from rounding.
    if (mean + f64::from(nudge)) as i32 != center {
        return;
    }
    for value in points.iter_mut().map(axis) {
        let moved = *value + nudge;
        // A value that could move twice as far without a change of its rounding stays the same
        // after the rounding of the metadata too.
        if thousandths(moved + nudge) == thousandths(*value) {
            *value = moved;
        }
    }
}
