// SPDX-License-Identifier: MPL-2.0
//! Divides long videos into segments.

use std::time::Duration;

use facetrack_jobs::Segment;
use serde::Serialize;

/// Lengths for dividing long videos into segments. Records depend on them.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct SegmentPlan {
    /// Length of a segment.
    pub segment: Duration,
    /// Time that is tracked before each segment.
    pub warm_up: Duration,
}

impl SegmentPlan {
    /// Returns the segments of a video of this duration, in seconds. The last one may be up to half
    /// longer or shorter than the others.
    pub(crate) fn segments(&self, seconds: f64) -> Vec<Segment> {
        let segment = self.segment.as_secs_f64();
        let count = (seconds / segment).round().max(1.0) as u32;
        let start = |number: u32| f64::from(number) * segment;
        let segment = |number| Segment {
            start: (number > 0).then(|| start(number)),
            stop: (number + 1 < count).then(|| start(number + 1)),
        };
        (0..count).map(segment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(segment: u64, seconds: f64) -> Vec<(Option<f64>, Option<f64>)> {
        let plan = SegmentPlan {
            segment: Duration::from_secs(segment),
            warm_up: Duration::from_secs(2),
        };
        let segments = plan.segments(seconds);
        segments
            .iter()
            .map(|segment| (segment.start, segment.stop))
            .collect()
    }

    #[test]
    fn segments_are_equally_long() {
        assert_eq!(starts(60, 89.0), [(None, None)]);
        let two = [(None, Some(60.0)), (Some(60.0), None)];
        assert_eq!(starts(60, 91.0), two);
        assert_eq!(starts(60, 149.0), two);
        assert_eq!(starts(60, 600.04).len(), 10);
    }
}
