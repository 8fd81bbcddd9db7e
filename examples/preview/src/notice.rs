// SPDX-License-Identifier: MPL-2.0
//! Words for the user, in the picture for a while.

use std::time::{Duration, Instant};

use crate::drawing::Drawing;

/// How long they can be read.
const TIME: Duration = Duration::from_secs(5);

/// What is shown, and until when.
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

    /// Shows a text from now on; an empty one is none.
    pub fn show(&mut self, text: &str) {
        self.drawing.set_notice(text);
        let until = Instant::now() + TIME;
        self.shown = (!text.is_empty()).then(|| (text.to_owned(), until));
    }

    /// Shows no more what begins with these words.
    pub fn take_back(&mut self, words: &str) {
        if matches!(&self.shown, Some((text, _)) if text.starts_with(words)) {
            self.show("");
        }
    }

    /// Shows no more what was there long enough. Returns when it is time to ask again.
    pub fn expire(&mut self) -> Option<Instant> {
        if matches!(&self.shown, Some((_, until)) if *until <= Instant::now()) {
            self.show("");
        }
        self.shown.as_ref().map(|(_, until)| *until)
    }
}
