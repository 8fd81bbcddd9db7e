// SPDX-License-Identifier: MPL-2.0
//! What a check found.

use std::fmt;

/// One thing looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    level: Level,
    text: String,
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Good,
    Bad,
    Note,
}

impl Finding {
    /// As it should be.
    pub fn good(text: impl Into<String>) -> Self {
        Self::new(Level::Good, text, None)
    }

    /// In need of `remedy`, a command.
    pub fn bad(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(Level::Bad, text, Some(remedy.into()))
    }

    /// Neither good nor bad.
    pub fn note(text: impl Into<String>) -> Self {
        Self::new(Level::Note, text, None)
    }

    /// Whether something must be done.
    pub fn is_bad(&self) -> bool {
        self.level == Level::Bad
    }

    fn new(level: Level, text: impl Into<String>, remedy: Option<String>) -> Self {
        Self {
            level,
            text: text.into(),
            remedy,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.level {
            Level::Good => '✓',
            Level::Bad => '✗',
            Level::Note => '·',
        };
        writeln!(f, "  {mark} {}", self.text)?;
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
    /// A heading with what was found under it.
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
                Finding::bad("two", "mend two"),
                Finding::note("three"),
            ],
        );
        assert_eq!(
            section.to_string(),
            "\nThings\n  ✓ one\n  ✗ two\n      → mend two\n  · three\n"
        );
    }
}
