// SPDX-License-Identifier: MPL-2.0
//! `facetrack view`: a page that shows a record over its video in a browser.

mod columns;
mod edits;
mod encode;
mod folder;
mod page;
mod points;
pub(crate) mod proxy;

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use facetrack::findings::{Finding, Findings};
use facetrack::overlay::Rgb;
use facetrack::replay::{ANY_FPS, Replay, Times};
use facetrack_assets::file::is_same;
use facetrack_assets::replacement::Replacement;
use serde_json::{Value as Json, json};

use self::columns::Columns;
use self::page::RecordPage;
use self::points::PART_FRAMES;
use crate::error::StoreError;
use crate::{faces, output, table};

/// Suffix of pages.
const SUFFIX: &str = "html";

/// Arguments of `facetrack view`.
#[derive(Debug, Args)]
pub(crate) struct ViewArguments {
    /// JSON record, dense or jsonl, finished or not; or a folder of records that facetrack run wrote
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Video of the record, which the page refers to; without it, the page asks for the file
    #[arg(long, value_name = "FILE")]
    video: Option<PathBuf>,
    /// Write a small WebM copy of the video next to the page, which refers to it, for browsers that
    /// cannot play the video
    #[arg(long)]
    proxy: bool,
    /// Page to write; of a folder, the folder for the pages. By default it is next to the record, or in
    /// the folder
    #[arg(long, value_name = "PAGE")]
    out: Option<PathBuf>,
}

/// A record to show, and its page.
#[derive(Debug, Clone, Copy)]
struct View<'a> {
    record: &'a Path,
    video: Option<&'a Path>,
    /// True if the page refers to a copy of the video.
    has_proxy: bool,
    out: &'a Path,
}

/// The contents of a page.
#[derive(Debug)]
struct Shown {
    /// Number of different faces.
    faces: usize,
    findings: usize,
    /// The file that the page refers to.
    video: Option<PathBuf>,
    /// Time of the last frame, s.
    seconds: f64,
}

/// Writes the page of the record, or the pages of a folder.
///
/// # Errors
/// Returns an error if the record cannot be read, the video is missing, or the page cannot be
/// written or would replace another file.
///
/// Returns a failure if a record of a folder was left out.
pub(crate) fn run(arguments: &ViewArguments) -> Result<ExitCode, Box<dyn Error>> {
    let ViewArguments {
        record, video, out, ..
    } = arguments;
    if record.is_dir() {
        if video.is_some() {
            return Err("--video is for one record".into());
        }
        return folder::run(record, arguments);
    }
    if arguments.proxy && video.is_none() {
        return Err("--proxy needs the video: name it with --video".into());
    }
    let beside = record.with_extension(SUFFIX);
    let view = View {
        record,
        video: video.as_deref(),
        has_proxy: arguments.proxy,
        out: out.as_deref().unwrap_or(&beside),
    };
    let Shown { findings, .. } = view.write()?;
    let findings = output::counted(findings as u64, "finding");
    output::print_line(format_args!(
        "{findings}. Open {} in a browser",
        view.out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

impl View<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// Returns an error if the record or the video cannot be read, or the page cannot be written.
    fn write(self) -> Result<Shown, Box<dyn Error>> {
        let at = |error: String| format!("{}: {error}", self.record.display());
        let mut replay = faces::open(self.record).map_err(at)?;
        if is_same(self.record, self.out) {
            return Err(at("--out is the record. Name another file".to_owned()).into());
        }
        table::check_start(self.out, page::START.as_bytes(), "page of facetrack view")?;
        let proxy = self.video.filter(|_| self.has_proxy);
        let proxy = proxy.map(|video| proxy::write(video, self.out));
        let proxy = proxy.transpose()?;
        let shown = proxy.as_deref().or(self.video);
        let video = shown.map(|video| self.link(video)).transpose()?;
        let replacement = Replacement::begin(self.out).map_err(StoreError::at(self.out))?;
        let title = self
            .record
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let file = replacement.file().map_err(StoreError::at(self.out))?;
        let page = RecordPage::begin(BufWriter::new(file), &title);
        let mut page = page.map_err(StoreError::at(self.out))?;
        let mut columns = Columns::default();
        let findings = self.add_frames(&mut replay, &mut columns, &mut page)?;
        for (name, numbers) in columns.named() {
            page.add(&name, numbers).map_err(StoreError::at(self.out))?;
        }
        let mut header = columns.header();
        describe(&mut header, &replay);
        header["title"] = title.into();
        header["video"] = video.into();
        let name = shown.and_then(Path::file_name);
        header["videoName"] = name.map(|name| name.to_string_lossy()).into();
        header["hidesFirstFrame"] = shown.is_some_and(edits::hide_first_frame).into();
        header["findings"] = findings.iter().map(described).collect();
        page.finish(&header).map_err(StoreError::at(self.out))?;
        replacement.finish().map_err(StoreError::at(self.out))?;
        Ok(Shown {
            faces: columns.people(),
            findings: findings.len(),
            video: shown.map(Path::to_owned),
            seconds: columns.seconds(),
        })
    }

    /// Reads all frames, and writes the points.
    fn add_frames(
        self,
        replay: &mut Replay<File>,
        columns: &mut Columns,
        page: &mut RecordPage<BufWriter<File>>,
    ) -> Result<Vec<Finding>, Box<dyn Error>> {
        let mut findings = Findings::new(replay.fps());
        let frames: Vec<_> = replay.frames().zip(replay.frame_times()).collect();
        let places = frames.len();
        for (place, ((number, pts), time)) in frames.into_iter().enumerate() {
            let report = replay.report(place, faces::ANY_SIZE);
            let report = report.map_err(|error| format!("{}: {error}", self.record.display()))?;
            let time = ((time.as_nanos() + 500) / 1000) as u64;
            columns.add(number, time, report.as_ref());
            findings.add(number, pts, report.as_ref());
            if (place + 1).is_multiple_of(PART_FRAMES) || place + 1 == places {
                let part = columns.points.take_part();
                let added = page.add(&format!("points-{}", place / PART_FRAMES), &part);
                added.map_err(StoreError::at(self.out))?;
            }
        }
        Ok(findings.finish())
    }

    /// The link to the video.
    fn link(self, video: &Path) -> Result<String, String> {
        let folder = self.out.parent().filter(|it| !it.as_os_str().is_empty());
        let at = |error| format!("{}: {error}. Name the video with --video", video.display());
        if !fs::metadata(video).map_err(at)?.is_file() {
            return Err(format!(
                "{}: it is not a file. Name the video with --video",
                video.display()
            ));
        }
        page::link(folder.unwrap_or(Path::new(".")), video).map_err(at)
    }
}

/// A finding for the page.
fn described(finding: &Finding) -> Json {
    let Finding {
        kind,
        face,
        first,
        last,
        text,
        ..
    } = finding;
    let remedy = facetrack_remedies::for_finding(*kind);
    json!({"kind": kind, "face": face, "first": first.number, "last": last.number, "text": text, "remedy": remedy})
}

/// Adds the properties of the record to the header of its columns.
fn describe(header: &mut Json, replay: &Replay<File>) {
    header["engine"] = replay.engine().into();
    header["fps"] = replay.fps().unwrap_or(ANY_FPS).into();
    header["pixelAspectRatio"] = replay.pixel_aspect_ratio().into();
    header["finished"] = replay.is_finished().into();
    // The first frame of the video has the time 0; earlier records have times of buffers.
    header["startsAtZero"] = matches!(replay.times(), Times::Stream(_)).into();
    header["palette"] = json!(Rgb::PALETTE.map(|Rgb(color)| color));
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACE: &str = r#""centroid_x":3,"centroid_y":3,"bbox_xmin":1,"bbox_ymin":1,"bbox_width":4,"bbox_height":4,"confidence":0.5"#;

    /// A folder with a record of three frames.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let face = |id: u32, jaw: f32| {
            format!(r#"{{"id":"obj_{id}",{FACE},"blendshapes":{{"jawOpen":{jaw}}}}}"#)
        };
        let frames = [
            String::new(),
            face(2, 0.1) + "," + &face(1, 0.5),
            face(1, 0.25),
        ];
        let frames = std::iter::zip(1.., frames)
            .map(|(number, faces)| format!(r#"{{"frame":{number},"tracked_objects":[{faces}]}}"#));
        let text = format!(
            r#"{{"metadata":{{"fps":25.0,"tracking_engine":"mediapipe"}},"frames":[{}]}}"#,
            frames.collect::<Vec<_>>().join(",")
        );
        fs::write(folder.path().join("clip.json"), text).unwrap();
        folder
    }

    #[test]
    fn only_a_page_is_replaced() {
        let folder = folder();
        let [record, out, missing] =
            ["clip.json", "clip.html", "missing.mp4"].map(|name| folder.path().join(name));
        let view = View {
            record: &record,
            video: None,
            has_proxy: false,
            out: &out,
        };
        view.write().unwrap();
        view.write().unwrap();
        let page = fs::read_to_string(&out).unwrap();
        for (view, reason) in [
            (
                View {
                    out: &record,
                    ..view
                },
                "--out is the record",
            ),
            (
                View {
                    video: Some(&missing),
                    ..view
                },
                "missing.mp4: No such file",
            ),
        ] {
            let error = view.write().unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(fs::read_to_string(&out).unwrap(), page);
        }
        fs::write(&out, "my notes").unwrap();
        let error = view.write().unwrap_err().to_string();
        assert!(
            error.contains("it exists, and is no page of facetrack view"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&out).unwrap(), "my notes");
    }
}
