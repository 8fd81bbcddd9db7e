// SPDX-License-Identifier: MPL-2.0
//! What is drawn as text.

use super::Pace;
use super::brush::Brush;
use super::color::Rgb;
use super::face::Look;
use crate::face::geometry::{Point, Rect};
use crate::face::observation::Observation;
use crate::face::report::{FrameReport, FrameStatus, TrackedFace};

/// The channel of MediaPipe's that is no expression.
const NEUTRAL: &str = "_neutral";

/// Most letters of a name; ARKit's longest has 19.
const NAME_LETTERS: usize = 19;

/// Most letters of a line about the stream.
const LINE_LETTERS: usize = 48;

/// Width of a bar of 1, in letters, and its height in heights of the text.
const BAR_LETTERS: usize = 8;
const BAR_HEIGHT: f32 = 0.6;

/// How much of what is behind them the grooves hide that bars lie in.
const GROOVE_OPACITY: u8 = 40;

/// How much text hides of what is behind it.
const TEXT_OPACITY: u8 = 255;

/// Number and score of a face, above its box, or inside where there is no room.
pub(super) fn label(brush: &mut Brush, tracked: &TrackedFace, bbox: &Rect, look: Look) {
    let text = match tracked.face.confidence {
        Some(score) => format!("{} {score:.2}", tracked.id),
        None => tracked.id.to_string(),
    };
    let plate = brush.plate(Point::new(bbox.x, bbox.y), text.chars().count(), 1);
    let above = plate.y - plate.height;
    let plate = Rect {
        y: if above >= 0.0 { above } else { plate.y },
        ..plate
    };
    brush.fill(plate);
    brush.paint(look.color, look.opacity(TEXT_OPACITY));
    brush.text(brush.on_plate(&plate), &text);
    brush.paint(look.color.contrast(), look.opacity(TEXT_OPACITY));
}

/// The strongest blendshapes of a face, beside its box.
pub(super) fn blendshapes(
    brush: &mut Brush,
    face: &Observation,
    bbox: &Rect,
    look: Look,
    most: usize,
) {
    let channels = strongest(face, most);
    if channels.is_empty() {
        return;
    }
    let letters = NAME_LETTERS + 1 + BAR_LETTERS;
    let plate = beside(brush, bbox, letters, channels.len());
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

/// The channels with the greatest values, in the order in which the engine has them, so that they keep their places.
fn strongest(face: &Observation, most: usize) -> Vec<(&str, f32)> {
    let Some(blendshapes) = &face.blendshapes else {
        return Vec::new();
    };
    let channels = blendshapes.iter().enumerate();
    let mut channels: Vec<_> = channels
        .filter(|(_, (name, value))| *name != NEUTRAL && value.is_finite())
        .collect();
    channels.sort_by(|(_, (_, a)), (_, (_, b))| b.total_cmp(a));
    channels.truncate(most);
    channels.sort_by_key(|(index, _)| *index);
    channels.into_iter().map(|(_, channel)| channel).collect()
}

/// A plate to the right of a box, to the left where there is more room.
fn beside(brush: &Brush, bbox: &Rect, letters: usize, lines: usize) -> Rect {
    let gap = brush.text_height() / 2.0;
    let plate = brush.plate(Point::new(bbox.right() + gap, bbox.y), letters, lines);
    let [width, height] = brush.size();
    let too_far = plate.right() > width && bbox.x > width - bbox.right();
    let x = match too_far {
        true => bbox.x - gap - plate.width,
        false => plate.x,
    };
    let lowest = (height - plate.height).max(0.0);
    Rect {
        x: x.round(),
        y: plate.y.min(lowest).max(0.0),
        ..plate
    }
}

/// What made the report, and how the stream goes, in the upper left corner.
pub(super) fn info(brush: &mut Brush, report: &FrameReport, pace: &Pace) {
    let lines = [first_line(report), second_line(report, pace)];
    let lines: Vec<_> = lines.iter().filter(|line| !line.is_empty()).collect();
    let letters = lines.iter().map(|line| line.chars().count()).max();
    let corner = brush.text_height() / 2.0;
    let plate = brush.plate(
        Point::new(corner, corner),
        letters.unwrap_or_default(),
        lines.len(),
    );
    brush.darken(plate);
    let mut at = brush.on_plate(&plate);
    for line in lines {
        brush.text(at, line);
        at.y += brush.text_height();
    }
    brush.paint(Rgb::WHITE, TEXT_OPACITY);
}

fn first_line(report: &FrameReport) -> String {
    let source = &report.source;
    let line = format!("{} {}", source.engine, source.device);
    line.trim().chars().take(LINE_LETTERS).collect()
}

fn second_line(report: &FrameReport, pace: &Pace) -> String {
    let status = match report.status {
        FrameStatus::Tracked => None,
        status => Some(status.name().to_owned()),
    };
    let fps = pace.fps.map(|fps| format!("{fps:.1} fps"));
    let latency = pace
        .latency
        .map(|latency| format!("{} ms", latency.as_millis()));
    let parts = [fps, latency, status].into_iter().flatten();
    parts.collect::<Vec<_>>().join("  ")
}
