// SPDX-License-Identifier: MPL-2.0
//! Decides which parts of each frame to cover, so that no tracked face stays visible.
//!
//! A face is covered where its frame has it, also if it was held or predicted there. A face that is
//! not in a frame any more is covered for [`Settings::hold`], in an area that grows in all
//! directions by the largest speed that the face had lately. A hard cut does not end this, because a
//! flash can look like one. Frames that may show further faces follow [`Unknown`].
//!
//! Regions are convex polygons; [`Overlay::redact`](crate::overlay::Overlay::redact) covers them.

mod outline;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use smart_default::SmartDefault;

use crate::geometry::{Point, Rect};
use crate::motion::{JUMP, Motion, PictureClock, exceeds};
use crate::observation::Observation;
use crate::report::{FrameReport, FrameStatus, SearchExtent, TrackedFace};
use crate::words::choices;

choices! {
    /// Ways to cover a face.
    pub enum Mode, words redaction_mode_words {
        Pixelate = "pixelate": "cells of the mean colour of their pixels",
        Blur = "blur": "the same cells, with a smooth transition between them",
        Fill = "fill": "black",
    }
}

choices! {
    /// Shapes of covered areas, before the margin.
    pub enum Shape, words redaction_shape_words {
        Ellipse = "ellipse": "the ellipse in the box of the face",
        Box = "box": "the box of the face",
        Face = "face": "the outline of the face mesh; the ellipse if the landmarks have no mesh",
    }
}

choices! {
    /// Handling of frames that may show faces which are not in their report.
    pub enum Unknown, words redaction_unknown_words {
        FillFrame = "fill-frame": "fill the whole frame",
        Pass = "pass": "cover only the faces that are known: others are visible",
    }
}

/// Settings of a redaction. They may change from frame to frame.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct Settings {
    /// How faces are covered.
    pub mode: Mode,
    /// Shape of the covered areas.
    pub shape: Shape,
    /// Width of the margin on each side of a face, relative to the size of the face.
    #[default(0.25)]
    pub margin: f32,
    /// Maximum number of cells across a face.
    #[default(4)]
    pub cells: u32,
    /// How long a face is covered after the last frame that has it, s.
    #[default(1.0)]
    pub hold: f32,
    /// Ids of faces that are not covered.
    pub keep: BTreeSet<u32>,
    /// Handling of frames that may show further faces.
    pub unknown: Unknown,
}

/// An area to cover.
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// Id of the face.
    pub id: u32,
    /// Convex polygon, px.
    pub outline: Vec<Point>,
    /// Minimum side of a cell, px.
    pub cell: f32,
}

/// The part of a frame to cover.
#[derive(Debug, Clone, PartialEq)]
pub enum Cover {
    /// The whole frame.
    Frame,
    /// These areas.
    Regions(Vec<Region>),
}

/// Maximum relative difference of two aspect ratios that are the same: sizes are rounded.
const SAME_SHAPE: f32 = 0.02;

/// A face that is being covered, by its id and its number among the faces of a frame that have this
/// id. In a damaged record there may be several.
type Key = (u32, usize);

/// State of a face that is being covered.
#[derive(Debug)]
struct Known {
    region: Region,
    bbox: Rect,
    /// Motion until the last measurement, or from the last frame that had the face if it was never
    /// measured.
    motion: Motion,
    is_measured: bool,
    /// Time of the last frame that had the face.
    seen: Duration,
    /// True if the position is one in frames of another shape.
    is_misplaced: bool,
}

/// Decides what to cover in the frames of a stream.
#[derive(Debug, Default)]
pub struct Redactor {
    faces: BTreeMap<Key, Known>,
    /// Earlier areas of faces that have jumped or shrunk.
    left: Vec<Known>,
    pictures: PictureClock,
    /// Time of the last frame.
    last: Duration,
    /// True if the known faces are from the stream before, whose clock was another one.
    is_restarted: bool,
}

impl Redactor {
    /// The part to cover in the next frame, at `time`. `report` is in pixels of the frame; `None`
    /// if there is none.
    pub fn cover(
        &mut self,
        report: Option<&FrameReport>,
        time: Duration,
        settings: &Settings,
    ) -> Cover {
        if std::mem::take(&mut self.is_restarted) {
            for known in self.faces.values_mut().chain(&mut self.left) {
                known.seen = time;
                known.motion = known.motion.restarted(self.last, time);
            }
            self.last = time;
        }
        let picture = match report {
            Some(report) if report.repeated => self.pictures.repeat(time),
            _ => self.pictures.show(time),
        };
        let mut counts = BTreeMap::new();
        for TrackedFace { id, face } in report.into_iter().flat_map(|report| &report.faces) {
            let number = counts.entry(*id).or_insert(0);
            self.see((*id, *number), face, [time, picture], settings);
            *number += 1;
        }
        self.faces
            .retain(|_, known| is_recent(known.seen, time, settings));
        self.left
            .retain(|known| is_recent(known.seen, time, settings));
        self.last = time;
        let covered = self.faces.values().chain(&self.left);
        let mut covered = covered.filter(|known| !settings.keep.contains(&known.region.id));
        let is_unknown = search_of(report) != SearchExtent::Whole
            || covered.clone().any(|known| known.is_misplaced);
        if is_unknown && settings.unknown == Unknown::FillFrame {
            return Cover::Frame;
        }
        Cover::Regions(covered.by_ref().map(|known| known.at(time)).collect())
    }

    /// Begins another stream, whose first frames may still show the known faces: they are covered for
    /// the hold.
    pub fn restart(&mut self) {
        self.is_restarted = true;
        self.pictures = PictureClock::default();
    }

    /// Scales the covered areas, because frames have another width and height from now on. Frames of
    /// another shape may have been turned or cropped, so that lost faces may be anywhere: until the end
    /// of their hold, frames count as unknown.
    pub fn rescale(&mut self, x: f32, y: f32) {
        if (x, y) == (1.0, 1.0) {
            return;
        }
        let is_misplaced = (x / y - 1.0).abs() > SAME_SHAPE;
        let scaled = |point: Point| Point::new(point.x * x, point.y * y);
        for known in self.faces.values_mut().chain(&mut self.left) {
            let Rect {
                x: left,
                y: top,
                width,
                height,
            } = known.bbox;
            known.bbox = Rect::new(left * x, top * y, width * x, height * y);
            known.motion = known.motion.scaled(x, y);
            known.region.cell *= x.max(y);
            known.is_misplaced |= is_misplaced;
            let outline = &mut known.region.outline;
            outline.iter_mut().for_each(|point| *point = scaled(*point));
        }
    }

    /// Takes note of a face in a frame, whose own time and the time of its picture are given. A face
    /// without a position keeps its last one.
    fn see(
        &mut self,
        key: Key,
        face: &Observation,
        [time, picture]: [Duration; 2],
        settings: &Settings,
    ) {
        if !has_extent(face) {
            return;
        }
        let before = self.faces.get(&key).filter(|known| known.is_measured);
        let before = before.map(|known| known.motion);
        let motion = match before {
            Some(motion) if !face.origin.is_measured() => motion,
            _ => Motion::measured(before.as_ref(), face, picture),
        };
        let region = Region {
            id: key.0,
            outline: outline::of(face, settings.shape, settings.margin),
            cell: face.bbox.width.max(face.bbox.height) / settings.cells.max(1) as f32,
        };
        let known = Known {
            region,
            bbox: face.bbox,
            motion,
            is_measured: before.is_some() || face.origin.is_measured(),
            seen: time,
            is_misplaced: false,
        };
        // The id may have passed to another person, or the box may be of a part of the face.
        if let Some(before) = self.faces.insert(key, known) {
            let distance = before.motion.measured_reach(self.last);
            let most = JUMP * face.bbox.width.min(face.bbox.height);
            if !before.is_misplaced && exceeds(&before.bbox, &face.bbox, most - distance) {
                self.left.push(before);
            }
        }
    }
}

/// Extent of the search for the faces of a frame. A face without a position counts as not reported.
pub fn search_of(report: Option<&FrameReport>) -> SearchExtent {
    let Some(report) = report else {
        return SearchExtent::None;
    };
    let is_analysed = matches!(report.status, FrameStatus::Tracked | FrameStatus::NoFace);
    if !is_analysed {
        return report.search.max(SearchExtent::None);
    }
    if report.faces.iter().all(|it| has_extent(&it.face)) {
        return report.search;
    }
    report.search.max(SearchExtent::Partial)
}

impl Known {
    /// The area that the face may have reached at a time, also if the frame was wrongly taken for a
    /// repeated picture.
    fn at(&self, time: Duration) -> Region {
        Region {
            outline: outline::grown(&self.region.outline, self.motion.reach(time)),
            ..self.region.clone()
        }
    }
}

/// Returns true if a time is at most the hold ago.
fn is_recent(at: Duration, now: Duration, settings: &Settings) -> bool {
    now.saturating_sub(at).as_secs_f32() <= settings.hold
}

fn has_extent(face: &Observation) -> bool {
    face.bbox.has_extent()
}

#[cfg(test)]
mod tests;
