// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]

pub mod file;
pub mod locate;
pub mod lock;
pub mod manifest;
pub mod replacement;
pub mod trust;
