// SPDX-License-Identifier: MPL-2.0
//! Rounds of an attack, each with random numbers of its own.

use std::env;
use std::ops::Range;
use std::sync::Once;
use std::thread;

use gst::glib;

use crate::common;
use crate::common::noise::Noise;

/// Environment variable with the factor for the number of rounds.
const FACTOR: &str = "FACETRACK_ATTACK";

/// Environment variable with the seed of the only round to run.
const SEED: &str = "FACETRACK_ATTACK_SEED";

/// Starts GStreamer. A critical warning of GLib ends the program.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        common::init();
        glib::log_set_always_fatal(glib::LogLevels::LEVEL_CRITICAL | glib::LogLevels::LEVEL_ERROR);
    });
}

/// Runs `count` rounds, or more if the environment says so.
pub fn run(count: u64, round: impl Fn(&mut Noise)) {
    init();
    for seed in seeds(count) {
        let _told = Told(seed);
        round(&mut Noise::new(seed));
    }
}

fn seeds(count: u64) -> Range<u64> {
    match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..count * number(FACTOR).unwrap_or(1),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

/// Prints the seed of a round that fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("Run this round again with {SEED}={}", self.0);
        }
    }
}

/// One of `choices`.
pub fn pick<'a, T>(noise: &mut Noise, choices: &'a [T]) -> &'a T {
    &choices[noise.below(choices.len())]
}

/// `true` once in `count` times.
pub fn one_in(noise: &mut Noise, count: usize) -> bool {
    noise.below(count) == 0
}
