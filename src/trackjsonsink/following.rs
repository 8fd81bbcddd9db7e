// SPDX-License-Identifier: MPL-2.0
//! Follows the stream that is recorded: the times of its frames, its interruptions and its tags.

use std::time::Duration;

use super::drops::Drops;
use crate::orientation::Orientation;
use crate::shown::Shown;
use crate::stream::{self, VideoTimes};
use facetrack::record::completeness::End;
use facetrack::record::timeline::Continuity;

/// Maximum excess of the duration in a tag over the longest track: some programs leave the last
/// frame out of one of them. Our choice: a frame at 20 fps. Tags that were copied from another file
/// are rarely that close.
const TAG_TOLERANCE: gst::ClockTime = gst::ClockTime::from_mseconds(50);

/// A stream that is being recorded.
#[derive(Default)]
pub(super) struct Following {
    segment: gst::Segment,
    /// Frames that count.
    pub(super) shown: Shown,
    pub(super) times: VideoTimes,
    /// True if the stream was ended before the video.
    pub(super) ends_early: bool,
    /// True if the next frame should follow the last one directly: no new segment, flush or gap has
    /// come in between.
    pub(super) goes_on: bool,
    pub(super) is_live: bool,
    /// Time at which the last frame of the segment ends, ns.
    pub(super) end: Option<u64>,
    pub(super) decode_errors: u64,
    pub(super) corrupted: u64,
    /// Frames that are known to be dropped because a sink was late.
    pub(super) dropped: u64,
    pub(super) drops: Drops,
    /// Timestamp at which the track ends, by a tag that muxers of Matroska write.
    track_end: Option<gst::ClockTime>,
    orientation: Orientation,
}

impl Following {
    /// Begins a segment.
    pub(super) fn begin(&mut self, segment: &gst::Segment) {
        self.segment = segment.clone();
        self.shown.begin(segment);
        self.end = None;
        self.goes_on = false;
        self.times.begin(segment);
    }

    /// Takes a frame, and returns the continuity before it. `may_drop` is true if this element may
    /// drop late frames itself.
    pub(super) fn frame(
        &mut self,
        buffer: &gst::BufferRef,
        period: Option<f64>,
        may_drop: bool,
    ) -> Continuity {
        let continuity = self.continuity(buffer, may_drop);
        if buffer.flags().contains(gst::BufferFlags::CORRUPTED) {
            self.corrupted += 1;
        }
        let period = period.unwrap_or(0.0) as u64;
        let duration = buffer.duration().map_or(period, gst::ClockTime::nseconds);
        let begin = self.times.of_frame(buffer.pts()).or(self.end);
        let end = begin.map(|begin| begin.saturating_add(duration));
        self.end = self.end.max(end);
        continuity
    }

    /// Finds out if frames are lost before a buffer. Decoders set the same flag if they drop a late
    /// frame and if they cannot decode one.
    fn continuity(&mut self, buffer: &gst::BufferRef, may_drop: bool) -> Continuity {
        let goes_on = std::mem::replace(&mut self.goes_on, true) && !self.is_live;
        let continuity = stream::continuity_of(buffer);
        let is_interrupted = continuity == Continuity::Interrupted;
        let time = stream::time(&self.segment, buffer.pts());
        let dropped = time.map_or(0, |time| self.drops.take_until(time));
        if dropped > 0 && (is_interrupted || may_drop) {
            self.dropped += dropped;
        } else if is_interrupted && goes_on {
            self.decode_errors += 1;
        }
        match continuity {
            // Late decoders also skip frames without notice.
            Continuity::Continuous if may_drop || self.dropped > 0 => Continuity::Uncertain,
            continuity => continuity,
        }
    }

    /// Times in the record of the frames that were dropped after the last one, ns.
    pub(super) fn dropped_at_the_end(&mut self) -> Vec<u64> {
        if self.dropped == 0 {
            return Vec::new();
        }
        let (drops, start) = (self.drops.take(), self.times.start());
        self.dropped += drops.len() as u64;
        let times = drops.iter().filter_map(|time| time.checked_sub(start));
        times.collect()
    }

    /// Takes what a list of tags says.
    pub(super) fn read_tags(&mut self, tags: &gst::TagListRef) {
        self.orientation.update(tags);
        if tags.scope() != gst::TagScope::Stream {
            return;
        }
        for comment in tags.iter_tag::<gst::tags::ExtendedComment>() {
            self.track_end = track_end(comment.get()).or(self.track_end);
        }
    }

    /// Returns the rotation that frames at `pad` still need for display, and the one that was
    /// applied to them, as in the tag.
    pub(super) fn turns(&self, pad: &gst::Pad) -> [Option<String>; 2] {
        self.orientation.turns_at(pad)
    }

    /// Time at which the video should end, by its segment or a tag, else at which the longest track
    /// ends, ns. `duration` is the one of the longest track: a tag that exceeds it was copied from
    /// another file.
    pub(super) fn promised_end(&self, duration: Option<gst::ClockTime>) -> Option<End> {
        let segment = self.segment.downcast_ref::<gst::ClockTime>()?;
        if segment.rate() < 0.0 || self.ends_early {
            return None;
        }
        let is_of_file = |end: &gst::ClockTime| {
            duration.is_none_or(|duration| *end <= duration.saturating_add(TAG_TOLERANCE))
        };
        let video = segment.stop().or(self.track_end.filter(is_of_file));
        let video = self.times.at(video).map(End::Video);
        video.or_else(|| self.times.at(duration).map(End::Container))
    }
}

/// Reads a comment such as `DURATION=00:00:04.023000000`, also `DURATION-eng=…`. The number of
/// frames, which some muxers write, too, is not read: ffmpeg copies it to parts of a file.
fn track_end(comment: &str) -> Option<gst::ClockTime> {
    let (name, value) = comment.split_once('=')?;
    let is_duration = name.split('-').next() == Some("DURATION");
    is_duration.then(|| clock_time(value))?
}

/// A time written in hours, minutes and seconds.
fn clock_time(text: &str) -> Option<gst::ClockTime> {
    let mut parts = text.trim().split(':');
    let [hours, minutes] = [parts.next()?, parts.next()?].map(|part| part.parse::<u32>().ok());
    let seconds = parts.next()?.parse::<f64>().ok()?;
    let is_time = parts.next().is_none() && (0.0..=60.0).contains(&seconds);
    let whole = u64::from(hours?) * 3600 + u64::from(minutes?) * 60;
    let time = Duration::from_secs(whole) + Duration::try_from_secs_f64(seconds).ok()?;
    gst::ClockTime::try_from(time).ok().filter(|_| is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_track() {
        let too_long = "DURATION=4294967295:59:59.999999999";
        for comment in [
            "ENCODER=DURATION",
            "DURATION",
            "DURATION=soon",
            "NUMBER_OF_FRAMES=93087",
            too_long,
        ] {
            assert_eq!(track_end(comment), None, "{comment}");
        }
        for (comment, ms) in [
            ("DURATION-eng=01:02:03.500000000", 3_723_500),
            ("DURATION=00:00:04.023000000", 4_023),
        ] {
            let end = gst::ClockTime::from_mseconds(ms);
            assert_eq!(track_end(comment), Some(end), "{comment}");
        }
    }
}
