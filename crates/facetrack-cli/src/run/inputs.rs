// SPDX-License-Identifier: MPL-2.0
//! The videos that the arguments name, and the names of their records.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use facetrack_jobs::Part;
use glob::glob;
use walkdir::WalkDir;

use super::arguments::RunArguments;
use super::lists::{self, Entry};
use crate::places;

/// Files in folders that are taken for videos, by their suffix. A file that is named is always
/// taken.
const SUFFIXES: [&str; 27] = [
    "3g2", "3gp", "asf", "avi", "dv", "f4v", "flv", "h264", "h265", "m2ts", "m2v", "m4v", "mkv",
    "mov", "mp4", "mpeg", "mpg", "mts", "mxf", "nut", "ogm", "ogv", "ts", "vob", "webm", "wmv",
    "y4m",
];

/// Suffixes of files that list videos.
const LISTS: [&str; 4] = ["txt", "csv", "jsonl", "json"];

/// Characters that make an argument a pattern if no file has that name.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// A video, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Video {
    /// Its name among all videos, and the path of its record without the suffix.
    pub id: String,
    /// Its path below the folder or list that named it, which the record states.
    pub name: String,
    pub path: PathBuf,
    pub part: Part,
    pub record: PathBuf,
}

/// Lists all videos, in the order of the arguments.
///
/// # Errors
/// An input is not there or cannot be read, or two videos have the same record.
pub fn collect(arguments: &RunArguments) -> Result<Vec<Video>, String> {
    let mut videos = Vec::new();
    for input in arguments.input.iter().chain(&arguments.videos_json_path) {
        let is_list = arguments.videos_json_path.as_ref() == Some(input);
        let found = if is_list {
            lists::read(input)?
        } else {
            entries(input, arguments.fetch.is_some())?
        };
        for entry in found {
            videos.push(Video::new(entry, arguments)?);
        }
    }
    refuse_collisions(&videos)?;
    Ok(videos)
}

impl Video {
    fn new(entry: Entry, arguments: &RunArguments) -> Result<Self, String> {
        let (id, path) = (Path::new(&entry.id), entry.path);
        let is_below = |part| matches!(part, Component::Normal(_));
        if entry.id.is_empty() || !id.components().all(is_below) {
            return Err(format!(
                "the id {:?} of {} is not a relative path without `..`. Give it another id",
                entry.id,
                path.display()
            ));
        }
        let folder = match &arguments.out {
            Some(out) => out.join(id.parent().unwrap_or(Path::new(""))),
            None => path.parent().unwrap_or(Path::new("")).to_owned(),
        };
        let mut file = id.file_name().unwrap_or_default().to_owned();
        file.push(".json");
        let record = std::path::absolute(folder.join(file))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let path = if arguments.fetch.is_some() {
            refuse_option(&path)?;
            path
        } else {
            refuse_remote(&path)?;
            std::path::absolute(&path).unwrap_or(path)
        };
        // Workers are told both as text.
        for path in [&record, &path] {
            places::text(path)?;
        }
        Ok(Self {
            record,
            id: entry.id,
            name: entry.name,
            path,
            part: entry.part,
        })
    }
}

/// A command that fetches videos would take such a name for an option.
fn refuse_option(path: &Path) -> Result<(), String> {
    let path = path.to_string_lossy();
    if path.starts_with('-') {
        return Err(format!("{path} begins with `-`. Write it as ./{path}"));
    }
    Ok(())
}

/// Only a command that fetches videos can read such a URI.
fn refuse_remote(path: &Path) -> Result<(), String> {
    let text = path.to_string_lossy();
    if text.contains("://") && !path.exists() {
        return Err(format!(
            "{text} is neither a path nor a file:// URI. Set --fetch to copy it first"
        ));
    }
    Ok(())
}

/// The videos that one argument names. Names of remote videos have no patterns.
fn entries(input: &Path, are_remote: bool) -> Result<Vec<Entry>, String> {
    let text = input.to_string_lossy();
    if text == "-" || input.is_file() && has_suffix(input, &LISTS) {
        return lists::read(input);
    }
    let found = if input.is_dir() {
        in_folder(input)?
    } else if !are_remote && input.symlink_metadata().is_err() && text.contains(WILDCARDS) {
        matching(&text)?
    } else {
        vec![Entry::of_file(input)?]
    };
    if found.is_empty() {
        let (input, suffixes) = (input.display(), SUFFIXES.join(", "));
        return Err(format!("{input}: no video found (files named {suffixes})"));
    }
    Ok(found)
}

fn in_folder(folder: &Path) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let file = places::found(entry)
            .map_err(|error| format!("{error}. Make it readable, or name its videos"))?;
        if let Some(video) = file.filter(|file| has_suffix(file, &SUFFIXES)) {
            entries.push(Entry::below(folder, &video)?);
        }
    }
    Ok(entries)
}

/// The files that a pattern matches, with the tree below its first part without wildcards. Records
/// next to the videos are left out.
fn matching(pattern: &str) -> Result<Vec<Entry>, String> {
    let has_none = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(WILDCARDS);
    let parts = Path::new(pattern).components();
    let root: PathBuf = parts.take_while(has_none).collect();
    let mut entries = Vec::new();
    for file in glob(pattern).map_err(|error| format!("{pattern}: {error}"))? {
        let file = file.map_err(|error| error.to_string())?;
        if !file.is_dir() && has_suffix(&file, &SUFFIXES) {
            entries.push(Entry::below(&root, &file)?);
        }
    }
    Ok(entries)
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let suffix = path.extension().and_then(OsStr::to_str);
    suffix.is_some_and(|it| suffixes.contains(&it.to_ascii_lowercase().as_str()))
}

fn refuse_collisions(videos: &[Video]) -> Result<(), String> {
    let mut records = HashMap::new();
    for video in videos {
        if let Some(other) = records.insert(&video.record, video) {
            return Err(format!(
                "{} and {} would both be recorded as {}. Rename one, or list them with different ids",
                other.path.display(),
                video.path.display(),
                video.record.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::run::arguments::tests::parsed;

    fn collect_at(folder: &Path, line: &str) -> Result<Vec<(String, String)>, String> {
        let words = line
            .split(' ')
            .map(|word| word.replace('@', &folder.to_string_lossy()));
        let videos = collect(&parsed(words)?)?;
        let below = |path: &Path| {
            let path = path.strip_prefix(folder).unwrap_or(path);
            path.display().to_string()
        };
        let named = videos
            .iter()
            .map(|video| (video.name.clone(), below(&video.record)));
        Ok(named.collect())
    }

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("in/deep")).unwrap();
        for file in [
            "in/b.MP4",
            "in/a.mov",
            "in/deep/a.webm",
            "in/notes.txt",
            "in/a.json",
        ] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        folder
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn folders_keep_their_tree() {
        let folder = tree();
        let found = collect_at(folder.path(), "@/in --out @/out");
        let want = [
            ("a.mov", "out/a.json"),
            ("b.MP4", "out/b.json"),
            ("deep/a.webm", "out/deep/a.json"),
        ];
        assert_eq!(found, Ok(pairs(&want)));
        let next_to = collect_at(folder.path(), "@/in/deep");
        assert_eq!(next_to, Ok(pairs(&[("a.webm", "in/deep/a.json")])));
    }

    #[test]
    fn patterns_and_files() {
        let folder = tree();
        let found = collect_at(folder.path(), "@/in/**/a.* --out @/out");
        let want = [("a.mov", "out/a.json"), ("deep/a.webm", "out/deep/a.json")];
        assert_eq!(found, Ok(pairs(&want)));
        let found = collect_at(folder.path(), "@/in/b.MP4 @/in/missing.mkv");
        let want = [("b.MP4", "in/b.json"), ("missing.mkv", "in/missing.json")];
        assert_eq!(found, Ok(pairs(&want)));
    }

    #[test]
    fn links_without_targets_are_missing_videos_or_nothing() {
        let folder = tree();
        for name in ["c.mkv", "other"] {
            std::os::unix::fs::symlink("/no/such/file", folder.path().join("in").join(name))
                .unwrap();
        }
        let found = collect_at(folder.path(), "@/in").unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a.mov", "b.MP4", "c.mkv", "deep/a.webm"]);
    }

    #[test]
    fn paths_that_are_no_text_are_refused() {
        use std::os::unix::ffi::OsStringExt;
        let folder = tree();
        let out = folder.path().join(std::ffi::OsString::from_vec(vec![0xff]));
        let video = folder.path().join("in/b.MP4");
        let words = [video.as_os_str(), "--out".as_ref(), out.as_os_str()];
        let error = collect(&parsed(words).unwrap()).unwrap_err();
        assert!(error.contains("not UTF-8"), "{error}");
    }

    #[test]
    fn refused_inputs() {
        let folder = tree();
        fs::write(folder.path().join("in/a.mp4"), "").unwrap();
        fs::write(folder.path().join("up.csv"), "id,uri\n../a,in/a.mov\n").unwrap();
        for (line, part) in [
            ("@/in", "would both be recorded as"),
            ("@/in/*.nut", "no video found"),
            ("@/up.csv", "without `..`"),
            ("https://example.org/a.mp4", "Set --fetch"),
        ] {
            let error = collect_at(folder.path(), line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
