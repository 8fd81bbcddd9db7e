// SPDX-License-Identifier: MPL-2.0
//! The key of a video: a hash of everything that its record depends on, its basis.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use facetrack::record::SCHEMA;
use facetrack_assets::file::{self, hex, sha256};
use facetrack_jobs::Ready;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::RunArguments;
use super::video::Video;

/// Returns everything that the record of a video depends on, for a loaded engine. A file that
/// cannot be read has no `content`.
pub(super) fn basis(video: &Video, arguments: &RunArguments, ready: &Ready) -> Value {
    let content = if arguments.checksum {
        hash_of_file(&video.path).map(Value::from)
    } else {
        stamp(&video.path)
    };
    let options: BTreeMap<_, _> = ready.options.iter().collect();
    let mut basis = json!({
        "schema": SCHEMA,
        "id": video.id,
        "name": video.name,
        "content": content.ok(),
        "part": video.segment,
        "engine": ready.engine,
        "models": ready.models,
        "options": options,
    });
    if let Some(grid) = arguments.segment_plan() {
        basis["grid"] = json!(grid);
    }
    basis
}

/// The key with this basis.
pub(super) fn of(basis: &Value) -> String {
    sha256(basis.to_string().as_bytes())
}

/// Returns true if the file of a video has changed.
pub(super) fn is_changed(old: &Value, new: &Value) -> bool {
    old["content"] != new["content"]
}

/// Returns true if a file has the content that a basis states.
pub(super) fn has_content(path: &Path, basis: &Value) -> bool {
    let content = match &basis["content"] {
        Value::String(_) => hash_of_file(path).map(Value::from),
        _ => stamp(path),
    };
    content.is_ok_and(|content| content == basis["content"])
}

/// The settings that differ, other than the video itself.
pub(super) fn differences(old: &Value, new: &Value) -> Vec<String> {
    let Some(before) = old.as_object() else {
        return vec!["settings that an earlier version has not noted".to_owned()];
    };
    let mut differences = Vec::new();
    let is_same_engine = old["engine"] == new["engine"];
    if !is_same_engine {
        differences.push(difference("engine", &old["engine"], &new["engine"]));
    }
    let (old_options, new_options) = (&old["options"], &new["options"]);
    let names = [old_options, new_options].map(|it| it.as_object().into_iter().flatten());
    let names: BTreeSet<_> = names.into_iter().flatten().map(|(name, _)| name).collect();
    // Options that only one of two engines has follow from the engine.
    let is_said = |it: &&String| {
        let [old, new] = [&old_options[*it], &new_options[*it]];
        old != new && (is_same_engine || !(old.is_null() || new.is_null()))
    };
    let changed = names.into_iter().filter(is_said);
    differences.extend(changed.map(|it| difference(it, &old_options[it], &new_options[it])));
    let others = SETTINGS
        .iter()
        .filter(|(key, _)| before.get(*key) != new.get(*key));
    differences.extend(others.map(|(_, name)| (*name).to_owned()));
    differences
}

/// Other settings, and their names.
const SETTINGS: [(&str, &str); 4] = [
    ("grid", "--segment or --warm-up"),
    ("models", "models"),
    ("part", "start or stop"),
    ("schema", "the version of the record"),
];

fn difference(name: &str, old: &Value, new: &Value) -> String {
    let text = |value: &Value| match value {
        Value::Null => "the default".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!("{name}={} instead of {}", text(new), text(old))
}

/// The size of a file and the time of its last change.
fn stamp(path: &Path) -> io::Result<Value> {
    let found = fs::metadata(path)?;
    let changed = found.modified()?.duration_since(UNIX_EPOCH).ok();
    let changed = changed.map(|time| time.as_nanos().to_string());
    Ok(json!([found.len(), changed]))
}

/// SHA-256 of a file.
pub(super) fn hash_of_file(path: &Path) -> io::Result<String> {
    let mut file = file::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hex(&hash.finalize())),
            read => hash.update(&chunk[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::run::arguments::tests::parsed;

    fn video(path: PathBuf) -> Video {
        Video {
            id: "a".to_owned(),
            name: "a.mp4".to_owned(),
            record: path.with_extension("json"),
            path,
            ..Video::default()
        }
    }

    #[test]
    fn a_key_changes_with_the_content_and_the_options() {
        let folder = tempfile::tempdir().unwrap();
        let first = video(folder.path().join("a.mp4"));
        let moved = video(folder.path().join("b.mp4"));
        fs::write(&first.path, "one").unwrap();
        fs::write(&moved.path, "one").unwrap();
        let ready = Ready::default();
        let (by_stamp, by_content) = (parsed(["a"]).unwrap(), parsed(["a", "--checksum"]).unwrap());
        let of = |video: &Video, arguments: &RunArguments, ready: &Ready| {
            super::of(&basis(video, arguments, ready))
        };
        let content = |video| of(video, &by_content, &ready);
        assert_eq!(content(&first), content(&moved));
        assert_eq!(of(&first, &by_stamp, &ready).len(), 64);
        let before = content(&first);
        fs::write(&first.path, "two").unwrap();
        assert_ne!(content(&first), before);
        let mut other = Ready::default();
        other.options.insert("max-faces".to_owned(), 2.into());
        assert_ne!(of(&first, &by_content, &other), content(&first));
    }

    #[test]
    fn the_order_of_options_does_not_matter() {
        let video = video("/no/such/file.mp4".into());
        let key = |names: [&str; 2]| {
            let options = names.map(|name| (name.to_owned(), Value::from(name)));
            let ready = Ready {
                options: options.into_iter().collect(),
                ..Ready::default()
            };
            of(&basis(&video, &parsed(["a"]).unwrap(), &ready))
        };
        assert_eq!(key(["a", "b"]), key(["b", "a"]));
    }

    #[test]
    fn differences_are_named() {
        let basis = |max_faces: Value, engine: &str, models: Value| {
            json!({
                "content": [1, "2"], "engine": engine, "models": models,
                "options": {"max-faces": max_faces, "tracker": "iou"},
            })
        };
        let old = basis(2.into(), "eos", json!({"a": "0f"}));
        assert_eq!(differences(&old, &old), Vec::<String>::new());
        let new = basis(Value::Null, "mediapipe", json!({}));
        let want = ["engine=mediapipe instead of eos", "models"];
        assert_eq!(differences(&old, &new), want);
        let without = basis(Value::Null, "eos", json!({"a": "0f"}));
        let want = ["max-faces=the default instead of 2"];
        assert_eq!(differences(&old, &without), want);
        let other = basis(3.into(), "mediapipe", json!({"a": "0f"}));
        let want = [
            "engine=mediapipe instead of eos",
            "max-faces=3 instead of 2",
        ];
        assert_eq!(differences(&old, &other), want);
        assert!(differences(&Value::Null, &new)[0].contains("earlier version"));
        let mut changed = old.clone();
        changed["content"] = json!([3, "2"]);
        assert!(is_changed(&old, &changed) && differences(&old, &changed).is_empty());
    }
}
