// SPDX-License-Identifier: MPL-2.0
//! Values of options, and the types that they are read as.

/// A value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Of a [`Kind::Bool`](super::Kind::Bool).
    Bool(bool),
    /// Of a [`Kind::Int`](super::Kind::Int).
    Int(i32),
    /// Of a [`Kind::Float`](super::Kind::Float).
    Float(f64),
    /// Of a [`Kind::Text`](super::Kind::Text), the word of a [`Kind::Choice`](super::Kind::Choice), or the words of
    /// [`Kind::Flags`](super::Kind::Flags).
    Text(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

/// A type that an option's value can be read as.
pub trait FromValue: Sized {
    /// The value; `None` when it is of another type, or unset where `Self` has no place for that.
    fn from_value(value: Option<&Value>) -> Option<Self>;
}

macro_rules! from_value {
    ($($type:ty: $variant:ident($value:ident) => $result:expr;)*) => {$(
        impl FromValue for $type {
            fn from_value(value: Option<&Value>) -> Option<Self> {
                match value {
                    Some(Value::$variant($value)) => $result,
                    _ => None,
                }
            }
        }
    )*};
}

from_value! {
    bool: Bool(value) => Some(*value);
    i32: Int(value) => Some(*value);
    u32: Int(value) => u32::try_from(*value).ok();
    usize: Int(value) => usize::try_from(*value).ok();
    f32: Float(value) => Some(*value as f32);
    f64: Float(value) => Some(*value);
    String: Text(value) => Some(value.clone());
}

impl<T: From<String>> FromValue for Option<T> {
    fn from_value(value: Option<&Value>) -> Option<Self> {
        match value {
            None => Some(None),
            Some(Value::Text(text)) => Some(Some(text.clone().into())),
            Some(_) => None,
        }
    }
}

/// An enum of the words of a choice, with its own [`Choice`]s: `Variant = "nick": "blurb"`, the first is the default.
macro_rules! choices {
    (
        $(#[$meta:meta])* pub enum $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_nick:literal: $first_blurb:literal,
            $($(#[$variant_meta:meta])* $variant:ident = $nick:literal: $blurb:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            $(#[$first_meta])*
            #[doc = concat!("`", $first_nick, "`: ", $first_blurb, ".")]
            #[default]
            $first,
            $(
                $(#[$variant_meta])*
                #[doc = concat!("`", $nick, "`: ", $blurb, ".")]
                $variant,
            )*
        }

        impl $name {
            /// The words, as an option lists them; the first is the default.
            pub const CHOICES: &'static [$crate::options::Choice] = &[
                $crate::options::Choice { nick: $first_nick, blurb: $first_blurb },
                $($crate::options::Choice { nick: $nick, blurb: $blurb },)*
            ];

            /// The word.
            pub fn nick(self) -> &'static str {
                Self::CHOICES[self as usize].nick
            }
        }

        impl $crate::options::FromValue for $name {
            fn from_value(value: Option<&$crate::options::Value>) -> Option<Self> {
                let Some($crate::options::Value::Text(word)) = value else {
                    return None;
                };
                [Self::$first, $(Self::$variant),*]
                    .into_iter()
                    .find(|choice| choice.nick() == word)
            }
        }
    };
}

/// A set of the words of an option's flags, with its own [`Choice`]s: `NAME = bit, "nick": "blurb"`.
macro_rules! flags {
    (
        $(#[$meta:meta])* pub struct $set:ident;
        $($name:ident = $bit:literal, $nick:literal: $blurb:literal;)*
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $set(u32);

        impl $set {
            $(
                #[doc = concat!("`", $nick, "`: ", $blurb, ".")]
                pub const $name: Self = Self(1 << $bit);
            )*

            /// Nothing.
            pub const NONE: Self = Self(0);

            /// Everything.
            pub const ALL: Self = Self(0 $(| 1 << $bit)*);

            /// Their words, in the order of their bits.
            pub const CHOICES: &'static [$crate::options::Choice] = &[
                $($crate::options::Choice { nick: $nick, blurb: $blurb },)*
            ];

            /// Whether all of `others` are among them.
            pub fn contains(self, others: Self) -> bool {
                self.0 & others.0 == others.0
            }
        }

        impl std::ops::BitOr for $set {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl $crate::options::FromValue for $set {
            /// The words that are joined by `+`.
            fn from_value(value: Option<&$crate::options::Value>) -> Option<Self> {
                let Some($crate::options::Value::Text(text)) = value else {
                    return None;
                };
                let words = text.split('+').filter(|word| !word.is_empty());
                words
                    .map(|word| {
                        let mut choices = Self::CHOICES.iter();
                        let bit = choices.position(|choice| choice.nick == word)?;
                        Some(Self(1 << bit))
                    })
                    .try_fold(Self::NONE, |all, flag| Some(all | flag?))
            }
        }
    };
}

pub(crate) use {choices, flags};
