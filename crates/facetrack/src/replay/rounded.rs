// SPDX-License-Identifier: MPL-2.0
//! Floats that a record's rounded figures stand for.
//!
//! A record has a position with three decimals, and also whole pixels: the position and the centre truncated before that
//! rounding. 99.9996 is 100.0 and 99 there. Of all floats with those three decimals, one is chosen that has those whole
//! pixels too, so that what is recorded again is the same. It is never further off than the rounding was.

use crate::geometry::Rect;
use crate::observation::{Landmark, Landmarks};
use crate::record::thousandths;

/// Half of what positions are rounded to, px.
const HALF: f32 = 0.0005;

/// How far landmarks are moved when their mean is on the wrong side of a whole pixel, px. Half of [`HALF`]: enough to move a
/// float of 4096, little enough to keep its three decimals.
const NUDGE: f32 = 0.000_2;

/// How close a mean may come to a whole pixel, px. The metadata's fractions of the frame are 32-bit floats, and with them
/// the mean of some hundred landmarks moves by less.
const MARGIN: f64 = 0.000_125;

/// A box in whole pixels, with its centre where that is the faces' centroid.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholePixels {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) width: i32,
    pub(super) height: i32,
    pub(super) center: Option<(i32, i32)>,
}

/// The box with three decimals `rounded`, and these whole pixels.
pub(super) fn bbox(rounded: [f32; 4], whole: WholePixels) -> Rect {
    let [x, y, width, height] = rounded;
    let of = |value, whole| Rounded { value, whole };
    let (x, width) = span(
        of(x, whole.x),
        of(width, whole.width),
        whole.center.map(|c| c.0),
    );
    let (y, height) = span(
        of(y, whole.y),
        of(height, whole.height),
        whole.center.map(|c| c.1),
    );
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

/// A number with three decimals, and what it was without its decimals before they were rounded.
#[derive(Debug, Clone, Copy)]
struct Rounded {
    value: f32,
    whole: i32,
}

impl Rounded {
    fn is(self, candidate: f32) -> bool {
        thousandths(candidate) == thousandths(self.value) && candidate as i32 == self.whole
    }

    /// The first of the candidates that it stands for; the number itself where the record contradicts itself.
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

/// Moves landmarks with three decimals so that their mean is in the whole pixel `center`, and keeps those decimals.
pub(super) fn center_landmarks(landmarks: &mut Landmarks, center: (i32, i32)) {
    center_along(&mut landmarks.points, center.0, |point| &mut point.x);
    center_along(&mut landmarks.points, center.1, |point| &mut point.y);
}

fn center_along(points: &mut [Landmark], center: i32, axis: fn(&mut Landmark) -> &mut f32) {
    let sum: f64 = points.iter_mut().map(|point| f64::from(*axis(point))).sum();
    let mean = sum / points.len().max(1) as f64;
    let nudge = match () {
        () if (mean + MARGIN) as i32 > center => -NUDGE,
        () if ((mean - MARGIN) as i32) < center => NUDGE,
        () => return,
    };
    // A mean that is further off was not rounded away.
    if (mean + f64::from(nudge)) as i32 != center {
        return;
    }
    for value in points.iter_mut().map(axis) {
        let moved = *value + nudge;
        // What has room for as much again also has room for what the metadata round.
        if thousandths(moved + nudge) == thousandths(*value) {
            *value = moved;
        }
    }
}
