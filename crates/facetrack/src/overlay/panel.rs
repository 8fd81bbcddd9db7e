// SPDX-License-Identifier: MPL-2.0
//! Draws text. All of it is inside the frame, if that has 160×90 pixels or more.

use super::Pace;
use super::brush::Brush;
use super::color::Rgb;
use super::look::Look;
use crate::geometry::{Point, Rect};
use crate::observation::Observation;
use crate::report::{FrameReport, FrameStatus, TrackedFace};

/// MediaPipe's channel that is not an expression.
const NEUTRAL: &str = "_neutral";

/// Maximum number of letters of a name; ARKit's longest has 19.
const NAME_LETTERS: usize = 19;

/// Maximum number of letters of a line about the stream.
const LINE_LETTERS: usize = 48;

/// Width of a bar of 1, in letters, and its height, relative to the text.
const BAR_LETTERS: usize = 8;
const BAR_HEIGHT: f32 = 0.6;

/// Number of letters of a row of the blendshapes: name, space and bar.
const ROW_LETTERS: usize = NAME_LETTERS + 1 + BAR_LETTERS;

/// Opacity of the background of bars.
const GROOVE_OPACITY: u8 = 40;

/// Opacity of text.
const TEXT_OPACITY: u8 = 255;

/// Maximum width of letters, px, with which a row of the blendshapes fits into a frame of this
/// width. The padding of the plate is narrower than a letter.
pub(super) fn widest_letter(width: f32) -> f32 {
    width / (ROW_LETTERS + 1) as f32
}

/// Number and score of a face, above its box, or inside the box if there is no room.
pub(super) fn label(brush: &mut Brush, tracked: &TrackedFace, bbox: &Rect, look: Look) {
    let text = match tracked.face.confidence {
        Some(score) => format!("{} {score:.2}", tracked.id),
        None => tracked.id.to_string(),
    };
    let plate = brush.plate(Point::new(bbox.x, bbox.y), text.chars().count(), 1);
    let above = plate.y - plate.height;
    let plate = brush.inside(Rect {
        y: if above >= 0.0 { above } else { plate.y },
        ..plate
    });
    brush.fill(plate);
    brush.paint(look.color, look.opacity(TEXT_OPACITY));
    brush.text(brush.on_plate(&plate), &text);
    brush.paint(look.color.contrast(), look.opacity(TEXT_OPACITY));
}

/// The strongest blendshapes of a face, at most `max`, next to its box, as far as they fit into the
/// frame. They cover no plate in `taken`; if there is no such place, none are drawn.
pub(super) fn blendshapes(
    brush: &mut Brush,
    face: &Observation,
    bbox: &Rect,
    look: Look,
    max: usize,
    taken: &mut Vec<Rect>,
) {
    let channels = strongest(face, max.min(brush.lines_in_frame()));
    if channels.is_empty() {
        return;
    }
    let Some(plate) = plate_near(brush, bbox, channels.len(), taken) else {
        return;
    };
    taken.push(plate);
    brush.darken(plate);
    let corner = brush.on_plate(&plate);
    let line = |index: usize, brush: &Brush| corner.y + index as f32 * brush.text_height();
    for (index, (name, _)) in channels.iter().enumerate() {
        let name: String = name.chars().take(NAME_LETTERS).collect();
        let y = line(index, brush);
        brush.text(Point::new(corner.x, y), &name);
    }
    brush.paint(Rgb::WHITE, look.opacity(TEXT_OPACITY));
    let (left, width) = (
        corner.x + brush.text_width(NAME_LETTERS + 1),
        brush.text_width(BAR_LETTERS),
    );
    let height = BAR_HEIGHT * brush.text_height();
    let bars = |share: fn(f32) -> f32, brush: &mut Brush| {
        for (index, (_, value)) in channels.iter().enumerate() {
            let y = line(index, brush) + (brush.text_height() - height) / 2.0;
            brush.fill(Rect::new(left, y, width * share(*value), height));
        }
    };
    bars(|_| 1.0, brush);
    brush.paint(Rgb::WHITE, look.opacity(GROOVE_OPACITY));
    bars(|value| value.clamp(0.0, 1.0), brush);
    brush.paint(look.color, look.opacity(TEXT_OPACITY));
}

/// The `max` channels with the highest values, in the order of the engine, so that their places
/// change little.
fn strongest(face: &Observation, max: usize) -> Vec<(&str, f32)> {
    let Some(blendshapes) = &face.blendshapes else {
        return Vec::new();
    };
    let channels = blendshapes.iter().enumerate();
    let mut channels: Vec<_> = channels
        .filter(|(_, (name, value))| *name != NEUTRAL && value.is_finite())
        .collect();
    channels.sort_by(|(_, (_, a)), (_, (_, b))| b.total_cmp(a));
    channels.truncate(max);
    channels.sort_by_key(|(index, _)| *index);
    channels.into_iter().map(|(_, channel)| channel).collect()
}

/// A plate for rows of blendshapes to the right of a box, to its left or below it, or further down
/// or up where other plates are: the first of these places where the plate covers the smallest part
/// of the box.
fn plate_near(brush: &Brush, bbox: &Rect, lines: usize, taken: &[Rect]) -> Option<Rect> {
    let gap = brush.text_height() / 2.0;
    let plate = |x, y| brush.plate(Point::new(x, y), ROW_LETTERS, lines);
    let right = plate(bbox.right() + gap, bbox.y);
    let left = plate(bbox.x - gap - right.width, bbox.y);
    let below = plate(bbox.x, bbox.bottom() + gap);
    let covered = |plate: &Rect| plate.intersection(bbox).area();
    let sides = [right, left, below].map(|plate| brush.inside(plate));
    let [down, up] = [Direction::Down, Direction::Up];
    let places = [down, up].map(|to| sides.map(|plate| free_place(brush, plate, taken, to)));
    let mut places: Vec<_> = places.into_iter().flatten().flatten().collect();
    places.sort_by(|a, b| covered(a).total_cmp(&covered(b)));
    places.first().copied()
}

/// A way of a plate past others.
#[derive(Clone, Copy)]
enum Direction {
    Down,
    Up,
}

/// The nearest place in this direction where a plate is inside the frame and covers no other plate.
fn free_place(
    brush: &Brush,
    mut plate: Rect,
    taken: &[Rect],
    direction: Direction,
) -> Option<Rect> {
    let is_covered = |plate: &Rect, other: &&Rect| plate.intersection(other).area() > 0.0;
    while let Some(other) = taken.iter().find(|other| is_covered(&plate, other)) {
        plate.y = match direction {
            Direction::Down => other.bottom(),
            Direction::Up => other.y - plate.height,
        };
        if brush.inside(plate) != plate {
            return None;
        }
    }
    Some(plate)
}

/// Engine, device, GPU memory, timing and status, in the upper left corner. Returns their plate.
pub(super) fn info(brush: &mut Brush, report: &FrameReport, pace: &Pace) -> Option<Rect> {
    let corner = brush.text_height() / 2.0;
    let [width, _] = brush.size();
    let max = brush.letters_in(width - 2.0 * corner).min(LINE_LETTERS);
    let lines = [
        wrapped(&origin(report, pace), " ", max),
        wrapped(&progress(report, pace), "  ", max),
    ];
    let lines = lines.concat();
    let letters = lines.iter().map(|line| line.chars().count()).max()?;
    let plate = brush.plate(Point::new(corner, corner), letters, lines.len());
    brush.darken(plate);
    let mut at = brush.on_plate(&plate);
    for line in &lines {
        brush.text(at, line);
        at.y += brush.text_height();
    }
    brush.paint(Rgb::WHITE, TEXT_OPACITY);
    Some(plate)
}

/// Words in lines of at most `max` letters; longer words are truncated.
fn wrapped(words: &[String], gap: &str, max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let word: String = word.chars().take(max).collect();
        match lines.last_mut() {
            Some(line) if line.chars().count() + gap.len() + word.chars().count() <= max => {
                *line += gap;
                *line += &word;
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn origin(report: &FrameReport, pace: &Pace) -> [String; 3] {
    let source = &report.source;
    let [engine, device] = [&source.engine, &source.device].map(|word| word.trim().to_owned());
    let memory = pace.gpu_memory;
    let memory = memory.map_or_else(String::new, |mebibytes| format!("{mebibytes} MiB"));
    [engine, device, memory]
}

fn progress(report: &FrameReport, pace: &Pace) -> Vec<String> {
    let status = match report.status {
        FrameStatus::Tracked => None,
        status => Some(status.to_string()),
    };
    let fps = pace.fps.map(|fps| format!("{fps:.1} fps"));
    let analysis = pace
        .analysis
        .map(|time| format!("analysis {:.1} ms", time.as_secs_f64() * 1e3));
    let latency = pace
        .latency
        .map(|latency| format!("{} ms", latency.as_millis()));
    [fps, analysis, latency, status]
        .into_iter()
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::report::{ReportSource, SearchExtent};

    #[test]
    fn the_lines_about_the_stream_state_what_is_known() {
        let source = ReportSource {
            engine: "insightface".into(),
            device: "cuda:1".into(),
            ..ReportSource::default()
        };
        let report = FrameReport {
            width: 640,
            height: 360,
            status: FrameStatus::Tracked,
            cut: false,
            search: SearchExtent::Whole,
            repeated: false,
            faces: Vec::new(),
            source: Arc::new(source),
        };
        let pace = Pace {
            fps: Some(29.97),
            latency: Some(Duration::from_millis(40)),
            analysis: Some(Duration::from_micros(8_260)),
            gpu_memory: Some(812),
        };
        assert_eq!(origin(&report, &pace), ["insightface", "cuda:1", "812 MiB"]);
        assert_eq!(
            progress(&report, &pace),
            ["30.0 fps", "analysis 8.3 ms", "40 ms"]
        );
        let nothing = Pace::default();
        assert_eq!(origin(&report, &nothing), ["insightface", "cuda:1", ""]);
        assert!(progress(&report, &nothing).is_empty());
    }
}
