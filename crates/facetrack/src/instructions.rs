// SPDX-License-Identifier: MPL-2.0
//! The instruction set of vector code: the best one of the processor, or the one that is set.
//!
//! All elements of a process use the same instruction set, because they share networks. ONNX
//! Runtime chooses its own.

use std::ffi::OsString;
use std::sync::OnceLock;

use fearless_simd::Level;
use thiserror::Error;

/// Environment variable with the name of the instruction set.
pub const VARIABLE: &str = "FACETRACK_SIMD";

/// Instruction set in use; it is set at its first use.
static USED: OnceLock<InstructionSet> = OnceLock::new();

#[derive(Clone, Copy)]
struct InstructionSet {
    name: &'static str,
    level: Level,
}

/// Error for an instruction set that the environment variable names but that is not used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("environment variable {VARIABLE}={value:?} ignored: {reason}; vector code uses {used}")]
pub struct Ignored {
    value: String,
    reason: String,
    used: &'static str,
}

/// Makes vector code use the instruction set that the environment variable names, if it is set;
/// `variable` reads one. Once vector code has run, its instruction set stays.
///
/// # Errors
/// Returns [`Ignored`]; vector code then uses the best instruction set, or the one that it used
/// before.
pub fn set_from_vars(variable: impl Fn(&'static str) -> Option<OsString>) -> Result<(), Ignored> {
    let value = variable(VARIABLE).unwrap_or_default();
    let value = value.to_string_lossy();
    if value.trim().is_empty() {
        return Ok(());
    }
    let wanted = available().into_iter().find(|it| it.name == value.trim());
    let used = match wanted {
        Some(wanted) => *USED.get_or_init(|| wanted),
        None => used(),
    };
    let reason = match wanted {
        Some(wanted) if wanted.name == used.name => return Ok(()),
        Some(_) => "it was set too late".to_owned(),
        None => {
            let names = available().into_iter().map(|it| it.name);
            let names = names.collect::<Vec<_>>().join(", ");
            format!("it is none of those that this processor has ({names})")
        }
    };
    Err(Ignored {
        value: value.into_owned(),
        reason,
        used: used.name,
    })
}

/// The instruction set to run vector code with.
pub(crate) fn level() -> Level {
    used().level
}

fn used() -> InstructionSet {
    *USED.get_or_init(|| available()[0])
}

/// The instruction sets of this processor, the best one first.
#[cfg(target_arch = "x86_64")]
fn available() -> Vec<InstructionSet> {
    let best = Level::new();
    let all = [
        ("avx512", best.as_avx512().map(Level::Avx512)),
        ("avx2", best.as_avx2().map(Level::Avx2)),
        ("sse4.2", best.as_sse4_2().map(Level::Sse4_2)),
        ("sse2", best.as_sse2().map(Level::Sse2)),
    ];
    let available = all.into_iter().filter_map(|(name, level)| {
        let level = level?;
        Some(InstructionSet { name, level })
    });
    available.collect()
}

/// The instruction set of this processor.
#[cfg(not(target_arch = "x86_64"))]
fn available() -> Vec<InstructionSet> {
    let level = Level::new();
    let name = if level.is_fallback() {
        "scalar"
    } else {
        "neon"
    };
    vec![InstructionSet { name, level }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: &str) -> Result<(), Ignored> {
        set_from_vars(|name| (name == VARIABLE).then(|| value.into()))
    }

    #[test]
    fn an_instruction_set_is_used_or_the_reason_is_given() {
        let names: Vec<_> = available().iter().map(|it| it.name).collect();
        let used = used().name;
        assert_eq!(used, names[0]);
        for value in ["", " ", used, &format!(" {used} ")] {
            assert_eq!(set(value), Ok(()), "{value:?}");
        }
        let error = set("avx1024").unwrap_err().to_string();
        let names = names.join(", ");
        assert_eq!(
            error,
            format!(
                r#"environment variable FACETRACK_SIMD="avx1024" ignored: it is none of those that this processor has ({names}); vector code uses {used}"#
            )
        );
    }

    #[test]
    fn vector_code_that_has_run_keeps_its_instruction_set() {
        level();
        for other in &available()[1..] {
            let error = set(other.name).unwrap_err().to_string();
            assert!(error.contains("ignored: it was set too late"), "{error}");
        }
    }
}
