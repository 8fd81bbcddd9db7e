// SPDX-License-Identifier: MPL-2.0
//! Tracks for compositors: a curve for each number of a face, in a text that a program imports.

use std::collections::BTreeMap;

use super::Frames;
use super::frame::{Face, Frame, number};
use super::openface::POSITION;
use super::points::{Points, Wanted};
use crate::faces::Contents;

/// Maximum distance in frames between the time of a frame and its place at a constant rate.
const REGULAR: f64 = 0.5;

/// A program that imports tracks.
pub(super) struct Program {
    /// Suffix of its files.
    pub extension: &'static str,
    /// Text with which its files begin.
    pub start: &'static str,
    /// Number that it gives the first frame of a video.
    pub first_frame: i64,
    /// The content of a file, or the reason why there is none.
    pub text: fn(&Tracks) -> Result<String, String>,
}

/// Numbers of frames with values.
pub(super) type Curve = Vec<(i64, f64)>;

/// The tracks of a record. Positions are in pixels from the top left corner of the picture.
pub(super) struct Tracks {
    pub width: f64,
    pub height: f64,
    pub pixel_aspect: f64,
    pub fps: Option<f64>,
    /// True if the frames have a constant rate.
    pub is_regular: bool,
    /// Faces by their ids. A program that takes one face gets it with the id 0.
    pub faces: BTreeMap<u32, FaceTracks>,
}

/// The tracks of a face. A frame without the face has no values.
#[derive(Default)]
pub(super) struct FaceTracks {
    /// Numbers of the frames with the face.
    pub frames: Vec<i64>,
    /// Left, top, right and bottom edge of the box.
    pub edges: [Curve; 4],
    /// Points by name, in the order in which they were selected.
    pub points: Vec<(String, [Curve; 2])>,
    /// Position of the head in the space of the record, then yaw, pitch and roll in degrees.
    pub pose: [Curve; 6],
}

/// Settings of the export.
pub(super) struct TrackSettings<'a> {
    pub points: Option<&'a Points>,
    /// Margin on each side of a box, in sizes of the box.
    pub margin: f64,
    /// Number of the first frame.
    pub first_frame: i64,
    pub fps: Option<f64>,
    pub pixel_aspect: f64,
    pub has_one_face: bool,
}

/// Columns of the numbers that are tracked.
struct Collector<'a> {
    settings: &'a TrackSettings<'a>,
    wanted: Wanted,
    /// The column `box`; otherwise the box in whole pixels.
    bbox: Vec<(usize, usize)>,
    pose: Vec<(usize, usize)>,
}

/// The frames as tracks.
///
/// # Errors
/// Returns an error if the record lacks a point or the size of its frames, or if this size changes.
pub(super) fn collect(
    frames: Frames<'_>,
    contents: &Contents,
    settings: &TrackSettings<'_>,
) -> Result<Tracks, String> {
    let collector = Collector::new(contents, settings)?;
    let mut faces: BTreeMap<u32, FaceTracks> = BTreeMap::new();
    let (mut size, mut start, mut is_regular) = (None, None, true);
    for frame in frames {
        let frame = frame?;
        if frame.size.is_some() && *size.get_or_insert(frame.size) != frame.size {
            return Err(format!(
                "the size of frame {} differs from the first one",
                frame.number
            ));
        }
        let start = *start.get_or_insert((frame.number, frame.time));
        is_regular &= is_at_rate(&frame, start, settings.fps);
        let place = frame.number as i64 - 1 + settings.first_frame;
        for face in &frame.faces {
            let id = if settings.has_one_face { 0 } else { face.id };
            collector.add(face, place, faces.entry(id).or_default());
        }
    }
    let [width, height] = size
        .flatten()
        .ok_or("it has no size of its frames, which the format needs")?;
    Ok(Tracks {
        width: f64::from(width),
        height: f64::from(height),
        pixel_aspect: settings.pixel_aspect,
        fps: settings.fps,
        is_regular,
        faces,
    })
}

fn is_at_rate(frame: &Frame, (number, start): (u64, Option<u64>), fps: Option<f64>) -> bool {
    let (Some(start), Some(time), Some(fps)) = (start, frame.time, fps) else {
        return true;
    };
    let frames = (time as f64 - start as f64) / 1e9 * fps;
    (frames - (frame.number - number) as f64).abs() <= REGULAR
}

impl<'a> Collector<'a> {
    fn new(contents: &Contents, settings: &'a TrackSettings<'a>) -> Result<Self, String> {
        let whole = ["bbox_xmin", "bbox_ymin", "bbox_width", "bbox_height"];
        let bbox = match contents.place("box") {
            Some(column) => (0..4).map(|index| (column, index)).collect(),
            None => whole
                .iter()
                .filter_map(|name| Some((contents.place(name)?, 0)))
                .collect(),
        };
        let position = contents.place("pose.matrix").into_iter();
        let position = position.flat_map(|column| POSITION.map(|index| (column, index)));
        let angles = ["pose.yaw", "pose.pitch", "pose.roll"].iter();
        let angles = angles.filter_map(|name| Some((contents.place(name)?, 0)));
        Ok(Self {
            settings,
            wanted: Wanted::new(settings.points, contents)?,
            bbox,
            pose: position.chain(angles).collect(),
        })
    }

    fn add(&self, face: &Face, frame: i64, tracks: &mut FaceTracks) {
        tracks.frames.push(frame);
        let value = |(column, index): &(usize, usize)| number(&face.cells[*column], *index);
        let values =
            |places: &[(usize, usize)]| places.iter().map(value).collect::<Option<Vec<_>>>();
        let bbox = values(&self.bbox).filter(|_| self.wanted.has_box);
        if let Some([x, y, width, height]) = bbox.as_deref() {
            let (across, down) = (self.settings.margin * width, self.settings.margin * height);
            let edges = [x - across, y - down, x + width + across, y + height + down];
            push(&mut tracks.edges, frame, &edges);
        }
        let pose = values(&self.pose).filter(|_| self.wanted.has_pose);
        push(&mut tracks.pose, frame, &pose.unwrap_or_default());
        tracks
            .points
            .resize_with(self.wanted.points.len(), Default::default);
        for (point, (name, curves)) in std::iter::zip(&self.wanted.points, &mut tracks.points) {
            name.clone_from(&point.name);
            let mean = |axis: usize| {
                let values = point
                    .places
                    .iter()
                    .map(|place| value(&(point.column, place + axis)));
                let sum = values.sum::<Option<f64>>()?;
                Some(sum / point.places.len() as f64)
            };
            let position = [mean(0), mean(1)].into_iter().collect::<Option<Vec<_>>>();
            push(curves, frame, &position.unwrap_or_default());
        }
    }
}

/// Adds a key with these values, or no key, if there are none.
fn push(curves: &mut [Curve], frame: i64, values: &[f64]) {
    for (curve, value) in std::iter::zip(curves, values) {
        curve.push((frame, *value));
    }
}

/// Both coordinates of the centre, and the size.
pub(super) fn center_and_size([left, top, right, bottom]: &[Curve; 4]) -> [Curve; 4] {
    [
        combine(left, right, |left, right| (left + right) / 2.0),
        combine(top, bottom, |top, bottom| (top + bottom) / 2.0),
        combine(left, right, |left, right| right - left),
        combine(top, bottom, |top, bottom| bottom - top),
    ]
}

fn combine(a: &Curve, b: &Curve, with: impl Fn(f64, f64) -> f64) -> Curve {
    let keys = std::iter::zip(a, b);
    keys.map(|((frame, a), (_, b))| (*frame, with(*a, *b)))
        .collect()
}

/// The curve with each value changed.
pub(super) fn changed(curve: &Curve, change: impl Fn(f64) -> f64) -> Curve {
    curve
        .iter()
        .map(|(frame, value)| (*frame, change(*value)))
        .collect()
}

/// The frames at which a face appears, with 1, and those after which it is missing, with 0.
pub(super) fn presence(frames: &[i64]) -> Curve {
    let mut keys = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        if place == 0 || frames[place - 1] + 1 != *frame {
            keys.push((*frame, 1.0));
        }
        if frames.get(place + 1).is_none_or(|next| *next != frame + 1) {
            keys.push((frame + 1, 0.0));
        }
    }
    keys
}

/// The number with at most so many decimals.
pub(super) fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value + 0.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0" } else { text }.to_owned()
}
