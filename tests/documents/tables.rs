// SPDX-License-Identifier: MPL-2.0
//! The generated tables match the options of the elements.

use gstfacetrack::options;

use crate::common;
use crate::common::generated::assert_generated;
use crate::docs;

const ELEMENTS: [&str; 5] = [
    "facetrack",
    "facetrackoverlay",
    "trackjsonsink",
    "trackjsonload",
    "trackudpsink",
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
    common::init();
    for element in ELEMENTS {
        let page = format!("docs/elements/{element}.md");
        let name = format!("properties of {element}");
        let element = gst::ElementFactory::make(element).build();
        let table = common::property_table::table(&element.expect("the element"));
        assert_table(&page, &name, &table);
    }
}

#[test]
fn the_environment_table_lists_every_variable() {
    assert_table(
        "docs/environment.md",
        "environment",
        &options::environment_table(),
    );
}
