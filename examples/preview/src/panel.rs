// SPDX-License-Identifier: MPL-2.0
//! Text next to the picture: the channels, the keys and the state.

use crate::layout::{COLUMNS, LINES, margin};
use crate::pixels::{Area, Pixels};
use crate::text::Letters;

const BACKGROUND: u32 = 0x1b1b1b;
const TEXT: u32 = 0xe0e0e0;
/// At least 4.5 times as bright as the background.
const DIM: u32 = 0x949494;
const ALERT: u32 = 0xff8a80;
const SELECTED: u32 = 0x3a3a4c;
const TRACK: u32 = 0x3c3c3c;
// Blue and orange, which people with colour blindness distinguish. They are not colours of faces.
const BAR: u32 = 0x5a9fd4;
const REST: u32 = 0xf0b050;

/// Columns of the bar, the value and the gain in a row, in letters. The longest name has 19.
const BAR_COLUMN: usize = 20;
const BAR_LETTERS: usize = 9;
const VALUE_COLUMN: usize = 30;
const GAIN_COLUMN: usize = 36;

/// Column of the action of a key.
const ACTION_COLUMN: usize = 16;

/// Column of the text of a row of the state.
const STATE_COLUMN: usize = 9;

/// Width of the mark of a rest value, in letters.
const MARK: f32 = 0.3;

/// Empty part of the height of a bar, at each side.
const BAR_INSET: f32 = 0.2;

/// A blendshape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Channel {
    pub name: &'static str,
    /// `None` if the engine does not measure it, or there is no face.
    pub value: Option<f32>,
    /// The rest value; `None` if none was learned.
    pub rest: Option<f32>,
    pub gain: f32,
}

/// How a text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Normal,
    Dim,
    Alert,
}

impl Tone {
    fn color(self) -> u32 {
        match self {
            Self::Normal => TEXT,
            Self::Dim => DIM,
            Self::Alert => ALERT,
        }
    }
}

/// A row of the state: its name, its text, and how that looks.
pub type Row = (&'static str, String, Tone);

/// Writes lines of text into a part of the window.
pub struct Panel<'a, 'b> {
    pixels: &'a mut Pixels<'b>,
    letters: &'a mut Letters,
    area: Area,
}

impl<'a, 'b> Panel<'a, 'b> {
    /// An empty part of the window.
    pub fn new(pixels: &'a mut Pixels<'b>, letters: &'a mut Letters, area: Area) -> Self {
        pixels.fill(area, BACKGROUND);
        Self {
            pixels,
            letters,
            area,
        }
    }

    /// Draws the channels, with a row each. If the window is too low for all, it has the part of the
    /// list with the selected one.
    pub fn draw_channels(&mut self, title: &str, channels: &[Channel], selected: usize) {
        self.write(0, 0, title, TEXT);
        self.write(0, VALUE_COLUMN, "value gain", DIM);
        let lines = self.lines();
        self.write(lines.saturating_sub(1), 0, "? keys", DIM);
        // Between the title and the last line.
        let rows = lines.saturating_sub(2) as usize;
        for (index, channel) in visible(channels.len(), rows, selected).enumerate() {
            let line = 1 + index as u32;
            if channel == selected {
                let top = self.top(line);
                let area = Area {
                    top,
                    height: self.letters.height,
                    ..self.area
                };
                self.pixels.fill(area, SELECTED);
            }
            self.draw_channel(line, &channels[channel]);
        }
    }

    fn draw_channel(&mut self, line: u32, channel: &Channel) {
        let color = if channel.value.is_some() { TEXT } else { DIM };
        self.write(line, 0, channel.name, color);
        let value = channel
            .value
            .map_or("-".to_owned(), |it| format!("{it:.2}"));
        self.write(line, VALUE_COLUMN, &format!("{value:>5}"), color);
        let gain = format!("×{:.1}", channel.gain);
        let color = if channel.gain == 1.0 { DIM } else { TEXT };
        self.write(line, GAIN_COLUMN, &format!("{gain:>5}"), color);

        let left = self.left(BAR_COLUMN);
        let width = self.letters.width(BAR_LETTERS);
        let inset = (self.letters.height as f32 * BAR_INSET).round() as u32;
        let bar = Area {
            left,
            top: self.top(line) + inset,
            width,
            height: self.letters.height - 2 * inset,
        };
        self.pixels.fill(bar, TRACK);
        let value = channel.value.unwrap_or_default().clamp(0.0, 1.0);
        let filled = (value * width as f32).round() as u32;
        self.pixels.fill(
            Area {
                width: filled,
                ..bar
            },
            BAR,
        );
        if let Some(rest) = channel.rest {
            let mark = (self.letters.advance * MARK).round().max(1.0) as u32;
            let place = (rest.clamp(0.0, 1.0) * (width - mark) as f32).round() as u32;
            let mark = Area {
                left: left + place,
                width: mark,
                top: self.top(line),
                height: self.letters.height - 1,
            };
            self.pixels.fill(mark, REST);
        }
    }

    /// Draws the keys with their actions, in a low window without empty rows.
    pub fn draw_keys(&mut self, keys: impl Iterator<Item = (String, String)>) {
        let mut keys: Vec<_> = keys.collect();
        if keys.len() > self.lines() as usize {
            keys.retain(|(key, _)| !key.is_empty());
        }
        for (line, (key, action)) in keys.iter().enumerate() {
            self.write(line as u32, 0, key, TEXT);
            self.write(line as u32, ACTION_COLUMN, action, DIM);
        }
    }

    /// Draws the rows of the state, and a message.
    pub fn draw_state(&mut self, rows: &[Row], message: &str) {
        let columns = self.columns();
        for (line, (name, text, tone)) in rows.iter().enumerate() {
            self.write(line as u32, 0, name, DIM);
            let text = shortened(text, columns.saturating_sub(STATE_COLUMN));
            self.write(line as u32, STATE_COLUMN, &text, tone.color());
        }
        let first = rows.len() as u32;
        let most = LINES as usize - rows.len();
        for (line, text) in (first..).zip(wrapped(message, columns, most)) {
            self.write(line, 0, &text, TEXT);
        }
    }

    fn write(&mut self, line: u32, column: usize, text: &str, color: u32) {
        if line < self.lines() {
            let place = [self.left(column), self.top(line)];
            self.letters.write(self.pixels, place, text, color);
        }
    }

    fn left(&self, column: usize) -> u32 {
        self.area.left + margin(self.letters) + self.letters.width(column)
    }

    fn top(&self, line: u32) -> u32 {
        self.area.top + margin(self.letters) + line * self.letters.height
    }

    fn lines(&self) -> u32 {
        let margins = 2 * margin(self.letters);
        self.area.height.saturating_sub(margins) / self.letters.height
    }

    fn columns(&self) -> usize {
        let margins = 2 * margin(self.letters);
        self.letters
            .columns(self.area.width.saturating_sub(margins))
    }
}

/// The part of a list of `count` rows that is shown if `rows` fit: the page with the selected row.
fn visible(count: usize, rows: usize, selected: usize) -> std::ops::Range<usize> {
    let rows = rows.min(count);
    let page = selected.checked_div(rows).unwrap_or_default();
    let first = (page * rows).min(count - rows);
    first..first + rows
}

/// A text that has at most so many letters, with a mark where something is left out.
fn shortened(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    kept + "…"
}

/// A text in at most `most` lines of so many letters, broken at blanks.
fn wrapped(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let length = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && length > columns {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    if lines.len() > most {
        let rest = lines.split_off(most.saturating_sub(1)).join(" ");
        lines.push(rest);
    }
    let lines = lines.iter().map(|line| shortened(line, columns));
    lines.collect()
}

/// Every row of a panel ends before its edge.
const _: () = assert!(GAIN_COLUMN + 5 <= COLUMNS && BAR_COLUMN + BAR_LETTERS < VALUE_COLUMN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_moves_only_if_the_selected_channel_is_outside() {
        for (rows, selected, first) in [
            (51, 25, 0),
            (60, 50, 0),
            (20, 0, 0),
            (20, 19, 0),
            (20, 20, 20),
            (20, 39, 20),
            (20, 40, 31),
            (20, 50, 31),
        ] {
            let shown = visible(51, rows, selected);
            assert_eq!(shown.start, first, "{rows} {selected}");
            assert!(shown.contains(&selected), "{rows} {selected}");
            assert_eq!(shown.len(), rows.min(51));
        }
        assert_eq!(visible(51, 0, 3).len(), 0);
    }

    #[test]
    fn long_messages_end_with_a_mark() {
        assert_eq!(wrapped("", 10, 3), Vec::<String>::new());
        assert_eq!(
            wrapped("one two three\nfour", 8, 3),
            ["one two", "three", "four"]
        );
        assert_eq!(
            wrapped("one two three four five six", 8, 2),
            ["one two", "three f…"]
        );
        assert_eq!(wrapped("abcdefghij", 5, 2), ["abcd…"]);
    }

    /// The columns next to a panel keep their colour, whatever is in it.
    #[test]
    fn nothing_is_written_beside_a_panel() {
        let mut letters = Letters::new(1.0);
        let size = [letters.width(COLUMNS) + 20, 720];
        let mut data = vec![0; (size[0] * size[1]) as usize];
        let area = Area {
            left: 10,
            top: 0,
            width: size[0] - 20,
            height: size[1],
        };
        let channel = Channel {
            name: "mouthLowerDownRight",
            value: Some(1.0),
            rest: Some(1.0),
            gain: 10.0,
        };
        let mut pixels = Pixels::new(&mut data, size);
        let mut panel = Panel::new(&mut pixels, &mut letters, area);
        panel.draw_channels("Blendshapes", &[channel; 51], 50);
        panel.draw_keys(crate::controls::keys());
        panel.draw_state(&[("Record", "x".repeat(99), Tone::Alert)], &"y".repeat(999));
        for row in data.chunks_exact(size[0] as usize) {
            assert!(row[..10].iter().all(|pixel| *pixel == 0));
            assert!(row[size[0] as usize - 10..].iter().all(|pixel| *pixel == 0));
        }
        assert!(data.contains(&ALERT) && data.contains(&REST) && data.contains(&BAR));
    }

    #[test]
    fn all_keys_fit_into_a_window_of_the_first_size() {
        let letters = Letters::new(1.0);
        let lines = crate::view::FIRST_SIZE[1] / letters.height;
        assert!(crate::controls::keys().count() as u32 <= lines);
        let longest = crate::controls::keys().map(|(key, action)| {
            assert!(key.len() < ACTION_COLUMN, "{key}");
            action.len()
        });
        assert!(longest.max() <= Some(COLUMNS - ACTION_COLUMN));
    }
}
