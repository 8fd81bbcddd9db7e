// SPDX-License-Identifier: MPL-2.0
use std::sync::Arc;

use super::*;
use crate::blendshape::Blendshapes;
use crate::observation::{Landmark, LandmarkScheme, Landmarks, Origin};
use crate::report::SearchExtent;

/// A face of 100 px whose left edge is at `x`.
fn face(id: u32, x: f32) -> TrackedFace {
    let face = Observation::from_bbox(Rect::new(x, 50.0, 100.0, 100.0));
    TrackedFace { id, face }
}

fn report(faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width: 640,
        height: 360,
        status: if faces.is_empty() {
            FrameStatus::NoFace
        } else {
            FrameStatus::Tracked
        },
        cut: false,
        search: SearchExtent::Whole,
        repeated: false,
        faces,
        source: Arc::default(),
    }
}

/// The findings in frames at 25 per second, as kind, face, first and last frame.
fn findings(frames: &[FrameReport]) -> Vec<(FindingKind, Option<u32>, u64, u64)> {
    let mut findings = Findings::new(Some(25.0));
    for (number, frame) in std::iter::zip(1.., frames) {
        findings.add(number, Some(number * 40_000_000), Some(frame));
    }
    let found = findings.finish().into_iter();
    let found = found.map(|it| (it.kind, it.face, it.first.number, it.last.number));
    found.collect()
}

/// Frames with the faces that `faces` returns for each number, from 1.
fn frames(count: u16, faces: impl Fn(u16) -> Vec<TrackedFace>) -> Vec<FrameReport> {
    (1..=count).map(|number| report(faces(number))).collect()
}

/// 60 frames with a face, whose id is 1 before frame 31, and then `id`, at the place `x`.
fn two_halves(id: u32, x: f32) -> Vec<FrameReport> {
    frames(60, |number| match number {
        ..31 => vec![face(1, 100.0)],
        _ => vec![face(id, x)],
    })
}

#[test]
fn steady_faces_have_no_findings() {
    let passing = frames(100, |number| {
        let way = 5.0 * f32::from(number);
        vec![face(1, way), face(2, 500.0 - way)]
    });
    assert_eq!(findings(&passing), []);
}

#[test]
fn a_track_without_any_face_is_a_finding() {
    let empty = frames(10, |_| Vec::new());
    assert_eq!(findings(&empty), [(FindingKind::NoFace, None, 1, 10)]);
    assert_eq!(findings(&[]), [], "no frame");
    let late = frames(10, |number| match number {
        10 => vec![face(1, 100.0)],
        _ => Vec::new(),
    });
    let kinds: Vec<_> = findings(&late).iter().map(|it| it.0).collect();
    assert!(!kinds.contains(&FindingKind::NoFace));
}

#[test]
fn a_new_id_at_the_place_of_another_one_is_a_change() {
    assert_eq!(
        findings(&two_halves(2, 120.0)),
        [(FindingKind::IdChange, Some(2), 30, 31)]
    );
    assert_eq!(findings(&two_halves(2, 400.0)), [], "another person");
}

#[test]
fn a_swap_is_found_and_is_no_jump() {
    let swapped = frames(60, |number| {
        let (a, b) = if number < 31 { (1, 2) } else { (2, 1) };
        vec![face(a, 100.0), face(b, 300.0)]
    });
    assert_eq!(findings(&swapped), [(FindingKind::IdSwap, Some(1), 31, 31)]);
}

#[test]
fn a_jump_is_relative_to_size_and_earlier_motion() {
    let jump = (FindingKind::Jump, Some(1), 31, 31);
    assert_eq!(findings(&two_halves(1, 140.0)), [jump]);
    assert_eq!(findings(&two_halves(1, 115.0)), []);
    let shaken = |by: f32| {
        frames(60, move |number| {
            let side = f32::from(number % 2) * 20.0;
            vec![face(1, if number < 31 { side } else { side + by })]
        })
    };
    assert_eq!(findings(&shaken(40.0)), []);
}

#[test]
fn a_face_in_repeated_pictures_does_not_jump() {
    let jumps = |is_repeated: fn(u16) -> bool| {
        let mut steps = frames(60, |number| vec![face(1, f32::from(number / 5) * 40.0)]);
        for (number, frame) in std::iter::zip(1.., &mut steps) {
            frame.repeated = is_repeated(number);
        }
        !findings(&steps).is_empty()
    };
    assert!(!jumps(|number| !number.is_multiple_of(5)));
    assert!(jumps(|_| false), "the case shows nothing");
}

#[test]
fn a_box_that_changes_its_size_at_once_jumps() {
    let mut grown = two_halves(1, 100.0);
    for frame in &mut grown[30..] {
        frame.faces[0].face.bbox = Rect::new(70.0, 20.0, 160.0, 160.0);
    }
    assert_eq!(findings(&grown), [(FindingKind::Jump, Some(1), 31, 31)]);
}

#[test]
fn landmarks_jump_in_a_steady_box() {
    let with_landmarks = |change: f32| {
        let mut frames = two_halves(1, 100.0);
        for (number, frame) in std::iter::zip(1.., &mut frames) {
            let y = if number < 31 { 100.0 } else { 100.0 + change };
            let points = [(110.0, 100.0), (190.0, 100.0), (150.0, y)];
            let points = points.map(|(x, y)| Landmark { x, y, z: 0.0 });
            let landmarks = Landmarks::new(LandmarkScheme::Ibug68, points.to_vec());
            frame.faces[0].face.landmarks = Some(landmarks);
        }
        frames
    };
    let jump = (FindingKind::Jump, Some(1), 31, 31);
    assert_eq!(findings(&with_landmarks(30.0)), [jump]);
    assert_eq!(findings(&with_landmarks(10.0)), []);
}

#[test]
fn only_a_face_that_comes_and_goes_is_short() {
    let seen = |from: u16, to: u16| {
        frames(60, move |number| {
            let mut faces = vec![face(1, 100.0)];
            faces.extend((from..=to).contains(&number).then(|| face(2, 400.0)));
            faces
        })
    };
    assert_eq!(
        findings(&seen(20, 26)),
        [(FindingKind::Short, Some(2), 20, 26)]
    );
    for (from, to) in [(20, 27), (1, 5), (55, 60)] {
        assert_eq!(findings(&seen(from, to)), [], "{from} {to}");
    }
}

#[test]
fn long_holds_are_found() {
    let held = |from: usize, to: usize, origin| {
        let mut frames = frames(60, |_| vec![face(1, 100.0)]);
        for frame in &mut frames[from - 1..to] {
            frame.faces[0].face.origin = origin;
        }
        frames
    };
    for origin in [Origin::Held, Origin::Predicted] {
        let long = (FindingKind::Held, Some(1), 20, 32);
        assert_eq!(findings(&held(20, 32, origin)), [long]);
        assert_eq!(findings(&held(20, 30, origin)), []);
    }
}

#[test]
fn a_blendshape_at_its_limit_for_long_is_found() {
    let open = |to: usize| {
        let mut frames = frames(90, |_| vec![face(1, 100.0)]);
        let names: Arc<[String]> = Arc::new(["jawOpen".to_owned(), "cheekPuff".to_owned()]);
        for (number, frame) in std::iter::zip(1.., &mut frames) {
            let values = [f32::from(u8::from((11..=to).contains(&number))), 0.5];
            let blendshapes = Blendshapes::new(names.clone(), values.to_vec());
            frame.faces[0].face.blendshapes = Some(blendshapes);
        }
        frames
    };
    assert_eq!(findings(&open(60)), [(FindingKind::Limit, Some(1), 11, 60)]);
    assert_eq!(findings(&open(90)), [(FindingKind::Limit, Some(1), 11, 90)]);
    assert_eq!(findings(&open(59)), []);
}

#[test]
fn a_missing_face_is_found_when_it_returns_or_another_one_comes() {
    let gap = |id: u32, x: f32| {
        let mut frames = two_halves(id, x);
        for frame in &mut frames[29..40] {
            *frame = report(Vec::new());
        }
        frames
    };
    let missing = |face| (FindingKind::Missing, face, 30, 40);
    assert_eq!(findings(&gap(1, 100.0)), [missing(Some(1))]);
    assert_eq!(findings(&gap(2, 500.0)), [missing(None)]);
    let change = (FindingKind::IdChange, Some(2), 29, 41);
    assert_eq!(findings(&gap(2, 100.0)), [change]);
    assert_eq!(findings(&gap(1, 100.0)[..40]), [], "it does not return");
    let mut flickering = gap(1, 100.0);
    flickering[35] = report(vec![face(1, 100.0)]);
    assert_eq!(findings(&flickering), [missing(Some(1))]);
}

#[test]
fn errors_and_gaps_are_found() {
    let mut lost = two_halves(1, 100.0);
    for (range, status) in [(10..13, FrameStatus::Gap), (13..14, FrameStatus::Error)] {
        for frame in &mut lost[range] {
            *frame = report(Vec::new());
            frame.status = status;
        }
    }
    let found = [
        (FindingKind::Gap, None, 11, 13),
        (FindingKind::Error, None, 14, 14),
    ];
    assert_eq!(findings(&lost), found);
}

#[test]
fn a_cut_explains_everything() {
    let short = frames(3, |_| vec![face(3, 400.0)]);
    for (id, x) in [(2, 100.0), (1, 300.0), (2, 400.0)] {
        let mut shots = [two_halves(id, x), short.clone()].concat();
        shots[25..30].fill(report(Vec::new()));
        for place in [30, 60] {
            shots[place].cut = true;
        }
        assert_eq!(findings(&shots), [], "{id} {x}");
    }
}

#[test]
fn frames_that_were_not_analysed_do_not_count() {
    let mut findings = Findings::new(None);
    for number in 1..=20 {
        let seen = report(vec![face(1, 100.0)]);
        findings.add(number, None, (number % 5 == 1).then_some(&seen));
    }
    assert_eq!(findings.finish(), []);
}

#[test]
fn times_follow_from_the_rate_if_frames_have_none() {
    for (fps, seconds) in [(Some(10.0), 3.0), (None, 1.2)] {
        let mut findings = Findings::new(fps);
        for (number, frame) in std::iter::zip(1.., &two_halves(1, 190.0)) {
            findings.add(number, None, Some(frame));
        }
        let found = findings.finish();
        let times: Vec<_> = found.iter().map(|it| it.first.time.as_secs_f64()).collect();
        assert_eq!(times, [seconds], "{found:?}");
    }
}

#[test]
fn findings_describe_themselves() {
    let mut findings = Findings::new(None);
    for (number, frame) in std::iter::zip(1.., &two_halves(2, 100.0)) {
        findings.add(number, None, Some(frame));
    }
    let found = &findings.finish()[0];
    assert_eq!(found.kind.to_string(), "id-change");
    assert_eq!(
        found.text,
        "Face 1 ends, and face 2 begins at the same place."
    );
}

#[test]
fn faces_without_a_position_are_ignored() {
    let broken = frames(60, |number| match number {
        30 => vec![face(1, f32::NAN)],
        _ => vec![face(1, 100.0)],
    });
    assert_eq!(findings(&broken), [(FindingKind::Missing, Some(1), 30, 30)]);
}

#[test]
fn times_beyond_every_video_are_no_error() {
    for (fps, last) in [(1e-9, u64::MAX), (f64::NAN, u64::MAX), (-1.0, 3), (0.0, 3)] {
        let mut findings = Findings::new(Some(fps));
        for (number, face) in [
            (1, face(1, 0.0)),
            (2, face(1, 90.0)),
            (last, face(1, 300.0)),
        ] {
            findings.add(number, None, Some(&report(vec![face])));
        }
        findings.finish();
    }
}

/// A frame with this many faces, whose ids begin at `first`, in rows of `columns` from `left` on.
fn crowd(first: u32, count: u16, columns: u16, left: f32) -> FrameReport {
    let faces = (0..count).map(|index| {
        let mut face = face(first + u32::from(index), 0.0);
        let (column, row) = (index % columns, index / columns);
        face.face.bbox.x = left + 200.0 * f32::from(column);
        face.face.bbox.y = 200.0 * f32::from(row);
        face
    });
    report(faces.collect())
}

#[test]
fn the_faces_of_a_crowd_are_told_apart() {
    let mut frames = vec![crowd(1, 900, 30, 0.0); 10];
    frames.extend(vec![crowd(1001, 900, 30, 20.0); 10]);
    let found = findings(&frames);
    assert_eq!(found.len(), 900);
    let is_change = |(kind, face, first, last): &_| {
        matches!(face, Some(1001..)) && (*kind, *first, *last) == (FindingKind::IdChange, 10, 11)
    };
    assert!(found.iter().all(is_change), "{found:?}");
    // Each face takes the place of the next one.
    let mut swapped = crowd(1, 900, 30, 0.0);
    for pair in swapped.faces.chunks_exact_mut(2) {
        let [a, b] = pair else { continue };
        std::mem::swap(&mut a.id, &mut b.id);
    }
    frames.truncate(10);
    frames.extend(vec![swapped; 10]);
    let found = findings(&frames);
    let swaps = (1..900).step_by(2);
    let swaps = swaps.map(|id| (FindingKind::IdSwap, Some(id), 11, 11));
    assert_eq!(found, swaps.collect::<Vec<_>>());
}

/// Each pair of frames takes less than a second; comparing all faces with each other takes minutes.
#[test]
fn many_faces_in_one_place_are_not_compared_with_each_other() {
    let start = std::time::Instant::now();
    let here = crowd(1, 30_000, 1, 0.0);
    let place = |frame: &FrameReport, x: f32| {
        let mut frame = frame.clone();
        let faces = frame.faces.iter_mut();
        faces.for_each(|face| (face.face.bbox.x, face.face.bbox.y) = (x, 0.0));
        frame
    };
    let others = place(&crowd(40_001, 30_000, 1, 0.0), 0.0);
    let (here, there) = (place(&here, 0.0), place(&here, 900.0));
    for (second, count) in [(others, 30_000), (there, 30_000)] {
        assert_eq!(findings(&[here.clone(), second]).len(), count);
    }
    assert!(start.elapsed() < Duration::from_secs(30));
}
