// SPDX-License-Identifier: MPL-2.0
use std::sync::Arc;

use super::super::tests::synthetic::{Noise, head, landmarks, pose};
use super::super::{FitSettings, Fitter};
use super::*;
use crate::geometry::Point;

const SHAPE: [f32; 5] = [1.0, -0.8, 0.6, 0.5, -0.7];

/// Frames of a face that looks around and speaks, with landmarks that are some px off.
fn frames(model: &FaceModel, count: usize) -> Vec<[Point; 68]> {
    let mut noise = Noise(7);
    let frame = |i: usize| {
        let time = i as f32 / 10.0;
        let camera = pose(30.0 * time.sin(), 10.0 * (1.3 * time).cos(), 5.0, 1.5);
        let strengths = [0.5 + 0.5 * (2.0 * time).sin(), 0.3];
        let points = landmarks(model, &camera, &SHAPE, &strengths);
        points.map(|p| Point::new(p.x + 2.0 * noise.next(), p.y + 2.0 * noise.next()))
    };
    (0..count).map(frame).collect()
}

/// Landmarks that are nowhere near a face.
fn scattered() -> [Point; 68] {
    let mut noise = Noise(8);
    [0; 68].map(|_| Point::new(320.0 + 150.0 * noise.next(), 180.0 + 150.0 * noise.next()))
}

fn fitter() -> Fitter {
    Fitter::new(Arc::new(head()), FitSettings::default())
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let squares = std::iter::zip(a, b).map(|(a, b)| (a - b).powi(2));
    squares.sum::<f32>().sqrt()
}

/// The mean distance between neighbours.
fn movement(shapes: &[Vec<f32>]) -> f32 {
    let steps = shapes.windows(2).map(|pair| distance(&pair[0], &pair[1]));
    steps.sum::<f32>() / (shapes.len() - 1) as f32
}

fn follow(fitter: &mut Fitter, frames: &[[Point; 68]]) -> Vec<Vec<f32>> {
    let mut past = Past::default();
    let shape = |frame: &[Point; 68]| fitter.follow(frame, &mut past).unwrap().shape;
    frames.iter().map(shape).collect()
}

#[test]
fn a_shape_comes_to_rest_nearer_to_the_truth_than_that_of_single_frames() {
    let mut fitter = fitter();
    let frames = frames(&fitter.model().clone(), 100);
    let alone: Vec<_> = frames
        .iter()
        .map(|frame| fitter.fit(frame).unwrap().shape)
        .collect();
    let running = follow(&mut fitter, &frames);
    assert!(movement(&running) < movement(&alone) / 10.0);
    assert!(movement(&running[80..]) < movement(&running[..20]) / 4.0);
    let truth = [SHAPE.as_slice(), &[0.0; 5]].concat();
    let off: f32 = alone
        .iter()
        .map(|shape| distance(shape, &truth))
        .sum::<f32>()
        / 100.0;
    assert!(distance(&running[99], &truth) < 0.8 * off);
    assert_eq!(follow(&mut fitter, &frames), running);
}

#[test]
fn a_frame_that_is_not_of_the_face_hardly_moves_its_shape() {
    let mut fitter = fitter();
    let mut frames = frames(&fitter.model().clone(), 60);
    let wanted = follow(&mut fitter, &frames);
    frames[30..33].fill(scattered());
    let alone = fitter.fit(&frames[30]).unwrap().shape;
    let disturbed = follow(&mut fitter, &frames);
    let is_far = distance(&alone, &wanted[30]);
    assert!(distance(&disturbed[30], &wanted[30]) < is_far / 10.0);
    assert!(distance(&disturbed[59], &wanted[59]) < is_far / 20.0);
}

#[test]
fn a_face_that_began_wrong_is_put_right() {
    let mut fitter = fitter();
    let mut frames = frames(&fitter.model().clone(), 120);
    let wanted = follow(&mut fitter, &frames);
    frames[0] = scattered();
    let put_right = follow(&mut fitter, &frames);
    let [at_first, at_last] = [0, 119].map(|i| distance(&put_right[i], &wanted[i]));
    assert!(at_last < at_first / 5.0, "{at_first} {at_last}");
}

#[test]
fn a_failure_leaves_the_past_as_it_was() {
    let mut fitter = fitter();
    let frames = frames(&fitter.model().clone(), 3);
    let (mut past, mut other) = (Past::default(), Past::default());
    for frame in &frames {
        assert!(fitter.follow(frame, &mut past).is_ok());
        assert!(fitter.follow(frame, &mut other).is_ok());
        assert!(fitter.follow(&[Point::default(); 68], &mut other).is_err());
    }
    assert_eq!(past.0.unwrap().equations, other.0.unwrap().equations);
}

#[test]
fn no_past_is_of_more_frames_than_are_remembered() {
    let mut fitter = fitter();
    let frames = frames(&fitter.model().clone(), 100);
    let mut past = Past::default();
    let mut of_frames = |count: usize| {
        for frame in frames.iter().cycle().take(count) {
            fitter.follow(frame, &mut past).unwrap();
        }
        past.0.as_ref().unwrap().equations.faces
    };
    assert!(of_frames(60) > 40.0);
    let long = of_frames(1000);
    assert!(long < MEMORY + 1.0 && long > 0.9 * MEMORY, "{long}");
}

/// An identity that went over to someone else.
#[test]
fn a_face_that_became_another_is_that_one_in_the_end() {
    let mut fitter = fitter();
    let model = fitter.model().clone();
    let other = SHAPE.map(|coefficient| -2.0 * coefficient);
    let [before, after] = [SHAPE, other]
        .map(|shape| landmarks(&model, &pose(10.0, 5.0, 0.0, 1.5), &shape, &[0.2, 0.1]));
    let wanted = follow(&mut fitter, &[after; 60]).remove(59);
    let frames = [vec![before; 60], vec![after; 600]].concat();
    let shapes = follow(&mut fitter, &frames);
    let [last, late] = [59, 659].map(|frame| distance(&shapes[frame], &wanted));
    assert!(late < last / 10.0, "{last} {late}");
}
