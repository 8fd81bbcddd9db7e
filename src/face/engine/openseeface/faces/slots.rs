// SPDX-License-Identifier: MPL-2.0
//! What is kept of each face, whatever identity it has: `face_info` in `tracker.py`.
//!
//! The original knows faces by their places alone. A face that is found again, or nearest to where another one was last
//! seen, goes on with what was learned there. Here identities come first: while one lasts, it keeps its slot. A new one
//! takes the slot that the original would give it.

use super::expression::Expression;
use super::search::Search;
use crate::face::geometry::Point;

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
