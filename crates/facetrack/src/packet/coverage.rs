// SPDX-License-Identifier: MPL-2.0
//! Checks that an engine measures the channels that move an avatar.

use std::collections::BTreeSet;

use super::avatar::{Avatar, CHANNELS};
use crate::engine::{EngineConfig, EngineKind};
use crate::observation::Fields;

/// Number of faces at the start of a stream after which the result is decided. An engine may need
/// frames before it measures everything.
const PATIENCE: u32 = 60;

/// The channel that no engine measures. It counts as unnecessary.
const UNMEASURED: &str = "tongueOut";

/// The measurements that the faces of a stream have had so far.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    faces: u32,
    channels: BTreeSet<&'static str>,
    has_pose: bool,
    is_settled: bool,
}

/// The measurements of a stream that lacks some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack {
    /// Measured channels.
    pub channels: usize,
    /// True if the head pose was measured.
    pub has_pose: bool,
}

impl Coverage {
    /// Counts a face. Returns a lack once, when enough faces were seen.
    pub fn add(&mut self, avatar: &Avatar) -> Option<Lack> {
        if self.is_settled {
            return None;
        }
        self.faces += 1;
        self.has_pose |= avatar.head.is_some();
        self.channels
            .extend(avatar.measured().map(|(name, _)| name));
        (self.is_complete() || self.faces == PATIENCE)
            .then(|| self.settle())
            .flatten()
    }

    /// Handles the end of the stream. Returns the missing measurements of its faces, unless
    /// [`Coverage::add`] has decided.
    pub fn end(&mut self) -> Option<Lack> {
        (!self.is_settled && self.faces > 0)
            .then(|| self.settle())
            .flatten()
    }

    fn settle(&mut self) -> Option<Lack> {
        self.is_settled = true;
        (!self.is_complete()).then_some(Lack {
            channels: self.channels.len(),
            has_pose: self.has_pose,
        })
    }

    fn is_complete(&self) -> bool {
        self.has_pose && are_complete(|name| self.channels.contains(name))
    }
}

/// The names of the engines that measure everything.
pub fn complete_engines() -> Vec<&'static str> {
    let kinds = EngineKind::ALL
        .into_iter()
        .filter(|kind| is_complete(*kind));
    kinds.map(EngineKind::name).collect()
}

fn is_complete(kind: EngineKind) -> bool {
    let info = (kind.entry().describe)(&EngineConfig::default());
    info.is_ok_and(|info| {
        info.measures.contains(Fields::POSE)
            && are_complete(|name| info.blendshapes.iter().any(|own| own == name))
    })
}

fn are_complete(has: impl Fn(&str) -> bool) -> bool {
    CHANNELS.iter().all(|name| *name == UNMEASURED || has(name))
}
