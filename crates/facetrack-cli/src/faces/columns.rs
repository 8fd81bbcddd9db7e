// SPDX-License-Identifier: MPL-2.0
//! The order and the choice of the columns of a table. The schema lists them.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::LazyLock;

use facetrack::record::JSON_SCHEMA;
use glob::Pattern;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

use super::{ANY, KEYS, expected, frame_columns};
use crate::table::Column;

/// Keyword of the schema with the columns.
const COLUMNS_KEY: &str = "x-columns";

/// The column of a face that is in every table.
const ID: &str = "id";

/// The page that describes all columns.
const PAGE: &str = "docs/columns.md lists all columns";

/// Minimum likeness of a name that is proposed, 0 to 1, and the maximum number of them. Our choice:
/// a slip of one or two letters is found.
const LIKENESS: f64 = 0.85;
const PROPOSED: usize = 3;

/// A column of the schema.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Listed {
    /// True if a face has hundreds of its numbers.
    large: bool,
    /// True if it is only there for older consumers.
    older: bool,
}

/// The columns of the schema, in the order of a table.
static LISTED: LazyLock<IndexMap<String, Listed>> = LazyLock::new(|| {
    let mut schema: Json = serde_json::from_str(JSON_SCHEMA).unwrap_or_default();
    serde_json::from_value(schema[COLUMNS_KEY].take()).unwrap_or_default()
});

/// Names of all columns that the engines have.
static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let listed = LISTED.keys().filter(|name| !name.ends_with(ANY));
    listed.cloned().chain(expected::all_names()).collect()
});

fn listed(name: &str) -> Option<(usize, &'static Listed)> {
    let any = || Some(format!("{}{ANY}", name.split_once('.')?.0));
    let place = LISTED.get_index_of(name);
    let place = place.or_else(|| LISTED.get_index_of(&any()?))?;
    Some((place, &LISTED[place]))
}

/// The place of a column among others.
pub(super) fn rank(name: &str) -> (usize, String) {
    let place = listed(name).map_or(usize::MAX, |(place, _)| place);
    (place, name.to_owned())
}

/// A value of `--columns`: a name, or a pattern such as `blendshapes.*`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnPattern(Pattern);

impl FromStr for ColumnPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pattern = Pattern::new(text).map_err(|error| error.to_string())?;
        // Records of other programs may have other blendshapes.
        let mut open = KEYS.keys().filter_map(|key| key.strip_suffix('*'));
        let is_known = open.any(|group| text.starts_with(group) && text != group)
            || NAMES.iter().any(|name| pattern.matches(name));
        if is_known {
            return Ok(Self(pattern));
        }
        let names = NAMES.iter().map(String::as_str);
        Err(format!("no column matches. {}", proposal(text, names)))
    }
}

/// The columns that were asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<'a> {
    /// Without any, all columns but those that are large or for older consumers.
    pub patterns: &'a [ColumnPattern],
    /// True if the landmarks are wanted, too.
    pub landmarks: bool,
}

impl Choice<'_> {
    /// Those of a face's columns that are wanted.
    ///
    /// # Errors
    /// Returns an error if a pattern matches none of them, nor a column of the frame.
    pub(crate) fn of(self, columns: Vec<Column>) -> Result<Vec<Column>, String> {
        let frame = frame_columns();
        for ColumnPattern(pattern) in self.patterns {
            let mut all = frame.iter().chain(&columns);
            if !all.any(|column| pattern.matches(&column.name)) {
                return Err(unmatched(pattern, &columns));
            }
        }
        Ok(columns
            .into_iter()
            .filter(|column| self.has(&column.name))
            .collect())
    }

    fn has(self, name: &str) -> bool {
        let (is_large, is_older) =
            listed(name).map_or((false, false), |(_, it)| (it.large, it.older));
        if name == ID || is_large && self.landmarks {
            return true;
        }
        match self.patterns {
            [] => !is_large && !is_older,
            patterns => patterns.iter().any(|it| it.0.matches(name)),
        }
    }
}

fn unmatched(pattern: &Pattern, columns: &[Column]) -> String {
    let text = pattern.as_str();
    if NAMES.iter().any(|name| pattern.matches(name)) {
        return format!(
            "--columns {text}: the engine did not measure it, or it was not recorded: \
             docs/columns.md names the engines, and --set verbose=true records everything"
        );
    }
    let names = columns.iter().map(|column| column.name.as_str());
    format!(
        "--columns {text}: no column matches. {}",
        proposal(text, names)
    )
}

/// The names that are most like a pattern, or their last parts are.
fn proposal<'a>(pattern: &str, names: impl Iterator<Item = &'a str>) -> String {
    let text: String = pattern
        .chars()
        .filter(|it| !"*?[!]".contains(*it))
        .collect();
    let text = text.trim_matches('.');
    let likeness = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or(name);
        let parts = [name, last].map(|it| strsim::jaro_winkler(text, it));
        parts[0].max(parts[1])
    };
    let mut near: Vec<_> = names.map(|name| (likeness(name), name)).collect();
    near.retain(|(likeness, _)| *likeness >= LIKENESS);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<_> = near.into_iter().take(PROPOSED).map(|it| it.1).collect();
    if near.is_empty() {
        return PAGE.to_owned();
    }
    format!("Near: {}. {PAGE}", near.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faces::column;

    fn chosen(patterns: &[&str], landmarks: bool) -> Result<Vec<String>, String> {
        let names = [
            "id",
            "pose.yaw",
            "blendshapes.jawOpen",
            "blendshapes.mine",
            "landmarks",
            "is_speaking",
        ];
        let patterns: Result<Vec<ColumnPattern>, _> =
            patterns.iter().map(|text| text.parse()).collect();
        let choice = Choice {
            patterns: &patterns?,
            landmarks,
        };
        let columns = choice.of(names.map(|name| column(name).unwrap()).into())?;
        Ok(columns.into_iter().map(|column| column.name).collect())
    }

    #[test]
    fn columns_are_chosen_by_patterns() {
        let shapes = ["blendshapes.jawOpen", "blendshapes.mine"];
        let usual = [&["id", "pose.yaw"], &shapes[..]].concat();
        for (patterns, landmarks, want) in [
            (&[][..], false, usual.clone()),
            (&[], true, [&usual[..], &["landmarks"]].concat()),
            (&["blendshapes.*"], false, [&["id"], &shapes[..]].concat()),
            (&["is_*", "seconds"], false, vec!["id", "is_speaking"]),
            (&["*.yaw"], true, vec!["id", "pose.yaw", "landmarks"]),
            (&["blendshapes.min?"], false, vec!["id", "blendshapes.mine"]),
            (
                &["*"],
                false,
                [&usual[..], &["landmarks", "is_speaking"]].concat(),
            ),
        ] {
            assert_eq!(chosen(patterns, landmarks).unwrap(), want, "{patterns:?}");
        }
    }

    #[test]
    fn patterns_without_a_column_are_named_with_near_ones() {
        for (pattern, parts) in [
            (
                "jawOpen",
                &["no column matches", "Near: blendshapes.jawOpen"][..],
            ),
            ("blendshape.*", &["Near: ", "blendshapes.jaw"]),
            ("pose.yav", &["Near: pose.yaw"]),
            ("a[b", &["pattern"]),
            ("xyz*", &["no column matches. docs/columns.md"]),
            (
                "age",
                &[
                    "--columns age: the engine did not measure it",
                    "verbose=true",
                ],
            ),
            (
                "blendshapes.his",
                &["--columns blendshapes.his: no column matches"],
            ),
        ] {
            let error = chosen(&[pattern], false).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }

    #[test]
    fn columns_are_in_the_order_of_the_schema() {
        let order = [
            "id",
            "confidence",
            "pose.yaw",
            "blendshapes._neutral",
            "blendshapes.jawOpen",
            "features.eye_l",
            "landmarks",
            "is_speaking",
        ];
        assert!(order.is_sorted_by_key(|name| rank(name)), "{order:?}");
        assert_eq!(rank("from_the_future").0, usize::MAX);
    }
}
