// SPDX-License-Identifier: MPL-2.0
//! Pipes of other programs. They are not trusted: lines may contain any bytes and have any length,
//! and a pipe may stay open after its program has ended.

use std::io::{BufRead, BufReader, Read};
use std::iter;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use facetrack_assets::lock::lock;

/// Maximum length of a line that is shown or kept, bytes. Our choice: longer than any message.
pub(crate) const MAX_LINE: usize = 4 << 10;

/// Marks a text that was shortened.
const SHORTENED: &str = " […]";

/// Time to read the rest of a pipe after its program has ended. Our choice: it is in memory.
const REST: Duration = Duration::from_secs(1);

/// The lines of a pipe, shortened to `max` bytes.
pub(crate) fn lines(from: impl Read, max: usize) -> impl Iterator<Item = String> {
    let mut from = BufReader::new(from);
    iter::from_fn(move || next_line(&mut from, max))
}

fn next_line(from: &mut impl BufRead, max: usize) -> Option<String> {
    let mut line = Vec::new();
    from.take(max as u64).read_until(b'\n', &mut line).ok()?;
    let is_whole = line.len() < max || line.ends_with(b"\n");
    let skipped = if is_whole {
        0
    } else {
        from.skip_until(b'\n').ok()?
    };
    if line.is_empty() {
        return None;
    }
    let mut text = String::from_utf8_lossy(&line).trim_end().to_owned();
    // A skipped newline was the end of a whole line.
    if skipped > 1 {
        text += SHORTENED;
    }
    Some(text)
}

/// A message of at most [`MAX_LINE`] bytes.
pub(crate) fn shortened(mut message: String) -> String {
    if message.len() > MAX_LINE {
        message.truncate(message.floor_char_boundary(MAX_LINE));
        message += SHORTENED;
    }
    message
}

/// Keeps the last line on a pipe that is not empty.
pub(crate) struct LastLine {
    line: Arc<Mutex<String>>,
    end: Receiver<()>,
}

impl LastLine {
    /// Reads `from` in a thread, and shows each line.
    pub(crate) fn of(
        from: impl Read + Send + 'static,
        mut show: impl FnMut(&str) + Send + 'static,
    ) -> Self {
        let line: Arc<Mutex<String>> = Arc::default();
        let (at_end, end) = channel::<()>();
        let kept = line.clone();
        thread::spawn(move || {
            let _at_end = at_end;
            for text in lines(from, MAX_LINE) {
                show(&text);
                if !text.trim().is_empty() {
                    *lock(&kept) = text;
                }
            }
        });
        Self { line, end }
    }

    /// The last line of a program that has ended; empty without one.
    pub(crate) fn get(&self) -> String {
        // Nothing is sent. The call returns when the thread ends.
        let _ = self.end.recv_timeout(REST);
        lock(&self.line).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_any_bytes_and_a_maximum_length() {
        for (bytes, expected) in [
            (&b"a\n\nb"[..], &["a", "", "b"][..]),
            (b"abcd\nabcde\nabcd", &["abcd", "abcd […]", "abcd"]),
            (b"\xff\x1b\r\nb\n", &["\u{fffd}\x1b", "b"]),
            (b"", &[]),
        ] {
            let found: Vec<_> = lines(bytes, 4).collect();
            assert_eq!(found, expected, "{bytes:?}");
        }
    }

    #[test]
    fn messages_are_cut_between_characters() {
        let text = "ä".repeat(MAX_LINE);
        let short = shortened(format!("a{text}"));
        assert!(short.len() <= MAX_LINE + SHORTENED.len() && short.ends_with(SHORTENED));
        assert_eq!(shortened("ä".to_owned()), "ä");
    }

    #[test]
    fn the_last_line_says_something() {
        let (shown, lines) = channel();
        let show = move |line: &str| shown.send(line.to_owned()).expect("a receiver");
        let last = LastLine::of(&b"a\n b\n\n  \n"[..], show);
        assert_eq!(last.get(), "b");
        assert_eq!(lines.iter().count(), 4);
    }
}
