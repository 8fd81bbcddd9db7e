// SPDX-License-Identifier: MPL-2.0
//! The pages refer to each other correctly.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common;
use crate::docs;
use crate::pages;

/// Size of the README in bytes that is not exceeded.
const README_LIMIT: usize = 8000;

/// The table of contents.
const SUMMARY: &str = "docs/SUMMARY.md";

/// A path without `.` and `..`.
fn normalized(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.to_str().expect("UTF-8").split('/') {
        match part {
            "." | "" => {}
            ".." => assert!(
                parts.pop().is_some(),
                "{} leaves the repository",
                path.display()
            ),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The file of the repository that a link on `page` leads to, and the anchor in it; `None` for
/// other sites.
fn destination(page: &str, link: &str) -> Option<(String, Option<String>)> {
    if link.contains("://") {
        return None;
    }
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    let folder = Path::new(page).parent().expect("a folder");
    let file = match path {
        "" => page.to_owned(),
        path => normalized(&folder.join(path)),
    };
    Some((file, anchor))
}

/// The anchors of a page, as forges and mdBook derive them from its headings.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = pages::prose(page).into_iter();
    let headings = headings.filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    for page in pages::all() {
        for link in pages::links(&page) {
            let Some((file, anchor)) = destination(&page, &link) else {
                continue;
            };
            assert!(common::file(&file).exists(), "{page}: {link}");
            if let Some(anchor) = anchor {
                assert!(anchors(&file).contains(&anchor), "{page}: {link}");
            }
        }
    }
}

/// The book contains only `docs/`, and mdBook does not adapt links to pages named `README.md`.
#[test]
fn links_on_pages_of_the_book_stay_in_it() {
    let mut pages = pages::all();
    pages.retain(|page| page.starts_with("docs/") && page != SUMMARY);
    for page in &pages {
        for link in pages::links(page) {
            let destination = destination(page, &link);
            let is_inside = destination
                .is_none_or(|(file, _)| file.starts_with("docs/") && !file.ends_with("/README.md"));
            assert!(is_inside, "{page}: {link}");
        }
    }
}

#[test]
fn the_table_of_contents_lists_every_page_by_its_title() {
    let mut listed = BTreeSet::new();
    for line in pages::prose(SUMMARY)
        .iter()
        .filter(|line| line.contains("]("))
    {
        let (title, rest) = line.split_once("](").expect("a link");
        let title = title.split_once('[').expect("a title").1;
        let (page, _) = destination(SUMMARY, rest.trim_end_matches(')')).expect("a page");
        let heading = pages::prose(&page).remove(0);
        assert_eq!(heading, format!("# {title}"), "{page}");
        listed.insert(page);
    }
    let mut written = pages::all();
    written.retain(|page| page.starts_with("docs/") && page != SUMMARY);
    assert_eq!(listed, written);
}

/// Programs of other projects.
const FOREIGN: [&str; 2] = ["facetracker.py", "tracker.py"];

#[test]
fn every_source_file_that_a_page_names_exists() {
    let files = pages::files();
    let exists = |name: &str| {
        files
            .iter()
            .any(|file| format!("/{file}").ends_with(&format!("/{name}")))
    };
    for page in pages::guides().filter(|page| page != "CHANGELOG.md") {
        let lines = pages::prose(&page);
        let quoted = lines
            .iter()
            .flat_map(|line| line.split('`').skip(1).step_by(2));
        let sources = quoted.filter(|it| {
            [".rs", ".py", ".sh", ".c"]
                .iter()
                .any(|end| it.ends_with(end))
        });
        for name in sources.filter(|it| !it.contains(['*', ' ']) && !it.starts_with('.')) {
            assert!(exists(name) || FOREIGN.contains(&name), "{page}: {name}");
        }
    }
}

/// The files in a row of the code map are in one of its folders.
#[test]
fn the_code_map_matches_the_code() {
    let files = pages::files();
    let quoted = |text: &str| -> Vec<String> {
        let parts = text.split('`').skip(1).step_by(2);
        parts.map(str::to_owned).collect()
    };
    let lines = pages::prose("ARCHITECTURE.md");
    let rows = lines
        .iter()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" | "));
    for (place, content) in rows {
        let mut folders = quoted(&format!("`{place}"));
        folders.retain(|folder| folder.ends_with('/'));
        for name in quoted(content).iter().filter(|it| it.ends_with(".rs")) {
            let is_there = |folder: &String| {
                let mut inside = files
                    .iter()
                    .filter(|file| format!("/{file}").contains(&format!("/{folder}")));
                inside.any(|file| file.ends_with(&format!("/{name}")))
            };
            assert!(
                folders.is_empty() || folders.iter().any(is_there),
                "{place}: {name}"
            );
        }
    }
}

#[test]
fn the_readme_is_short() {
    let size = docs::text("README.md").len();
    assert!(size <= README_LIMIT, "{size} bytes");
}

#[test]
fn anchors_are_derived_as_forges_do() {
    for (heading, expected) in [
        ("3-D faces", "3-d-faces"),
        ("Packs of InsightFace", "packs-of-insightface"),
        (
            "Why is `facetrackoverlay` slow?",
            "why-is-facetrackoverlay-slow",
        ),
    ] {
        assert_eq!(anchor(heading), expected);
    }
}
