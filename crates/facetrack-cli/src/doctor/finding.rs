// SPDX-License-Identifier: MPL-2.0
//! Results of checks.

use std::fmt;

use facetrack::printable::Line;

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    mark: char,
    text: String,
    remedy: Option<String>,
}

impl Finding {
    /// Creates a finding without a problem.
    pub(super) fn good(text: impl Into<String>) -> Self {
        Self {
            mark: '✓',
            text: text.into(),
            remedy: None,
        }
    }

    /// Creates a finding of a problem; `remedy` is the command that repairs it.
    pub(super) fn bad(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            mark: '✗',
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Creates a finding about something that is optional and not there; `remedy` says how to get it.
    pub(super) fn optional(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            mark: '·',
            ..Self::bad(text, remedy)
        }
    }

    /// Creates a finding that is neither good nor bad.
    pub(super) fn note(text: impl Into<String>) -> Self {
        Self {
            mark: '·',
            ..Self::good(text)
        }
    }

    /// Returns true if something must be done.
    pub(super) fn is_bad(&self) -> bool {
        self.mark == '✗'
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {} {}", self.mark, Line(&self.text))?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "      → {}", Line(remedy)),
            None => Ok(()),
        }
    }
}

/// Findings under one heading.
pub(super) fn section(title: &str, findings: &[Finding]) -> String {
    let lines: String = findings.iter().map(Finding::to_string).collect();
    format!("\n{title}\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_stand_under_what_they_mend() {
        let findings = [
            Finding::good("one"),
            Finding::bad("two", "fix two"),
            Finding::note("three"),
            Finding::optional("four", "get four"),
        ];
        let bad: Vec<_> = findings.iter().map(Finding::is_bad).collect();
        assert_eq!(bad, [false, true, false, false]);
        assert_eq!(
            section("Things", &findings),
            "\nThings\n  ✓ one\n  ✗ two\n      → fix two\n  · three\n  · four\n      → get four\n"
        );
    }
}
