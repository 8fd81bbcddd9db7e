// SPDX-License-Identifier: MPL-2.0
//! State of each face: `face_info` in `tracker.py`.
//!
//! The original knows faces only by their positions. A face continues with the state learned at the
//! nearest position where a face was last seen. Here an identity keeps its slot as long as it
//! exists. A new identity takes the slot that the original would give it.

use super::expression::Expression;
use super::search::Search;
use crate::geometry::Point;

/// State of one face.
#[derive(Debug, Default)]
pub(super) struct Slot {
    owner: Option<u32>,
    /// Last position of its face, px.
    place: Option<Point>,
    /// True if that position is in the current frame.
    seen: bool,
    /// Search for its pose.
    pub search: Search,
    /// Its range of expression.
    pub expression: Expression,
}

/// States of all faces.
#[derive(Debug)]
pub(super) struct Slots {
    /// The slots: as many as a frame had faces, and at least as many as requested.
    pub all: Vec<Slot>,
    /// Positions of the faces in this frame, and the slot that each gets if its identity is new.
    expected: Vec<(Point, usize)>,
}

impl Slots {
    /// Creates slots for `count` faces. The first ones start with the expressions `learned`.
    pub(super) fn new(count: usize, learned: Vec<Expression>) -> Self {
        let learned = learned.into_iter().map(|expression| Slot {
            expression,
            ..Slot::default()
        });
        let empty = std::iter::repeat_with(Slot::default);
        Self {
            all: learned.chain(empty).take(count).collect(),
            expected: Vec::new(),
        }
    }

    /// Starts a frame with faces at these positions.
    pub(super) fn begin_frame(&mut self, places: &[Point]) {
        for slot in &mut self.all {
            if !slot.seen {
                slot.search = Search::default();
            }
            slot.seen = false;
        }
        let count = self.all.len().max(places.len());
        self.all.resize_with(count, Slot::default);
        self.expected = self.assign(places);
    }

    /// The slot of `id`, whose face is at `place` in this frame.
    pub(super) fn take(&mut self, id: u32, place: Point) -> &mut Slot {
        let index = self.owned_by(id).or_else(|| self.expected_at(place));
        let index = index.unwrap_or_else(|| {
            self.all.push(Slot::default());
            self.all.len() - 1
        });
        let slot = &mut self.all[index];
        (slot.owner, slot.place, slot.seen) = (Some(id), Some(place), true);
        slot
    }

    /// Releases the slot of the identity `id`.
    pub(super) fn forget(&mut self, id: u32) {
        if let Some(index) = self.owned_by(id) {
            self.all[index].owner = None;
        }
    }

    fn owned_by(&self, id: u32) -> Option<usize> {
        self.all.iter().position(|slot| slot.owner == Some(id))
    }

    /// The slot for the face nearest to `place`, among the slots that no face of this frame has
    /// yet.
    fn expected_at(&self, place: Point) -> Option<usize> {
        let distance = |(expected, _): &(Point, usize)| expected.distance(place);
        self.expected
            .iter()
            .filter(|(_, slot)| !self.all[*slot].seen)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .map(|(_, slot)| *slot)
    }

    /// Pairs positions and slots, the nearest first. Slots that had no face yet come last:
    /// `assign_face_info`.
    fn assign(&self, places: &[Point]) -> Vec<(Point, usize)> {
        let distance = |slot: usize, place: Point| match self.all[slot].place {
            Some(last) => last.distance(place),
            None => f32::INFINITY,
        };
        let mut pairs: Vec<_> = (0..self.all.len())
            .flat_map(|slot| (0..places.len()).map(move |face| (slot, face)))
            .map(|(slot, face)| (distance(slot, places[face]), slot, face))
            .collect();
        pairs.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut assigned: Vec<(usize, usize)> = Vec::with_capacity(places.len());
        for (_, slot, face) in pairs {
            if assigned
                .iter()
                .all(|other| other.0 != face && other.1 != slot)
            {
                assigned.push((face, slot));
            }
        }
        let assigned = assigned.into_iter();
        assigned.map(|(face, slot)| (places[face], slot)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that differ in how long they learned: 1 s, 2 s …
    fn slots(count: usize) -> Slots {
        let untaught = || Expression::default().features;
        let learned = (1..=count).map(|s| Expression::resumed(untaught(), s as f64));
        Slots::new(count, learned.collect())
    }

    /// Returns the slots that faces with these identities get in a frame.
    fn taken(slots: &mut Slots, faces: &[(u32, f32)]) -> Vec<f64> {
        let place = |x: f32| Point::new(x, 100.0);
        let places: Vec<_> = faces.iter().map(|(_, x)| place(*x)).collect();
        slots.begin_frame(&places);
        let taken = faces
            .iter()
            .map(|(id, x)| slots.take(*id, place(*x)).expression.learned);
        taken.collect()
    }

    #[test]
    fn faces_go_on_with_what_was_learned() {
        type Frames<'a> = &'a [(&'a [(u32, f32)], &'a [f64])];
        let cases: [(&str, usize, Frames); 7] = [
            (
                "one face is always the same",
                1,
                &[
                    (&[(1, 100.0)], &[1.0]),
                    (&[(2, 500.0)], &[1.0]),
                    (&[], &[]),
                    (&[(3, 0.0)], &[1.0]),
                    (&[(1, 500.0)], &[1.0]),
                ],
            ),
            (
                "an identity keeps its slot wherever it goes",
                2,
                &[
                    (&[(1, 100.0), (2, 200.0)], &[1.0, 2.0]),
                    (&[(2, 100.0), (1, 200.0)], &[2.0, 1.0]),
                ],
            ),
            (
                "new ones get the nearest",
                2,
                &[
                    (&[(1, 100.0), (2, 200.0)], &[1.0, 2.0]),
                    (&[], &[]),
                    (&[(3, 190.0), (4, 110.0)], &[2.0, 1.0]),
                ],
            ),
            (
                "a lost one comes back to the nearest that is free",
                2,
                &[
                    (&[(1, 100.0), (2, 200.0)], &[1.0, 2.0]),
                    (&[(3, 120.0)], &[1.0]),
                    (&[(1, 160.0), (3, 125.0)], &[2.0, 1.0]),
                ],
            ),
            (
                "a new one does not take what another one needs",
                2,
                &[
                    (&[(1, 100.0)], &[1.0]),
                    (&[(2, 130.0), (1, 102.0)], &[2.0, 1.0]),
                ],
            ),
            (
                "a slot that had no face is farther than any",
                3,
                &[(&[(1, 100.0)], &[1.0]), (&[(2, 9000.0)], &[1.0])],
            ),
            (
                "there is room for all",
                1,
                &[
                    (&[(1, 100.0), (2, 200.0), (3, 300.0)], &[1.0, 0.0, 0.0]),
                    (
                        &[(1, 100.0), (4, f32::NAN), (5, f32::NAN)],
                        &[1.0, 0.0, 0.0],
                    ),
                ],
            ),
        ];
        for (name, count, frames) in cases {
            let mut slots = slots(count);
            for (faces, want) in frames {
                assert_eq!(taken(&mut slots, faces), *want, "{name}: {faces:?}");
            }
        }
    }

    #[test]
    fn a_forgotten_identity_is_a_new_one() {
        let mut slots = slots(2);
        taken(&mut slots, &[(1, 100.0), (2, 200.0)]);
        slots.forget(1);
        slots.forget(7);
        assert_eq!(taken(&mut slots, &[(2, 100.0), (1, 200.0)]), [2.0, 1.0]);
        slots.forget(1);
        slots.forget(2);
        assert_eq!(taken(&mut slots, &[(1, 100.0), (2, 200.0)]), [2.0, 1.0]);
    }

    #[test]
    fn identities_that_come_and_go_leave_nothing_behind() {
        let mut slots = slots(2);
        for id in 1..1000 {
            // Two faces, one of them new each time, and no face now and then.
            let faces = [(id, 100.0 * (id % 7) as f32), (id + 1, 300.0)];
            taken(&mut slots, if id % 5 == 0 { &[] } else { &faces });
            if id % 2 == 0 {
                slots.forget(id);
            }
            assert_eq!(slots.all.len(), 2, "{id}");
        }
    }

    #[test]
    fn faces_that_no_frame_announced_get_slots_of_their_own() {
        let mut slots = slots(1);
        slots.begin_frame(&[]);
        for id in [1, 2] {
            assert_eq!(slots.take(id, Point::default()).expression.learned, 0.0);
        }
        assert_eq!(slots.all.len(), 3);
    }
}
