// SPDX-License-Identifier: MPL-2.0

use super::*;

const WIDTH: usize = 40;
const HEIGHT: usize = 30;

fn drawn(draw: impl FnOnce(&mut Mask)) -> Mask {
    let mut mask = Mask::default();
    mask.resize(WIDTH, HEIGHT).unwrap();
    draw(&mut mask);
    assert_spans_hold(&mask);
    mask
}

/// Checks that all covered pixels are in the spans, and the spans in the mask.
fn assert_spans_hold(mask: &Mask) {
    for y in 0..mask.height() {
        let span = mask.span(y);
        assert!(span.end <= mask.width());
        assert!(span.is_empty() || mask.rows().contains(&y), "row {y}");
        for (x, covered) in mask.row(y).iter().enumerate() {
            assert!(*covered == 0 || span.contains(&x), "{x}, {y}");
        }
    }
}

fn line(from: (f32, f32), to: (f32, f32), width: f32) -> Mask {
    let [from, to] = [from, to].map(|(x, y)| Point::new(x, y));
    drawn(|mask| mask.line(from, to, width / 2.0))
}

fn pixels_covered(mask: &Mask) -> f32 {
    let levels = (0..mask.height()).flat_map(|y| mask.row(y));
    levels.map(|level| f32::from(*level) / 255.0).sum()
}

#[test]
fn lines_between_pixels_cover_whole_ones() {
    let mask = line((10.0, 5.0), (20.0, 5.0), 2.0);
    for (x, y, want) in [
        (10, 4, 255),
        (15, 5, 255),
        (19, 5, 255),
        (15, 3, 0),
        (15, 6, 0),
    ] {
        assert_eq!(mask.row(y)[x], want, "{x}, {y}");
    }
    let mask = line((7.0, 3.0), (7.0, 23.0), 4.0);
    let row = &mask.row(10)[3..11];
    assert_eq!(row, [0, 0, 255, 255, 255, 255, 0, 0]);
}

#[test]
fn lines_of_a_pixels_width_are_shared_between_pixels() {
    let mask = line((10.0, 5.0), (20.0, 5.0), 1.0);
    for y in [4, 5] {
        assert!((127..=128).contains(&mask.row(y)[15]), "{y}");
    }
}

/// The area of a line with round ends, at any angle and width.
#[test]
fn lines_cover_their_area() {
    for width in [0.25, 0.5, 1.0, 1.7, 3.0, 6.0] {
        for (x, y) in [
            (12.0, 0.0),
            (0.0, 12.0),
            (9.0, 4.0),
            (-7.0, 10.5),
            (8.0, -8.0),
        ] {
            let mask = line((18.3, 14.6), (18.3 + x, 14.6 + y), width);
            let round: f32 = width.max(1.0);
            let ends = std::f32::consts::PI * round * round / 4.0 * (width / round);
            let area = x.hypot(y) * width + ends;
            let covered = pixels_covered(&mask);
            assert!(
                (covered - area).abs() < 0.1 * area + 0.3,
                "{covered} of {area}: {x}, {y}, {width}"
            );
        }
    }
}

#[test]
fn a_line_of_no_length_is_a_disc() {
    let mask = line((10.0, 10.0), (10.0, 10.0), 6.0);
    let area = std::f32::consts::PI * 9.0;
    assert!((pixels_covered(&mask) - area).abs() < 0.3);
    assert_eq!(mask.row(10)[10], 255);
    assert_eq!(mask.row(10)[6], 0);
}

#[test]
fn lines_that_meet_leave_no_knot() {
    let single = line((5.0, 5.0), (25.0, 12.0), 1.5);
    let middle = Point::new(15.0, 8.5);
    let halves = drawn(|mask| {
        mask.line(Point::new(5.0, 5.0), middle, 0.75);
        mask.line(middle, Point::new(25.0, 12.0), 0.75);
    });
    for y in 0..HEIGHT {
        for (a, b) in single.row(y).iter().zip(halves.row(y)) {
            assert!(a.abs_diff(*b) <= 1, "{a} {b}");
        }
    }
}

#[test]
fn lines_beyond_the_frame_are_cut() {
    for (from, to) in [
        ((-100.0, 10.0), (200.0, 12.0)),
        ((-1e30, -1e30), (1e30, 1e30)),
        ((-50.0, -50.0), (-20.0, -20.0)),
        ((39.9, 29.9), (1e9, 1e9)),
        ((f32::MIN, 5.0), (f32::MAX, 5.0)),
    ] {
        line(from, to, 3.0);
    }
    let through = line((-100.0, 10.0), (200.0, 10.0), 2.0);
    assert!(through.row(9).iter().all(|covered| *covered == 255));
    assert_eq!(pixels_covered(&line((-9.0, 50.0), (60.0, 50.0), 3.0)), 0.0);
}

#[test]
fn what_is_not_finite_covers_nothing() {
    let all = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    for value in all {
        let (a, b) = (Point::new(5.0, value), Point::new(9.0, 9.0));
        let mask = drawn(|mask| {
            mask.line(a, b, 2.0);
            mask.line(b, a, 2.0);
            mask.line(b, b, value);
            mask.fill(Rect::new(value, 1.0, 5.0, 5.0));
            mask.fill(Rect::new(1.0, 1.0, 5.0, value));
        });
        assert_eq!(pixels_covered(&mask), 0.0);
        assert!(mask.rows().is_empty());
    }
    assert_eq!(pixels_covered(&line((5.0, 5.0), (9.0, 9.0), 0.0)), 0.0);
}

#[test]
fn rectangles_cover_parts_of_pixels_at_their_edges() {
    let mask = drawn(|mask| mask.fill(Rect::new(2.5, 3.0, 2.0, 1.5)));
    assert_eq!(mask.row(3)[1..6], [0, 128, 255, 128, 0]);
    assert_eq!(mask.row(4)[1..6], [0, 64, 128, 64, 0]);
    assert_eq!(mask.rows(), 3..5);
    for rect in [
        Rect::new(-5.0, -5.0, 100.0, 100.0),
        Rect::new(-1e30, 0.0, 2e30, 3.0),
        Rect::new(100.0, 0.0, 5.0, 5.0),
        Rect::new(10.0, 10.0, -4.0, 5.0),
        Rect::new(10.0, 10.0, 0.0, 5.0),
    ] {
        drawn(|mask| mask.fill(rect));
    }
    let whole = drawn(|mask| mask.fill(Rect::new(-5.0, -5.0, 100.0, 100.0)));
    assert_eq!(pixels_covered(&whole), (WIDTH * HEIGHT) as f32);
}

#[test]
fn letters_are_cut_at_every_edge() {
    let stamp = Stamp {
        left: 1,
        top: -3,
        width: 4,
        coverage: (1..=12).collect(),
    };
    let (width, height) = (WIDTH as i64, HEIGHT as i64);
    for (x, y, count) in [
        (10, 10, 12),
        (-3, 10, 6),
        (width - 3, 10, 6),
        (10, 1, 4),
        (10, height + 1, 8),
        (-100, 10, 0),
        (width, 10, 0),
        (10, -100, 0),
        (10, height + 100, 0),
        (i64::MIN / 2, i64::MAX / 2, 0),
    ] {
        let mask = drawn(|mask| mask.stamp((x, y), &stamp));
        let covered = (0..HEIGHT).flat_map(|y| mask.row(y));
        assert_eq!(
            covered.filter(|level| **level > 0).count(),
            count,
            "{x}, {y}"
        );
    }
    let mask = drawn(|mask| mask.stamp((-3, 10), &stamp));
    assert_eq!(mask.row(7)[..3], [3, 4, 0], "its right half");
}

#[test]
fn a_mask_is_empty_again() {
    let mut mask = line((-5.0, 2.0), (60.0, 25.0), 5.0);
    mask.clear();
    assert_eq!(pixels_covered(&mask), 0.0);
    assert_spans_hold(&mask);
    mask.resize(7, 3).unwrap();
    mask.fill(Rect::new(0.0, 0.0, 9.0, 9.0));
    assert_eq!(pixels_covered(&mask), 21.0);
    mask.resize(7, 3).unwrap();
    assert_eq!(pixels_covered(&mask), 0.0);
    mask.resize(0, 0).unwrap();
    mask.line(Point::default(), Point::new(5.0, 5.0), 3.0);
    assert!(mask.rows().is_empty());
}
