// SPDX-License-Identifier: MPL-2.0
//! What is kept of each face, whatever identity it has: `face_info` in `tracker.py`.
//!
//! The original knows faces by their places alone. A face that is found again, or nearest to where another one was last
//! seen, goes on with what was learned there. Here identities come first: while one lasts, it keeps its slot. A new one
//! takes the slot that the original would give it.

use super::expression::Expression;
use super::search::Search;
use crate::geometry::Point;

/// Memory of one face.
#[derive(Debug, Default)]
pub struct Slot {
    owner: Option<u32>,
    /// Where its face was last, px.
    place: Option<Point>,
    /// Whether that is in this frame.
    seen: bool,
    /// Where its head was then.
    pub search: Search,
    /// What it can express.
    pub expression: Expression,
}

impl Slot {
    fn with(expression: Expression) -> Self {
        Self {
            expression,
            ..Self::default()
        }
    }

    /// The pose is not known any more: the head has been away, or the next frame is another scene.
    pub fn lose_sight(&mut self) {
        self.search = Search::default();
    }
}

/// Memory of all faces.
#[derive(Debug)]
pub struct Slots {
    /// As many as there were faces in a frame, and at least as many as were asked for.
    slots: Vec<Slot>,
    /// Where faces are in this frame, and which slot each gets if its identity is new.
    expected: Vec<(Point, usize)>,
}

impl Slots {
    /// Slots for `count` faces, the first of which learned this much.
    pub fn new(count: usize, learned: Vec<Expression>) -> Self {
        let learned = learned.into_iter().map(Slot::with);
        let empty = std::iter::repeat_with(Slot::default);
        Self {
            slots: learned.chain(empty).take(count).collect(),
            expected: Vec::new(),
        }
    }

    /// Every slot.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter()
    }

    /// Every slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut()
    }

    /// Another frame, with faces at these places.
    pub fn begin_frame(&mut self, places: &[Point]) {
        for slot in &mut self.slots {
            if !slot.seen {
                slot.lose_sight();
            }
            slot.seen = false;
        }
        let count = self.slots.len().max(places.len());
        self.slots.resize_with(count, Slot::default);
        self.expected = self.assign(places);
    }

    /// The slot of `id`, whose face is at `place` in this frame.
    pub fn take(&mut self, id: u32, place: Point) -> &mut Slot {
        let index = self.owned_by(id).or_else(|| self.expected_at(place));
        let index = index.unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let slot = &mut self.slots[index];
        (slot.owner, slot.place, slot.seen) = (Some(id), Some(place), true);
        slot
    }

    /// No face will have the identity `id`, unless it is given anew.
    pub fn forget(&mut self, id: u32) {
        if let Some(index) = self.owned_by(id) {
            self.slots[index].owner = None;
        }
    }

    fn owned_by(&self, id: u32) -> Option<usize> {
        self.slots.iter().position(|slot| slot.owner == Some(id))
    }

    /// The slot that the face nearest to `place` should get, among those that no face of this frame has yet.
    fn expected_at(&self, place: Point) -> Option<usize> {
        let distance = |(expected, _): &(Point, usize)| expected.distance(place);
        self.expected
            .iter()
            .filter(|(_, slot)| !self.slots[*slot].seen)
            .min_by(|a, b| distance(a).total_cmp(&distance(b)))
            .map(|(_, slot)| *slot)
    }

    /// Pairs places and slots, the nearest first; a slot without a face so far is farther than any other:
    /// `assign_face_info`.
    fn assign(&self, places: &[Point]) -> Vec<(Point, usize)> {
        let distance = |slot: usize, place: Point| match self.slots[slot].place {
            Some(last) => last.distance(place),
            None => f32::INFINITY,
        };
        let mut pairs: Vec<_> = (0..self.slots.len())
            .flat_map(|slot| (0..places.len()).map(move |face| (slot, face)))
            .map(|(slot, face)| (distance(slot, places[face]), slot, face))
            .collect();
        pairs.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let mut assigned = Vec::with_capacity(places.len());
        let mut is_used = vec![false; self.slots.len()];
        let mut is_placed = vec![false; places.len()];
        for (_, slot, face) in pairs {
            if !is_used[slot] && !is_placed[face] {
                (is_used[slot], is_placed[face]) = (true, true);
                assigned.push((places[face], slot));
            }
        }
        assigned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots that are told apart by how long they learned: 1 s, 2 s …
    fn slots(count: usize) -> Slots {
        let untaught = || Expression::default().features;
        let learned = (1..=count).map(|s| Expression::resumed(untaught(), s as f64));
        Slots::new(count, learned.collect())
    }

    /// Which slots faces with these identities get in a frame.
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
            // Two faces, one of which is new each time, and none every now and then.
            let faces = [(id, 100.0 * (id % 7) as f32), (id + 1, 300.0)];
            taken(&mut slots, if id % 5 == 0 { &[] } else { &faces });
            if id % 2 == 0 {
                slots.forget(id);
            }
            assert_eq!(slots.iter().count(), 2, "{id}");
        }
    }

    #[test]
    fn faces_that_no_frame_announced_get_slots_of_their_own() {
        let mut slots = slots(1);
        slots.begin_frame(&[]);
        for id in [1, 2] {
            assert_eq!(slots.take(id, Point::default()).expression.learned, 0.0);
        }
        assert_eq!(slots.iter().count(), 3);
    }
}
