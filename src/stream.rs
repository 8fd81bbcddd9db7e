// SPDX-License-Identifier: MPL-2.0
//! Times and interruptions of a video, for the elements that count frames.

use facetrack::record::timeline::Continuity;

/// Maximum time at which a stream begins that is played from its beginning, and whose timestamps
/// are its stream times, ns. The clock of an MPEG stream starts before its first frame by the delay
/// of the decoder's buffer. Our choice: 0.7 s is common.
const MAX_START: u64 = 5_000_000_000;

/// The times of a video: 0 is its first frame, whatever the container. Stream times depend on the
/// container: they begin with the first frame of the longest track, or with the clock of the
/// stream.
#[derive(Debug, Default)]
pub struct VideoTimes {
    segment: gst::Segment,
    /// Stream time that is 0, ns; `None` before the first frame of a video that is played from its
    /// beginning.
    start: Option<u64>,
    /// First stream time of a stream with a clock, of any track, ns.
    clock: Option<u64>,
    /// Timestamp of the first frame, until the second one comes.
    first: Option<gst::ClockTime>,
    has_begun: bool,
    /// True if the stream times of the segment count from the start of the clock.
    is_from_clock: bool,
}

impl VideoTimes {
    /// Notes a seek: the stream does not begin with its video, unless frames have come.
    pub fn begin_within(&mut self) {
        self.first = None;
        if !std::mem::replace(&mut self.has_begun, true) {
            self.start = Some(0);
        }
    }

    /// Begins a segment.
    pub fn begin(&mut self, segment: &gst::Segment) {
        self.segment = segment.clone();
        let (start, time) = bounds(segment).unwrap_or_default();
        if !std::mem::replace(&mut self.has_begun, true) {
            let is_clock = time == start && (1..=MAX_START).contains(&start);
            self.clock = is_clock.then_some(start);
            // This also holds if only empty segments came before.
            let is_beginning = time == 0 || base(segment) == Some(time);
            self.start = (!is_beginning && !is_clock).then_some(0);
        }
        // After a seek to 0, tsdemux counts stream times from there.
        self.is_from_clock = time == 0 && self.clock == Some(start);
    }

    /// Sets the stream time that is 0, ns.
    pub fn start_at(&mut self, start: u64) {
        self.start = Some(start);
    }

    /// Returns true if the next frame determines which stream time is 0.
    pub fn is_open(&self) -> bool {
        self.start.is_none()
    }

    /// Returns true if stream times count from a clock that began before the first frame.
    pub fn has_clock(&self) -> bool {
        self.clock.is_some()
    }

    /// Stream time that is 0, ns.
    pub fn start(&self) -> u64 {
        self.start.unwrap_or(0)
    }

    /// The time of a frame with this timestamp, ns. The first frame of a video is at 0.
    pub fn of_frame(&mut self, timestamp: Option<gst::ClockTime>) -> Option<u64> {
        let now = time(&self.segment, timestamp)?;
        // matroskademux replaces the segment behind the first frame if another track begins earlier.
        let first = self.first.take_if(|first| Some(*first) != timestamp);
        let replaced = first.filter(|_| base(&self.segment) == Some(0));
        if let Some(first) = replaced.and_then(|first| time(&self.segment, Some(first))) {
            self.start = Some(first);
        }
        if self.start.is_none() {
            (self.start, self.first) = (Some(now), timestamp);
        }
        self.at(timestamp)
    }

    /// The time of a timestamp, ns.
    pub fn at(&self, timestamp: Option<gst::ClockTime>) -> Option<u64> {
        let clock = self.clock.filter(|_| self.is_from_clock).unwrap_or(0);
        (time(&self.segment, timestamp)? + clock).checked_sub(self.start())
    }
}

/// First timestamp and first stream time of a segment, ns.
fn bounds(segment: &gst::Segment) -> Option<(u64, u64)> {
    let segment = segment.downcast_ref::<gst::ClockTime>()?;
    let bounds = segment.start().zip(segment.time())?;
    Some((bounds.0.nseconds(), bounds.1.nseconds()))
}

/// Running time at which a segment begins, ns.
fn base(segment: &gst::Segment) -> Option<u64> {
    let segment = segment.downcast_ref::<gst::ClockTime>()?;
    segment.base().map(gst::ClockTime::nseconds)
}

/// Stream time of a timestamp in `segment`, ns: its position in the video. The timestamp may be
/// before the start of the segment.
pub fn time(segment: &gst::Segment, timestamp: Option<gst::ClockTime>) -> Option<u64> {
    let segment = segment.downcast_ref::<gst::ClockTime>()?;
    match segment.to_stream_time_full(timestamp?)? {
        gst::Signed::Positive(time) => Some(time.nseconds()),
        gst::Signed::Negative(_) => None,
    }
}

/// Returns the continuity before `buffer`, where frames may be lost.
pub(crate) fn continuity_of(buffer: &gst::BufferRef) -> Continuity {
    continuity(buffer.flags().contains(gst::BufferFlags::DISCONT))
}

/// Start and duration of a gap, ns, and true if frames are lost in it. Demuxers also send gap
/// events while the picture does not change.
pub(crate) fn extent_of_gap(gap: &gst::event::Gap) -> (u64, Option<u64>, Continuity) {
    let (start, duration) = gap.get();
    let continuity = continuity(gap.gap_flags().contains(gst::GapFlags::DATA));
    let duration = duration.map(gst::ClockTime::nseconds);
    (start.nseconds(), duration, continuity)
}

fn continuity(is_interrupted: bool) -> Continuity {
    if is_interrupted {
        Continuity::Interrupted
    } else {
        Continuity::Continuous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(start: u64, time: u64) -> gst::Segment {
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(gst::ClockTime::from_mseconds(start));
        segment.set_time(gst::ClockTime::from_mseconds(time));
        segment.upcast()
    }

    /// Times of timestamps, all in ms.
    fn times<const N: usize>(times: &mut VideoTimes, timestamps: [u64; N]) -> [Option<u64>; N] {
        timestamps.map(|timestamp| {
            let time = times.of_frame(Some(gst::ClockTime::from_mseconds(timestamp)));
            time.map(|time| time / 1_000_000)
        })
    }

    #[test]
    fn the_first_frame_of_a_video_is_at_0() {
        gst::init().expect("GStreamer");
        for (start, time, timestamps, want) in [
            (0, 0, [0, 40], [Some(0), Some(40)]),
            // An edit list, and a video that begins after its sound.
            (80, 0, [80, 120], [Some(0), Some(40)]),
            (0, 0, [1000, 1040], [Some(0), Some(40)]),
            // A transport stream, also with a video that begins after its sound.
            (780, 780, [780, 820], [Some(0), Some(40)]),
            (90, 90, [780, 820], [Some(0), Some(40)]),
            // Not the beginning of a video.
            (
                10_000,
                10_000,
                [10_000, 10_040],
                [Some(10_000), Some(10_040)],
            ),
            (2_080, 2_000, [2_080, 2_120], [Some(2_000), Some(2_040)]),
        ] {
            let mut video = VideoTimes::default();
            video.begin(&segment(start, time));
            assert_eq!(times(&mut video, timestamps), want, "{start} {time}");
        }
    }

    #[test]
    fn a_seek_keeps_the_scale() {
        gst::init().expect("GStreamer");
        for clock in [780, 90] {
            let mut transport = VideoTimes::default();
            for (start, time, timestamps, want) in [
                (clock, clock, [780, 820], [Some(0), Some(40)]),
                (5_780, 5_780, [5_780, 5_820], [Some(5_000), Some(5_040)]),
                (clock, 0, [780, 820], [Some(0), Some(40)]),
                (500, 500, [500, 780], [None, Some(0)]),
            ] {
                transport.begin(&segment(start, time));
                assert_eq!(times(&mut transport, timestamps), want, "{clock} {start}");
            }
        }
    }

    #[test]
    fn the_segment_of_the_first_frame_may_be_replaced() {
        gst::init().expect("GStreamer");
        let mut video = VideoTimes::default();
        video.begin(&segment(23, 0));
        assert_eq!(times(&mut video, [23]), [Some(0)]);
        video.begin(&segment(0, 0));
        assert_eq!(times(&mut video, [63, 103]), [Some(40), Some(80)]);
        assert_eq!(video.start(), 23_000_000);
    }

    #[test]
    fn a_part_of_a_video_has_its_times() {
        gst::init().expect("GStreamer");
        let mut part = VideoTimes::default();
        part.begin(&segment(780, 780));
        part.start_at(780_000_000);
        part.begin(&segment(5_780, 5_780));
        assert_eq!(times(&mut part, [5_780, 5_820]), [Some(5_000), Some(5_040)]);
    }
}
