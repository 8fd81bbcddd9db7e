// SPDX-License-Identifier: MPL-2.0
//! The processor, and what the environment says.

use std::{env, fs, thread};

use super::finding::{Finding, Section};

/// Variables that change what the plugin does, by prefix.
const PREFIXES: [&str; 4] = ["STEP5_", "TRACKING_", "FACETRACK_", "GST_PLUGIN_"];
/// The same, whole.
const NAMES: [&str; 6] = [
    "ORT_DYLIB_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "INSIGHTFACE_HOME",
    "GST_DEBUG",
];

/// The processor.
pub fn hardware() -> Section {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let features = features();
    let features = if features.is_empty() {
        "no vector extensions known to this check".to_owned()
    } else {
        features.join(" ")
    };
    Section::new(
        "Machine",
        vec![Finding::note(format!(
            "processor: {}, {cores} cores, {features}",
            model()
        ))],
    )
}

/// Variables that are set.
pub fn environment() -> Section {
    let mut findings: Vec<Finding> = set_variables(env::vars_os().filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    }))
    .into_iter()
    .map(Finding::note)
    .collect();
    if findings.is_empty() {
        findings.push(Finding::note("no variable that changes the plugin is set"));
    }
    Section::new("Environment", findings)
}

fn set_variables(variables: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let mut lines: Vec<String> = variables
        .filter(|(name, _)| {
            NAMES.contains(&name.as_str()) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    lines
}

fn model() -> String {
    let information = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    information
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map_or_else(
            || env::consts::ARCH.to_owned(),
            |(_, name)| name.trim().to_owned(),
        )
}

#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    let known = [
        ("sse4.1", is_x86_feature_detected!("sse4.1")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    known
        .into_iter()
        .filter_map(|(name, has)| has.then_some(name))
        .collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn features() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack::device::{Gate, LibrarySearch};

    #[test]
    fn every_variable_that_the_plugin_reads_is_listed() {
        let variables = ["STEP5_TRACKING_ENGINE"]
            .into_iter()
            .chain(Gate::VARIABLES)
            .chain(LibrarySearch::VARIABLES)
            .chain(["CUDA_VISIBLE_DEVICES", "INSIGHTFACE_HOME"])
            .map(|variable| (variable.to_owned(), "1".to_owned()))
            .collect::<Vec<_>>();
        assert_eq!(
            set_variables(variables.clone().into_iter()).len(),
            variables.len()
        );
    }

    #[test]
    fn only_variables_of_the_plugin_are_listed() {
        let variables = [
            ("STEP5_TRACKING_ENGINE", "mediapipe"),
            ("HOME", "/root"),
            ("ORT_DYLIB_PATH", "/lib/x.so"),
            ("CUDA_HOME_OLD", "/cuda"),
        ];
        let lines = set_variables(
            variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        assert_eq!(
            lines,
            [
                "ORT_DYLIB_PATH=/lib/x.so",
                "STEP5_TRACKING_ENGINE=mediapipe"
            ]
        );
    }
}
