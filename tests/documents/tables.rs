// SPDX-License-Identifier: MPL-2.0
//! The generated tables match the options of the elements, and lists of packages match the code.

use std::collections::BTreeSet;

use facetrack::device::PYTHON_PACKAGES;
use facetrack::observation::Fields;
use gstfacetrack::options;

use crate::common;
use crate::common::column_page;
use crate::common::generated::assert_generated;
use crate::common::metadata_page;
use crate::common::property_table::{self, ELEMENTS};
use crate::common::tool::{Tool, built};
use crate::docs;

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
        let table = property_table::table(&element.expect("the element"));
        assert_table(&page, &name, &table);
    }
}

#[test]
fn the_tables_of_the_metadata_list_every_field() {
    common::init();
    let schema = serde_json::from_str(facetrack::record::JSON_SCHEMA).expect("JSON");
    for (name, group) in [
        ("fields of a face", ""),
        ("fields of fit", "fit"),
        ("fields of morphable", "morphable"),
    ] {
        let table = metadata_page::table(&schema, group);
        assert_table("docs/metadata.md", name, &table);
    }
}

#[test]
fn the_page_of_columns_lists_all_of_them() {
    let schema = serde_json::from_str(facetrack::record::JSON_SCHEMA).expect("JSON");
    for (name, table) in [
        ("columns", column_page::columns(&schema)),
        ("blendshapes", column_page::blendshapes(&schema)),
    ] {
        assert_table("docs/columns.md", name, &table);
    }
}

/// Not a link: packagers of Python refuse links that leave their folder.
#[test]
fn the_schema_of_the_python_package_is_the_published_one() {
    assert_generated(
        "python/facetrack/schema.json",
        facetrack::record::JSON_SCHEMA,
    );
}

#[test]
fn the_table_of_capabilities_lists_every_measurement() {
    let words = Fields::WORDS.iter();
    let words = words.filter(|(field, ..)| Fields::MEASURED.contains(*field));
    let row = |(_, word, meaning): &(_, &str, &str)| format!("| `{word}` | {meaning} |\n");
    let rows: String = words.map(row).collect();
    let table = format!("| field | measurement |\n|---|---|\n{rows}");
    assert_table("docs/applications.md", "measurements", &table);
}

#[test]
fn the_environment_table_lists_every_variable() {
    assert_table(
        "docs/environment.md",
        "environment",
        &options::environment_table(),
    );
}

#[test]
fn the_doctor_lists_every_variable_of_the_environment_table() {
    let table = options::environment_table();
    let rows = table.lines().filter_map(|row| row.strip_prefix("| `"));
    let names: BTreeSet<_> = rows.filter_map(|row| row.split('`').next()).collect();
    assert!(!names.is_empty());
    let doctor = Tool::new(&built("facetrack").to_string_lossy()).arg("doctor");
    let doctor = names.iter().fold(doctor, |tool, name| tool.env(name, "1"));
    let text = doctor.run().text;
    let listed: BTreeSet<_> = text.split_whitespace().collect();
    for name in names {
        assert!(listed.contains(&*format!("{name}=1")), "{name}: {text}");
    }
}

#[test]
fn the_gpu_page_installs_releases_that_fit_together() {
    let page = docs::text("docs/gpu.md");
    for packages in PYTHON_PACKAGES {
        let requirements = [&[packages.runtime], packages.libraries].concat();
        let line = format!("pip install --no-deps {}\n", requirements.join(" "));
        assert!(page.contains(&line), "not in docs/gpu.md: {line}");
    }
}
