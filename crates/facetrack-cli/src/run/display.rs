// SPDX-License-Identifier: MPL-2.0
//! Shows a run: bars on a terminal, a line for each video elsewhere, or events as JSON.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::Path;

use facetrack::printable::Line;
use facetrack_jobs::{Progress, Status};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde_json::json;

use super::events::{Event, VideoResult};
use super::plan::VideoJob;
use super::study_table::Written;
use super::summary::Summary;
use super::video::Video;
use crate::error::StoreError;
use crate::output;
use crate::table;

const MILLISECONDS: f64 = 1e3;

/// Shows a run, and keeps its summary.
pub(super) struct Display<'a> {
    videos: &'a [Video],
    mode: Mode,
    pub summary: Summary,
    /// Videos to track, and those that are settled.
    total: usize,
    settled: usize,
}

enum Mode {
    Json,
    Lines,
    Bars(Bars),
}

impl<'a> Display<'a> {
    /// A display of a run that has these tasks.
    pub(super) fn new(is_json: bool, videos: &'a [Video], jobs: &[VideoJob]) -> Self {
        let total = jobs.len();
        let mode = if is_json {
            Mode::Json
        } else if io::stderr().is_terminal() {
            Mode::Bars(Bars::new(total))
        } else {
            Mode::Lines
        };
        Self {
            videos,
            mode,
            summary: Summary::new(videos.len(), jobs),
            total,
            settled: 0,
        }
    }

    /// Shows an event.
    ///
    /// # Errors
    /// Returns an error if the text cannot be printed.
    pub(super) fn on_event(&mut self, event: Event) -> Result<(), StoreError> {
        match &mut self.mode {
            Mode::Json => print_json(&event, self.videos)?,
            Mode::Bars(bars) => bars.on_event(&event, self.videos),
            Mode::Lines => self.print_event(&event)?,
        }
        if let Event::Finished(result) = event {
            self.summary.results.push(result);
        }
        Ok(())
    }

    fn print_event(&mut self, event: &Event) -> Result<(), StoreError> {
        match event {
            Event::Finished(result) if result.is_new => {
                self.settled += usize::from(result.is_tracked());
                let line = line(result, self.videos);
                output::print_line(format_args!("[{}/{}] {line}", self.settled, self.total))?;
            }
            Event::Noted(note) => output::complain(note),
            _ => (),
        }
        Ok(())
    }

    /// Removes the bars.
    pub(super) fn end(&self) {
        if let Mode::Bars(bars) = &self.mode {
            bars.end();
        }
    }

    /// Shows the summary of the run.
    ///
    /// # Errors
    /// Returns an error if the text cannot be printed.
    pub(super) fn summarise(
        &self,
        failures: Option<&Path>,
        table: Option<Written<'_>>,
    ) -> Result<(), StoreError> {
        let summary = &self.summary;
        if let Mode::Json = self.mode {
            let (figures, table) = (summary.figures(), table.map(|table| table.path));
            let event = json!({"event": "summary", "figures": figures, "failures": failures, "table": table});
            return output::send_line(event);
        }
        output::print(summary.table())?;
        if summary.open() > 0 {
            let open = output::counted(summary.open() as u64, "video");
            output::print_line(format_args!(
                "not tracked: {open}. Run the same command again to continue"
            ))?;
        }
        if let Some(failures) = failures {
            let count = output::counted(summary.incomplete().len() as u64, "video");
            let failures = failures.display();
            output::print_line(format_args!("not complete: {count}, listed in {failures}"))?;
        }
        if let Some(Written { path, faces }) = table {
            table::print_count(faces, "face", path)?;
        }
        Ok(())
    }
}

/// Returns the line about the result of a video.
fn line(result: &VideoResult, videos: &[Video]) -> String {
    let outcome = &result.status.outcome;
    let path = videos[result.index].path.display().to_string();
    let mut line = format!("{} {path}", outcome.status.word());
    if outcome.status.has_record() {
        let seconds = result.status.seconds.max(f64::EPSILON);
        let speed = outcome.video_seconds.unwrap_or(0.0) / seconds;
        line += &format!(
            ": {}, {}, {:.1} fps, {speed:.1} x real time",
            output::counted(outcome.frames, "frame"),
            output::counted(outcome.faces, "face"),
            outcome.frames as f64 / seconds
        );
    }
    if let Some(message) = &outcome.message {
        // The line names it already.
        let named = message.strip_prefix(&path);
        line += named.unwrap_or(&format!(": {message}"));
    }
    if let Some(reason) = &result.status.whole {
        line += &format!(" (tracked as a whole: {reason})");
    }
    line
}

fn print_json(event: &Event, videos: &[Video]) -> Result<(), StoreError> {
    let id = |index: usize| &videos[index].id;
    let event = match event {
        Event::Started { index, segment, .. } => {
            let mut event = json!({"event": "started", "id": id(*index)});
            if let Some((number, count)) = segment {
                event["part"] = (number + 1).into();
                event["parts"] = (*count).into();
            }
            event
        }
        Event::Progressed {
            index, progress, ..
        } => json!({"event": "progress", "id": id(*index), "progress": progress}),
        Event::Finished(result) => {
            let (index, is_new, status) = (result.index, result.is_new, &result.status);
            let record = &videos[index].record;
            json!({"event": "finished", "id": id(index), "record": record, "new": is_new, "marker": status})
        }
        Event::Noted(note) => json!({"event": "note", "message": note}),
        Event::Left { .. } => return Ok(()),
    };
    output::send_line(event)
}

/// Bars on a terminal: one for each dispatcher with a video, and one for the run.
struct Bars {
    all: MultiProgress,
    run: ProgressBar,
    dispatchers: HashMap<usize, ProgressBar>,
}

impl Bars {
    fn new(total: usize) -> Self {
        let all = MultiProgress::new();
        let run = all.add(ProgressBar::new(total as u64));
        run.set_style(style(
            "{bar:30} {pos}/{len} videos, {elapsed} elapsed, {eta} left",
        ));
        Self {
            all,
            run,
            dispatchers: HashMap::new(),
        }
    }

    fn on_event(&mut self, event: &Event, videos: &[Video]) {
        match event {
            Event::Started {
                dispatcher,
                index,
                segment,
            } => {
                let bar = self.all.insert_before(&self.run, ProgressBar::new(0));
                bar.set_style(style("{bar:30} {msg} {prefix}"));
                let id = &videos[*index].id;
                let segment =
                    segment.map(|(number, count)| format!(" ({} of {count})", number + 1));
                bar.set_prefix(format!("{}{}", Line(id), segment.unwrap_or_default()));
                self.dispatchers.insert(*dispatcher, bar);
            }
            Event::Progressed {
                dispatcher,
                progress,
                ..
            } => {
                if let Some(bar) = self.dispatchers.get(dispatcher) {
                    show(progress, bar);
                }
            }
            Event::Left { dispatcher } => {
                if let Some(bar) = self.dispatchers.remove(dispatcher) {
                    bar.finish_and_clear();
                }
            }
            Event::Finished(result) => self.on_finished(result, videos),
            Event::Noted(note) => self.print(note),
        }
    }

    fn on_finished(&self, result: &VideoResult, videos: &[Video]) {
        if result.is_tracked() {
            self.run.inc(1);
        }
        let status = &result.status;
        let is_odd = status.outcome.status != Status::Complete || status.whole.is_some();
        if result.is_new && is_odd {
            self.print(&line(result, videos));
        }
    }

    fn print(&self, text: &str) {
        // A terminal that is gone shows nothing more.
        let _ = self.all.println(Line(text).to_string());
    }

    fn end(&self) {
        self.run.finish_and_clear();
    }
}

/// Shows the state of a video on its bar.
fn show(progress: &Progress, bar: &ProgressBar) {
    let milliseconds = |seconds: Option<f64>| (seconds.unwrap_or(0.0) * MILLISECONDS) as u64;
    bar.set_length(milliseconds(progress.duration));
    bar.set_position(milliseconds(progress.position));
    let elapsed = bar.elapsed().as_secs_f64().max(f64::EPSILON);
    let position = progress.position.unwrap_or(0.0);
    let duration = progress.duration;
    let left = duration.map(|end| (end - position) * elapsed / position);
    let left = left.filter(|left| left.is_finite()).unwrap_or(0.0);
    bar.set_message(format!(
        "{:6.1} fps {:5.1} x real time {left:5.0} s left",
        progress.frames as f64 / elapsed,
        position / elapsed,
    ));
}

/// A style from a template of this file.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
