// SPDX-License-Identifier: MPL-2.0
//! Actions of keys.

use facetrack::engine::EngineKind;
use winit::keyboard::{Key, NamedKey};

use crate::record::Order;

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Pause,
    Step,
    Seek(Seek),
    Finding(Order),
    Mirror,
    Help,
    NextEngine,
    PreviousEngine,
    Engine(&'static str),
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
    /// The frame before.
    Back,
    Start,
    /// So many seconds further.
    By(i64),
}

/// Seconds between two places of the keys page up and page down.
const PAGE: i64 = 5;

impl Wish {
    /// Returns true if a key that is held does this again and again. A setting would be turned off
    /// again.
    pub fn repeats(self) -> bool {
        matches!(
            self,
            Self::Step | Self::Seek(_) | Self::SelectGain(_) | Self::ChangeGain(_)
        )
    }
}

/// Letters of the layers of `facetrackoverlay`.
const LAYERS: [(char, &str); 10] = [
    ('b', "boxes"),
    ('l', "labels"),
    ('p', "points"),
    ('m', "mesh"),
    ('c', "contours"),
    ('k', "key-points"),
    ('a', "pose"),
    ('g', "gaze"),
    ('s', "blendshapes"),
    ('i', "info"),
];

/// The engines in the order of their digits, without the scripted one.
pub fn engines() -> impl Iterator<Item = &'static str> {
    let engines = EngineKind::ALL.into_iter();
    let real = engines.filter(|engine| !engine.entry().is_synthetic);
    real.map(EngineKind::name)
}

/// The engine `steps` after another one.
pub fn engine_after(current: &str, steps: isize) -> &'static str {
    let engines: Vec<_> = engines().collect();
    let index = engines.iter().position(|name| *name == current);
    let index = index.map_or(0, |index| index as isize + steps);
    engines[index.rem_euclid(engines.len() as isize) as usize]
}

/// The action of a key; `None` for keys without an action.
pub fn wish(key: &Key) -> Option<Wish> {
    match key {
        Key::Named(NamedKey::Escape) => Some(Wish::Quit),
        Key::Named(NamedKey::Space) => Some(Wish::Pause),
        Key::Named(NamedKey::ArrowRight) => Some(Wish::NextEngine),
        Key::Named(NamedKey::ArrowLeft) => Some(Wish::PreviousEngine),
        Key::Named(NamedKey::ArrowUp) => Some(Wish::SelectGain(-1)),
        Key::Named(NamedKey::ArrowDown) => Some(Wish::SelectGain(1)),
        Key::Named(NamedKey::Home) => Some(Wish::Seek(Seek::Start)),
        Key::Named(NamedKey::PageUp) => Some(Wish::Seek(Seek::By(-PAGE))),
        Key::Named(NamedKey::PageDown) => Some(Wish::Seek(Seek::By(PAGE))),
        Key::Character(text) => of_letter(text.chars().next()?.to_ascii_lowercase()),
        _ => None,
    }
}

fn of_letter(letter: char) -> Option<Wish> {
    let layer = |(key, name): &(char, &'static str)| (*key == letter).then_some(Wish::Layer(name));
    match letter {
        'q' => Some(Wish::Quit),
        '.' => Some(Wish::Step),
        ',' => Some(Wish::Seek(Seek::Back)),
        'x' => Some(Wish::Finding(Order::Next)),
        'z' => Some(Wish::Finding(Order::Previous)),
        '+' | '=' => Some(Wish::ChangeGain(1)),
        '-' => Some(Wish::ChangeGain(-1)),
        'f' => Some(Wish::Mirror),
        'h' => Some(Wish::Help),
        'u' => Some(Wish::Send),
        'n' => Some(Wish::Neutral),
        'r' => Some(Wish::Record),
        '1'..='9' => engines()
            .nth(letter as usize - '1' as usize)
            .map(Wish::Engine),
        _ => LAYERS.iter().find_map(layer),
    }
}

/// The keys and their actions.
pub fn help() -> String {
    let engines: Vec<_> = (1..)
        .zip(engines())
        .map(|(digit, name)| format!("{digit} {name}"))
        .collect();
    let layers: Vec<_> = LAYERS
        .iter()
        .map(|(letter, name)| format!("{letter} {name}"))
        .collect();
    let others = [
        "left, right: another engine",
        "f mirror",
        "space pause",
        ". one frame on",
        ", one frame back",
        "page up, page down: 5 s",
        "Home: start",
        "x, z: next, last finding of a record",
        "up, down: another gain",
        "+, -: change the gain",
        "u send to an avatar",
        "n set the neutral face",
        "r record",
        "h keys",
        "q, Esc quit",
    ];
    let others = others.map(str::to_owned);
    let groups = [&engines[..], &layers, &others];
    let lines = groups.iter().flat_map(|group| group.chunks(4));
    let lines: Vec<_> = lines.map(|words| words.join("   ")).collect();
    lines.join("\n")
}
