// SPDX-License-Identifier: MPL-2.0
//! Tables of options as documentation shows them.

use std::fmt::Write as _;

use super::{Kind, OptionSpec};

/// A table as Markdown, for the element's page.
pub fn table(options: &[OptionSpec]) -> String {
    let mut text = String::from(
        "| property | values | default | changes in | meaning |\n|---|---|---|---|---|\n",
    );
    for option in options {
        let mut default = option
            .default()
            .map_or(String::new(), |value| format!("`{value}`"));
        for (engine, own) in option.engine_defaults {
            let _ = write!(default, "; {engine}: `{own}`");
        }
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "| `{}` | {} | {default} | {} | {} |",
            option.name,
            with_unit(&option.expected(), option.unit),
            option.access.describe(),
            option.meaning(),
        );
    }
    text
}

impl OptionSpec {
    /// The blurb, with the meaning of each word and the engines that the option is for.
    fn meaning(&self) -> String {
        let mut text = self.blurb.to_owned();
        if let Kind::Choice { choices } | Kind::Flags { choices, .. } = self.kind {
            let words: Vec<_> = choices
                .iter()
                .map(|choice| format!("`{}`: {}", choice.nick, choice.blurb))
                .collect();
            let _ = write!(text, " ({})", words.join("; "));
        }
        if !self.engines.is_empty() {
            let _ = write!(text, " (engines: {})", self.engines.join(", "));
        }
        text
    }
}

fn with_unit(expected: &str, unit: &str) -> String {
    match unit {
        "" => expected.to_owned(),
        unit => format!("{expected}, {unit}"),
    }
}
