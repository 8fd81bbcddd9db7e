// SPDX-License-Identifier: MPL-2.0
//! Selects one of the faces in a stream, and stays with it while others pass by.

use std::collections::HashMap;
use std::time::Duration;

use smart_default::SmartDefault;

use super::engine::FrameOutline;
use super::geometry::Point;
use super::observation::Observation;
use crate::words::choices;

choices! {
    /// Faces that are reported.
    pub enum Select, words select_words {
        All = "all": "all faces",
        Largest = "largest": "the face with the largest box",
        Center = "center": "the face nearest to the centre of the frame",
        First = "first": "the face that was seen first",
        Id = "id": "the face with the id select-id",
    }
}

/// Selected faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
#[non_exhaustive]
pub struct Selection {
    /// Rule of the selection.
    pub select: Select,
    /// Identity of the face that [`Select::Id`] selects.
    #[default(1)]
    pub id: u32,
}

/// Minimum factor in size, or in the distance to the centre, of a clearly better face. In the
/// reference clips, the side of a face's box differs from its median of the last 2 s by a factor of
/// at most 1.23. So the movement of one of two similar faces does not change the selection.
const CLEAR_FACTOR: f32 = 1.25;

/// Time after which a clearly better face replaces the selected one. A person walks at 1.4 m/s. A
/// camera with a field of view of 70° shows a width of 2.8 m at a distance of 2 m, which takes 2 s
/// to cross. A person nearer to the camera crosses faster.
const CLEAR_TIME: Duration = Duration::from_secs(2);

/// Selects a face of each frame, by the faces of the frames before.
#[derive(Debug, Default)]
pub struct Selector {
    selected: Option<Candidate>,
    /// Faces that are clearly better than the selected one, each with the time at which this began.
    rivals: HashMap<u32, Duration>,
}

/// A face that may be selected.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Candidate {
    id: u32,
    /// Score, not negative; a higher one is better.
    score: f32,
}

impl Candidate {
    fn new(id: u32, face: &Observation, rule: Select, frame: &FrameOutline) -> Self {
        let score = match rule {
            // The side of a square with the area of the face's box, px.
            Select::Largest => face.bbox.area().sqrt(),
            Select::Center => 1.0 / (1.0 + distance_from_center(face, frame)),
            // The lowest id wins, which was assigned first.
            Select::All | Select::First | Select::Id => 0.0,
        };
        let score = if score.is_finite() { score } else { 0.0 };
        Self { id, score }
    }

    fn is_clearly_better_than(&self, other: &Self) -> bool {
        self.score > other.score * CLEAR_FACTOR
    }
}

/// Distance of the box's centre from the centre of the frame, px.
fn distance_from_center(face: &Observation, frame: &FrameOutline) -> f32 {
    let (width, height) = frame.size;
    let center = Point::new(width as f32 / 2.0, height as f32 / 2.0);
    face.bbox.center().distance(center)
}

impl Selector {
    /// The identity of the selected face, which may be missing in this frame; `None` if no face is
    /// selected. `ids` are the identities of `faces`, in their order. [`Select::All`] works as
    /// [`Select::First`].
    pub fn select(
        &mut self,
        selection: Selection,
        ids: &[u32],
        faces: &[Observation],
        frame: &FrameOutline,
    ) -> Option<u32> {
        let rule = selection.select;
        let candidates: Vec<_> = std::iter::zip(ids, faces)
            .filter(|(id, _)| rule != Select::Id || **id == selection.id)
            .map(|(id, face)| Candidate::new(*id, face, rule, frame))
            .collect();
        self.selected = match self.selected {
            None => best(candidates.iter()),
            Some(selected) => Some(self.update(selected, &candidates, frame.time)),
        };
        Some(self.selected?.id)
    }

    /// The face that is selected after `selected`, which is usually the same.
    fn update(&mut self, selected: Candidate, faces: &[Candidate], time: Duration) -> Candidate {
        let seen = faces.iter().find(|face| face.id == selected.id);
        // A face that is missing for a few frames is compared as it was seen last.
        let selected = *seen.unwrap_or(&selected);
        for face in faces {
            if face.is_clearly_better_than(&selected) {
                self.rivals.entry(face.id).or_insert(time);
            } else {
                self.rivals.remove(&face.id);
            }
        }
        let since = |face: &Candidate| self.rivals.get(&face.id);
        let lasting = faces.iter().filter(|face| {
            since(face).is_some_and(|since| time.saturating_sub(*since) >= CLEAR_TIME)
        });
        let Some(successor) = best(lasting) else {
            return selected;
        };
        self.rivals.clear();
        successor
    }

    /// Forgets the identity `id`, which has ended.
    pub fn forget(&mut self, id: u32) {
        self.rivals.remove(&id);
        if self.selected.is_some_and(|selected| selected.id == id) {
            *self = Self::default();
        }
    }
}

/// The best face; the one with the lowest id of equal ones.
fn best<'a>(faces: impl Iterator<Item = &'a Candidate>) -> Option<Candidate> {
    faces
        .max_by(|a, b| a.score.total_cmp(&b.score).then(b.id.cmp(&a.id)))
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    /// Frames per second of the cases.
    const FPS: u64 = 10;

    /// Number of frames for which a better face is better before it is selected.
    const PATIENCE: usize = 20;

    /// Faces of a frame: id, x of the centre, side of the box.
    type Seen<'a> = &'a [(u32, f32, f32)];

    /// The selected identities in frames of 1000×1000. Each item is a number of frames, and their
    /// faces, which are at half the height.
    fn selected(selection: Selection, scenes: &[(usize, Seen<'_>)]) -> Vec<Option<u32>> {
        let mut selector = Selector::default();
        let frames = scenes.iter().flat_map(|(n, seen)| vec![*seen; *n]);
        let select = |(number, seen): (u64, Seen<'_>)| {
            let outline = FrameOutline {
                size: (1000, 1000),
                stored_size: [1000, 1000],
                column_scale: 1.0,
                time: Duration::from_millis(number * 1000 / FPS),
                picture_time: Duration::from_millis(number * 1000 / FPS),
            };
            let ids: Vec<_> = seen.iter().map(|(id, ..)| *id).collect();
            let faces: Vec<_> = seen.iter().map(|(_, x, side)| face(*x, *side)).collect();
            selector.select(selection, &ids, &faces, &outline)
        };
        (0..).zip(frames).map(select).collect()
    }

    fn face(x: f32, side: f32) -> Observation {
        Observation::from_bbox(Rect::new(x - side / 2.0, 500.0 - side / 2.0, side, side))
    }

    fn by(select: Select) -> Selection {
        Selection {
            select,
            ..Selection::default()
        }
    }

    /// Runs of frames with the same selected identity, and their lengths.
    fn runs(selected: &[Option<u32>]) -> Vec<(Option<u32>, usize)> {
        let runs = selected.chunk_by(|a, b| a == b);
        runs.map(|run| (run[0], run.len())).collect()
    }

    #[track_caller]
    fn assert_runs(select: Select, scenes: &[(usize, Seen<'_>)], want: &[(u32, usize)]) {
        let want: Vec<_> = want.iter().map(|(id, n)| (Some(*id), *n)).collect();
        assert_eq!(runs(&selected(by(select), scenes)), want, "{scenes:?}");
    }

    /// One face at the left of the centre, and one at the right.
    fn pair(left: f32, right: f32) -> [(u32, f32, f32); 2] {
        [(1, 300.0, left), (2, 900.0, right)]
    }

    #[test]
    fn the_largest_face_stays_selected_while_another_one_passes() {
        let (alone, near) = (pair(200.0, 100.0), pair(200.0, 400.0));
        // Half a second, and one frame less than the limit.
        for frames in [5, PATIENCE] {
            let scenes: [(usize, Seen<'_>); 3] = [(10, &alone), (frames, &near), (10, &alone)];
            assert_runs(Select::Largest, &scenes, &[(1, 20 + frames)]);
        }
        // A little larger, for as long as it likes.
        let similar = pair(200.0, 240.0);
        assert_runs(
            Select::Largest,
            &[(10, &alone), (99, &similar)],
            &[(1, 109)],
        );
        // Several times, each time for less than the limit.
        let passing: [(usize, Seen<'_>); 4] = [(19, &near), (1, &alone), (19, &near), (1, &alone)];
        let scenes: Vec<_> = [(1, &alone as Seen<'_>)]
            .into_iter()
            .chain(passing)
            .collect();
        assert_runs(Select::Largest, &scenes, &[(1, 41)]);
    }

    #[test]
    fn a_larger_face_that_stays_is_selected() {
        let (alone, near) = (pair(200.0, 100.0), pair(200.0, 400.0));
        let scenes: [(usize, Seen<'_>); 2] = [(10, &alone), (30, &near)];
        assert_runs(Select::Largest, &scenes, &[(1, 10 + PATIENCE), (2, 10)]);
        // It is missed in some frames.
        let missed: Vec<_> = (0..15)
            .flat_map(|_| [(1, &near as Seen<'_>), (1, &near[..1])])
            .collect();
        assert_runs(Select::Largest, &missed[1..], &[(1, PATIENCE + 1), (2, 8)]);
        // The larger of two is selected.
        let three = [(1, 100.0, 200.0), (2, 500.0, 300.0), (3, 900.0, 400.0)];
        let scenes: [(usize, Seen<'_>); 2] = [(1, &three[..1]), (30, &three)];
        assert_runs(Select::Largest, &scenes, &[(1, 1 + PATIENCE), (3, 10)]);
    }

    #[test]
    fn a_face_that_is_missing_stays_selected_until_it_ends() {
        let (both, right) = (pair(200.0, 190.0), &pair(200.0, 190.0)[1..]);
        let scenes: [(usize, Seen<'_>); 4] = [(5, &both), (7, right), (3, &[]), (5, &both)];
        assert_runs(Select::Largest, &scenes, &[(1, 20)]);

        let mut selector = Selector::default();
        let outline = FrameOutline {
            size: (1000, 1000),
            stored_size: [1000, 1000],
            column_scale: 1.0,
            time: Duration::ZERO,
            picture_time: Duration::ZERO,
        };
        let faces = [face(300.0, 200.0), face(900.0, 190.0)];
        let largest = by(Select::Largest);
        assert_eq!(selector.select(largest, &[1, 2], &faces, &outline), Some(1));
        selector.forget(2);
        assert_eq!(
            selector.select(largest, &[3], &faces[1..], &outline),
            Some(1)
        );
        selector.forget(1);
        assert_eq!(
            selector.select(largest, &[3], &faces[1..], &outline),
            Some(3)
        );
        // It returns with another identity, and is not clearly larger.
        assert_eq!(selector.select(largest, &[4, 3], &faces, &outline), Some(3));
        selector.forget(3);
        assert_eq!(selector.select(largest, &[], &[], &outline), None);
    }

    #[test]
    fn the_face_nearest_to_the_centre_stays_selected_while_another_one_passes() {
        let at = |left, right| [(1, left, 100.0), (2, right, 100.0)];
        let (apart, crossing, moved) = (at(450.0, 900.0), at(450.0, 510.0), at(100.0, 480.0));
        let scenes: [(usize, Seen<'_>); 3] = [(5, &apart), (10, &crossing), (5, &apart)];
        assert_runs(Select::Center, &scenes, &[(1, 20)]);
        let scenes: [(usize, Seen<'_>); 2] = [(5, &apart), (30, &moved)];
        assert_runs(Select::Center, &scenes, &[(1, 5 + PATIENCE), (2, 10)]);
        let first_on_the_right = at(900.0, 520.0);
        assert_runs(Select::Center, &[(3, &first_on_the_right)], &[(2, 3)]);
    }

    #[test]
    fn the_first_face_stays_selected_whatever_its_size() {
        let faces = [(7, 500.0, 400.0), (2, 100.0, 50.0), (5, 900.0, 100.0)];
        assert_runs(Select::First, &[(99, &faces)], &[(2, 99)]);
    }

    #[test]
    fn a_face_is_selected_by_its_id() {
        let faces = [(1, 500.0, 400.0), (2, 100.0, 50.0)];
        let id = |id| Selection {
            select: Select::Id,
            id,
        };
        let scenes: [(usize, Seen<'_>); 2] = [(1, &faces[..1]), (50, &faces)];
        assert_eq!(runs(&selected(id(2), &scenes)), [(None, 1), (Some(2), 50)]);
        assert_eq!(runs(&selected(id(3), &scenes)), [(None, 51)]);
    }

    #[test]
    fn a_box_that_is_not_a_number_is_the_worst_one() {
        let broken = [f32::NAN, f32::INFINITY, -300.0];
        for (select, side) in [Select::Largest, Select::Center]
            .into_iter()
            .flat_map(|select| broken.map(|side| (select, side)))
        {
            let x = if select == Select::Center {
                side
            } else {
                900.0
            };
            let faces = [(1, x, side), (2, 400.0, 10.0)];
            assert_runs(select, &[(1, &faces)], &[(2, 1)]);
            // It stays selected, but every other face is better.
            let scenes: [(usize, Seen<'_>); 2] = [(1, &faces[..1]), (30, &faces)];
            assert_runs(select, &scenes, &[(1, 1 + PATIENCE), (2, 10)]);
        }
    }
}
