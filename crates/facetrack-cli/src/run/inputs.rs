// SPDX-License-Identifier: MPL-2.0
//! The videos that the arguments name, and the names of their records.

mod distinct;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern, PatternError};
use walkdir::WalkDir;

pub(super) use distinct::Places;

use super::arguments::RunArguments;
use super::lists;
use super::names;
use super::video::Video;
use crate::places;
use crate::view::proxy::{COPY, is_copy};

/// Files in folders that are taken for videos, by their suffix. A file that is named is always
/// taken.
const SUFFIXES: [&str; 27] = [
    "3g2", "3gp", "asf", "avi", "dv", "f4v", "flv", "h264", "h265", "m2ts", "m2v", "m4v", "mkv",
    "mov", "mp4", "mpeg", "mpg", "mts", "mxf", "nut", "ogm", "ogv", "ts", "vob", "webm", "wmv",
    "y4m",
];

/// Suffixes of files in folders that may be copies of `facetrack view`: theirs, and the one of the
/// format that it is a part of.
const COPIES: [&str; 2] = ["mkv", "webm"];

/// Suffixes of files that list videos.
const LISTS: [&str; 4] = ["txt", "csv", "jsonl", "json"];

/// Characters that make an argument a pattern if no file has that name.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// Names of folders with trash, thumbnails and data of file systems, in lower case. Hidden ones are
/// left out anyway.
const NO_MEDIA: [&str; 4] = [
    "$recycle.bin",
    "@eadir",
    "lost+found",
    "system volume information",
];

/// Character that replaces bytes that are not UTF-8.
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// Everything that the arguments name.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Videos in the order of the arguments.
    pub videos: Vec<Video>,
    /// Messages about entries that are left out.
    pub notes: Vec<String>,
}

/// Lists all videos.
///
/// # Errors
/// Returns an error if an input does not exist or cannot be read, or if the list of failures would
/// replace another file.
pub(super) fn collect(arguments: &RunArguments) -> Result<Inputs, String> {
    let mut inputs = Inputs::default();
    let mut lists = Vec::new();
    for input in arguments.input.iter().chain(&arguments.videos_json_path) {
        if arguments.videos_json_path.as_ref() == Some(input) || is_list(input) {
            lists.push(input.as_path());
            let listed = lists::read(input)?.into_iter();
            let listed = listed.map(|video| without_copy(video, arguments));
            inputs.videos.extend(listed);
        } else {
            inputs.add(input, arguments)?;
        }
    }
    let place = |video| placed(video, arguments);
    inputs.videos = inputs.videos.into_iter().map(place).collect();
    distinct::keep(&mut inputs, &lists);
    Ok(inputs)
}

/// Returns true if an argument is a list of videos.
fn is_list(input: &Path) -> bool {
    input == Path::new("-") || input.is_file() && has_suffix(input, &LISTS)
}

/// Returns true if an argument may name several videos.
pub(crate) fn is_several(input: &Path) -> bool {
    let is_pattern =
        input.symlink_metadata().is_err() && input.to_string_lossy().contains(WILDCARDS);
    input.is_dir() || is_pattern || is_list(input)
}

/// The video, which is refused if it is a copy of `facetrack view`.
fn without_copy(video: Video, arguments: &RunArguments) -> Video {
    let is_copy = arguments.fetch.is_none() && is_copy(&video.path);
    let refusal = video.refusal.or(is_copy.then(|| COPY.to_owned()));
    Video { refusal, ..video }
}

/// The video with the place of its record, and with absolute paths.
fn placed(video: Video, arguments: &RunArguments) -> Video {
    let (id, path) = (Path::new(&video.id), &video.path);
    let folder = match &arguments.out {
        Some(out) => out.join(id.parent().unwrap_or(Path::new(""))),
        None => path.parent().unwrap_or(Path::new("")).to_owned(),
    };
    let mut file = id.file_name().unwrap_or_default().to_owned();
    file.push(".json");
    let record = folder.join(file);
    let refusal = video.refusal.or_else(|| {
        let checked = check_path(path, arguments.fetch.is_some());
        let checked = checked.and_then(|()| check_id(&video.id));
        checked.and_then(|()| names::check_length(&record)).err()
    });
    let is_local = refusal.is_none() && arguments.fetch.is_none();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    Video {
        record: absolute(record),
        path: if is_local {
            absolute(video.path)
        } else {
            video.path
        },
        refusal,
        ..video
    }
}

/// Checks that a record can have this id.
fn check_id(id: &str) -> Result<(), String> {
    let path = Path::new(id);
    let is_below = |part| matches!(part, Component::Normal(_));
    if id.is_empty() || !path.components().all(is_below) {
        return Err(format!(
            "its id {id:?} is not a relative path without `..`. Give it another id"
        ));
    }
    let is_reserved = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        name.ends_with(names::FOLDER)
    };
    if path.components().any(is_reserved) {
        return Err(format!(
            "{} in its id {id:?} is the name of a folder for unfinished files. Give it another id",
            names::FOLDER
        ));
    }
    Ok(())
}

/// Checks that a video can have this path.
fn check_path(path: &Path, is_fetched: bool) -> Result<(), String> {
    let text = path.to_string_lossy();
    // Workers and lists receive it as text.
    if text.contains(REPLACEMENT) && !(path.to_str().is_some() && path.exists()) {
        return Err("its name is not UTF-8. Rename it".to_owned());
    }
    if is_fetched && text.starts_with('-') {
        return Err(format!(
            "the command that fetches it would take it for an option. Write it as ./{text}"
        ));
    }
    if !is_fetched && text.contains("://") && !path.exists() {
        return Err(
            "it is neither a path nor a file:// URI. Set --fetch to copy it first".to_owned(),
        );
    }
    Ok(())
}

impl Inputs {
    /// Adds the videos of an argument that is not a list. Names of remote videos have no patterns.
    fn add(&mut self, input: &Path, arguments: &RunArguments) -> Result<(), String> {
        let text = input.to_string_lossy();
        let is_remote = arguments.fetch.is_some();
        let before = self.videos.len();
        if input.is_dir() {
            self.add_folder(input, None);
        } else if !is_remote && input.symlink_metadata().is_err() && text.contains(WILDCARDS) {
            self.add_matching(&text)?;
        } else {
            self.videos
                .push(without_copy(single(input, is_remote)?, arguments));
        }
        if self.videos.len() == before {
            let (input, suffixes) = (input.display(), SUFFIXES.join(", "));
            return Err(format!("{input}: no video found (files named {suffixes})"));
        }
        Ok(())
    }

    /// Adds the videos in a folder, or those that a pattern for paths below it matches. Copies of
    /// `facetrack view` are left out.
    fn add_folder(&mut self, folder: &Path, pattern: Option<&PathPattern>) {
        let depth = pattern.and_then(|it| it.depth).unwrap_or(usize::MAX);
        let walk = WalkDir::new(folder).follow_links(true).max_depth(depth);
        let is_searched = |path: &Path, depth: usize| match path.file_name() {
            Some(name) if depth > 0 => is_searched(name, depth, pattern),
            _ => true,
        };
        let is_video = |file: &Path| {
            let below = file.strip_prefix(folder).unwrap_or(file);
            let is_named =
                has_suffix(file, &SUFFIXES) && pattern.is_none_or(|it| it.matches(below));
            is_named && !(has_suffix(file, &COPIES) && is_copy(file))
        };
        let entries = walk.sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|it| is_searched(it.path(), it.depth())) {
            match places::found(entry) {
                Ok(Some(file)) if is_video(&file) => self.videos.push(Video::below(folder, &file)),
                Ok(_) => (),
                Err(error) => {
                    let path = error.path().unwrap_or(folder);
                    if is_searched(path, error.depth()) {
                        self.leave_out(folder, path, &error);
                    }
                }
            }
        }
    }

    /// Adds the files that a pattern matches, with the tree below its first part without wildcards.
    /// Records next to the videos are left out.
    fn add_matching(&mut self, pattern: &str) -> Result<(), String> {
        let has_none =
            |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(WILDCARDS);
        let parts: Vec<_> = Path::new(pattern).components().collect();
        let length = parts.iter().take_while(|part| has_none(part)).count();
        let (root, below) = parts.split_at(length);
        let below = PathPattern::new(below).map_err(|error| format!("{pattern}: {error}"))?;
        let root = match root {
            [] => PathBuf::from("."),
            root => root.iter().collect(),
        };
        self.add_folder(&root, Some(&below));
        Ok(())
    }

    /// Takes note of an entry of a folder that cannot be read.
    fn leave_out(&mut self, folder: &Path, path: &Path, error: &walkdir::Error) {
        let Some(reason) = error.io_error() else {
            self.notes.push(error.to_string());
            return;
        };
        self.videos.push(Video {
            refusal: Some(format!("{reason}. Make it readable, or name its videos")),
            ..Video::below(folder, path)
        });
    }
}

/// The video at a path.
fn single(input: &Path, is_remote: bool) -> Result<Video, String> {
    let at = |reason: String| format!("{}: {reason}", input.display());
    check_path(input, is_remote).map_err(at)?;
    // A list is never fetched.
    if let Err(error) = input.metadata()
        && (!is_remote || has_suffix(input, &LISTS))
    {
        return Err(at(error.to_string()));
    }
    Ok(Video::of_file(input))
}

/// Returns true if a file or folder in a folder may be, or contain, a video of the user.
fn is_searched(name: &OsStr, depth: usize, pattern: Option<&PathPattern>) -> bool {
    let name = name.to_string_lossy();
    let lower_case = name.to_lowercase();
    let is_media = !(NO_MEDIA.contains(&&*lower_case) || name.ends_with(names::FOLDER));
    is_media && pattern.map_or(!name.starts_with('.'), |it| it.leads_to(&name, depth))
}

/// A pattern for paths below a folder.
struct PathPattern {
    whole: Pattern,
    /// Components before `**`.
    first: Vec<Pattern>,
    /// The number of components, without `**`.
    depth: Option<usize>,
    names_hidden: bool,
}

impl PathPattern {
    /// Options of patterns, as in shells.
    const OPTIONS: MatchOptions = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };

    fn new(parts: &[Component<'_>]) -> Result<Self, PatternError> {
        let parts = parts.iter().map(|part| part.as_os_str().to_string_lossy());
        let parts: Vec<_> = parts.collect();
        let first = parts.iter().take_while(|part| *part != "**");
        let first = first.map(|part| Pattern::new(part));
        let first = first.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            whole: Pattern::new(&parts.join("/"))?,
            depth: (first.len() == parts.len()).then_some(first.len()),
            first,
            names_hidden: parts.iter().any(|part| part.starts_with('.')),
        })
    }

    /// Returns true if a file or folder with this name may be, or contain, a file that matches.
    fn leads_to(&self, name: &str, depth: usize) -> bool {
        match self.first.get(depth - 1) {
            Some(part) => part.matches_with(name, Self::OPTIONS),
            None => self.names_hidden || !name.starts_with('.'),
        }
    }

    fn matches(&self, below: &Path) -> bool {
        self.whole
            .matches_with(&below.to_string_lossy(), Self::OPTIONS)
    }
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let suffix = path.extension().and_then(OsStr::to_str);
    suffix.is_some_and(|it| suffixes.contains(&it.to_ascii_lowercase().as_str()))
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
        let videos = collect(&parsed(words)?)?.videos;
        if let Some(refusal) = videos.iter().find_map(|video| video.refusal.clone()) {
            return Err(refusal);
        }
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
        for (pattern, name) in [
            ("@/in/*.mov", "a.mov"),
            ("@/*/*.MP4", "in/b.MP4"),
            ("@/in/d*/[a-c].????", "deep/a.webm"),
            ("@/*/deep/*", "in/deep/a.webm"),
        ] {
            let found = collect_at(folder.path(), pattern).unwrap();
            let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, [name], "{pattern}");
        }
        let missing = collect_at(folder.path(), "@/in/b.MP4 @/in/missing.mkv");
        assert!(missing.unwrap_err().contains("missing.mkv: No such file"));
        fs::write(folder.path().join("list.txt"), "in/missing.mkv\n").unwrap();
        let found = collect_at(folder.path(), "@/list.txt --out @/out");
        assert_eq!(found, Ok(pairs(&[("missing.mkv", "out/missing.json")])));
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
    fn hidden_files_and_bins_are_left_out() {
        let folder = tree();
        for name in [
            ".a.mp4",
            "._b.MP4",
            ".Trash-1000/c.mp4",
            "$RECYCLE.BIN/d.mp4",
            "@eaDir/a.mov/e.mp4",
            "lost+found/f.mp4",
            "a.json.parts/g.mp4",
        ] {
            let file = folder.path().join("in").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        for line in ["@/in --out @/out", "@/in/**/* --out @/out"] {
            let found = collect_at(folder.path(), line).unwrap();
            let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["a.mov", "b.MP4", "deep/a.webm"], "{line}");
        }
        for line in ["@/in/.a.mp4", "@/in/.a*", "@/**/.a.mp4"] {
            let found = collect_at(folder.path(), line).unwrap();
            assert!(found.len() == 1 && found[0].0.ends_with(".a.mp4"), "{line}");
        }
    }

    #[test]
    fn copies_of_view_are_no_videos() {
        use crate::view::proxy::tests::webm;
        let folder = tree();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("copies")).unwrap();
        let copy = webm(facetrack_jobs::PROXY_MARK);
        for name in [
            "in/a-proxy.webm",
            "in/deep/renamed.MKV",
            "copies/a-proxy.webm",
        ] {
            fs::write(at(name), &copy).unwrap();
        }
        fs::write(at("in/own-proxy.webm"), webm("Lavf")).unwrap();
        for line in ["@/in --out @/out", "@/in/**/* --out @/out"] {
            let found = collect_at(folder.path(), line).unwrap();
            let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
            let wanted = ["a.mov", "b.MP4", "deep/a.webm", "own-proxy.webm"];
            assert_eq!(names, wanted, "{line}");
        }
        let listed = at("copies/a-proxy.webm").display().to_string();
        fs::write(at("list.txt"), listed).unwrap();
        for line in ["@/copies/a-proxy.webm", "@/list.txt --out @/out"] {
            assert_eq!(collect_at(folder.path(), line).unwrap_err(), COPY, "{line}");
        }
        let error = collect_at(folder.path(), "@/copies").unwrap_err();
        assert!(error.contains("no video found"), "{error}");
    }

    #[test]
    fn one_odd_entry_never_stops_the_rest() {
        use std::os::unix::ffi::OsStringExt;
        let folder = tree();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "in/a.mkv".into(),
            "in/deep/a.json".into(),
            std::ffi::OsString::from_vec(b"in/\xff.mp4".into()),
            ("in/".to_owned() + &"n".repeat(249) + ".mp4").into(),
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        std::os::unix::fs::symlink(".", at("in/loop")).unwrap();
        let list = "@/in/...mp4\n@/in/deep/a.webm\n@/in/deep/a.webm\n";
        fs::write(
            at("list.txt"),
            list.replace('@', &folder.path().to_string_lossy()),
        )
        .unwrap();
        let listed = at("list.txt").into_os_string();
        for all in ["in", "in/**/*"] {
            let words = [at(all).into_os_string(), listed.clone()];
            check_odd_entries(collect(&parsed(words).unwrap()).unwrap());
        }
    }

    fn check_odd_entries(inputs: Inputs) {
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let mut named = inputs
            .videos
            .iter()
            .map(|it| (name(&it.path), it.refusal.clone()));
        let mut refused = |name: &str| named.find(|it| it.0.contains(name)).unwrap().1;
        for (name, reason) in [
            ("a.mkv", "a.json would be its record and that of "),
            ("a.mov", "a.mkv. Rename one"),
        ] {
            assert!(refused(name).unwrap().contains(reason), "{name}");
        }
        assert_eq!(refused("b.MP4"), None);
        assert_eq!(refused("a.webm"), None);
        for (name, reason) in [
            ("nnn", "too long"),
            (REPLACEMENT.to_string().as_str(), "not UTF-8"),
        ] {
            assert!(refused(name).unwrap().contains(reason), "{name}");
        }
        assert!(refused("...mp4").unwrap().contains("without `..`"));
        let notes = inputs.notes.join("\n");
        assert!(
            notes.contains("loop") && notes.contains("a.webm is named twice"),
            "{notes}"
        );
    }

    #[test]
    fn no_input_is_replaced() {
        let folder = tree();
        fs::create_dir(folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("../in", folder.path().join("link/in")).unwrap();
        for (list, refused) in [
            ("list.txt", "@/in/b.MP4\n@/in/b.json\n"),
            ("list.txt", "@/in/b.MP4\n@/link/in/b.json\n"),
            ("list.txt", "@/in/b.MP4\n@/in/b.json.done\n"),
            ("in/b.json", "[\"@/in/b.MP4\"]"),
        ] {
            let text = refused.replace('@', &folder.path().to_string_lossy());
            fs::write(folder.path().join(list), text).unwrap();
            let error = collect_at(folder.path(), &format!("@/{list}")).unwrap_err();
            assert!(error.contains("would replace the input"), "{error}");
        }
    }

    #[test]
    fn refused_inputs() {
        let folder = tree();
        fs::write(folder.path().join("up.csv"), "id,uri\n../a,in/a.mov\n").unwrap();
        for (line, part) in [
            ("@/in/*.nut", "no video found"),
            ("@/up.csv", "without `..`"),
            ("https://example.org/a.mp4", "Set --fetch"),
            ("@/none.txt", "none.txt: No such file"),
        ] {
            let error = collect_at(folder.path(), line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
