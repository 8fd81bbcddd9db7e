// SPDX-License-Identifier: MPL-2.0
//! Small numbers for faces.

/// Numbers of faces as OpenSeeFace's receivers expect them: a single face always has number 0, and
/// a face keeps its number while it is seen.
///
/// A new face gets the lowest number that no face of its frame has. A face that was away gets its
/// own back, unless another has it by then. (`assign_face_info` of `tracker.py` has as many places
/// as there may be faces; a place whose face is gone goes to the nearest new one.)
#[derive(Debug, Clone, Default)]
pub struct Slots {
    /// By number, the identity that had it last; never more than there were faces in one frame.
    tracks: Vec<u32>,
}

impl Slots {
    /// The number of each identity of the next frame, in their order. Identities differ from one
    /// another.
    pub fn assign(&mut self, ids: &[u32]) -> Vec<usize> {
        for id in ids {
            if !self.tracks.contains(id) {
                self.give(*id, ids);
            }
        }
        ids.iter().filter_map(|id| self.number_of(*id)).collect()
    }

    /// Gives `id` the lowest number that none of `seen` has.
    fn give(&mut self, id: u32, seen: &[u32]) {
        match self.tracks.iter_mut().find(|track| !seen.contains(track)) {
            Some(track) => *track = id,
            None => self.tracks.push(id),
        }
    }

    fn number_of(&self, id: u32) -> Option<usize> {
        self.tracks.iter().position(|track| *track == id)
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
        let ids: Vec<u32> = (1..=200).collect();
        let numbers: Vec<usize> = (0..200).collect();
        assert_eq!(Slots::default().assign(&ids), numbers);
        assert_eq!(Slots::default().assign(&[5, 5, 6]), [0, 0, 1]);
    }
}
