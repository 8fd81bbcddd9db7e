// SPDX-License-Identifier: MPL-2.0
//! Lists of videos: text, CSV, JSON lines and JSON.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use facetrack_assets::file;
use facetrack_jobs::Segment;
use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::video::Video;

/// Maximum size of a list. Our choice: ten million paths of 200 bytes.
const MAX_SIZE: u64 = 2 << 30;

/// Character that some editors write at the beginning of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Columns that name the video.
const URI_COLUMNS: [&str; 3] = ["uri", "path", "video_path"];

/// Characters between the columns of a CSV list. Spreadsheets write semicolons where the comma is
/// the decimal separator.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// A row of a list.
#[derive(Debug, Default, Deserialize)]
struct Row {
    id: Option<String>,
    #[serde(alias = "URI", alias = "path", alias = "video_path")]
    uri: String,
    start: Option<f64>,
    stop: Option<f64>,
}

/// An item of a JSON list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Path(String),
    Row(Row),
}

/// A JSON list.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a list of videos, or an object with such a list as `videos`"
)]
enum Document {
    Items(Vec<Item>),
    Videos { videos: Vec<Item> },
}

impl From<Item> for Row {
    fn from(item: Item) -> Self {
        match item {
            Item::Row(row) => row,
            Item::Path(uri) => Self {
                uri,
                ..Self::default()
            },
        }
    }
}

/// Reads the list in a file; `-` is standard input.
///
/// # Errors
/// Returns an error if the list cannot be read, has no video, or has an invalid row.
pub(super) fn read(path: &Path) -> Result<Vec<Video>, String> {
    let at = |error: String| format!("{}: {error}", path.display());
    let text = text_of(path).map_err(|error| at(error.to_string()))?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let suffix = path.extension().and_then(OsStr::to_str).unwrap_or("");
    let rows = match suffix.to_ascii_lowercase().as_str() {
        "txt" => Ok(text_rows(text)),
        "csv" => csv_rows(text),
        "jsonl" => json_lines(text),
        "json" => json(text),
        _ => rows_of_unknown(text),
    };
    let videos: Result<Vec<_>, _> = rows.map_err(at)?.into_iter().map(video).collect();
    let videos = videos.map_err(at)?;
    if videos.is_empty() {
        return Err(at("the list has no video".to_owned()));
    }
    Ok(videos)
}

fn text_of(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        return file::read_from(io::stdin(), MAX_SIZE);
    }
    file::read(path, MAX_SIZE)
}

/// Rows of a list without a suffix, by its first line.
fn rows_of_unknown(text: &str) -> Result<Vec<Row>, String> {
    let is_uri = |column: &str| URI_COLUMNS.contains(&column.trim_matches(['"', ' ']));
    let is_header = header(text).split(SEPARATORS).any(is_uri);
    match text.trim_start().chars().next() {
        Some('[') => json(text),
        Some('{') => json_lines(text).or_else(|_| json(text)),
        _ if is_header => csv_rows(text),
        _ => Ok(text_rows(text)),
    }
}

fn text_rows(text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &str| Item::Path(line.to_owned()).into();
    lines.map(row).collect()
}

/// The first line in lower case.
fn header(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_lowercase()
}

fn csv_rows(text: &str) -> Result<Vec<Row>, String> {
    let header = header(text);
    let separator = header.chars().find(|it| SEPARATORS.contains(it));
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .delimiter(separator.map_or(b',', |it| it as u8))
        .from_reader(text.as_bytes());
    let refused = |error: csv::Error| {
        format!(
            "{error}. The columns are id, uri, start and stop, separated by commas, semicolons or tabs; uri is needed; start and stop are seconds such as 1.5"
        )
    };
    let names = reader.headers().map_err(refused)?;
    let names = names.iter().map(str::to_lowercase).collect();
    reader.set_headers(names);
    reader
        .deserialize()
        .collect::<Result<_, _>>()
        .map_err(refused)
}

fn json_lines(text: &str) -> Result<Vec<Row>, String> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| match serde_json::from_str::<Item>(line) {
        Ok(item) => Ok(item.into()),
        Err(_) => Err(format!(
            "line {number} is neither a path nor an object with `uri`"
        )),
    };
    lines.map(row).collect()
}

fn json(text: &str) -> Result<Vec<Row>, String> {
    let document = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let items = match document {
        Document::Items(items) | Document::Videos { videos: items } => items,
    };
    Ok(items.into_iter().map(Row::from).collect())
}

fn video(row: Row) -> Result<Video, String> {
    let path = path_of(&row.uri);
    let file = Video::of_file(&path);
    let id = row.id.filter(|id| !id.is_empty());
    let (start, stop) = (row.start, row.stop);
    let is_time = |time: f64| time >= 0.0 && time.is_finite();
    let is_ordered = stop.is_none_or(|stop| stop > start.unwrap_or(0.0));
    if !start.is_none_or(is_time) || !stop.is_none_or(is_time) || !is_ordered {
        return Err(format!(
            "{}: start and stop are not times in order, in seconds",
            row.uri
        ));
    }
    Ok(Video {
        id: id.unwrap_or(file.id),
        segment: Segment { start, stop },
        ..file
    })
}

/// Returns the path in a `file` URI, or the text itself.
fn path_of(uri: &str) -> PathBuf {
    let Some(path) = uri.strip_prefix("file://") else {
        return PathBuf::from(uri);
    };
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    PathBuf::from(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Vec<Video>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        read(&path)
    }

    fn ids(name: &str, text: &str) -> Vec<(String, String)> {
        let entries = read_text(name, text).unwrap();
        let pair = |video: Video| (video.id, video.path.display().to_string());
        entries.into_iter().map(pair).collect()
    }

    #[test]
    fn every_form_lists_the_same_videos() {
        let plain = [("x", "/a/x.mp4"), ("y z", "b/y z.mov")];
        let plain = plain.map(|(id, path)| (id.to_owned(), path.to_owned()));
        for (name, text) in [
            ("list.txt", "# videos\n/a/x.mp4\n\n  b/y z.mov\n"),
            ("list.csv", "uri\n/a/x.mp4\nb/y z.mov\n"),
            (
                "list.csv",
                "stop, id, uri, note\n,,/a/x.mp4,\n,,b/y z.mov,x\n",
            ),
            ("list.jsonl", "\"/a/x.mp4\"\n{\"uri\":\"b/y z.mov\"}\n"),
            ("list.json", r#"["/a/x.mp4", "b/y z.mov"]"#),
            (
                "list.json",
                r#"{"videos":["/a/x.mp4", {"path":"b/y z.mov"}]}"#,
            ),
            ("list", "uri\n/a/x.mp4\nb/y z.mov\n"),
            ("list.csv", "URI;Start\n/a/x.mp4;\nb/y z.mov;\n"),
            (
                "list.csv",
                "\"Path\"\tid\r\n/a/x.mp4\t\r\n\"b/y z.mov\"\t\r\n",
            ),
            ("list", "ID;URI\n;/a/x.mp4\n;b/y z.mov\n"),
            ("list", "video_path\n/a/x.mp4\nb/y z.mov\n"),
            ("list.jsonl", "{\"URI\":\"/a/x.mp4\"}\n\"b/y z.mov\"\n"),
            ("list", "/a/x.mp4\nb/y z.mov\n"),
            ("list", "{\"uri\":\"/a/x.mp4\"}\n{\"uri\":\"b/y z.mov\"}\n"),
            ("list", "{\n\"videos\":[\"/a/x.mp4\", \"b/y z.mov\"]}"),
            ("list.txt", "file:///a/x.mp4\nb/y z.mov"),
            ("list.txt", "\u{feff}/a/x.mp4\nb/y z.mov\n"),
            ("list.json", "\u{feff}[\"/a/x.mp4\", \"b/y z.mov\"]"),
        ] {
            assert_eq!(ids(name, text), plain, "{name}: {text}");
        }
    }

    #[test]
    fn ids_and_parts() {
        let text = "id,uri,start,stop\nscene/1,/a/x%20y.mp4,1.5,\nscene/2,file:///a/x%20y.mp4,,3\n";
        let entries = read_text("list.csv", text).unwrap();
        assert_eq!(entries[0].id, "scene/1");
        assert_eq!(entries[0].path, Path::new("/a/x%20y.mp4"));
        assert_eq!(
            (entries[0].segment.start, entries[0].segment.stop),
            (Some(1.5), None)
        );
        assert_eq!(entries[1].path, Path::new("/a/x y.mp4"));
        assert_eq!(entries[1].segment.stop, Some(3.0));
    }

    #[test]
    fn lists_that_are_refused() {
        for (name, text, part) in [
            ("list.txt", "# nothing\n", "has no video"),
            ("list.csv", "path,file\na,b\nc\n", "uri is needed"),
            ("list.jsonl", "\"a\"\n[1]\n", "line 2"),
            (
                "list.json",
                r#"{"metadata":{},"frames":[]}"#,
                "a list of videos",
            ),
            ("list.csv", "uri,start,stop\na.mp4,5,2\n", "times in order"),
            ("list.csv", "uri;start\na.mp4;1,5\n", "such as 1.5"),
            ("list.csv", "uri;start\na.mp4,1\n", "separated by"),
        ] {
            let error = read_text(name, text).unwrap_err();
            assert!(error.contains(part) && error.contains(name), "{error}");
        }
    }
}
