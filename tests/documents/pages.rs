// SPDX-License-Identifier: MPL-2.0
//! The pages of the documentation, and their parts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::file;
use crate::docs;

/// Folders without pages: what is built, fetched or hidden.
const SKIPPED: [&str; 2] = ["target", "build"];

/// A block of code.
pub struct Block {
    /// Language after the fence; empty without one.
    pub language: String,
    pub text: String,
}

/// Every file of the repository, relative to its root.
pub fn files() -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    collect("", &mut files);
    files
}

fn collect(folder: &str, files: &mut BTreeSet<String>) {
    for entry in fs::read_dir(file(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = Path::new(folder).join(&name).to_string_lossy().into_owned();
        let kind = entry.file_type().expect("a type");
        if kind.is_file() {
            files.insert(path);
        } else if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            collect(&path, files);
        }
    }
}

/// Every Markdown file of the repository.
pub fn all() -> BTreeSet<String> {
    let mut pages = files();
    pages.retain(|file| file.ends_with(".md"));
    pages
}

/// The pages that users and developers follow: all except the notes next to recorded data.
pub fn guides() -> impl Iterator<Item = String> {
    all().into_iter().filter(|page| !page.starts_with("tests/"))
}

/// The blocks of code on a page.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = docs::text(page);
    let mut parts = text.split("\n```");
    parts.next();
    let mut blocks = Vec::new();
    while let Some(part) = parts.next() {
        let (language, text) = part.split_once('\n').expect("a block has lines");
        blocks.push(Block {
            language: language.to_owned(),
            text: text.to_owned(),
        });
        parts.next().expect("a block ends");
    }
    blocks
}

/// The blocks in one language on a page.
pub fn blocks_in(page: &str, language: &str) -> Vec<String> {
    let blocks = blocks(page).into_iter();
    let wanted = blocks.filter(|block| block.language == language);
    wanted.map(|block| block.text).collect()
}

/// The lines of a page that are not in a block of code.
pub fn prose(page: &str) -> Vec<String> {
    let text = docs::text(page);
    let mut in_block = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    });
    outside.map(str::to_owned).collect()
}

/// The targets of the links and pictures on a page.
pub fn links(page: &str) -> Vec<String> {
    let lines = prose(page);
    let targets = lines.iter().flat_map(|line| line.split("](").skip(1));
    targets
        .filter_map(|rest| rest.split(')').next().map(str::to_owned))
        .collect()
}

#[test]
fn blocks_prose_and_links_are_distinguished() {
    let page = "docs/installing.md";
    assert_eq!(blocks_in(page, "sh")[0], "make deb");
    assert!(prose(page).iter().all(|line| !line.starts_with("make deb")));
    assert!(links(page).contains(&"models.md".to_owned()));
}
