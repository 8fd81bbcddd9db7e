// SPDX-License-Identifier: MPL-2.0
//! Counts the frames of a stream like ffmpeg and OpenCV, for the elements that need frame numbers.
//!
//! Two kinds of decoded frames are not counted:
//!
//! - The frame before an edit, if the edit begins while it is shown. Decoders shorten it
//!   (`gst_video_decoder_clip_and_push_buf`), other readers of the file drop it.
//! - Damaged frames at the beginning of a stream that begins between two key frames. libav returns
//!   them only if the program requests damaged frames, as GStreamer's decoders do.

use gst::prelude::*;
use gst::{ClockTime, glib};
use std::path::{Path, PathBuf};

use facetrack::record::container::{self, Edit, Movie};
use facetrack_assets::file;

/// Maximum difference between an edit that is played as a whole and the edit in the container, ns:
/// elements round to ticks of other scales.
const EDIT_ROUNDING: u64 = 1_000_000;

/// Decides which frames of a stream count.
#[derive(Debug, Default)]
pub struct Shown {
    /// Description of the video in the container.
    movie: Movie,
    /// Time of shortened frames, with which the segment begins.
    shortened: Option<ClockTime>,
    /// True after a counted frame or a seek. From then on, damaged frames count as well.
    has_begun: bool,
    /// True if all of the video was played up to the current segment.
    is_whole: bool,
    is_sought: bool,
    /// Frames that counted.
    frames: u64,
}

impl Shown {
    /// Takes what the container says.
    pub fn set_movie(&mut self, movie: Movie) {
        self.movie = movie;
    }

    /// Begins a segment.
    pub fn begin(&mut self, segment: &gst::Segment) {
        let Some(segment) = segment.downcast_ref::<ClockTime>() else {
            return;
        };
        let time = segment.time().map(ClockTime::nseconds);
        let mut edits = self.movie.edits.iter().enumerate();
        let edit = edits.find(|(_, edit)| Some(edit.time) == time);
        self.is_whole = segment.rate() > 0.0
            && match edit {
                Some((0, edit)) => is_all_of(segment, edit),
                Some((_, edit)) => self.is_whole && is_all_of(segment, edit),
                None => self.movie.edits.is_empty() && !self.is_sought,
            };
        let starts_between = edit.is_some_and(|(_, edit)| edit.starts_between);
        self.shortened = segment.start().filter(|_| starts_between);
    }

    /// Handles a change of the position.
    pub fn flush(&mut self) {
        self.is_sought = true;
        self.has_begun = true;
    }

    /// Returns true if a frame counts.
    pub fn counts(&mut self, buffer: &gst::BufferRef) -> bool {
        let is_damaged = buffer.flags().contains(gst::BufferFlags::CORRUPTED);
        let is_shortened = self.shortened.is_some() && buffer.pts() == self.shortened;
        if is_shortened || (is_damaged && !self.has_begun) {
            return false;
        }
        self.has_begun = true;
        self.frames += 1;
        true
    }

    /// The number of frames that counted.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The number of frames in the container, if all of the video was played.
    pub fn stated_frames(&self) -> Option<u64> {
        self.movie.frames.filter(|_| self.is_whole)
    }

    /// Usual time from frame to frame in the container, ns.
    pub fn stated_period(&self) -> Option<f64> {
        self.movie.period
    }
}

fn is_all_of(segment: &gst::FormattedSegment<ClockTime>, edit: &Edit) -> bool {
    let length = segment.stop().zip(segment.start());
    let length = length.map(|(stop, start)| stop.saturating_sub(start).nseconds());
    length.is_none_or(|length| length.saturating_add(EDIT_ROUNDING) >= edit.duration)
}

/// Reads the description of the video at `pad`, if an element upstream names a file.
pub(crate) fn movie_at(pad: &gst::Pad) -> Movie {
    let path = uri(pad).as_deref().and_then(path);
    path.map(|path| movie(&path)).unwrap_or_default()
}

/// The fingerprint of the video file at `pad`, if an element upstream names one.
pub(crate) fn fingerprint_at(pad: &gst::Pad) -> Option<String> {
    let path = uri(pad).as_deref().and_then(path)?;
    container::fingerprint(&mut file::open(&path).ok()?).ok()
}

/// Reads the description of the video in the file at `path`.
pub fn movie(path: &Path) -> Movie {
    let read = || container::movie(&mut file::open(path)?);
    read().ok().flatten().unwrap_or_default()
}

/// The video's URI, where an element upstream knows it.
pub(crate) fn uri(pad: &gst::Pad) -> Option<glib::GString> {
    let mut query = gst::query::Uri::new();
    pad.peer_query(&mut query).then(|| query.uri())?
}

/// The path of a URI; `None` if it is not a local file.
pub(crate) fn path(uri: &str) -> Option<PathBuf> {
    glib::filename_from_uri(uri).ok().map(|(path, _)| path)
}

/// The URI as it may be recorded or shown: without a password.
pub fn without_password(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else {
        return uri.to_owned();
    };
    let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    match user.and_then(|user| user.split_once(':')) {
        Some((name, password)) => {
            let behind = &rest[name.len() + 1 + password.len()..];
            format!("{scheme}://{name}{behind}")
        }
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_left_out() {
        for (uri, recorded) in [
            (
                "rtsp://me:secret@camera:554/a%20b?x=1",
                "rtsp://me@camera:554/a%20b?x=1",
            ),
            ("rtsp://camera/stream", "rtsp://camera/stream"),
            (
                "https://example.org/a.mp4#t=1",
                "https://example.org/a.mp4#t=1",
            ),
            ("v4l2:///dev/video0", "v4l2:///dev/video0"),
            ("rtsp://me:a:b@c@camera", "rtsp://me@camera"),
            ("pipe:me@b", "pipe:me@b"),
        ] {
            assert_eq!(without_password(uri), recorded);
        }
    }
}
