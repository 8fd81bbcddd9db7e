// SPDX-License-Identifier: MPL-2.0
//! Clauses that make the engine fail, for tests:
//!
//! - `fail at=N`, `panic at=N`, `die at=N`: analysing frame N fails, panics, or ends the process;
//! - `reduce at=N`, `fall-back at=N`: in frame N, or at the load with N=0, the engine reports that
//!   the GPU has too little memory, or that it can't be used any more.

use std::collections::HashMap;
use std::process;

use super::read_only;
use crate::engine::{EngineError, Notice};
use crate::model::{ModelError, Runtimes};

/// Side of the detector's input after `reduce`, px.
const REDUCED: usize = 320;

/// Number of the frame of each clause, by its verb.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Faults(HashMap<String, u64>);

impl Faults {
    /// Reads a clause.
    pub(super) fn read(&mut self, verb: &str, pairs: &[(&str, &str)]) -> Result<(), String> {
        self.0
            .insert(verb.to_owned(), read_only("at", verb, pairs)?);
        Ok(())
    }

    fn is_at(&self, verb: &str, number: u64) -> bool {
        self.0.get(verb) == Some(&number)
    }

    /// Reason of the event `verb`, if it is in frame `number`.
    fn reason(&self, verb: &str, number: u64) -> Option<String> {
        let is_now = self.is_at(verb, number);
        is_now.then(|| format!("the script says {verb} at={number}"))
    }

    /// The notices of frame `number`.
    pub(super) fn notices(&self, number: u64) -> impl Iterator<Item = Notice> + use<> {
        let reduced = self.reason("reduce", number);
        let reduced = reduced.map(|reason| Notice::DetectionSizeReduced {
            det_size: REDUCED,
            reason,
        });
        let fell_back = self.reason("fall-back", number);
        let fell_back = fell_back.map(|reason| Notice::FellBackToCpu {
            reason,
            models: Vec::new(),
            runtimes: Runtimes::default(),
        });
        reduced.into_iter().chain(fell_back)
    }

    /// Adds the notices of frame `number`. Fails in the frames of `fail`, `panic` and `die`.
    pub(super) fn apply(&self, number: u64, notices: &mut Vec<Notice>) -> Result<(), EngineError> {
        notices.extend(self.notices(number));
        assert!(!self.is_at("panic", number), "the script says panic");
        if self.is_at("die", number) {
            process::abort();
        }
        let model = "scripted".to_owned();
        match self.reason("fail", number) {
            Some(reason) => Err(ModelError::Run { model, reason }.into()),
            None => Ok(()),
        }
    }
}
