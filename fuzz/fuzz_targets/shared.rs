// SPDX-License-Identifier: MPL-2.0
//! Parts of several targets.

use std::alloc::System;
use std::fmt::Display;
use std::path::Path;

use arbitrary::Unstructured;
use cap::Cap;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// The path of every file, which errors have to name.
pub const PATH: &str = "folder/a.file";

/// Calls `read`. The process aborts if that takes more than `limit` bytes of memory.
pub fn within<T>(limit: usize, read: impl FnOnce() -> T) -> T {
    let limit = MEMORY.allocated() + limit;
    MEMORY.set_limit(limit).expect("no other thread allocates");
    let result = read();
    MEMORY.set_limit(usize::MAX).expect("a larger limit");
    result
}

/// The path of every file.
pub fn path() -> &'static Path {
    Path::new(PATH)
}

/// The result, if it is one. An error has to have a message, with one of `places` in it if there
/// are any.
pub fn told<T>(result: Result<T, impl Display>, places: &[&str]) -> Option<T> {
    let error = match result {
        Ok(result) => return Some(result),
        Err(error) => error.to_string(),
    };
    let names = places.is_empty() || places.iter().any(|place| error.contains(place));
    assert!(
        names && !error.is_empty(),
        "an error without a place: {error:?}"
    );
    None
}

/// Noise: Knuth's 64-bit linear congruential generator.
pub struct Noise(u64);

impl Noise {
    /// Noise that depends on the input.
    pub fn new(input: &mut Unstructured) -> Self {
        Self(u64::from(input.arbitrary::<u16>().unwrap_or_default()))
    }

    /// −1…1 in steps of 1/8, so that sums and products of several are exact.
    pub fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % 17) as f32 / 8.0 - 1.0
    }

    /// `count` numbers of −1…1, three of four of them 0, which saves time.
    pub fn sparse(&mut self, count: usize) -> Vec<f32> {
        let numbers = (0..count).map(|index| match index % 4 {
            0 => self.next(),
            _ => 0.0,
        });
        numbers.collect()
    }

    /// `count` numbers of −1…1.
    pub fn take(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A number of this range, the least once the input is used up.
pub fn pick(input: &mut Unstructured, range: std::ops::RangeInclusive<usize>) -> usize {
    let least = *range.start();
    input.int_in_range(range).unwrap_or(least)
}
