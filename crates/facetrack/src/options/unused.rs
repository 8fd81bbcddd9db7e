// SPDX-License-Identifier: MPL-2.0
//! Options that the engine at hand does not read.

use std::fmt;

use super::OptionSpec;

/// Options that were set and have no effect with an engine, since they are for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unused {
    engine: &'static str,
    /// Their names, and the engines that each is for.
    options: Vec<(&'static str, &'static [&'static str])>,
}

impl Unused {
    /// Those of `options` that are not for `engine`; `None` without any.
    pub(super) fn new(
        engine: &'static str,
        options: impl Iterator<Item = &'static OptionSpec>,
    ) -> Option<Self> {
        let options: Vec<_> = options
            .filter(|option| !option.engines.is_empty() && !option.engines.contains(&engine))
            .map(|option| (option.name, option.engines))
            .collect();
        (!options.is_empty()).then_some(Self { engine, options })
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter();
        let options = options.map(|(name, engines)| format!("{name} (for {})", engines.join(", ")));
        write!(
            f,
            "no effect with engine={}: {}. Set an engine that has these properties, or leave them unset",
            self.engine,
            options.collect::<Vec<_>>().join("; ")
        )
    }
}
