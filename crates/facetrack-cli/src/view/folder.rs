// SPDX-License-Identifier: MPL-2.0
//! The pages of a folder that `facetrack run` wrote, and a page that lists them.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use facetrack_assets::replacement::Replacement;

use super::page::{self, escaped};
use super::proxy::is_copy;
use super::{SUFFIX, Shown, View, ViewArguments};
use crate::error::{StoreError, is_full};
use crate::index::videos;
use crate::output;
use crate::run::status_file::tracked_file;
use crate::table::{self, Cell};

/// Folder of the pages in a folder of records.
const FOLDER: &str = "view";

/// The page that lists the others, and their folder.
const LIST: &str = "index.html";
const PAGES: &str = "videos";

/// A file in the folder of the pages, which is its mark.
const MARK: &str = ".facetrack-view";

/// The program of the list.
const SCRIPT: &str = concat!(include_str!("theme.js"), include_str!("list.js"));

/// Everything of the list before its rows.
const BODY: &str = include_str!("list.html");

/// Writes a page for each record of the folder, and their list.
///
/// # Errors
/// Returns an error if the list cannot be written.
///
/// Returns a failure if a record was left out.
pub(crate) fn run(folder: &Path, arguments: &ViewArguments) -> Result<ExitCode, Box<dyn Error>> {
    let own = folder.join(FOLDER);
    let out = arguments.out.as_deref().unwrap_or(&own);
    let list = out.join(LIST);
    table::check_start(&list, page::START.as_bytes(), "page of facetrack view")?;
    let pages = out.join(PAGES);
    claim(&pages)?;
    let mut complaints = Vec::new();
    let sources = [folder.to_owned()];
    let index = videos::index(&sources, &mut |complaint| complaints.push(complaint))?;
    let mut rows = Vec::new();
    for (id, row) in &index {
        let page = videos::recorded(row).map(|recorded| {
            let video = video(recorded.record, &mut complaints);
            let page = pages.join(format!("{}.{SUFFIX}", recorded.id));
            write_page(
                recorded.record,
                video.as_deref(),
                &page,
                out,
                arguments.proxy,
            )
        });
        let page = match page.transpose() {
            Err(error) if is_full(&*error) => return Err(error),
            Err(error) => {
                complaints.push(error.to_string());
                None
            }
            Ok(page) => page,
        };
        rows.push(table_row(id, row, page.as_ref()));
    }
    write_list(&list, folder, &rows).map_err(StoreError::at(&list))?;
    let code = output::left_out("view", &complaints);
    let count = output::counted(index.len() as u64, "video");
    output::print_line(format_args!(
        "{count}. Open {} in a browser",
        list.display()
    ))?;
    Ok(code)
}

/// Creates the folder of the pages, and marks it.
///
/// # Errors
/// Returns an error if the folder is from another program, or cannot be written.
fn claim(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
    let mark = folder.join(MARK);
    let is_own = fs::symlink_metadata(&mark).is_ok_and(|found| found.is_file());
    let mut entries = fs::read_dir(folder).map_err(StoreError::at(folder))?;
    if is_own {
        return Ok(());
    }
    if entries.next().is_some() {
        let folder = folder.display();
        let reason = "it exists, and is not from facetrack view. Name another folder with --out";
        return Err(format!("{folder}: {reason}").into());
    }
    File::create_new(&mark).map_err(StoreError::at(&mark))?;
    Ok(())
}

/// The video of a record, if it is on this machine, as it was when it was tracked.
fn video(record: &Path, complaints: &mut Vec<String>) -> Option<PathBuf> {
    let (video, is_same) = tracked_file(record)?;
    if is_same && !is_copy(&video) {
        return Some(video);
    }
    // A video of a store was never here.
    if video.exists() {
        complaints.push(format!(
            "{} in the page of {}: it is not the file that was tracked. Track it again",
            video.display(),
            record.display()
        ));
    }
    None
}

/// The page of a video in the list.
struct Page {
    link: String,
    /// Duration of the record, s.
    seconds: f64,
    faces: usize,
    findings: usize,
    /// The link to the video, if the page has one.
    video: Option<String>,
}

/// Writes the page of a video.
fn write_page(
    record: &Path,
    video: Option<&Path>,
    page: &Path,
    out: &Path,
    has_proxy: bool,
) -> Result<Page, Box<dyn Error>> {
    if let Some(folder) = page.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
    }
    let view = View {
        record,
        video,
        has_proxy,
        out: page,
    };
    let Shown {
        faces,
        findings,
        video,
        seconds,
    } = view.write()?;
    let video = video.map(|video| page::link(out, &video)).transpose()?;
    Ok(Page {
        link: page::link(out, page)?,
        seconds,
        faces,
        findings,
        video,
    })
}

/// The row of a video, with what its page shows if it has one.
fn table_row(id: &str, row: &[Cell], page: Option<&Page>) -> String {
    let text = |key: &str| match videos::value(row, key) {
        Cell::Text(text) => escaped(text),
        _ => String::new(),
    };
    let (id, status, message) = (escaped(id), text("status"), text("message"));
    let link = page.map(|Page { link, .. }| format!("<a href=\"{link}\">{id}</a>"));
    let name = link.unwrap_or(id);
    let numbers = page.map(|page| {
        let Page {
            seconds,
            faces,
            findings,
            ..
        } = page;
        [
            format!("<td data-value=\"{seconds}\">{}</td>", length(*seconds)),
            count(*faces, "face"),
            count(*findings, "finding"),
        ]
    });
    let numbers = numbers.map_or("<td data-value=\"-1\">–</td>".repeat(3), |it| it.concat());
    let video = page.and_then(|page| Some((page.video.as_ref()?, page.seconds)));
    let poster = video.map_or("No video".to_owned(), |(link, seconds)| {
        format!(
            "<canvas data-src=\"{link}\" data-seconds=\"{}\" role=\"img\" aria-label=\"Frame of the video\"></canvas>",
            seconds / 2.0
        )
    });
    format!(
        "<tr data-status=\"{status}\"><th scope=\"row\">{name}</th>{numbers}\
            <td>{status}<span class=\"message\">{message}</span></td><td class=\"poster\">{poster}</td></tr>\n"
    )
}

/// A cell with a count. A narrow page shows its unit.
fn count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("<td data-value=\"{count}\" data-unit=\"{noun}{plural}\">{count}</td>")
}

/// A duration in minutes and seconds.
fn length(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

fn write_list(path: &Path, folder: &Path, rows: &[String]) -> io::Result<()> {
    let replacement = Replacement::begin(path)?;
    let mut out = BufWriter::new(replacement.file()?);
    let title = folder.display();
    page::write_head(&mut out, &title.to_string(), SCRIPT)?;
    write!(
        out,
        "{BODY}{}</tbody>\n</table>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        rows.concat()
    )?;
    out.flush()?;
    replacement.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn pages_are_only_written_to_their_own_folder() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [
            "new",
            "empty",
            "own",
            "users",
            "users/clips",
            "marked-folder",
            "marked-folder/.facetrack-view",
        ] {
            if name != "new" {
                fs::create_dir(at(name)).unwrap();
            }
        }
        fs::write(at("own/a.html"), "").unwrap();
        fs::write(at("own").join(MARK), "").unwrap();
        fs::write(at("file"), "my notes").unwrap();
        for (link, target) in [
            ("to-own", "own"),
            ("to-users", "users"),
            ("dangling", "nowhere"),
        ] {
            symlink(at(target), at(link)).unwrap();
        }
        for (name, is_own) in [
            ("new", true),
            ("new", true),
            ("empty", true),
            ("own", true),
            ("to-own", true),
            ("users", false),
            ("to-users", false),
            ("marked-folder", false),
            ("file", false),
            ("dangling", false),
        ] {
            assert_eq!(claim(&at(name)).is_ok(), is_own, "{name}");
        }
        let error = claim(&at("users")).unwrap_err().to_string();
        assert!(error.contains("Name another folder with --out"), "{error}");
        assert_eq!(fs::read_dir(at("users")).unwrap().count(), 1);
    }

    #[test]
    fn only_the_file_that_was_tracked_is_a_video() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let [record, status, file] = ["a.json", "a.json.done", "a.mp4"].map(at);
        fs::write(&file, "video").unwrap();
        let changed = fs::metadata(&file).unwrap().modified().unwrap();
        let changed = changed
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_nanos();
        let hash = facetrack_assets::file::sha256(b"video");
        for (content, is_same) in [
            (format!("[5,\"{changed}\"]"), true),
            (format!("\"{hash}\""), true),
            (format!("[5,\"{}\"]", changed + 1), false),
            (format!("[4,\"{changed}\"]"), false),
            ("\"0f\"".to_owned(), false),
            ("null".to_owned(), false),
        ] {
            let path = file.display();
            let text = format!(
                r#"{{"key":"k","status":"complete","video":"{path}","basis":{{"content":{content}}}}}"#
            );
            fs::write(&status, text).unwrap();
            let mut complaints = Vec::new();
            let found = video(&record, &mut complaints);
            assert_eq!(found.is_some(), is_same, "{content}");
            assert_eq!(complaints.is_empty(), is_same, "{complaints:?}");
        }
        fs::write(
            &status,
            r#"{"key":"k","status":"complete","video":"s3://store/a.mp4"}"#,
        )
        .unwrap();
        let mut complaints = Vec::new();
        assert_eq!(video(&record, &mut complaints), None);
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
