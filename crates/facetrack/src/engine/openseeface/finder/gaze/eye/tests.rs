// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::observation::LandmarkScheme;

/// A face whose landmarks are all at `others`, but for those that are named.
fn face(others: [f32; 2], named: &[(usize, [f32; 2])]) -> Landmarks {
    let at = |[x, y]: [f32; 2]| Landmark { x, y, z: 0.0 };
    let mut points = vec![at(others); 66];
    for (index, position) in named {
        points[*index] = at(*position);
    }
    Landmarks::new(LandmarkScheme::OpenSeeFace66, points)
}

/// An eye as `tracker.py` has it: pivot, angle, window, and where (0, 0) and (1, ¼) of its input
/// are in the image.
struct Want {
    pivot: [f64; 2],
    angle: f64,
    window: [usize; 4],
    corners: [[f32; 2]; 2],
}

fn assert_is(eye: &Eye, want: &Want) {
    assert_eq!(eye.pivot, want.pivot);
    assert!((eye.angle - want.angle).abs() < 1e-6, "{}", eye.angle);
    let Window {
        x,
        y,
        width,
        height,
    } = eye.window;
    assert_eq!([x, y, width, height], want.window);
    for (input, [x, y]) in std::iter::zip([[0.0, 0.0], [1.0, 0.25]], want.corners) {
        let got = eye.image_from_input(input);
        assert!(got.distance(Point::new(x, y)) < 1e-3, "{got:?}");
    }
}

/// Computed with `extract_face`, `corners_to_eye` and `rotate` of `tracker.py` for an image of
/// 640×360.
#[test]
fn eyes_are_where_the_original_has_them() {
    let turned = face(
        [300.0, 200.0],
        &[
            (0, [221.6, 170.2]),
            (8, [300.2, 294.9]),
            (16, [374.0, 140.0]),
            (36, [242.5, 170.5]),
            (39, [274.0, 172.2]),
            (42, [311.4, 171.1]),
            (45, [345.0, 167.2]),
        ],
    );
    let straight = face(
        [300.0, 200.0],
        &[
            (0, [220.0, 100.0]),
            (16, [380.0, 300.0]),
            (36, [240.0, 150.0]),
            (39, [270.0, 150.0]),
            (42, [310.0, 150.0]),
            (45, [340.0, 150.0]),
        ],
    );
    let half_outside = face(
        [30.0, 20.0],
        &[
            (0, [-40.7, -30.2]),
            (8, [30.2, 194.9]),
            (36, [-15.5, 20.5]),
            (39, [14.0, 22.2]),
            (42, [31.4, 21.1]),
            (45, [65.0, 37.2]),
        ],
    );
    let want = |pivot, angle, window, corners| Want {
        pivot,
        angle,
        window,
        corners,
    };
    for (landmarks, window, eyes) in [
        (
            turned,
            [206, 125, 184, 187],
            [
                want(
                    [36.0, 45.0],
                    0.062419,
                    [29, 26, 45, 39],
                    [[236.1988, 150.6004], [280.503, 163.1384]],
                ),
                want(
                    [105.0, 46.0],
                    6.166077,
                    [98, 26, 48, 41],
                    [[349.3823, 146.3465], [302.9087, 162.1347]],
                ),
            ],
        ),
        (
            straight,
            [204, 81, 193, 241],
            [
                want(
                    [36.0, 69.0],
                    0.0,
                    [30, 52, 42, 36],
                    [[234.0, 133.0], [276.0, 142.0]],
                ),
                want(
                    [106.0, 69.0],
                    0.0,
                    [100, 52, 42, 36],
                    [[346.0, 133.0], [304.0, 142.0]],
                ),
            ],
        ),
        (
            half_outside,
            [0, 1, 76, 218],
            [
                want(
                    [-15.0, 19.0],
                    0.068856,
                    [0, 2, 19, 35],
                    [[1.1341, 4.0723], [19.487, 14.1088]],
                ),
                want(
                    [31.0, 20.0],
                    0.439843,
                    [23, 1, 52, 42],
                    [[78.9022, 22.5435], [27.3807, 9.9027]],
                ),
            ],
        ),
    ] {
        let both = Eye::both(&landmarks, [640, 360]).unwrap();
        for (eye, want) in both.iter().zip(&eyes) {
            let Window {
                x,
                y,
                width,
                height,
            } = eye.face;
            assert_eq!([x, y, width, height], window);
            assert_is(eye, want);
        }
        assert_eq!(both.map(|eye| eye.side), [Side::Right, Side::Left]);
    }
}

#[test]
fn eyes_without_a_pixel_in_the_image_are_none() {
    let eye = [(36, [10.0, 10.0]), (39, [40.0, 10.0])];
    let others = |x: f32| [(42, [x, 10.0]), (45, [x + 30.0, 10.0]), (8, [50.0, 90.0])];
    let all = |x: f32| face([30.0, 20.0], &[&eye[..], &others(x)].concat());
    assert!(Eye::both(&all(60.0), [640, 360]).is_some());
    for (name, landmarks, size) in [
        ("an eye of no width", face([30.0, 20.0], &eye), [640, 360]),
        ("an eye outside", all(-500.0), [640, 360]),
        ("a face outside", all(60.0), [5, 5]),
        (
            "a face of nothing",
            Landmarks::new(LandmarkScheme::OpenSeeFace66, vec![]),
            [640, 360],
        ),
        ("a face nowhere", face([f32::NAN; 2], &[]), [640, 360]),
    ] {
        assert_eq!(Eye::both(&landmarks, size), None, "{name}");
    }
}

/// A picture whose red increases along x and whose green increases along y.
fn ramps(width: usize, height: usize) -> Vec<u8> {
    let pixel = |i: usize| [(i % width) as u8, (i / width) as u8, 0];
    (0..width * height).flat_map(pixel).collect()
}

#[test]
fn the_network_sees_columns_as_rows_and_left_eyes_in_a_mirror() {
    let pixels = ramps(200, 200);
    let image = ImageView::rgb(200, 200, &pixels).unwrap();
    let landmarks = face(
        [100.0, 100.0],
        &[
            (0, [30.0, 30.0]),
            (16, [160.0, 160.0]),
            (36, [50.0, 60.0]),
            (39, [80.0, 80.0]),
            (42, [110.0, 80.0]),
            (45, [140.0, 80.0]),
        ],
    );
    let mut patch = Patch::default();
    for eye in Eye::both(&landmarks, [200, 200]).unwrap() {
        let mut input = vec![f32::NAN; 3 * 32 * 32];
        patch.show(&image, &eye, 32, &mut input).unwrap();
        let level = |channel: usize, column: usize, row: usize| {
            let crate::sample::ValueRange { min, max } = crop::shown(eye.face, 1, 1).range;
            let value = input[(channel * 32 + column) * 32 + row];
            (value - min[channel]) / (max[channel] - min[channel]) * 255.0
        };
        for (column, row) in [(3, 3), (3, 28), (28, 3), (16, 16)] {
            let unit = [column, row].map(|v| (v as f64 + 0.5) / 32.0);
            let middle = eye.image_from_input(unit);
            let (x, y) = (level(0, column, row), level(1, column, row));
            // A pixel has the colour at its centre.
            assert!(
                (x - middle.x).abs() < 1.5 && (y - middle.y).abs() < 1.5,
                "{eye:?}: {x} {y} {middle:?}"
            );
        }
    }
}

#[test]
fn large_eyes_cost_no_more_than_others() {
    let pixels = ramps(200, 200).repeat(100);
    let image = ImageView::rgb(2000, 1000, &pixels).unwrap();
    let eye = Eye::between(
        Side::Right,
        Window {
            x: 0,
            y: 0,
            width: 2000,
            height: 1000,
        },
        [[300.0, 500.0], [1700.0, 500.0]],
    )
    .unwrap();
    let mut patch = Patch::default();
    patch
        .show(&image, &eye, 32, &mut [0.0; 3 * 32 * 32])
        .unwrap();
    assert_eq!(patch.pixels.len(), MOST * MOST * 3);
}
