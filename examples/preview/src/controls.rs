// SPDX-License-Identifier: MPL-2.0
//! Actions of keys. A key that the page of `facetrack view` also has does the same there.

use facetrack::engine::EngineKind;
use winit::keyboard::{Key, ModifiersState, NamedKey};

use crate::record::Order;

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Pause,
    Seek(Seek),
    Finding(Order),
    Mirror,
    Help,
    /// Show or hide the panels next to the picture.
    Panels,
    NextEngine,
    PreviousEngine,
    Layer(&'static str),
    Send,
    Neutral,
    Record,
    /// Select the blendshape that is so many steps further.
    SelectGain(isize),
    /// Change the gain of the selected blendshape by so many steps.
    ChangeGain(i8),
}

/// Another place in the video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    Start,
    End,
    /// So many frames further.
    Frames(i64),
    /// So many seconds further.
    Seconds(i64),
}

/// Seconds between two places of the keys page up and page down.
const PAGE: i64 = 5;

/// Frames between two places of the arrow keys with Shift, as in the page.
const STRIDE: i64 = 10;

impl Wish {
    /// Returns true if a key that is held does this again and again. A setting would be turned off
    /// again.
    pub fn repeats(self) -> bool {
        matches!(
            self,
            Self::Seek(_) | Self::SelectGain(_) | Self::ChangeGain(_)
        )
    }
}

/// Keys of the layers of `facetrackoverlay`: digits as in the page, and letters for those that the
/// page does not have.
const LAYERS: [(char, &str); 8] = [
    ('1', "boxes"),
    ('2', "labels"),
    ('3', "contours"),
    ('4', "points"),
    ('5', "mesh"),
    ('6', "pose"),
    ('7', "gaze"),
    ('k', "key-points"),
];

/// The keys of the other actions.
const KEYS: [(&str, &str); 18] = [
    ("Space", "pause"),
    ("Left, Right", "one frame back, on"),
    (" with Shift", "ten frames"),
    ("Home, End", "first, last frame"),
    ("Page up, down", "5 s back, on"),
    ("N, P", "next, previous finding"),
    ("", ""),
    ("E", "next engine"),
    (" with Shift", "previous engine"),
    ("L", "learn the neutral face"),
    ("Up, Down", "select a blendshape"),
    ("+, -", "change its gain"),
    ("M", "mirror"),
    ("", ""),
    ("R", "record"),
    ("U", "send to an avatar"),
    ("S", "only the picture"),
    ("Q, Esc", "quit"),
];

/// The engine `steps` after another one, without the scripted one.
pub fn engine_after(current: &str, steps: isize) -> &'static str {
    let engines = EngineKind::ALL.into_iter();
    let real = engines.filter(|engine| !engine.entry().is_synthetic);
    let engines: Vec<_> = real.map(EngineKind::name).collect();
    let index = engines.iter().position(|name| *name == current);
    let index = index.map_or(0, |index| index as isize + steps);
    engines[index.rem_euclid(engines.len() as isize) as usize]
}

/// The action of a key; `None` for keys without an action.
pub fn wish(key: &Key, modifiers: ModifiersState) -> Option<Wish> {
    if modifiers.control_key() || modifiers.alt_key() || modifiers.super_key() {
        return None;
    }
    let is_shifted = modifiers.shift_key();
    let frames = if is_shifted { STRIDE } else { 1 };
    match key {
        Key::Named(NamedKey::Escape) => Some(Wish::Quit),
        Key::Named(NamedKey::Space) => Some(Wish::Pause),
        Key::Named(NamedKey::ArrowRight) => Some(Wish::Seek(Seek::Frames(frames))),
        Key::Named(NamedKey::ArrowLeft) => Some(Wish::Seek(Seek::Frames(-frames))),
        Key::Named(NamedKey::ArrowUp) => Some(Wish::SelectGain(-1)),
        Key::Named(NamedKey::ArrowDown) => Some(Wish::SelectGain(1)),
        Key::Named(NamedKey::Home) => Some(Wish::Seek(Seek::Start)),
        Key::Named(NamedKey::End) => Some(Wish::Seek(Seek::End)),
        Key::Named(NamedKey::PageUp) => Some(Wish::Seek(Seek::Seconds(-PAGE))),
        Key::Named(NamedKey::PageDown) => Some(Wish::Seek(Seek::Seconds(PAGE))),
        Key::Character(text) => of_character(text.chars().next()?.to_ascii_lowercase(), is_shifted),
        _ => None,
    }
}

fn of_character(character: char, is_shifted: bool) -> Option<Wish> {
    match character {
        'q' => Some(Wish::Quit),
        'n' => Some(Wish::Finding(Order::Next)),
        'p' => Some(Wish::Finding(Order::Previous)),
        // The key of a plus sign on many keyboards.
        '+' | '=' => Some(Wish::ChangeGain(1)),
        '-' => Some(Wish::ChangeGain(-1)),
        '?' => Some(Wish::Help),
        'e' if is_shifted => Some(Wish::PreviousEngine),
        'e' => Some(Wish::NextEngine),
        'l' => Some(Wish::Neutral),
        'm' => Some(Wish::Mirror),
        'r' => Some(Wish::Record),
        's' => Some(Wish::Panels),
        'u' => Some(Wish::Send),
        _ => {
            let mut layers = LAYERS.iter();
            let layer = layers.find(|(key, _)| *key == character);
            layer.map(|(_, name)| Wish::Layer(name))
        }
    }
}

/// The keys and their actions, a row each; empty rows separate groups.
pub fn keys() -> impl Iterator<Item = (String, String)> {
    let others = KEYS.iter().map(|(key, action)| (*key, action.to_string()));
    let layers = LAYERS.iter();
    let layers = layers.map(|(key, name)| (key.to_ascii_uppercase(), name.replace('-', " ")));
    let rows = others.map(|(key, action)| (key.to_owned(), action));
    rows.chain([Default::default()])
        .chain(layers.map(|(key, name)| (key.to_string(), name)))
        .chain([("?".to_owned(), "these keys".to_owned())])
}

/// The keys and their actions as text.
pub fn help() -> String {
    let lines = keys().map(|(key, action)| format!("{key:<15}{action}"));
    let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of the page with the same actions.
    const SAME: [(Key, ModifiersState, &str, Wish); 9] = [
        (
            Key::Named(NamedKey::Space),
            ModifiersState::empty(),
            r#"[" ", "Space", "Play or pause""#,
            Wish::Pause,
        ),
        (
            Key::Named(NamedKey::ArrowLeft),
            ModifiersState::empty(),
            r#"["ArrowLeft", "Left", "Previous frame; with Shift, ten frames""#,
            Wish::Seek(Seek::Frames(-1)),
        ),
        (
            Key::Named(NamedKey::ArrowRight),
            ModifiersState::empty(),
            r#"["ArrowRight", "Right", "Next frame; with Shift, ten frames""#,
            Wish::Seek(Seek::Frames(1)),
        ),
        (
            Key::Named(NamedKey::ArrowRight),
            ModifiersState::SHIFT,
            "shiftKey ? 10 : 1",
            Wish::Seek(Seek::Frames(10)),
        ),
        (
            Key::Named(NamedKey::Home),
            ModifiersState::empty(),
            r#"["Home", "Home", "First frame""#,
            Wish::Seek(Seek::Start),
        ),
        (
            Key::Named(NamedKey::End),
            ModifiersState::empty(),
            r#"["End", "End", "Last frame""#,
            Wish::Seek(Seek::End),
        ),
        (
            Key::Character(winit::keyboard::SmolStr::new_inline("n")),
            ModifiersState::empty(),
            r#"["n", "N", "Next finding""#,
            Wish::Finding(Order::Next),
        ),
        (
            Key::Character(winit::keyboard::SmolStr::new_inline("p")),
            ModifiersState::empty(),
            r#"["p", "P", "Previous finding""#,
            Wish::Finding(Order::Previous),
        ),
        (
            Key::Character(winit::keyboard::SmolStr::new_inline("?")),
            ModifiersState::SHIFT,
            r#"["?", "?", "Keys""#,
            Wish::Help,
        ),
    ];

    #[test]
    fn keys_do_the_same_as_in_the_page() {
        let page = include_str!("../../../crates/facetrack-cli/src/view/page.js");
        for (key, modifiers, words, action) in SAME {
            assert!(page.contains(words), "{words}");
            assert_eq!(wish(&key, modifiers), Some(action), "{words}");
        }
        let layers = include_str!("../../../crates/facetrack-cli/src/view/picture.js");
        let layers = layers.split("const LAYERS = [").nth(1).expect("layers");
        let layers = layers.split("];").next().expect("their end");
        let names: Vec<_> = layers.split("[\"").skip(1).collect();
        let names = names.into_iter().filter_map(|rest| rest.split('"').next());
        // The page calls the axes of the head so.
        let names = names.map(|name| if name == "axes" { "pose" } else { name });
        let digits = LAYERS.iter().filter(|(key, _)| key.is_ascii_digit());
        let digits = digits.map(|(_, name)| *name);
        assert_eq!(names.collect::<Vec<_>>(), digits.collect::<Vec<_>>());
    }

    #[test]
    fn keys_of_the_desktop_have_no_action() {
        let key = Key::Character("q".into());
        for modifiers in [
            ModifiersState::CONTROL,
            ModifiersState::ALT,
            ModifiersState::SUPER,
        ] {
            assert_eq!(wish(&key, modifiers), None);
        }
    }
}
