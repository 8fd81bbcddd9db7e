// SPDX-License-Identifier: MPL-2.0
//! Environment variables that enable or disable the GPU for `device=auto`.

use crate::words::{kebab, parse_switch};

/// Switches the GPU off for `device=auto`.
const DISABLE: &str = "TRACKING_DISABLE_GPU";

/// Switches the GPU on for the engines of [`ENGINES`].
const ENABLE: &str = "STEP5_ENABLE_GPU";

/// The engines that may use a GPU, separated by commas.
const ENGINES: &str = "STEP5_GPU_ENGINES";

/// The number of the GPU, or [`PROCESSOR`] for the CPU.
const NUMBER: &str = "STEP5_INSIGHTFACE_CTX_ID";

/// The number with which InsightFace selects the CPU: `ctx_id` of `prepare` in its model classes,
/// such as in `scrfd.py`.
const PROCESSOR: &str = "-1";

/// Stands for every engine in [`ENGINES`].
const ALL: &str = "all";

/// Permission of the environment for `device=auto` to use the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuPolicy {
    /// The GPU may be used.
    Allowed,
    /// The variables enable the GPU.
    Enabled,
    /// This variable with this value disables the GPU.
    Disabled {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable; empty if it is not set.
        value: String,
    },
}

impl GpuPolicy {
    /// The variables that are read.
    pub const VARIABLES: [&'static str; 4] = [DISABLE, NUMBER, ENABLE, ENGINES];

    /// The variable that is also the default of `gpu-id`. It is ignored if `gpu-id` was set.
    pub const GPU_NUMBER: &'static str = NUMBER;

    /// Reads the variables with `lookup`. `TRACKING_DISABLE_GPU` disables the GPU if it is true,
    /// and `STEP5_INSIGHTFACE_CTX_ID` if it is -1. If `STEP5_ENABLE_GPU` or `STEP5_GPU_ENGINES` is
    /// set, the GPU is enabled only if the first is true and the second lists one of `gpu_engines`,
    /// the names of engines that can use a GPU, or `all`. An empty variable counts as unset.
    pub fn of(gpu_engines: &[&str], lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let value = |name| lookup(name).filter(|value| !value.trim().is_empty());
        if let Some(value) = value(DISABLE).filter(|value| parse_switch(value) == Some(true)) {
            return Self::disabled(DISABLE, Some(value));
        }
        if let Some(value) = value(NUMBER).filter(|value| value.trim() == PROCESSOR) {
            return Self::disabled(NUMBER, Some(value));
        }
        let (enable, engines) = (value(ENABLE), value(ENGINES));
        if enable.is_none() && engines.is_none() {
            return Self::Allowed;
        }
        if enable.as_deref().and_then(parse_switch) != Some(true) {
            return Self::disabled(ENABLE, enable);
        }
        let is_listed = |name: &str| name == ALL || gpu_engines.contains(&name);
        let mut listed = engines
            .iter()
            .flat_map(|names| names.split([',', ';', ' ']));
        if !listed.any(|name| is_listed(&kebab(name))) {
            return Self::disabled(ENGINES, engines);
        }
        Self::Enabled
    }

    /// The variable that should be true or false and is neither, and its value. It leaves the
    /// GPU allowed.
    pub fn invalid_switch(
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(&'static str, String)> {
        let value = lookup(DISABLE).filter(|value| !value.trim().is_empty())?;
        parse_switch(&value).is_none().then_some((DISABLE, value))
    }

    fn disabled(variable: &'static str, value: Option<String>) -> Self {
        Self::Disabled {
            variable,
            value: value.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu_policy(variables: &[(&str, &str)]) -> GpuPolicy {
        GpuPolicy::of(&["insightface"], &|name| {
            let (_, value) = variables.iter().find(|(own, _)| *own == name)?;
            Some((*value).to_owned())
        })
    }

    #[test]
    fn it_is_open_where_nothing_speaks_against_it() {
        for variables in [
            &[][..],
            &[(DISABLE, "0")],
            &[(DISABLE, "no")],
            &[(DISABLE, "")],
            &[(DISABLE, "perhaps")],
            &[(ENABLE, ""), (ENGINES, " ")],
            &[(NUMBER, "0")],
            &[(NUMBER, "-2")],
        ] {
            assert_eq!(gpu_policy(variables), GpuPolicy::Allowed, "{variables:?}");
        }
    }

    #[test]
    fn it_asks_for_the_gpu_where_the_variables_enable_it() {
        for variables in [
            &[(NUMBER, "1"), (ENABLE, "1"), (ENGINES, "all")][..],
            &[(ENABLE, "1"), (ENGINES, "insightface")],
            &[(ENABLE, "true"), (ENGINES, "ALL")],
            &[(ENABLE, " 1 "), (ENGINES, "mediapipe, InsightFace")],
            &[
                (ENABLE, "1"),
                (ENGINES, "eos;insightface"),
                (DISABLE, "off"),
            ],
        ] {
            assert_eq!(gpu_policy(variables), GpuPolicy::Enabled, "{variables:?}");
        }
    }

    #[test]
    fn it_names_the_variable_that_closed_it() {
        for (variables, closing, value) in [
            (&[(DISABLE, "1")][..], DISABLE, "1"),
            (&[(DISABLE, "Yes")], DISABLE, "Yes"),
            (
                &[(DISABLE, "y"), (ENABLE, "1"), (ENGINES, "all")],
                DISABLE,
                "y",
            ),
            (&[(NUMBER, "-1")], NUMBER, "-1"),
            (
                &[(NUMBER, "-1"), (ENABLE, "1"), (ENGINES, "all")],
                NUMBER,
                "-1",
            ),
            (&[(ENABLE, "0")], ENABLE, "0"),
            (&[(ENABLE, "0"), (ENGINES, "all")], ENABLE, "0"),
            (&[(ENABLE, "maybe"), (ENGINES, "all")], ENABLE, "maybe"),
            (&[(ENGINES, "all")], ENABLE, ""),
            (&[(ENABLE, "1")], ENGINES, ""),
            (
                &[(ENABLE, "1"), (ENGINES, "mediapipe")],
                ENGINES,
                "mediapipe",
            ),
            (
                &[(ENABLE, "1"), (ENGINES, "insightface2")],
                ENGINES,
                "insightface2",
            ),
        ] {
            let closed = GpuPolicy::Disabled {
                variable: closing,
                value: value.to_owned(),
            };
            assert_eq!(gpu_policy(variables), closed, "{variables:?}");
        }
    }
}
