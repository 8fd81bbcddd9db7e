// SPDX-License-Identifier: MPL-2.0
//! Random numbers that are the same in every run, and faces made of them.
#![allow(dead_code, reason = "each test program uses its part")]

use facetrack::geometry::{Point, Rect};
use facetrack::observation::{Landmark, LandmarkScheme, Landmarks, Observation};
use facetrack::report::TrackedFace;

/// A generator: Steele's and Vigna's SplitMix64.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns a number from `start` to `end`.
    pub fn between(&mut self, start: f32, end: f32) -> f32 {
        let unit = (self.next() >> 40) as f32 / (1 << 24) as f32;
        start + unit * (end - start)
    }

    /// A length that is close to a whole pixel more often than not.
    fn length(&mut self, start: f32, end: f32) -> f32 {
        let length = self.between(start, end);
        match self.below(3) {
            0 => length,
            1 => length.round() + self.between(-0.001, 0.001),
            _ => (length * 2.0).round() / 2.0 + self.between(-0.001, 0.001),
        }
    }

    /// Faces in and around a frame of this size: with a box, with key points and landmarks, with
    /// only MediaPipe's landmarks.
    pub fn faces(&mut self, count: u32, size: (f32, f32)) -> Vec<TrackedFace> {
        let face = |id| TrackedFace {
            id,
            face: self.face(id % 3, size),
        };
        (1..=count).map(face).collect()
    }

    fn face(&mut self, kind: u32, (width, height): (f32, f32)) -> Observation {
        let bbox = Rect::new(
            self.length(-0.2 * width, width),
            self.length(-0.2 * height, height),
            self.length(1.0, width / 2.0),
            self.length(1.0, height / 2.0),
        );
        let mut face = Observation::from_bbox(bbox);
        face.confidence = Some(self.between(0.0, 1.0));
        if kind > 0 {
            face.landmarks = Some(self.mask(bbox));
        }
        if kind > 1 {
            let mut point = || Point::new(self.between(0.0, width), self.between(0.0, height));
            face.key_points = (0..5).map(|_| point()).collect();
        }
        face
    }

    /// Landmarks whose mean is close to a whole pixel.
    fn mask(&mut self, bbox: Rect) -> Landmarks {
        let points: Vec<_> = (0..478)
            .map(|_| Landmark {
                x: self.between(bbox.x, bbox.right()),
                y: self.between(bbox.y, bbox.bottom()),
                z: self.between(-bbox.width, bbox.width),
            })
            .collect();
        let mut mask = Landmarks::new(LandmarkScheme::MediaPipe478, points);
        let (mean, off) = (mask.mean(), self.between(-0.0001, 0.0001));
        for point in &mut mask.points {
            point.x += mean.x.round() - mean.x + off;
            point.y += mean.y.round() - mean.y - off;
        }
        mask
    }
}

/// Puts `value` in the place of the first one that begins behind `at` in a JSON text.
pub fn replace_value(text: &mut Vec<u8>, at: usize, value: &str) {
    let ends = |byte: &u8| b",:[]{}\n".contains(byte);
    let Some(start) = text[at..].iter().position(ends).map(|i| at + i + 1) else {
        return;
    };
    let length = text[start..].iter().position(ends).unwrap_or(0);
    text.splice(start..start + length, value.bytes());
}
