// SPDX-License-Identifier: MPL-2.0
//! Small numbers for faces.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Numbers of faces as OpenSeeFace's receivers expect them: a single face always has number 0, and
/// a face keeps its number while it is seen.
///
/// A new face gets the lowest number that no face of its frame has. A face that was away gets its
/// own back, unless another has it by then. (`assign_face_info` of `tracker.py` has as many places
/// as there may be faces, and gives a free place to the nearest new face.)
#[derive(Debug, Clone, Default)]
pub struct Slots {
    /// The identity that had each number last. There are never more numbers than there were faces
    /// in one frame.
    tracks: Vec<u32>,
}

impl Slots {
    /// The number of each identity of the next frame, in their order. An identity that occurs twice
    /// has one number.
    pub fn assign(&mut self, ids: &[u32]) -> Vec<usize> {
        let seen: HashSet<_> = ids.iter().collect();
        let known = std::iter::zip(self.tracks.iter().copied(), 0..);
        let (kept, free): (Vec<_>, Vec<_>) = known.partition(|(id, _)| seen.contains(id));
        let mut numbers: HashMap<u32, usize> = kept.into_iter().collect();
        let mut free = free.into_iter().map(|(_, number)| number);
        for id in ids {
            if let Entry::Vacant(place) = numbers.entry(*id) {
                let number = free.next().unwrap_or(self.tracks.len());
                self.tracks.resize(self.tracks.len().max(number + 1), *id);
                self.tracks[number] = *id;
                place.insert(number);
            }
        }
        ids.iter().map(|id| numbers[id]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identities in each frame, and their numbers.
    type Story = &'static [(&'static [u32], &'static [usize])];

    #[test]
    fn numbers_are_low_and_stay() {
        let stories: [(&str, Story); 8] = [
            ("no face", &[(&[], &[]), (&[], &[])]),
            (
                "a single face is always number 0",
                &[(&[1], &[0]), (&[], &[]), (&[2], &[0]), (&[7], &[0])],
            ),
            (
                "the order of a frame does not matter",
                &[(&[4, 2], &[0, 1]), (&[2, 4], &[1, 0])],
            ),
            (
                "a face stays when one before it goes",
                &[(&[1, 2], &[0, 1]), (&[2], &[1]), (&[2], &[1])],
            ),
            (
                "a new face takes the lowest that is free",
                &[
                    (&[1, 2, 3], &[0, 1, 2]),
                    (&[2], &[1]),
                    (&[2, 4], &[1, 0]),
                    (&[2, 4, 5], &[1, 0, 2]),
                ],
            ),
            (
                "a face that returns gets its own",
                &[
                    (&[1, 2], &[0, 1]),
                    (&[], &[]),
                    (&[2], &[1]),
                    (&[1, 2], &[0, 1]),
                ],
            ),
            (
                "unless another has it",
                &[
                    (&[1, 2], &[0, 1]),
                    (&[2, 3], &[1, 0]),
                    (&[1, 2, 3], &[2, 1, 0]),
                ],
            ),
            (
                "a face that returns comes before a new one",
                &[(&[1], &[0]), (&[], &[]), (&[2, 1], &[1, 0])],
            ),
        ];
        for (name, story) in stories {
            let mut slots = Slots::default();
            for (frame, (ids, numbers)) in story.iter().enumerate() {
                assert_eq!(&slots.assign(ids), numbers, "{name}, frame {frame}");
            }
        }
    }

    #[test]
    fn nothing_is_kept_of_faces_that_went() {
        let mut slots = Slots::default();
        for id in (1..10_000).step_by(2) {
            assert_eq!(slots.assign(&[id, id + 1]), [0, 1]);
        }
        assert_eq!(slots.tracks.len(), 2);
    }

    /// An element is not asked for more faces, but who knows what is on a buffer.
    #[test]
    fn there_may_be_many_and_the_same() {
        let ids: Vec<u32> = (1..=100_000).collect();
        let numbers: Vec<usize> = (0..100_000).collect();
        assert_eq!(Slots::default().assign(&ids), numbers);
        assert_eq!(Slots::default().assign(&[5, 5, 6]), [0, 0, 1]);
    }
}
