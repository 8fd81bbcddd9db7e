// SPDX-License-Identifier: MPL-2.0
//! Times and interruptions of a stream, as the elements that count frames read them.

use facetrack::record::timeline::Continuity;

/// Stream time of a timestamp in `segment`, ns: its position in the video. Also of a timestamp before the segment's start.
pub(crate) fn time(segment: &gst::Segment, timestamp: Option<gst::ClockTime>) -> Option<u64> {
    let segment = segment.downcast_ref::<gst::ClockTime>()?;
    match segment.to_stream_time_full(timestamp?)? {
        gst::Signed::Positive(time) => Some(time.nseconds()),
        gst::Signed::Negative(_) => None,
    }
}

/// Whether frames may be lost before `buffer`.
pub(crate) fn continuity_of(buffer: &gst::BufferRef) -> Continuity {
    interrupted_if(buffer.flags().contains(gst::BufferFlags::DISCONT))
}

/// Whether frames are lost in `gap`. Demuxers also announce a gap while a picture stands still.
pub(crate) fn continuity_of_gap(gap: &gst::event::Gap) -> Continuity {
    interrupted_if(gap.gap_flags().contains(gst::GapFlags::DATA))
}

fn interrupted_if(is_interrupted: bool) -> Continuity {
    match is_interrupted {
        true => Continuity::Interrupted,
        false => Continuity::Continuous,
    }
}
