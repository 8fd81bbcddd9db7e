// SPDX-License-Identifier: MPL-2.0
//! The generated tables match the options of the elements.

use std::fmt::Write as _;

use facetrack::options::OptionSpec;
use facetrack::options::facetrack::FACETRACK;
use facetrack::options::facetrackoverlay::FACETRACKOVERLAY;
use facetrack::options::markdown;
use facetrack::options::trackjsonload::TRACKJSONLOAD;
use facetrack::options::trackjsonsink::TRACKJSONSINK;
use facetrack::options::trackudpsink::TRACKUDPSINK;

use crate::common::generated::assert_generated;
use crate::docs;

/// The elements with their options.
const ELEMENTS: [(&str, &[OptionSpec]); 5] = [
    ("facetrack", FACETRACK),
    ("facetrackoverlay", FACETRACKOVERLAY),
    ("trackjsonsink", TRACKJSONSINK),
    ("trackjsonload", TRACKJSONLOAD),
    ("trackudpsink", TRACKUDPSINK),
];

/// Compares the table `name` on a page with `table`, or writes it.
fn assert_table(page: &str, name: &str, table: &str) {
    let text = docs::text(page);
    let start = format!("<!-- table: {name} -->\n");
    let (before, rest) = text.split_once(&start).expect("a start mark");
    let (_, after) = rest
        .split_once("<!-- end of table -->")
        .expect("an end mark");
    let expected = format!("{before}{start}{table}<!-- end of table -->{after}");
    assert_generated(page, &expected);
}

#[test]
fn the_property_tables_are_those_of_the_elements() {
    for (element, options) in ELEMENTS {
        let page = format!("docs/elements/{element}.md");
        let name = format!("properties of {element}");
        assert_table(&page, &name, &markdown::table(options));
    }
}

#[test]
fn the_environment_table_lists_every_variable() {
    let mut table = String::from("| variable | element | property | engine |\n|---|---|---|---|\n");
    for (element, options) in ELEMENTS {
        for option in options {
            for default in option.env {
                let engine = default.engine.unwrap_or("all");
                let _ = writeln!(
                    table,
                    "| `{}` | `{element}` | `{}` | {engine} |",
                    default.variable, option.name
                );
            }
        }
    }
    assert_table("docs/environment.md", "environment", &table);
}
