// SPDX-License-Identifier: MPL-2.0
//! Clauses that make the engine fail, for tests:
//!
//! - `fail at=N`, `panic at=N`: analysing frame N fails, or panics;
//! - `reduce at=N`, `fall-back at=N`: in frame N, or at the load with N=0, the engine reports that
//!   the GPU has too little memory, or that it can't be used any more.

use super::read_only;
use crate::engine::{EngineError, Notice};
use crate::model::ModelError;

/// Side of the detector's input after `reduce`, px.
const REDUCED: usize = 320;

/// Numbers of the frames that fail.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Faults {
    fail_at: Option<u64>,
    panic_at: Option<u64>,
    reduce_at: Option<u64>,
    fall_back_at: Option<u64>,
}

impl Faults {
    /// Reads a clause.
    pub fn read(&mut self, verb: &str, pairs: &[(&str, &str)]) -> Result<(), String> {
        let frame = match verb {
            "fail" => &mut self.fail_at,
            "panic" => &mut self.panic_at,
            "reduce" => &mut self.reduce_at,
            _ => &mut self.fall_back_at,
        };
        *frame = Some(read_only("at", verb, pairs)?);
        Ok(())
    }

    /// The notices of frame `number`.
    pub fn notices(&self, number: u64) -> impl Iterator<Item = Notice> + use<> {
        let reduced = (self.reduce_at == Some(number)).then(|| Notice::DetectionSizeReduced {
            det_size: REDUCED,
            reason: format!("the script says reduce at={number}"),
        });
        let fell_back = (self.fall_back_at == Some(number)).then(|| Notice::FellBackToCpu {
            reason: format!("the script says fall-back at={number}"),
        });
        reduced.into_iter().chain(fell_back)
    }

    /// Fails in the frames of `fail` and `panic`.
    pub fn check(&self, number: u64) -> Result<(), EngineError> {
        assert!(self.panic_at != Some(number), "the script says panic");
        if self.fail_at == Some(number) {
            return Err(EngineError::Model(ModelError::Run {
                model: "scripted".to_owned(),
                reason: format!("the script says fail at={number}"),
            }));
        }
        Ok(())
    }
}
