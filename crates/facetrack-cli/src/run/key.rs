// SPDX-License-Identifier: MPL-2.0
//! The key of a video: a hash of everything that its record depends on.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::UNIX_EPOCH;

use facetrack::file::{self, hex};
use facetrack::record::SCHEMA;
use facetrack_jobs::Ready;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::arguments::RunArguments;
use super::inputs::Video;

/// The key of a video with a loaded engine. A file that cannot be read has a key, too.
pub fn of(video: &Video, arguments: &RunArguments, ready: &Ready) -> String {
    let content = if arguments.checksum {
        hash_of_file(&video.path).map(Value::from)
    } else {
        stamp(&video.path)
    };
    let options: BTreeMap<_, _> = ready.options.iter().collect();
    let mut parts = json!({
        "schema": SCHEMA,
        "id": video.id,
        "name": video.name,
        "content": content.ok(),
        "part": video.part,
        "engine": ready.engine,
        "models": ready.models,
        "options": options,
    });
    if let Some(grid) = arguments.grid() {
        parts["grid"] = json!(grid);
    }
    hex(&Sha256::digest(parts.to_string()))
}

/// The size of a file and the time of its last change.
fn stamp(path: &Path) -> io::Result<Value> {
    let found = fs::metadata(path)?;
    let changed = found.modified()?.duration_since(UNIX_EPOCH).ok();
    let changed = changed.map(|time| time.as_nanos().to_string());
    Ok(json!([found.len(), changed]))
}

/// SHA-256 of a file.
pub fn hash_of_file(path: &Path) -> io::Result<String> {
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
            of(&video, &parsed(["a"]).unwrap(), &ready)
        };
        assert_eq!(key(["a", "b"]), key(["b", "a"]));
    }
}
