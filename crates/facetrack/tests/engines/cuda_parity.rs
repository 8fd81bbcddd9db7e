// SPDX-License-Identifier: MPL-2.0
//! The bar of `benches/cuda.rs`, which runs where there is a GPU, can be missed.

#[path = "../../../../benches/cuda/parity.rs"]
mod parity;

use facetrack::geometry::Rect;
use facetrack::observation::{Landmark, LandmarkScheme, Landmarks, Observation};
use parity::{BAR, Parity};

/// A face at `x` px, with one landmark as far from its corner as `offset` says and an embedding of that angle.
fn face(x: f32, offset: f32, angle: f32) -> Observation {
    let point = Landmark {
        x: x + offset,
        ..Landmark::default()
    };
    Observation {
        landmarks: Some(Landmarks::new(LandmarkScheme::InsightFace106, vec![point])),
        embedding: Some(vec![angle.cos(), angle.sin()].into()),
        ..Observation::from_bbox(Rect::new(x, 0.0, 100.0, 100.0))
    }
}

#[test]
fn what_differs_by_more_than_the_bar_misses_it() {
    let own = || face(0.0, 0.0, 0.0);
    for (found, is_met) in [
        (vec![own()], true),
        (vec![face(0.0, 0.09, 0.01)], true),
        (vec![face(0.0, 0.11, 0.0)], false),
        (vec![face(0.0, 0.0, 0.02)], false),
        (vec![face(0.0, f32::NAN, 0.0)], false),
        (vec![face(0.0, 0.0, f32::NAN)], false),
        (vec![face(300.0, 0.0, 0.0)], false),
        (vec![own(), own()], false),
        (vec![], false),
    ] {
        let parity = Parity::of(&[vec![own()]], &[found]);
        assert_eq!(parity.is_met(), is_met, "{parity}, {BAR}");
    }
    let without = Observation {
        embedding: None,
        ..own()
    };
    assert!(!Parity::of(&[vec![own()]], &[vec![without]]).is_met());
    assert!(!Parity::of(&[vec![own()]], &[]).is_met(), "frames as well");
}

#[test]
fn faces_are_compared_with_themselves_whatever_their_order() {
    let [a, b] = [face(0.0, 0.0, 0.0), face(300.0, 0.0, 1.0)];
    let expected = [vec![a.clone(), b.clone()]];
    assert!(Parity::of(&expected, &[vec![b, a]]).is_met());
}
