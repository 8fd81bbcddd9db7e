// SPDX-License-Identifier: MPL-2.0
//! Checks of the processor and the environment.

use std::{env, fs, thread};

use super::finding::Finding;

/// Prefixes of variables that change the behaviour of the plugin.
const PREFIXES: [&str; 4] = ["STEP5_", "TRACKING_", "FACETRACK_", "GST_PLUGIN_"];
/// Whole names of such variables.
const NAMES: [&str; 7] = [
    "ORT_DYLIB_PATH",
    "ORT_DISABLE_TELEMETRY",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "INSIGHTFACE_HOME",
    "GST_DEBUG",
];

/// Vector extensions, each with its flag in `/proc/cpuinfo`.
const FEATURES: [(&str, &str); 6] = [
    ("sse4_1", "sse4.1"),
    ("avx", "avx"),
    ("avx2", "avx2"),
    ("fma", "fma"),
    ("avx512f", "avx512f"),
    ("avx512_vnni", "avx512vnni"),
];

/// The processor.
pub(super) fn hardware() -> Vec<Finding> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let features = match features(&cpuinfo)[..] {
        [] => "no vector extensions known to this check".to_owned(),
        ref known => known.join(" "),
    };
    let model = model(&cpuinfo);
    let processor = format!("processor: {model}, {cores} cores, {features}");
    vec![Finding::note(processor)]
}

/// Variables that are set.
pub(super) fn environment() -> Vec<Finding> {
    let variables = env::vars_os().filter_map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        Some((name.into_string().ok()?, value))
    });
    let lines = set_variables(variables);
    if lines.is_empty() {
        return vec![Finding::note("no variable that changes the plugin is set")];
    }
    lines.into_iter().map(Finding::note).collect()
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

fn model(cpuinfo: &str) -> &str {
    entry(cpuinfo, "model name").unwrap_or(env::consts::ARCH)
}

fn features(cpuinfo: &str) -> Vec<&'static str> {
    let flags = entry(cpuinfo, "flags").unwrap_or_default();
    let has = |flag| flags.split(' ').any(|own| own == flag);
    let known = FEATURES.into_iter().filter(|(flag, _)| has(*flag));
    known.map(|(_, name)| name).collect()
}

/// The value of `key` for the first processor.
fn entry<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    let mut entries = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = entries.find(|(own, _)| own.trim() == key)?;
    Some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack::device::{GpuPolicy, LibrarySearch};

    #[test]
    fn every_variable_that_the_plugin_reads_is_listed() {
        let variables = ["STEP5_TRACKING_ENGINE"]
            .into_iter()
            .chain(GpuPolicy::VARIABLES)
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
