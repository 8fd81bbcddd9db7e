// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::image::{ColorRange, Colorimetry, PixelFormat, Plane};

const WIDTH: usize = 192;
const HEIGHT: usize = 108;

/// Brightness of the pixels of a frame, 0…1.
type Picture = Vec<f32>;

/// Numbers that look random (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// A scene of rectangles, seen `by` pixels further to the right.
fn scene(seed: u64, by: usize) -> Picture {
    let mut numbers = Numbers(seed);
    let mut picture = vec![0.4; WIDTH * HEIGHT];
    for _ in 0..300 {
        let [x, y] = [numbers.below(4 * WIDTH), numbers.below(HEIGHT)];
        let [width, height] = [8 + numbers.below(48), 8 + numbers.below(32)];
        let level = numbers.below(256) as f32 / 255.0;
        for y in y..(y + height).min(HEIGHT) {
            for x in x.max(by)..(x + width).min(by + WIDTH).max(x.max(by)) {
                picture[y * WIDTH + x - by] = level;
            }
        }
    }
    picture
}

fn still(seed: u64, count: usize) -> Vec<Picture> {
    vec![scene(seed, 0); count]
}

fn even(level: f32, count: usize) -> Vec<Picture> {
    vec![vec![level; WIDTH * HEIGHT]; count]
}

fn mixed(from: &[f32], to: &[f32], part: f32) -> Picture {
    let pairs = from.iter().zip(to);
    pairs.map(|(a, b)| a + (b - a) * part).collect()
}

/// A transition of `count` frames between two pictures.
fn transition(from: &[f32], to: &[f32], count: usize) -> Vec<Picture> {
    let part = |n| (n + 1) as f32 / (count + 1) as f32;
    (0..count).map(|n| mixed(from, to, part(n))).collect()
}

fn lit(picture: &[f32], gain: f32) -> Picture {
    picture
        .iter()
        .map(|level| (level * gain).min(1.0))
        .collect()
}

/// A part of `over` in front of a picture: left, top, right and bottom edge.
fn with_window(picture: &[f32], over: &[f32], [x0, y0, x1, y1]: [usize; 4]) -> Picture {
    let mut picture = picture.to_vec();
    for y in y0..y1 {
        picture[y * WIDTH + x0..y * WIDTH + x1].copy_from_slice(&over[y * WIDTH + x0..][..x1 - x0]);
    }
    picture
}

/// Indices of the first frames of shots.
fn cuts(frames: &[Picture]) -> Vec<usize> {
    let mut detector = CutDetector::default();
    let is_cut = |picture: &Picture| {
        let codes: Vec<u8> = picture.iter().map(|level| (level * 255.0) as u8).collect();
        detector.is_cut(Sketch::of(&gray(&codes)).unwrap())
    };
    let found: Vec<bool> = frames.iter().map(is_cut).collect();
    (0..frames.len()).filter(|at| found[*at]).collect()
}

fn gray(codes: &[u8]) -> ImageView<'_> {
    let colorimetry = Colorimetry {
        range: ColorRange::Full,
        ..Colorimetry::default()
    };
    let plane = Plane {
        data: codes,
        stride: WIDTH,
    };
    ImageView::new(PixelFormat::Gray8, WIDTH, HEIGHT, colorimetry, &[plane]).unwrap()
}

#[test]
fn shots_begin_at_hard_cuts() {
    let joined = [still(1, 8), still(2, 8), still(3, 5)].concat();
    assert_eq!(cuts(&joined), [8, 16]);
    // Over frames of one color, a shot begins when there is something to see.
    for level in [0.0, 0.5, 1.0] {
        let joined = [still(1, 8), even(level, 3), still(2, 8)].concat();
        assert_eq!(cuts(&joined), [11], "level {level}");
    }
    let dark: Vec<_> = still(2, 8)
        .iter()
        .map(|picture| lit(picture, 0.2))
        .collect();
    assert_eq!(cuts(&[still(1, 8), dark].concat()), [8]);
}

#[test]
fn another_person_in_the_same_room_is_a_cut() {
    let room = scene(1, 0);
    let with = |seed| with_window(&room, &scene(seed, 0), [60, 10, 140, 108]);
    let joined = [vec![with(6); 8], vec![with(7); 8]].concat();
    assert_eq!(cuts(&joined), [8]);
}

#[test]
fn what_happens_within_a_shot_is_no_cut() {
    let [first, second] = [1, 2].map(|seed| scene(seed, 0));
    let black = even(0.0, 1).remove(0);
    let pan = (0..20).map(|n| scene(1, n * WIDTH / 5)).collect();
    let shake = (0..12).map(|n| scene(1, 20 + n * 7 % 20)).collect();
    let flash = [2.0, 4.0, 2.0].map(|gain| lit(&first, gain)).to_vec();
    let light = [0.3, 1.0, 0.4, 1.0]
        .map(|gain| vec![lit(&first, gain); 6])
        .concat();
    let page = |seed| with_window(&even(0.9, 1)[0], &scene(seed, 0), [20, 20, 110, 90]);
    let desktop = with_window(&even(0.9, 1)[0], &second, [0, 90, 192, 108]);
    let window = with_window(&desktop, &first, [30, 10, 160, 80]);
    let slide = |seed| with_window(&page(seed), &scene(9, 0), [130, 60, 192, 108]);
    let cases: [(&str, Vec<Picture>); 10] = [
        ("a dissolve", transition(&first, &second, 8)),
        ("a fade through black", {
            let [out, into] = [
                transition(&first, &black, 9),
                transition(&black, &second, 9),
            ];
            [out, even(0.0, 4), into, still(2, 5)].concat()
        }),
        ("a white frame", [even(1.0, 2), still(1, 5)].concat()),
        ("black frames", [even(0.0, 3), still(1, 5)].concat()),
        ("a flash", [flash, still(1, 5)].concat()),
        ("a light that is switched", light),
        ("a fast pan", pan),
        ("shake", shake),
        (
            "a window",
            [vec![desktop.clone(); 9], vec![window; 9], vec![desktop; 9]].concat(),
        ),
        (
            "slides",
            [vec![slide(4); 9], vec![slide(5); 9], vec![slide(6); 9]].concat(),
        ),
    ];
    for (name, frames) in cases {
        let is_of_screen = ["a window", "slides"].contains(&name);
        let before = if is_of_screen { 0 } else { 8 };
        let frames = [still(1, before), frames].concat();
        assert_eq!(cuts(&frames), [] as [usize; 0], "{name}");
    }
}

#[test]
fn a_detector_that_was_reset_compares_with_nothing() {
    let codes = [1, 2].map(|seed| scene(seed, 0).iter().map(|it| (it * 255.0) as u8).collect());
    let [first, second]: [Vec<u8>; 2] = codes;
    let mut detector = CutDetector::default();
    assert!(!detector.is_cut(Sketch::of(&gray(&first)).unwrap()));
    detector.reset();
    assert!(!detector.is_cut(Sketch::of(&gray(&second)).unwrap()));
    assert!(detector.is_cut(Sketch::of(&gray(&first)).unwrap()));
}

/// Pictures may be as small as a pixel.
#[test]
fn any_size_can_be_compared() {
    for (width, height) in [(1, 1), (1, 300), (300, 1), (7, 5), (65, 37)] {
        let pixels = vec![77; width * height * 3];
        let image = ImageView::rgb(width, height, &pixels).unwrap();
        let mut detector = CutDetector::default();
        assert!(!detector.is_cut(Sketch::of(&image).unwrap()));
        assert!(
            !detector.is_cut(Sketch::of(&image).unwrap()),
            "{width}×{height}"
        );
    }
}

/// The changes to each of these frames.
fn changes(frames: &[Picture], on_cut: OnCut) -> Vec<Change> {
    let mut detector = CutDetector::default();
    let change = |picture: &Picture| {
        let codes: Vec<u8> = picture.iter().map(|level| (level * 255.0) as u8).collect();
        detector.change(&gray(&codes), on_cut)
    };
    frames.iter().map(change).collect()
}

/// A picture with errors of an encoder, up to `most` of 1, in every 16th pixel.
fn encoded(picture: &[f32], seed: u64, most: f32) -> Picture {
    let mut numbers = Numbers(seed);
    let mut error = || {
        let is_wrong = numbers.below(16) == 0;
        let error = most * (numbers.below(201) as f32 / 100.0 - 1.0);
        if is_wrong { error } else { 0.0 }
    };
    let levels = picture
        .iter()
        .map(|level| (level + error()).clamp(0.0, 1.0));
    levels.collect()
}

#[test]
fn a_picture_that_is_shown_or_encoded_again_is_a_repeat() {
    for (repeats, error) in [(2, 0.0), (5, 0.0), (2, 0.04), (5, 0.02)] {
        // A pan by a 24th of the width per picture.
        let frame = |n: usize| encoded(&scene(3, n / repeats * 8), n as u64, error);
        let frames: Vec<_> = (0..12 * repeats).map(frame).collect();
        for on_cut in [OnCut::Reset, OnCut::Ignore] {
            // From the fifth picture on, the usual change is known.
            let changes = changes(&frames, on_cut).split_off(4 * repeats);
            for (n, change) in changes.into_iter().enumerate() {
                let is_new = n.is_multiple_of(repeats);
                let want = if is_new {
                    Change::Picture
                } else {
                    Change::Repeat
                };
                assert_eq!(change, want, "{repeats} times, {error}: {n}");
            }
        }
    }
}

#[test]
fn a_slow_change_and_pictures_of_nothing_are_no_repeats() {
    let fade: Vec<_> = (0..60)
        .map(|n| lit(&scene(3, 0), 0.4 + 0.01 * n as f32))
        .collect();
    let slow = changes(&fade, OnCut::Reset);
    let repeats = slow.iter().filter(|it| **it == Change::Repeat).count();
    assert!(
        (20..50).contains(&repeats),
        "every third picture is new: {slow:?}"
    );
    let black = changes(&even(0.0, 5), OnCut::Reset);
    assert_eq!(black, [Change::Picture; 5]);
}
