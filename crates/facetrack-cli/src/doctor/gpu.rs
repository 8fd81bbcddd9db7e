// SPDX-License-Identifier: MPL-2.0
//! The seven checks of a GPU that the element makes.

use std::env;

use facetrack::device::{Check, GpuPolicy, LibrarySearch, MachineProbe, Outcome, Request, examine};
use facetrack::engine::EngineKind;
use facetrack_remedies::for_fault;

use super::finding::Finding;
use crate::places;

/// Checks the GPU for the engine that may use one, with the options of this environment.
pub(super) fn checks() -> Vec<Finding> {
    let lookup = |name: &str| env::var(name).ok();
    let request = Request {
        gpu_policy: GpuPolicy::of(&EngineKind::gpu_names(), &lookup),
        gpu_id: lookup(GpuPolicy::GPU_NUMBER).and_then(|number| number.trim().parse().ok()),
        libraries: LibrarySearch::of(None, &lookup),
        paths: places::search_paths(),
        visible_devices: lookup("CUDA_VISIBLE_DEVICES"),
        ..Request::default()
    };
    let examined = examine(&request, &mut MachineProbe::default());
    findings(&examined, &request.gpu_policy)
}

fn findings(examined: &[(Check, Outcome)], gpu_policy: &GpuPolicy) -> Vec<Finding> {
    let is_passed = |(_, outcome): &_| matches!(outcome, Outcome::Passed(_));
    // Without a GPU, nothing is wrong.
    let failed: fn(String, String) -> Finding = if examined.first().is_some_and(is_passed) {
        Finding::bad
    } else {
        Finding::optional
    };
    let mut findings: Vec<Finding> = (1..)
        .zip(examined)
        .map(|(number, (check, outcome))| finding(number, *check, outcome, failed))
        .collect();
    findings.push(if examined.iter().all(is_passed) {
        Finding::good("insightface runs on the GPU")
    } else {
        Finding::note(
            "a GPU is optional: without one, insightface runs on the CPU, as every other engine always does",
        )
    });
    if let GpuPolicy::Disabled { variable, value } = gpu_policy {
        let variable = if value.is_empty() {
            format!("{variable} is not set")
        } else {
            format!("{variable}={value}")
        };
        findings.push(Finding::bad(
            format!("{variable}, which disables the GPU for insightface"),
            "Set device=auto, device=cuda or device=cpu, or change the variable",
        ));
    }
    findings
}

fn finding(
    number: usize,
    check: Check,
    outcome: &Outcome,
    failed: fn(String, String) -> Finding,
) -> Finding {
    let title = format!("{number}/{} {}", Check::ALL.len(), check.title());
    match outcome {
        Outcome::Passed(found) => Finding::good(format!("{title}: {found}")),
        Outcome::Failed(fault) => failed(format!("{title}: {fault}"), for_fault(fault)),
        Outcome::Skipped(other) => {
            Finding::note(format!("{title}: not checked without {}", other.title()))
        }
    }
}

#[cfg(test)]
mod tests {
    use facetrack::device::Fault;

    use super::*;
    use crate::doctor::finding::section;

    fn shown(examined: &[(Check, Outcome)], gpu_policy: &GpuPolicy) -> String {
        section("GPU", &findings(examined, gpu_policy))
    }

    fn all_passed() -> Vec<(Check, Outcome)> {
        let passed = |check: &Check| (*check, Outcome::Passed("there".to_owned()));
        Check::ALL.iter().map(passed).collect()
    }

    #[test]
    fn each_check_has_a_line_and_a_remedy_where_it_failed() {
        let mut examined = all_passed();
        examined[4].1 = Outcome::Failed(Fault::NoCudaProvider("/a.so".to_owned()));
        examined[5].1 = Outcome::Skipped(Check::Provider);
        let told = shown(&examined, &GpuPolicy::Allowed);
        for line in [
            "  ✓ 1/7 NVIDIA device: there\n",
            "  ✗ 5/7 ONNX Runtime with the CUDA provider: this ONNX Runtime has no CUDA provider: /a.so\n      → Install one for NVIDIA GPUs",
            "  · 6/7 CUDA's libraries: not checked without ONNX Runtime with the CUDA provider\n",
            "  · a GPU is optional",
        ] {
            assert!(told.contains(line), "{line:?} not in\n{told}");
        }
        assert_eq!(told.lines().filter(|line| line.contains("/7 ")).count(), 7);
        examined[0].1 = Outcome::Failed(Fault::NoDriver("none".to_owned()));
        let told = shown(&examined, &GpuPolicy::Allowed);
        assert!(told.contains("  · 1/7 ") && !told.contains('✗'), "{told}");
    }

    #[test]
    fn a_usable_gpu_and_reasons_against_it_are_reported() {
        let examined = all_passed();
        let told = shown(&examined, &GpuPolicy::Allowed);
        assert!(told.contains("✓ insightface runs on the GPU"), "{told}");
        assert!(!told.contains('✗'), "{told}");
        for (value, named) in [("1", "✗ VARIABLE=1, "), ("", "✗ VARIABLE is not set, ")] {
            let gpu_policy = GpuPolicy::Disabled {
                variable: "VARIABLE",
                value: value.to_owned(),
            };
            let told = shown(&examined, &gpu_policy);
            assert!(told.contains(named), "{told}");
        }
    }
}
