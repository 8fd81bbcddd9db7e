// SPDX-License-Identifier: MPL-2.0
//! Pages of the documentation that are generated, as a whole or in part.

use std::fs;

use super::file;

/// Environment variable that makes tests write generated pages instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";

/// Compares a page, relative to the repository, with the text that it should have, or writes it.
#[track_caller]
pub fn assert_generated(page: &str, expected: &str) {
    let path = file(page);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, expected).expect("the page can be written");
        return;
    }
    let actual = fs::read_to_string(path).expect("the page");
    assert!(
        actual == expected,
        "{page} is outdated: run `{UPDATE}=1 cargo test`"
    );
}
