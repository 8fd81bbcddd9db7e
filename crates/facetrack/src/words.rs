// SPDX-License-Identifier: MPL-2.0
//! Enums and flags whose values have a word and a description, and the spelling of words.
//!
//! Both macros also export a macro that passes the words on to another macro, so that users of this
//! crate can give the same words to their own types.

/// An enum whose values have words: `Variant = "word": "description"`; the first is the default.
/// `words!(callback, extra)` calls `callback!(extra, Enum: Variant = "word": "description", …)`.
macro_rules! choices {
    (
        $(#[$meta:meta])* pub enum $name:ident, words $words:ident {
            $first:ident = $first_word:literal: $first_blurb:literal,
            $($variant:ident = $word:literal: $blurb:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name {
            #[doc = concat!("`", $first_word, "`: ", $first_blurb, ".")]
            #[default]
            $first,
            $(#[doc = concat!("`", $word, "`: ", $blurb, ".")] $variant,)*
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $words {
            ($callback:ident, $extra:tt) => {
                $callback! {
                    $extra, $name:
                    $first = $first_word: $first_blurb,
                    $($variant = $word: $blurb,)*
                }
            };
        }
    };
}

/// A set of flags that have words: `NAME = bit, "word": "description"`. `words!` works as in
/// [`choices`].
macro_rules! flags {
    (
        $(#[$meta:meta])* pub struct $set:ident, words $words:ident;
        $($name:ident = $bit:literal, $word:literal: $blurb:literal;)*
    ) => {
        bitflags::bitflags! {
            $(#[$meta])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
            pub struct $set: u32 {
                $(
                    #[doc = concat!("`", $word, "`: ", $blurb, ".")]
                    const $name = 1 << $bit;
                )*
            }
        }

        impl $set {
            /// Each flag with its word and its description.
            pub const WORDS: &[(Self, &str, &str)] = &[$((Self::$name, $word, $blurb)),*];
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! $words {
            ($callback:ident, $extra:tt) => {
                $callback! {
                    $extra, $set:
                    $($name = $bit, $word: $blurb;)*
                }
            };
        }
    };
}

/// Displays the values of enums by their names in metadata and JSON.
macro_rules! display_as_serialized {
    ($($name:ty),*) => {
        $(
            impl std::fmt::Display for $name {
                fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    serde::Serialize::serialize(self, f)
                }
            }
        )*
    };
}

pub(crate) use {choices, display_as_serialized, flags};

/// Parses a switch: `1, true, yes, y, on, all` and their opposites, in upper or lower case; `None`
/// for anything else.
pub fn parse_switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "y" | "on" | "all" => Some(true),
        "0" | "false" | "no" | "n" | "off" | "none" => Some(false),
        _ => None,
    }
}

/// Returns a name in this project's spelling: lower case, with hyphens instead of underscores.
pub fn kebab(text: &str) -> String {
    text.trim().to_ascii_lowercase().replace('_', "-")
}
