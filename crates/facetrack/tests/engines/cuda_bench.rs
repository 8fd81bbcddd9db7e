// SPDX-License-Identifier: MPL-2.0
//! `benches/cuda.rs` on the CPU, and its bar, which can be missed.

#[path = "../../../../benches/cuda.rs"]
#[allow(dead_code, reason = "it is a program")]
mod cuda;

use crate::common::drawn::{Face, draw};
use crate::common::engine::installed_paths;

use std::path::Path;

use cuda::parity::{BAR, Parity};
use facetrack::geometry::Rect;
use facetrack::observation::{Landmark, LandmarkScheme, Landmarks, Observation};

/// A face at `x` px, with one landmark as far from its corner as `offset` says and an embedding of
/// that angle.
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

#[test]
fn every_option_runs_on_the_cpu() {
    let pack = match installed_paths().pack(Some(Path::new("insightface"))) {
        Ok(pack) => pack.display().to_string(),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.rgb");
    let face = Face {
        x: 120.0,
        y: 120.0,
        size: 60.0,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    };
    let frame = draw(240, 240, &[face]);
    std::fs::write(&frames, frame.repeat(2)).unwrap();
    let frames = frames.display().to_string();
    let arguments = ["cpu", &pack, &frames, "rgb", "240", "240"].map(str::to_owned);
    cuda::run(&arguments).unwrap();

    let larger = ["cpu", &pack, &frames, "nv12", "2400", "2400"].map(str::to_owned);
    let error = cuda::run(&larger).unwrap_err().to_string();
    assert!(error.contains("not one frame of 8640000 bytes"), "{error}");
}
