// SPDX-License-Identifier: MPL-2.0
//! The files that state the version and the date of the release agree.

use crate::docs;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of a file between the first `before` and the next `after`.
#[track_caller]
fn stated_in(path: &str, before: &str, after: &str) -> String {
    let text = docs::text(path);
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let stated = rest.and_then(|rest| rest.split_once(after));
    let (stated, _) = stated.unwrap_or_else(|| panic!("{path} has no {before}"));
    stated.to_owned()
}

#[test]
fn every_package_has_the_version_of_the_workspace() {
    for (path, before, after) in [
        ("meson.build", "\n  version: '", "'"),
        ("python/pyproject.toml", "\nversion = \"", "\""),
        ("examples/cluster/kubernetes.yaml", "/facetrack:", "\n"),
        ("CITATION.cff", "\nversion: ", "\n"),
        ("docs/citing.md", "version = {", "}"),
    ] {
        assert_eq!(stated_in(path, before, after), VERSION, "{path}");
    }
}

#[test]
fn the_changelog_begins_with_this_version_and_its_date() {
    let date = stated_in("Cargo.toml", "\nrelease_date = \"", "\"");
    let changelog = docs::text("CHANGELOG.md");
    let mut headings = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter(|heading| *heading != "[Unreleased]");
    let expected = format!("[{VERSION}] - {date}");
    assert_eq!(headings.next(), Some(expected.as_str()));
    let cited = stated_in("CITATION.cff", "\ndate-released: \"", "\"");
    assert_eq!(cited, date);
    let year = stated_in("docs/citing.md", "year    = {", "}");
    assert!(date.starts_with(&year), "{year}");
}
