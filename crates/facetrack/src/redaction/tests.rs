// SPDX-License-Identifier: MPL-2.0

use std::sync::Arc;

use super::outline::contains;
use super::*;
use crate::geometry::Rect;
use crate::observation::Origin;
use crate::report::{FrameStatus, ReportSource};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn face(id: u32, x: f32, origin: Origin) -> TrackedFace {
    let bbox = Rect::new(x, 100.0, 40.0, 40.0);
    TrackedFace {
        id,
        face: Observation {
            origin,
            ..Observation::from_bbox(bbox)
        },
    }
}

fn found(id: u32, x: f32) -> TrackedFace {
    face(id, x, Origin::Detected)
}

fn report(status: FrameStatus, faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width: 640,
        height: 360,
        status,
        cut: false,
        search: SearchExtent::Whole,
        repeated: false,
        faces,
        source: Arc::new(ReportSource::default()),
    }
}

fn tracked(faces: Vec<TrackedFace>) -> FrameReport {
    report(FrameStatus::Tracked, faces)
}

/// Boxes without a margin, so that positions are exact.
fn settings() -> Settings {
    Settings {
        shape: Shape::Box,
        margin: 0.0,
        ..Settings::default()
    }
}

/// Id and box of each region; `None` for a whole frame.
fn boxes(cover: &Cover) -> Option<Vec<(u32, Rect)>> {
    let Cover::Regions(regions) = cover else {
        return None;
    };
    let extent = |region: &Region| Rect::enclosing(region.outline.iter().copied());
    let boxes = regions
        .iter()
        .map(|region| (region.id, extent(region).expect("corners")));
    Some(boxes.collect())
}

#[test]
fn every_face_of_a_frame_is_covered_whatever_its_origin() {
    for origin in [
        Origin::Detected,
        Origin::Tracked,
        Origin::Held,
        Origin::Predicted,
    ] {
        let report = tracked(vec![face(1, 10.0, origin), found(2, 300.0)]);
        let cover = Redactor::default().cover(Some(&report), ms(0), &settings());
        let want = [(1, 10.0), (2, 300.0)].map(|(id, x)| (id, Rect::new(x, 100.0, 40.0, 40.0)));
        assert_eq!(boxes(&cover).as_deref(), Some(&want[..]), "{origin:?}");
    }
}

#[test]
fn cells_are_relative_to_the_face() {
    let report = tracked(vec![found(1, 10.0)]);
    let cover = Redactor::default().cover(Some(&report), ms(0), &settings());
    assert!(matches!(cover, Cover::Regions(regions) if regions[0].cell == 10.0));
}

#[test]
fn kept_faces_are_not_covered() {
    let settings = Settings {
        keep: [1].into(),
        ..settings()
    };
    let mut redactor = Redactor::default();
    let both = tracked(vec![found(1, 10.0), found(2, 300.0)]);
    let nothing = report(FrameStatus::NoFace, vec![]);
    for report in [&both, &nothing] {
        let covered = boxes(&redactor.cover(Some(report), ms(0), &settings)).expect("regions");
        assert_eq!(covered.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2]);
    }
}

/// A face that moves by 10 px in 40 ms is lost.
#[test]
fn a_lost_face_is_covered_for_the_hold_and_grows_by_its_speed() {
    let mut redactor = Redactor::default();
    for (x, time) in [(100.0, 0), (110.0, 40)] {
        redactor.cover(Some(&tracked(vec![found(1, x)])), ms(time), &settings());
    }
    let nothing = report(FrameStatus::NoFace, vec![]);
    for (time, growth) in [(80, 10.0), (240, 50.0), (1040, 250.0)] {
        let covered = boxes(&redactor.cover(Some(&nothing), ms(time), &settings()));
        let side = 40.0 + 2.0 * growth;
        let want = Rect::new(110.0 - growth, 100.0 - growth, side, side);
        assert_eq!(covered, Some(vec![(1, want)]), "{time}");
    }
    let covered = boxes(&redactor.cover(Some(&nothing), ms(1041), &settings()));
    assert_eq!(covered, Some(vec![]));
}

/// The boxes that cover a face, which moves by 10 px from picture to picture and is lost after the
/// sixth, in the frames after it. Each picture is in so many frames.
fn covers(repeats: u64, is_flagged: impl Fn(u64) -> bool) -> Vec<Rect> {
    let mut redactor = Redactor::default();
    let mut covers = Vec::new();
    for frame in 0..12 * repeats {
        let picture = frame / repeats;
        let mut report = if picture < 6 {
            tracked(vec![found(1, 10.0 * picture as f32)])
        } else {
            report(FrameStatus::NoFace, vec![])
        };
        report.repeated = is_flagged(frame);
        let cover = redactor.cover(Some(&report), ms(40 * frame), &settings());
        covers.extend(
            boxes(&cover)
                .expect("regions")
                .first()
                .map(|(_, bbox)| *bbox),
        );
    }
    covers.split_off(6 * repeats as usize)
}

#[test]
fn a_face_that_is_lost_in_repeated_pictures_is_covered_as_in_others() {
    let once = covers(1, |_| false);
    for repeats in 2..=4 {
        let covered = covers(repeats, |frame| !frame.is_multiple_of(repeats));
        let shown: Vec<_> = covered.iter().step_by(repeats as usize).copied().collect();
        let right = |boxes: &[Rect]| {
            boxes
                .iter()
                .map(|it| it.right().round())
                .collect::<Vec<_>>()
        };
        assert_eq!(right(&shown), right(&once), "{repeats}");
        // A record that does not say which pictures are repeated.
        for (older, want) in std::iter::zip(covers(repeats, |_| false), covered) {
            let is_covered = older.x < want.x + 0.1 && older.right() > want.right() - 0.1;
            assert!(is_covered, "{repeats}: {older:?} {want:?}");
        }
    }
}

#[test]
fn a_held_face_grows_too_until_it_is_measured() {
    let mut redactor = Redactor::default();
    for (x, time) in [(100.0, 0), (110.0, 40)] {
        redactor.cover(Some(&tracked(vec![found(1, x)])), ms(time), &settings());
    }
    for (origin, width) in [(Origin::Held, 60.0), (Origin::Tracked, 40.0)] {
        let report = tracked(vec![face(1, 110.0, origin)]);
        let covered = boxes(&redactor.cover(Some(&report), ms(80), &settings()));
        assert_eq!(covered.expect("regions")[0].1.width, width, "{origin:?}");
    }
}

#[test]
fn frames_that_may_show_other_faces_follow_the_setting() {
    let with = |search| FrameReport {
        search,
        ..tracked(vec![face(1, 10.0, Origin::Held)])
    };
    let reports = [
        report(FrameStatus::Skipped, vec![]),
        report(FrameStatus::Error, vec![]),
        report(FrameStatus::Gap, vec![]),
        tracked(vec![found(1, 10.0), found(2, f32::NAN)]),
        tracked(vec![found(1, 10.0), found(2, f32::INFINITY)]),
        with(SearchExtent::Partial),
        with(SearchExtent::Limited),
        with(SearchExtent::KnownFaces),
        with(SearchExtent::None),
        with(SearchExtent::OtherVideo),
    ];
    for report in reports.iter().map(Some).chain([None]) {
        for (unknown, want) in [(Unknown::FillFrame, None), (Unknown::Pass, Some(1))] {
            let settings = Settings {
                unknown,
                ..settings()
            };
            let mut redactor = Redactor::default();
            redactor.cover(Some(&tracked(vec![found(1, 10.0)])), ms(0), &settings);
            let cover = redactor.cover(report, ms(40), &settings);
            let count = boxes(&cover).map(|boxes| boxes.len());
            assert_eq!(count, want, "{unknown:?} {report:?}");
        }
    }
}

/// A face without an extent is not covered, so the frame is.
#[test]
fn boxes_without_an_extent_make_the_frame_black() {
    for side in [0.0, -5.0, f32::NAN, f32::INFINITY] {
        let mut other = found(2, 300.0);
        other.face.bbox.width = side;
        let report = tracked(vec![found(1, 10.0), other]);
        let cover = Redactor::default().cover(Some(&report), ms(0), &settings());
        assert_eq!(cover, Cover::Frame, "{side}");
    }
}

#[test]
fn all_faces_of_one_id_are_covered_and_held() {
    let mut redactor = Redactor::default();
    let both = tracked(vec![found(1, 10.0), found(1, 300.0)]);
    for (report, time) in [
        (&both, 0),
        (&tracked(vec![found(1, 10.0)]), 40),
        (&report(FrameStatus::NoFace, vec![]), 80),
    ] {
        let covered = boxes(&redactor.cover(Some(report), ms(time), &settings()));
        let covered = covered.expect("regions");
        assert_eq!(covered.len(), 2, "{time}");
        for ((_, bbox), x) in std::iter::zip(covered, [10.0, 300.0]) {
            assert!(bbox.x <= x && bbox.right() >= x + 40.0, "{time}: {bbox:?}");
        }
    }
}

/// The boxes that cover the last of these reports. It comes 200 ms later than the rhythm of the others.
fn last_cover(redactor: &mut Redactor, reports: &[FrameReport]) -> Vec<Rect> {
    let mut covered = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let late = if index + 1 == reports.len() { 200 } else { 0 };
        let time = ms(40 * index as u64 + late);
        let cover = redactor.cover(Some(report), time, &settings());
        covered = boxes(&cover).expect("regions");
    }
    covered.into_iter().map(|(_, bbox)| bbox).collect()
}

/// It may move by twice its size per second.
#[test]
fn a_face_that_was_found_once_grows() {
    let nothing = report(FrameStatus::NoFace, vec![]);
    let covered = last_cover(
        &mut Redactor::default(),
        &[tracked(vec![found(1, 100.0)]), nothing],
    );
    let growth = 2.0 * 40.0 * 0.24;
    assert!((covered[0].x - (100.0 - growth)).abs() < 0.1, "{covered:?}");
}

#[test]
fn the_earlier_area_of_a_box_that_shrinks_stays_covered() {
    let mut small = found(1, 110.0);
    (
        small.face.bbox.y,
        small.face.bbox.width,
        small.face.bbox.height,
    ) = (110.0, 15.0, 15.0);
    let covered = last_cover(
        &mut Redactor::default(),
        &[tracked(vec![found(1, 100.0)]), tracked(vec![small])],
    );
    assert_eq!(covered.len(), 2);
    assert!(
        covered[1].x <= 100.0 && covered[1].right() >= 140.0,
        "{covered:?}"
    );
}

#[test]
fn a_lost_face_stays_covered_in_the_next_stream_and_at_another_size() {
    let lost = [
        tracked(vec![found(1, 100.0)]),
        tracked(vec![found(1, 110.0)]),
    ];
    let nothing = report(FrameStatus::NoFace, vec![]);
    let mut redactor = Redactor::default();
    last_cover(&mut redactor, &lost);
    redactor.restart();
    let covered = last_cover(&mut redactor, std::slice::from_ref(&nothing));
    assert_eq!((covered[0].x, covered[0].width), (110.0, 40.0));
    redactor.rescale(2.0, 2.0);
    let later = redactor.cover(Some(&nothing), ms(300), &settings());
    let (_, bbox) = boxes(&later).expect("regions")[0];
    let speed = 2.0 * 10.0 / 0.24;
    assert!((bbox.x - (220.0 - 0.1 * speed)).abs() < 0.1, "{bbox:?}");
    let end = redactor.cover(Some(&nothing), ms(1300), &settings());
    assert_eq!(boxes(&end), Some(vec![]));
}

/// The width of the cover of a face that moved by 10 px in 40 ms and was lost at 40 ms.
fn lost_width(redactor: &mut Redactor, time: u64) -> f32 {
    let nothing = report(FrameStatus::NoFace, vec![]);
    let covered = boxes(&redactor.cover(Some(&nothing), ms(time), &settings()));
    let covered = covered.expect("regions").into_iter();
    covered.map(|(_, bbox)| bbox.width).fold(0.0, f32::max)
}

fn lost() -> Redactor {
    let mut redactor = Redactor::default();
    for (x, time) in [(100.0, 0), (110.0, 40)] {
        redactor.cover(Some(&tracked(vec![found(1, x)])), ms(time), &settings());
    }
    redactor
}

#[test]
fn covers_go_on_growing_after_a_restart_of_the_clock() {
    let mut redactor = lost();
    assert_eq!(lost_width(&mut redactor, 440), 240.0);
    redactor.restart();
    assert_eq!(lost_width(&mut redactor, 5), 240.0);
    assert_eq!(lost_width(&mut redactor, 105), 290.0);
}

#[test]
fn faces_that_were_never_measured_grow_from_the_last_frame_that_has_them() {
    let mut redactor = Redactor::default();
    for time in [0, 40] {
        let held = tracked(vec![face(1, 100.0, Origin::Held)]);
        let covered = boxes(&redactor.cover(Some(&held), ms(time), &settings()));
        assert_eq!(covered.expect("regions")[0].1.width, 40.0);
    }
    assert_eq!(
        lost_width(&mut redactor, 540),
        40.0 * (1.0 + 2.0 * 2.0 * 0.5)
    );
}

/// Its id comes back at its last position, and may be another face.
#[test]
fn the_area_that_a_lost_face_may_have_reached_stays_covered() {
    let mut redactor = lost();
    let before = lost_width(&mut redactor, 440);
    let again = tracked(vec![found(1, 110.0)]);
    redactor.cover(Some(&again), ms(480), &settings());
    assert!(lost_width(&mut redactor, 520) > before);
    // The tracker holds it before.
    let mut redactor = lost();
    for time in (80..=440).step_by(40) {
        let held = tracked(vec![face(1, 110.0, Origin::Held)]);
        redactor.cover(Some(&held), ms(time), &settings());
    }
    redactor.cover(Some(&again), ms(480), &settings());
    assert!(lost_width(&mut redactor, 520) >= before);
}

#[test]
fn frames_of_another_shape_are_unknown_until_lost_faces_are_forgotten() {
    let nothing = report(FrameStatus::NoFace, vec![]);
    for ((x, y), want) in [((2.0, 2.0), true), ((0.5, 2.0), false), ((1.0, 0.9), false)] {
        let mut redactor = lost();
        redactor.rescale(x, y);
        let cover = redactor.cover(Some(&nothing), ms(80), &settings());
        assert_eq!(cover != Cover::Frame, want, "{x} {y}");
        let cover = redactor.cover(Some(&nothing), ms(1100), &settings());
        assert_eq!(cover, Cover::Regions(vec![]));
    }
    let mut redactor = lost();
    redactor.rescale(4.0, 4.0);
    let Cover::Regions(regions) = redactor.cover(Some(&nothing), ms(80), &settings()) else {
        panic!("a frame of the same shape is not black");
    };
    assert_eq!(regions[0].cell, 40.0);
    // A face that is found again is where it is.
    let mut redactor = lost();
    redactor.rescale(0.5, 2.0);
    let again = tracked(vec![found(1, 200.0)]);
    let covered = boxes(&redactor.cover(Some(&again), ms(80), &settings()));
    assert_eq!(covered.expect("regions").len(), 1);
}

/// Numbers between 0 and 1 that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
    }

    fn is(&mut self, probability: f32) -> bool {
        self.next() < probability
    }

    fn between(&mut self, least: f32, most: f32) -> f32 {
        least + (most - least) * self.next()
    }
}

/// A person who walks with a constant speed and turns at times.
struct Person {
    id: u32,
    bbox: Rect,
    /// px per second.
    speed: f32,
    direction: f32,
    /// Time since a frame that had the face, s.
    unseen: f32,
}

impl Person {
    fn walk(&mut self, seconds: f32, random: &mut Random) {
        // Between two measurements, a turn would hide the speed.
        if self.unseen == 0.0 && random.is(0.05) {
            self.direction = random.between(0.0, std::f32::consts::TAU);
        }
        self.bbox.x += self.direction.cos() * self.speed * seconds;
        self.bbox.y += self.direction.sin() * self.speed * seconds;
        self.unseen += seconds;
    }

    /// The face as an engine finds it.
    fn found(&self, random: &mut Random) -> TrackedFace {
        // Errors of speed must not exceed the margin within the hold.
        let mut error = || random.between(-0.003, 0.003) * self.bbox.width;
        let mut bbox = self.bbox;
        (bbox.x, bbox.y) = (bbox.x + error(), bbox.y + error());
        TrackedFace {
            id: self.id,
            face: Observation {
                origin: Origin::Detected,
                ..Observation::from_bbox(bbox)
            },
        }
    }

    /// The centre of the face and the middles of its sides.
    fn points(&self) -> [Point; 5] {
        let Rect {
            x,
            y,
            width,
            height,
        } = self.bbox;
        [(0.5, 0.5), (0.0, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1.0)]
            .map(|(across, down)| Point::new(x + across * width, y + down * height))
    }
}

/// People who walk, turn, are lost and found again, and change their ids, at any rate of frames, while
/// the stream restarts and is scaled.
#[test]
fn nobody_who_was_seen_within_the_hold_is_visible() {
    for seed in 0..100 {
        let mut random = Random(seed);
        let period = random.between(1.0 / 60.0, 1.0 / 8.0);
        let probability = random.between(0.2, 1.0);
        let settings = Settings {
            unknown: Unknown::Pass,
            ..Settings::default()
        };
        let mut people: Vec<_> = (0..3)
            .map(|id| {
                let size = random.between(20.0, 120.0);
                Person {
                    id,
                    bbox: Rect::new(
                        random.between(0.0, 640.0),
                        random.between(0.0, 360.0),
                        size,
                        size,
                    ),
                    speed: size * random.between(0.0, 1.5),
                    direction: random.between(0.0, std::f32::consts::TAU),
                    unseen: f32::INFINITY,
                }
            })
            .collect();
        let (mut redactor, mut time, mut next_id) = (Redactor::default(), 0.0, 3);
        for frame in 0..200 {
            if random.is(0.01) {
                redactor.restart();
                time = random.between(0.0, 100.0);
            }
            if random.is(0.01) {
                let scale = random.between(0.5, 2.0);
                redactor.rescale(scale, scale);
                for person in &mut people {
                    let Rect {
                        x,
                        y,
                        width,
                        height,
                    } = person.bbox;
                    person.bbox = Rect::new(x * scale, y * scale, width * scale, height * scale);
                    person.speed *= scale;
                }
            }
            let mut faces = Vec::new();
            for person in &mut people {
                if random.is(probability) {
                    if person.unseen > 0.5 && random.is(0.5) {
                        (person.id, next_id) = (next_id, next_id + 1);
                    }
                    person.unseen = 0.0;
                    faces.push(person.found(&mut random));
                }
            }
            let now = Duration::from_secs_f32(time);
            let cover = redactor.cover(Some(&tracked(faces)), now, &settings);
            let Cover::Regions(regions) = cover else {
                panic!("{seed} {frame}: {cover:?}");
            };
            for person in people.iter().filter(|it| it.unseen < 0.99 * settings.hold) {
                for point in person.points() {
                    let is_covered = regions.iter().any(|it| contains(&it.outline, point));
                    assert!(
                        is_covered,
                        "seed {seed}, frame {frame}, {:.2} s after {}",
                        person.unseen, person.id
                    );
                }
            }
            time += period;
            people
                .iter_mut()
                .for_each(|it| it.walk(period, &mut random));
        }
    }
}
