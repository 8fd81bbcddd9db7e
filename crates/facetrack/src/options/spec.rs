// SPDX-License-Identifier: MPL-2.0
//! What a table says of an option.

use thiserror::Error;

use super::Value;

/// One option.
#[derive(Debug, Clone, Copy)]
pub struct OptionSpec {
    /// Its name, in GObject's spelling.
    pub name: &'static str,
    /// What it does, and what special values mean.
    pub blurb: &'static str,
    /// Type, range and built-in default.
    pub kind: Kind,
    /// Unit of the value; empty for none.
    pub unit: &'static str,
    /// Environment variables that give the default, the first that is set wins.
    pub env: &'static [EnvDefault],
    /// Engines that use it; empty for all.
    pub engines: &'static [&'static str],
    /// Engines with a built-in default of their own, which is a number.
    pub engine_defaults: &'static [(&'static str, f64)],
    /// When it may change.
    pub access: Access,
}

/// Type, range and built-in default of an option.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Yes or no.
    Bool {
        /// Built-in default.
        default: bool,
    },
    /// A whole number.
    Int {
        /// Least value.
        min: i32,
        /// Greatest value.
        max: i32,
        /// Built-in default.
        default: i32,
    },
    /// A number.
    Float {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
        /// Built-in default.
        default: f64,
    },
    /// Text, a path or a list.
    Text {
        /// Built-in default; `None` for unset.
        default: Option<&'static str>,
        /// Says what is wrong with a value.
        check: fn(&str) -> Result<(), String>,
    },
    /// One of a few words.
    Choice {
        /// The words; the first is the built-in default.
        choices: &'static [Choice],
    },
    /// Any of a few words, joined by `+`.
    Flags {
        /// The words.
        choices: &'static [Choice],
        /// Built-in default.
        default: &'static str,
    },
    /// A structure that can only be read.
    Structure,
}

/// One word of a [`Kind::Choice`] or of [`Kind::Flags`].
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The word.
    pub nick: &'static str,
    /// What it means.
    pub blurb: &'static str,
}

/// When an option may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// In the states NULL and READY.
    Ready,
    /// At any time; it acts from the next frame on.
    Playing,
    /// Never: it can only be read.
    ReadOnly,
}

impl Access {
    /// What a table says of it.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Ready => "NULL, READY",
            Self::Playing => "always",
            Self::ReadOnly => "read-only",
        }
    }
}

/// An environment variable that gives an option's default.
#[derive(Debug, Clone, Copy)]
pub struct EnvDefault {
    /// Its name.
    pub variable: &'static str,
    /// The engine that it speaks to; `None` for all.
    pub engine: Option<&'static str>,
    /// How it is read.
    pub rule: EnvRule,
}

/// How an environment variable is read.
#[derive(Debug, Clone, Copy)]
pub enum EnvRule {
    /// It holds the option's value.
    Value,
    /// It is a switch: where it is on, the option has this value.
    Switch(i32),
    /// It holds a whole number that the option takes as text.
    Number {
        /// Least.
        min: i32,
        /// Greatest.
        max: i32,
    },
    /// It holds the side of a square, or both of its sides: `640`, `640,640`, `640x640`.
    Square {
        /// Sides are multiples of this.
        step: usize,
    },
}

/// A variable that holds the value for every engine.
pub const fn env(variable: &'static str) -> EnvDefault {
    EnvDefault {
        variable,
        engine: None,
        rule: EnvRule::Value,
    }
}

/// A variable that holds the value for one engine.
pub const fn env_of(engine: &'static str, variable: &'static str) -> EnvDefault {
    EnvDefault {
        variable,
        engine: Some(engine),
        rule: EnvRule::Value,
    }
}

/// A variable that holds a whole number from `min` to `max` as the value for one engine, of an option that is text.
pub const fn env_number_of(
    engine: &'static str,
    variable: &'static str,
    (min, max): (i32, i32),
) -> EnvDefault {
    EnvDefault {
        variable,
        engine: Some(engine),
        rule: EnvRule::Number { min, max },
    }
}

/// A variable that holds a side, a multiple of `step`, or both sides of a square for one engine.
pub const fn env_square_of(
    engine: &'static str,
    variable: &'static str,
    step: usize,
) -> EnvDefault {
    EnvDefault {
        variable,
        engine: Some(engine),
        rule: EnvRule::Square { step },
    }
}

/// A variable that stands for `value` where it is on.
pub const fn env_switch(variable: &'static str, value: i32) -> EnvDefault {
    EnvDefault {
        variable,
        engine: None,
        rule: EnvRule::Switch(value),
    }
}

/// An environment variable whose value was not understood.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("environment variable {variable}={value:?} ignored: {reason}; `{option}` is {used}")]
pub struct EnvWarning {
    /// The variable.
    pub variable: &'static str,
    /// What it holds.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// The option that it is the default of.
    pub option: &'static str,
    /// The value used in its place.
    pub used: String,
}

impl OptionSpec {
    const fn new(name: &'static str, kind: Kind, blurb: &'static str) -> Self {
        Self {
            name,
            blurb,
            kind,
            unit: "",
            env: &[],
            engines: &[],
            engine_defaults: &[],
            access: Access::Ready,
        }
    }

    /// A yes-or-no option.
    pub const fn bool(name: &'static str, default: bool, blurb: &'static str) -> Self {
        Self::new(name, Kind::Bool { default }, blurb)
    }

    /// A whole number from `min` to `max`.
    pub const fn int(
        name: &'static str,
        (min, max, default): (i32, i32, i32),
        blurb: &'static str,
    ) -> Self {
        Self::new(name, Kind::Int { min, max, default }, blurb)
    }

    /// A number from `min` to `max`.
    pub const fn float(
        name: &'static str,
        (min, max, default): (f64, f64, f64),
        blurb: &'static str,
    ) -> Self {
        Self::new(name, Kind::Float { min, max, default }, blurb)
    }

    /// A text that may be anything.
    pub const fn text(
        name: &'static str,
        default: Option<&'static str>,
        blurb: &'static str,
    ) -> Self {
        Self::checked_text(name, default, |_| Ok(()), blurb)
    }

    /// A text of which `check` says what is wrong.
    pub const fn checked_text(
        name: &'static str,
        default: Option<&'static str>,
        check: fn(&str) -> Result<(), String>,
        blurb: &'static str,
    ) -> Self {
        Self::new(name, Kind::Text { default, check }, blurb)
    }

    /// One of a few words, the first is the default.
    pub const fn choice(
        name: &'static str,
        choices: &'static [Choice],
        blurb: &'static str,
    ) -> Self {
        Self::new(name, Kind::Choice { choices }, blurb)
    }

    /// Any of a few words.
    pub const fn flags(
        name: &'static str,
        choices: &'static [Choice],
        default: &'static str,
        blurb: &'static str,
    ) -> Self {
        Self::new(name, Kind::Flags { choices, default }, blurb)
    }

    /// A structure that can only be read.
    pub const fn structure(name: &'static str, blurb: &'static str) -> Self {
        Self::new(name, Kind::Structure, blurb).access(Access::ReadOnly)
    }

    /// With a unit.
    pub const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// With environment variables for its default.
    pub const fn env(mut self, env: &'static [EnvDefault]) -> Self {
        self.env = env;
        self
    }

    /// For these engines only.
    pub const fn engines(mut self, engines: &'static [&'static str]) -> Self {
        self.engines = engines;
        self
    }

    /// With built-in defaults of some engines' own; for numbers.
    pub const fn engine_defaults(mut self, defaults: &'static [(&'static str, f64)]) -> Self {
        self.engine_defaults = defaults;
        self
    }

    /// With another time at which it may change.
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// The name as words: `max-faces` is "Max faces".
    pub fn nick(&self) -> String {
        let mut nick = self.name.replace('-', " ");
        if let Some(first) = nick.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        nick
    }

    /// The blurb with the unit, the environment variables and the engines that the option is for.
    pub fn long_blurb(&self) -> String {
        let mut text = self.blurb.to_owned();
        if !self.unit.is_empty() {
            text += &format!(" [{}]", self.unit);
        }
        if !self.env.is_empty() {
            text += &format!(" (default from {})", self.variables().join(", "));
        }
        for (engine, default) in self.engine_defaults {
            text += &format!(" (default of {engine}: {default})");
        }
        if !self.engines.is_empty() {
            text += &format!(" (engines: {})", self.engines.join(", "));
        }
        text
    }

    /// The environment variables of its default, each once.
    pub fn variables(&self) -> Vec<&'static str> {
        let mut variables: Vec<_> = self.env.iter().map(|default| default.variable).collect();
        variables.dedup();
        variables
    }

    /// The built-in default with `engine`; `None` for unset.
    pub fn default_with(&self, engine: Option<&str>) -> Option<Value> {
        let own = self
            .engine_defaults
            .iter()
            .find(|(name, _)| Some(*name) == engine);
        match (self.kind, own) {
            (Kind::Int { .. }, Some((_, number))) => Some(Value::Int(*number as i32)),
            (Kind::Float { .. }, Some((_, number))) => Some(Value::Float(*number)),
            _ => self.default(),
        }
    }

    /// The built-in default; `None` for unset.
    pub fn default(&self) -> Option<Value> {
        match self.kind {
            Kind::Bool { default } => Some(Value::Bool(default)),
            Kind::Int { default, .. } => Some(Value::Int(default)),
            Kind::Float { default, .. } => Some(Value::Float(default)),
            Kind::Text { default, .. } => default.map(|text| Value::Text(text.to_owned())),
            Kind::Choice { choices } => choices
                .first()
                .map(|choice| Value::Text(choice.nick.to_owned())),
            Kind::Flags { default, .. } => Some(Value::Text(default.to_owned())),
            Kind::Structure => None,
        }
    }

    /// Reads a value from text.
    ///
    /// # Errors
    /// What the text should have been.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let wrong = || format!("not {}", self.expected());
        match self.kind {
            Kind::Bool { .. } => parse_switch(text).map(Value::Bool).ok_or_else(wrong),
            Kind::Int { min, max, .. } => match text.trim().parse() {
                Ok(value) if (min..=max).contains(&value) => Ok(Value::Int(value)),
                _ => Err(wrong()),
            },
            Kind::Float { min, max, .. } => match text.trim().parse() {
                Ok(value) if (min..=max).contains(&value) => Ok(Value::Float(value)),
                _ => Err(wrong()),
            },
            Kind::Text { check, .. } => check(text).map(|()| Value::Text(text.to_owned())),
            Kind::Choice { choices } => choices
                .iter()
                .find(|choice| choice.nick == kebab(text))
                .map(|choice| Value::Text(choice.nick.to_owned()))
                .ok_or_else(wrong),
            Kind::Flags { choices, .. } => {
                let known = |word: &str| choices.iter().any(|choice| choice.nick == word);
                let mut words = text.split('+').filter(|word| !word.is_empty());
                match words.all(known) {
                    true => Ok(Value::Text(text.to_owned())),
                    false => Err(wrong()),
                }
            }
            Kind::Structure => Err("read-only".to_owned()),
        }
    }

    /// The values that it takes, in words.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Bool { .. } => "true or false".to_owned(),
            Kind::Int { min, max, .. } if max == i32::MAX => format!("an integer from {min} up"),
            Kind::Int { min, max, .. } => format!("an integer from {min} to {max}"),
            Kind::Float { min, max, .. } if max == f64::MAX => format!("a number from {min} up"),
            Kind::Float { min, max, .. } => format!("a number from {min} to {max}"),
            Kind::Text { .. } => "a string".to_owned(),
            Kind::Choice { choices } => {
                format!("one of {}", nicks(choices))
            }
            Kind::Flags { choices, .. } => format!("any of {}, joined by +", nicks(choices)),
            Kind::Structure => "a structure".to_owned(),
        }
    }

    /// The first variable that is set and understood.
    pub(super) fn env_default(
        &self,
        engine: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<EnvWarning>,
    ) -> Option<Value> {
        let meant = |default: &&EnvDefault| default.engine.is_none() || default.engine == engine;
        self.env.iter().filter(meant).find_map(|default| {
            let text = env(default.variable).filter(|text| !text.trim().is_empty())?;
            match self.read_env(default.rule, &text) {
                Ok(value) => value,
                Err(reason) => {
                    warnings.push(EnvWarning {
                        variable: default.variable,
                        value: text,
                        reason,
                        option: self.name,
                        used: self
                            .default_with(engine)
                            .map_or("unset".to_owned(), |value| value.to_string()),
                    });
                    None
                }
            }
        })
    }

    fn read_env(&self, rule: EnvRule, text: &str) -> Result<Option<Value>, String> {
        match rule {
            EnvRule::Value => self.parse(text).map(Some),
            EnvRule::Switch(value) => parse_switch(text)
                .map(|on| on.then_some(Value::Int(value)))
                .ok_or_else(|| "not true or false".to_owned()),
            EnvRule::Number { min, max } => match text.trim().parse::<i32>() {
                Ok(number) if (min..=max).contains(&number) => {
                    Ok(Some(Value::Text(number.to_string())))
                }
                _ => Err(format!("not an integer from {min} to {max}")),
            },
            EnvRule::Square { step } => side(text)
                .filter(|side| side.is_multiple_of(step))
                .and_then(|side| self.parse(&side.to_string()).ok())
                .map(Some)
                .ok_or_else(|| {
                    let range = self.expected();
                    format!("not {range} that is a multiple of {step}, or the two sides of a square, as in 640,640")
                }),
        }
    }
}

fn nicks(choices: &[Choice]) -> String {
    let nicks: Vec<_> = choices.iter().map(|choice| choice.nick).collect();
    nicks.join(", ")
}

/// `1, true, yes, y, on, all` and their opposites, in any case; `None` for anything else.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "y" | "on" | "all" => Some(true),
        "0" | "false" | "no" | "n" | "off" | "none" => Some(false),
        _ => None,
    }
}

/// The side of a square of which `text` tells one side or both.
fn side(text: &str) -> Option<usize> {
    let mut sides = text
        .split([',', 'x', 'X'])
        .map(|side| side.trim().parse().ok());
    let first = sides.next()??;
    let is_square = match (sides.next(), sides.next()) {
        (None, _) => true,
        (Some(second), None) => second == Some(first),
        (Some(_), Some(_)) => false,
    };
    is_square.then_some(first)
}

/// A name from outside in the project's spelling: lower case, hyphens for underscores.
pub fn kebab(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('_', "-")
}
