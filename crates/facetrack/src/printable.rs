// SPDX-License-Identifier: MPL-2.0
//! Text for terminals. Names of files and messages about their content may have characters that
//! change what a terminal shows: they are escaped as in Rust, such as `\u{1b}`.

use std::fmt::{self, Display, Formatter, Write};

/// Characters that change the direction of the text around them (Unicode Standard Annex 9), and
/// separators of lines.
const INVISIBLE: [std::ops::RangeInclusive<char>; 4] = [
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2066}'..='\u{2069}',
    '\u{61c}'..='\u{61c}',
];

/// A text without control characters, on a single line.
pub struct Line<T>(pub T);

/// A text without control characters, except for the ends of its lines.
pub struct Lines<T>(pub T);

impl<T: Display> Display for Line<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaped { to, keeps: "" }, "{}", self.0)
    }
}

impl<T: Display> Display for Lines<T> {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(Escaped { to, keeps: "\n" }, "{}", self.0)
    }
}

/// Escapes the characters that are written to it.
struct Escaped<'a, 'b> {
    to: &'a mut Formatter<'b>,
    /// Control characters that are kept.
    keeps: &'static str,
}

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_escaped = |c: char| is_unsafe(c) && !self.keeps.contains(c);
        for part in text.split_inclusive(is_escaped) {
            match part.chars().next_back().filter(|last| is_escaped(*last)) {
                Some(last) => {
                    self.to.write_str(&part[..part.len() - last.len_utf8()])?;
                    write!(self.to, "{}", last.escape_default())?;
                }
                None => self.to.write_str(part)?,
            }
        }
        Ok(())
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || INVISIBLE.iter().any(|range| range.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, line) in [
            ("a b/ä'\"\\ 人.mp4", "a b/ä'\"\\ 人.mp4"),
            (
                "\x1b]0;title\x07a\x1b[2J",
                "\\u{1b}]0;title\\u{7}a\\u{1b}[2J",
            ),
            ("a\r\nb\t\x7f", "a\\r\\nb\\t\\u{7f}"),
            ("\u{9b}2J \u{202e}4pm", "\\u{9b}2J \\u{202e}4pm"),
            ("", ""),
        ] {
            assert_eq!(Line(text).to_string(), line);
        }
        assert_eq!(Lines("a\r\nb\n").to_string(), "a\\r\nb\n");
    }
}
