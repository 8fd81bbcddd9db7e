// SPDX-License-Identifier: MPL-2.0
//! Messages that are shown below the picture for some time.

use std::time::{Duration, Instant};

/// Time for which a message is shown.
const TIME: Duration = Duration::from_secs(5);

/// The message, and the end of its display.
#[derive(Debug, Default)]
pub struct Notice {
    shown: Option<(String, Instant)>,
}

impl Notice {
    /// The message; empty if there is none.
    pub fn text(&self) -> &str {
        self.shown.as_ref().map_or("", |(text, _)| text)
    }

    /// Shows a text; an empty text removes it.
    pub fn show(&mut self, text: &str) {
        let until = Instant::now() + TIME;
        self.shown = (!text.is_empty()).then(|| (text.to_owned(), until));
    }

    /// Removes the message if it begins with these words.
    pub fn take_back(&mut self, words: &str) {
        if matches!(&self.shown, Some((text, _)) if text.starts_with(words)) {
            self.show("");
        }
    }

    /// The time at which the message is over.
    pub fn end(&self) -> Option<Instant> {
        self.shown.as_ref().map(|(_, until)| *until)
    }
}
