// SPDX-License-Identifier: MPL-2.0
//! The page that describes the record, generated from its JSON Schema.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

/// Definitions that have a section, with its heading.
const SECTIONS: [(&str, &str); 9] = [
    ("dense", "Dense file"),
    ("header", "First line of a jsonl file"),
    ("trailer", "Last line of a jsonl file"),
    ("metadata", "Metadata"),
    ("frame", "Frame"),
    ("object", "Face"),
    ("reduced", "Reduced file"),
    ("reducedFrame", "Frame of a reduced file"),
    ("reducedObject", "Face of a reduced file"),
];

/// The descriptions of keys for programs that read an older format begin with this.
const OLDER: &str = "For older consumers";

const INTRODUCTION: &str = r#"# The JSON record

<!-- Generated from schema/facetrack-2.schema.json: UPDATE_DOCS=1 cargo test --test elements page_describes -->

[`trackjsonsink`](elements/trackjsonsink.md) writes these files. With `format=dense`, a file is one
object with the keys `metadata` and `frames`. With `format=jsonl`, the first line contains the
metadata, each further line a frame, and the last line the metadata again with all counts. Every
frame is on its own line.

Check `complete` in the metadata before you use a file: it is false if the video was cut off or
damaged. While a dense or reduced file is being written, it is named `<name>.partial`. If the stream
breaks off, the file keeps that name. A jsonl file has its final name from the start. If the stream
breaks off, its last line, the trailer, is missing. See [Unfinished files](#unfinished-files).

Positions are in pixels of the analysed frame, with the origin at its top-left corner, x to the
right and y down. Times are in nanoseconds. New keys may be added to any object; `metadata.schema`
changes if anything else does. In the tables, `a.b` is the key `b` of the object `a`.

`trackjsonload` still reads the older schema `facetrack-1`. In that schema, `pts` was the timestamp
of the buffer, gaps were filled by timestamps, and the metadata contained `load_time_ms`. It did not
contain `complete`, `incomplete_reason`, `expected_duration`, `expected_frames`, `decode_errors`,
`corrupted_frames`, `variable_rate`, `orientation` and `start_time`. Older records of both schemas
contain `device_reason`, the reason why the engine ran on its device.

## Head pose
The angles of `pose` turn the head in these directions, named from the person's point of view. In
the picture of a camera, which is not mirrored, it looks like this:

```text
   all angles 0           yaw > 0           pitch > 0            roll > 0
                       to the left            down         to the right shoulder
     .-----.             .-----.             .-----.              .-----.
    /       \           /       \           /       \            /     o \
   |  o   o  |         |    o  o |         |         |          |  o  /   |
   |    |    |         |      \  |         |  o   o  |          |     \   |
   |    |    |         |      /  |         |    |    |          |      \  |
    \  ---  /           \    -- /           \  ---  /            \    -- /
     '-----'             '-----'             '-----'              '-----'
```

The rotation is the product of yaw, pitch and roll, in this order: Ry(yaw)·Rx(pitch)·Rz(roll) with x
to the right, y up and z to the camera. [Packets for avatars](avatars.md#angles) have signs of their
own.

## Unfinished files
- A dense or reduced file has its final name only if it was written to the end, whatever its key
  `complete` says. Its content and its name are on disk (`fsync`) before the element posts
  `trackjsonsink-done`. An existing file is replaced only with `overwrite=true`, and only at that
  moment.
- A `.partial` file exists from before the first frame. It is valid JSON whenever the element is not
  writing, also after an error or a full disk.
- If the process is killed, the last line of the file may be cut off and the end of the JSON may be
  missing. All lines before it are complete, and `trackjsonload` reads them. The newest frames of a
  dense or reduced file, up to 64 kB, are still in memory and are lost. A jsonl file loses no
  complete line, but is empty before the first frame.
- A power failure may also remove lines that were already written to an unfinished file.
- A new run renames an existing `.partial` file with frames to `<name>.partial.old`. If there is a
  `.partial.old` file already, the longer of the two is kept. If the new run ends before its first
  frame, it renames the `.partial.old` file back. If it finishes its record, it deletes the
  `.partial.old` file.
- Only one pipeline can write a file at a time. This is checked on file systems with locks
  (`flock`).

This program reads a file of any format as far as it goes:

```python
import json, sys
head, *lines = open(sys.argv[1], encoding="utf-8", errors="replace").read().split("\n")
frames = []
for line in lines:
    try: frame = json.loads(line.rstrip(","))
    except ValueError: break
    if "frame" in frame: frames.append(frame)
print(len(frames), "frames")
```
"#;

/// The page as Markdown.
pub fn markdown(schema: &Json) -> String {
    let mut page = INTRODUCTION.to_owned();
    for (definition, heading) in SECTIONS {
        let rows = rows(schema, definition);
        let description = text(&schema["$defs"][definition]["description"]);
        let _ = write!(page, "\n## {heading}\n\n{description}\n");
        if definition == "object" {
            let _ = writeln!(
                page,
                "\nThese keys exist for programs that read an older format: {}.",
                older_keys(&rows).join(", ")
            );
        }
        page.push_str("\n| key | type | present | meaning |\n|---|---|---|---|\n");
        for row in rows {
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                row.key, row.kind, row.present, row.meaning
            );
        }
    }
    page
}

/// The keys for programs that read an older format.
fn older_keys(rows: &[Row]) -> Vec<String> {
    let older = rows.iter().filter(|row| row.meaning.starts_with(OLDER));
    older.map(|row| format!("`{}`", row.key)).collect()
}

struct Row {
    key: String,
    kind: String,
    present: &'static str,
    meaning: String,
}

fn rows(schema: &Json, definition: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    collect(schema, &schema["$defs"][definition], "", &mut rows);
    rows
}

/// Adds the keys of an object, and of nested objects without a section of their own.
fn collect(schema: &Json, object: &Json, prefix: &str, rows: &mut Vec<Row>) {
    let empty = Map::new();
    let properties = object["properties"].as_object().unwrap_or(&empty);
    for (name, property) in properties {
        let key = format!("{prefix}{name}");
        let required = object["required"].as_array();
        let is_required = required.is_some_and(|keys| keys.iter().any(|key| key == name));
        let target = resolved(schema, property);
        let own = &property["description"];
        let meaning = if own.is_null() {
            &target["description"]
        } else {
            own
        };
        assert!(meaning.is_string(), "{key} is not described");
        rows.push(Row {
            kind: kind(schema, property),
            present: if is_required { "always" } else { "optional" },
            meaning: text(meaning),
            key: key.clone(),
        });
        if section_of(property).is_none() {
            collect(schema, target, &format!("{key}."), rows);
        }
    }
}

fn resolved<'a>(schema: &'a Json, property: &'a Json) -> &'a Json {
    match reference(property) {
        Some(name) => &schema["$defs"][name],
        None => property,
    }
}

fn reference(property: &Json) -> Option<&str> {
    property["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// The heading under which a property's object is described.
fn section_of(property: &Json) -> Option<&'static str> {
    let name = match reference(property)? {
        "finalMetadata" => "metadata",
        name => name,
    };
    let section = SECTIONS.iter().find(|(definition, _)| *definition == name);
    section.map(|(_, heading)| *heading)
}

/// Type or values of a property.
fn kind(schema: &Json, property: &Json) -> String {
    if let Some(heading) = section_of(property) {
        let anchor = heading.to_lowercase().replace(' ', "-");
        return format!("[{heading}](#{anchor})");
    }
    let property = resolved(schema, property);
    if let Some(value) = property.get("const") {
        return format!("`{value}`");
    }
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    if property["items"].is_object() {
        return format!("list of {}", kind(schema, &property["items"]));
    }
    match &property["type"] {
        Json::String(kind) => kind.clone(),
        Json::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "object".to_owned(),
    }
}

fn text(value: &Json) -> String {
    let text = value.as_str().unwrap_or_default();
    text.replace('|', "\\|").replace('<', "\\<")
}
