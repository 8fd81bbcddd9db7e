// SPDX-License-Identifier: MPL-2.0
//! Stream time and interruptions, for the elements that count frames.

use facetrack::record::timeline::Continuity;

/// Stream time of a timestamp in `segment`, ns: its position in the video. The timestamp may be
/// before the start of the segment.
pub fn time(segment: &gst::Segment, timestamp: Option<gst::ClockTime>) -> Option<u64> {
    let segment = segment.downcast_ref::<gst::ClockTime>()?;
    match segment.to_stream_time_full(timestamp?)? {
        gst::Signed::Positive(time) => Some(time.nseconds()),
        gst::Signed::Negative(_) => None,
    }
}

/// Whether frames may be lost before `buffer`.
pub(crate) fn continuity_of(buffer: &gst::BufferRef) -> Continuity {
    continuity(buffer.flags().contains(gst::BufferFlags::DISCONT))
}

/// Start and duration of a gap, ns, and whether frames are lost in it. Demuxers also send gap
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
