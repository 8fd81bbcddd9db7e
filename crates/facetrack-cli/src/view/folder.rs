// SPDX-License-Identifier: MPL-2.0
//! The pages of a folder that `facetrack run` wrote, and a page that lists them.

use std::error::Error;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use facetrack_assets::replacement::Replacement;

use super::page::{self, escaped};
use super::{SUFFIX, Shown, View, ViewArguments};
use crate::error::{StoreError, is_full};
use crate::index::videos;
use crate::output;
use crate::table::{self, Cell};

/// Folder of the pages in a folder of records.
const FOLDER: &str = "view";

/// The page that lists the others, and their folder.
const LIST: &str = "index.html";
const PAGES: &str = "videos";

/// The program of the list.
const SCRIPT: &str = include_str!("strips.js");

/// Columns of the list with the keys of the index.
const COLUMNS: [(&str, &str); 4] = [
    ("status", "Status"),
    ("frames", "Frames"),
    ("faces", "Faces"),
    ("message", "Message"),
];

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
    let mut complaints = Vec::new();
    let sources = [folder.to_owned()];
    let index = videos::index(&sources, &mut |complaint| complaints.push(complaint))?;
    let mut rows = Vec::new();
    for (id, row) in &index {
        let page = videos::recorded(row).map(|video| write_page(&video, row, out, arguments.proxy));
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

/// The page of a video in the list.
struct Page {
    link: String,
    findings: usize,
    /// The canvas of the pictures, if the page has a video.
    strip: String,
}

/// Writes the page of a video.
fn write_page(
    video: &videos::Recorded<'_>,
    row: &[Cell],
    out: &Path,
    has_proxy: bool,
) -> Result<Page, Box<dyn Error>> {
    let page = out.join(PAGES).join(format!("{}.{SUFFIX}", video.id));
    if let Some(folder) = page.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
    }
    // A video of a store is not on this machine.
    let file = match videos::value(row, "video") {
        Cell::Text(video) => Some(PathBuf::from(video)).filter(|video| video.is_file()),
        _ => None,
    };
    let view = View {
        record: video.record,
        video: file.as_deref(),
        has_proxy,
        out: &page,
    };
    let Shown {
        findings,
        video,
        seconds,
    } = view.write(None)?;
    let video = video.map(|video| page::link(out, &video)).transpose()?;
    Ok(Page {
        link: page::link(out, &page)?,
        findings,
        strip: video.map_or(String::new(), |video| strip(&video, seconds)),
    })
}

/// The place of the pictures of a video, which the program of the list draws.
fn strip(link: &str, seconds: f64) -> String {
    format!(
        "<canvas data-src=\"{link}\" data-seconds=\"{seconds}\" role=\"img\" \
            aria-label=\"Frames of the video\"></canvas>"
    )
}

/// The row of a video, with what its page shows if it has one.
fn table_row(id: &str, row: &[Cell], page: Option<&Page>) -> String {
    let id = escaped(id);
    let link = page.map(|Page { link, .. }| format!("<a href=\"{link}\">{id}</a>"));
    let name = link.unwrap_or(id);
    let strip = page.map_or("", |page| &page.strip);
    let findings = page.map_or(String::new(), |page| page.findings.to_string());
    let cells = COLUMNS.map(|(key, _)| match videos::value(row, key) {
        Cell::Text(text) => format!("<td>{}</td>", escaped(text)),
        Cell::Integer(number) => format!("<td class=\"number\">{number}</td>"),
        _ => "<td></td>".to_owned(),
    });
    format!(
        "<tr><th scope=\"row\">{name}</th><td>{strip}</td><td class=\"number\">{findings}</td>{}</tr>\n",
        cells.concat()
    )
}

fn write_list(path: &Path, folder: &Path, rows: &[String]) -> io::Result<()> {
    let replacement = Replacement::begin(path)?;
    let mut out = BufWriter::new(replacement.file()?);
    let title = folder.display();
    page::write_head(&mut out, &title.to_string(), SCRIPT)?;
    let heads = COLUMNS.map(|(_, head)| format!("<th scope=\"col\">{head}</th>"));
    write!(
        out,
        "<body>\n<main>\n<h1>{}</h1>\n<div class=\"scroll\">\n<table>\n\
            <thead><tr><th scope=\"col\">Video</th><th scope=\"col\">Pictures</th>\
                <th scope=\"col\">Findings</th>{}</tr></thead>\n\
            <tbody>\n{}</tbody>\n</table>\n</div>\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n",
        escaped(title),
        heads.concat(),
        rows.concat()
    )?;
    out.flush()?;
    replacement.finish()?;
    Ok(())
}
