// SPDX-License-Identifier: MPL-2.0
//! Results of checks.

use std::fmt;

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    mark: char,
    text: String,
    remedy: Option<String>,
}

impl Finding {
    /// As it should be.
    pub fn good(text: impl Into<String>) -> Self {
        Self {
            mark: '✓',
            text: text.into(),
            remedy: None,
        }
    }

    /// Something is wrong; `remedy` is a command that repairs it.
    pub fn bad(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            mark: '✗',
            text: text.into(),
            remedy: Some(remedy.into()),
        }
    }

    /// Neither good nor bad.
    pub fn note(text: impl Into<String>) -> Self {
        Self {
            mark: '·',
            ..Self::good(text)
        }
    }

    /// Whether something must be done.
    pub fn is_bad(&self) -> bool {
        self.remedy.is_some()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {} {}", self.mark, self.text)?;
        match &self.remedy {
            Some(remedy) => writeln!(f, "      → {remedy}"),
            None => Ok(()),
        }
    }
}

/// Findings under one heading.
#[derive(Debug)]
pub struct Section {
    title: &'static str,
    /// In the order of the screen.
    pub findings: Vec<Finding>,
}

impl Section {
    /// A heading with its findings.
    pub fn new(title: &'static str, findings: Vec<Finding>) -> Self {
        Self { title, findings }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.title)?;
        self.findings.iter().try_for_each(|finding| finding.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_stand_under_what_they_mend() {
        let section = Section::new(
            "Things",
            vec![
                Finding::good("one"),
                Finding::bad("two", "fix two"),
                Finding::note("three"),
            ],
        );
        assert_eq!(
            section.to_string(),
            "\nThings\n  ✓ one\n  ✗ two\n      → fix two\n  · three\n"
        );
    }
}
