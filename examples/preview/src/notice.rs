// SPDX-License-Identifier: MPL-2.0
//! Messages that are shown in the picture for some time.

use std::time::{Duration, Instant};

use crate::drawing::Drawing;

/// Time for which a message is shown.
const TIME: Duration = Duration::from_secs(5);

/// The message, and the end of its display.
pub struct Notice {
    drawing: Drawing,
    shown: Option<(String, Instant)>,
}

impl Notice {
    pub fn new(drawing: Drawing) -> Self {
        Self {
            drawing,
            shown: None,
        }
    }

    /// Shows a text; an empty text removes it.
    pub fn show(&mut self, text: &str) {
        self.drawing.set_notice(text);
        let until = Instant::now() + TIME;
        self.shown = (!text.is_empty()).then(|| (text.to_owned(), until));
    }

    /// Removes the message if it begins with these words.
    pub fn take_back(&mut self, words: &str) {
        if matches!(&self.shown, Some((text, _)) if text.starts_with(words)) {
            self.show("");
        }
    }

    /// Removes a message whose time is over. Returns the time of the next call.
    pub fn expire(&mut self) -> Option<Instant> {
        if matches!(&self.shown, Some((_, until)) if *until <= Instant::now()) {
            self.show("");
        }
        self.shown.as_ref().map(|(_, until)| *until)
    }
}
