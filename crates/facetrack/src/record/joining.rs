// SPDX-License-Identifier: MPL-2.0
//! Joins the dense records of the parts of a video into one record of the whole video.
//!
//! Each part was tracked separately, starting some frames before its own start. The faces in these
//! frames are also in the part before, so the ids of both can be matched. All other bytes of a
//! frame stay as they are.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::completeness::{self, REASONS};
use super::dense::{self, CLOSING};
use super::drift::Drift;
use super::rhythm::Rate;
use super::timeline::{Continuity, Timeline};
use crate::geometry::Rect;
use facetrack_assets::file;

/// Minimum IoU of two boxes of the same face in the same frame. Our choice: both boxes are measured
/// in the same picture, so they hardly differ. Boxes of two people rarely overlap by half.
const SAME_FACE: f32 = 0.5;

/// Text before the number of a face's id. In JSON it cannot be part of a string.
const ID: &[u8] = b"\"id\":\"obj_";

/// Text before the number of a frame.
const FRAME: &[u8] = b"{\"frame\":";

/// A frame that two parts share: it is before the start of one part, and at the end of the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenFrame {
    /// Stream time, ns.
    pub time: u64,
    /// Hash of its pixels.
    pub picture: u64,
    /// Number of the id, and left edge, top edge, width and height of the box, px; only before the
    /// start of a part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faces: Vec<(u32, [f32; 4])>,
}

/// A tracked part of a video, with at least one frame.
#[derive(Debug, Clone)]
pub struct Part {
    /// Dense record of the part.
    pub record: PathBuf,
    /// Tracked frames before the part.
    pub before: Vec<SeenFrame>,
}

/// Statements about the whole video.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Stated {
    /// Frames per second, by the stream.
    pub rate: Option<f64>,
    /// Frames in the container.
    pub frames: Option<u64>,
    /// Usual time from frame to frame in the container, ns.
    pub period: Option<f64>,
}

/// Returns true if a part continues exactly where the previous one ends. The frames `before` its
/// start must be the `last` frames of the previous part. The first one is not compared: a seek may
/// cut it off.
pub fn goes_on(last: &[SeenFrame], before: &[SeenFrame]) -> bool {
    let common = before.get(1..).unwrap_or_default();
    let Some(first) = common.first() else {
        return false;
    };
    let picture = |frame: &SeenFrame| (frame.time, frame.picture);
    let last = last.iter().filter(|frame| frame.time >= first.time);
    last.map(picture).eq(common.iter().map(picture))
}

/// Writes the record of a video whose parts are given in order. Returns the reason why the record
/// lacks a part of the video; `None` if it is complete.
///
/// # Errors
/// Returns an error if a file cannot be read or written. [`io::ErrorKind::InvalidData`] if one is
/// not a dense record.
pub fn join(parts: &[Part], stated: Stated, mut to: impl Write) -> io::Result<Option<String>> {
    let readers: io::Result<Vec<_>> = parts.iter().map(PartReader::open).collect();
    let mut readers = readers?;
    let metadata = metadata(&readers, parts, stated)?;
    to.write_all(&dense::opening(&metadata)?)?;
    let size = readers.first().ok_or_else(not_dense)?.size();
    let (mut identities, mut frames) = (Identities::default(), 0);
    for (index, reader) in readers.iter_mut().enumerate() {
        identities.begin(&parts[index].before);
        let next = parts.get(index + 1).and_then(|next| next.before.first());
        while let Some(line) = reader.next()? {
            let faces: Line = serde_json::from_slice(&line)?;
            identities.take(&faces, reader.start_time(), next.map(|next| next.time));
            to.write_all(if frames == 0 { b"\n" } else { b",\n" })?;
            frames += 1;
            let number = |id| identities.global.get(&id).copied();
            let mut line = renumbered(&line, frames, number).ok_or_else(not_dense)?;
            if reader.size() != size && faces.width.is_none() {
                set_size(&mut line, reader.size());
            }
            to.write_all(&line)?;
        }
    }
    to.write_all(CLOSING)?;
    to.flush()?;
    Ok(incomplete_reason(&metadata).map(str::to_owned))
}

fn not_dense() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a part is not a dense record")
}

/// Reads a part.
struct PartReader {
    file: BufReader<File>,
    metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct Opening {
    metadata: Map<String, Value>,
}

impl PartReader {
    fn open(part: &Part) -> io::Result<Self> {
        let mut file = BufReader::new(file::open(&part.record)?);
        let mut line = Vec::new();
        file.read_until(b'\n', &mut line)?;
        let opening = dense::header(line.trim_ascii_end());
        let Opening { metadata } = opening.ok_or_else(not_dense)??;
        Ok(Self { file, metadata })
    }

    /// The next frame without a comma; `None` at the end.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.file.read_until(b'\n', &mut line)?;
        if line == CLOSING.trim_ascii_start() {
            return Ok(None);
        }
        let line = line.strip_suffix(b"\n").ok_or_else(not_dense)?;
        Ok(Some(line.strip_suffix(b",").unwrap_or(line).to_owned()))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.metadata.get(name)?.as_u64()
    }

    /// Width and height of frames that do not state their own, px.
    fn size(&self) -> [u64; 2] {
        ["width", "height"].map(|name| self.number(name).unwrap_or(0))
    }

    /// Stream time of a frame whose pts is 0, ns.
    fn start_time(&self) -> u64 {
        self.number("start_time").unwrap_or(0)
    }
}

/// The parts of a frame that decide about identities and times.
#[derive(Deserialize)]
struct Line {
    tracked_objects: Vec<Face>,
    pts: Option<u64>,
    width: Option<u64>,
}

#[derive(Deserialize)]
struct Face {
    id: String,
    bbox_xmin: f32,
    bbox_ymin: f32,
    bbox_width: f32,
    bbox_height: f32,
}

impl Line {
    fn faces(&self) -> impl Iterator<Item = (u32, Rect)> {
        self.tracked_objects.iter().filter_map(|face| {
            let number = face.id.strip_prefix("obj_")?.parse().ok()?;
            let [x, y] = [face.bbox_xmin, face.bbox_ymin];
            Some((number, Rect::new(x, y, face.bbox_width, face.bbox_height)))
        })
    }
}

/// Returns a frame with another number and other ids of faces.
fn renumbered(line: &[u8], frame: u64, id: impl Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
    let mut text = [FRAME, frame.to_string().as_bytes()].concat();
    let (_, mut rest) = split_number(line.strip_prefix(FRAME)?)?;
    while let Some(at) = rest.windows(ID.len()).position(|window| window == ID) {
        let (before, after) = rest.split_at(at + ID.len());
        let (number, after) = split_number(after)?;
        text.extend_from_slice(before);
        text.extend_from_slice(id(number)?.to_string().as_bytes());
        rest = after;
    }
    text.extend_from_slice(rest);
    Some(text)
}

/// Adds the size of a frame at the end of its line.
fn set_size(line: &mut Vec<u8>, [width, height]: [u64; 2]) {
    let closing = line.pop();
    line.extend_from_slice(format!(",\"width\":{width},\"height\":{height}").as_bytes());
    line.extend(closing);
}

fn split_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    Some((str::from_utf8(number).ok()?.parse().ok()?, rest))
}

/// Identities of the whole video. They count from 1, in the order of appearance.
#[derive(Default)]
struct Identities {
    last: u32,
    /// Ids of the whole video by ids of the current part.
    global: HashMap<u32, u32>,
    /// Latest frames by stream time, with ids of the whole video.
    recent: VecDeque<(u64, Vec<(u32, Rect)>)>,
}

impl Identities {
    /// Begins a part, which knows these frames of the one before.
    fn begin(&mut self, before: &[SeenFrame]) {
        let mut overlaps: HashMap<(u32, u32), f32> = HashMap::new();
        for frame in before {
            let at = self
                .recent
                .binary_search_by_key(&frame.time, |(time, _)| *time);
            let known = at.ok().map_or(&[][..], |at| &self.recent[at].1);
            for (own, [x, y, width, height]) in &frame.faces {
                let bbox = Rect::new(*x, *y, *width, *height);
                for (id, other) in known {
                    let iou = bbox.iou(other);
                    if iou >= SAME_FACE {
                        *overlaps.entry((*own, *id)).or_default() += iou;
                    }
                }
            }
        }
        let mut pairs: Vec<_> = overlaps.into_iter().collect();
        // The longest overlap first; ids make the order definite.
        pairs.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.cmp(b)));
        self.global.clear();
        let mut taken = BTreeSet::new();
        for ((own, id), _) in pairs {
            if !self.global.contains_key(&own) && taken.insert(id) {
                self.global.insert(own, id);
            }
        }
        self.recent.clear();
    }

    /// Takes a frame. It is kept if the next part begins with frames from `kept_from` on, ns.
    fn take(&mut self, line: &Line, start_time: u64, kept_from: Option<u64>) {
        let mut faces: Vec<_> = line.faces().collect();
        faces.sort_by_key(|(own, _)| *own);
        for (own, _) in &mut faces {
            let last = &mut self.last;
            *own = *self.global.entry(*own).or_insert_with(|| {
                *last += 1;
                *last
            });
        }
        let time = line.pts.map(|pts| pts + start_time);
        if let Some(time) = time.filter(|time| kept_from.is_some_and(|from| *time >= from)) {
            self.recent.push_back((time, faces));
        }
    }
}

/// The metadata of the whole: the metadata of the last part, which contain the end of the video,
/// with the counts of all parts.
fn metadata(
    readers: &[PartReader],
    parts: &[Part],
    stated: Stated,
) -> io::Result<Map<String, Value>> {
    let first = readers.first().ok_or_else(not_dense)?;
    let last = readers.last().ok_or_else(not_dense)?;
    let mut metadata = last.metadata.clone();
    for name in ["width", "height", "pixel_aspect_ratio"] {
        if let Some(value) = first.metadata.get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    let counts = [
        "total_frames",
        "padded_frames",
        "decode_errors",
        "corrupted_frames",
    ];
    for name in counts {
        let counts = readers.iter().filter_map(|reader| reader.number(name));
        metadata.insert(name.to_owned(), counts.sum::<u64>().into());
    }
    if let Some(frame) = corrected_from(readers) {
        metadata.insert("corrected_from".to_owned(), frame.into());
    }
    let of_last = damage(&last.metadata);
    let reason = incomplete_reason(&last.metadata);
    let reasons = reason.into_iter().flat_map(|reason| reason.split(REASONS));
    let mut reasons: Vec<_> = reasons
        .map(str::to_owned)
        .filter(|reason| !of_last.contains(reason))
        .collect();
    let (rate, period) = rate(parts, stated.rate)?;
    let frames = stated.frames;
    if let Some(frames) = frames.filter(|_| completeness::is_same_rate(period, stated.period)) {
        count_frames(&mut metadata, frames, &mut reasons);
    }
    reasons.extend(damage(&metadata));
    metadata.insert("complete".to_owned(), reasons.is_empty().into());
    if reasons.is_empty() {
        metadata.shift_remove("incomplete_reason");
    } else {
        let reason = reasons.join(REASONS).into();
        insert_after(&mut metadata, "complete", "incomplete_reason", reason);
    }
    set_rate(&mut metadata, rate);
    Ok(metadata)
}

/// Number in the whole video of the first frame with a corrected face.
fn corrected_from(readers: &[PartReader]) -> Option<u64> {
    let mut before = 0;
    for reader in readers {
        if let Some(frame) = reader.number("corrected_from") {
            return Some(before + frame);
        }
        before += reader.number("total_frames").unwrap_or(0);
    }
    None
}

/// The counts of damage in words.
fn damage(metadata: &Map<String, Value>) -> Vec<String> {
    [
        ("decode_errors", completeness::DECODING_ERROR),
        ("corrupted_frames", completeness::DAMAGED_FRAME),
    ]
    .into_iter()
    .filter_map(|(name, what)| completeness::counted(metadata.get(name)?.as_u64()?, what))
    .collect()
}

fn incomplete_reason(metadata: &Map<String, Value>) -> Option<&str> {
    metadata.get("incomplete_reason")?.as_str()
}

/// Compares the frames of all parts with the `stated` number in the container.
fn count_frames(metadata: &mut Map<String, Value>, stated: u64, reasons: &mut Vec<String>) {
    let count = |name: &str| metadata.get(name).and_then(Value::as_u64).unwrap_or(0);
    let found = count("total_frames").saturating_sub(count("padded_frames"));
    if found > stated {
        reasons.push(format!("{found} frames came of {stated}"));
        return;
    }
    let place = metadata.keys().position(|key| key == "decode_errors");
    let place = place.unwrap_or(metadata.len());
    metadata.shift_insert(place, "expected_frames".to_owned(), stated.into());
    match completeness::missing(found, stated) {
        // A part from the start of the video states this itself.
        Some(reason) if reasons.contains(&reason) => (),
        Some(reason) => reasons.push(reason),
        None => reasons.clear(),
    }
}

/// Sets the rate.
fn set_rate(metadata: &mut Map<String, Value>, rate: Rate) {
    metadata.insert("fps".to_owned(), rate.fps.into());
    if rate.is_variable {
        insert_after(metadata, "corrupted_frames", "variable_rate", true.into());
    } else {
        metadata.shift_remove("variable_rate");
    }
}

/// Sets `name`, which has its place after `before`.
fn insert_after(metadata: &mut Map<String, Value>, before: &str, name: &str, value: Value) {
    metadata.shift_remove(name);
    let place = metadata.keys().position(|key| key == before);
    let place = place.map_or(metadata.len(), |place| place + 1);
    metadata.shift_insert(place, name.to_owned(), value);
}

/// The rate of the whole video, from the times of all frames, and the usual time between them, ns. A
/// part may be too short to measure it.
fn rate(parts: &[Part], nominal: Option<f64>) -> io::Result<(Rate, f64)> {
    let (mut timeline, mut drift) = (Timeline::default(), Drift::default());
    let mut number = 0;
    for part in parts {
        let mut reader = PartReader::open(part)?;
        while let Some(line) = reader.next()? {
            let Line { pts, .. } = serde_json::from_slice(&line)?;
            timeline.frame(pts, Continuity::Continuous);
            number += 1;
            pts.into_iter().for_each(|time| drift.add(number, time));
        }
    }
    let period = timeline.period().unwrap_or(0.0);
    Ok((timeline.rhythm().rate(nominal, &drift), period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_go_on() {
        let seen = |frames: &[(u64, u64)]| -> Vec<_> {
            let frame = |(time, picture): &(u64, u64)| SeenFrame {
                time: *time,
                picture: *picture,
                faces: Vec::new(),
            };
            frames.iter().map(frame).collect()
        };
        let last = seen(&[(0, 7), (40, 8), (80, 9)]);
        for (before, want) in [
            (&[(0, 7), (40, 8), (80, 9)][..], true),
            // The first one was cut off, or is not there.
            (&[(10, 7), (40, 8), (80, 9)], true),
            (&[(40, 8), (80, 9)], true),
            // Nothing can be compared.
            (&[(80, 9)], false),
            (&[], false),
            // A lost frame, at either end, another picture, another time, and one too many.
            (&[(0, 7), (80, 9), (120, 1)], false),
            (&[(0, 7), (40, 8)], false),
            (&[(0, 7), (40, 8), (80, 1)], false),
            (&[(0, 7), (40, 8), (81, 9)], false),
            (&[(0, 7), (40, 8), (80, 9), (120, 1)], false),
        ] {
            assert_eq!(goes_on(&last, &seen(before)), want, "{before:?}");
        }
    }
}
