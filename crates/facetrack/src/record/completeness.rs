// SPDX-License-Identifier: MPL-2.0
//! Checks that a stream delivered all of the video that its container states.
//!
//! | what is known | the record is incomplete |
//! |---|---|
//! | how many frames the container has | if fewer came |
//! | the file is shorter than its container says | unless all frames came, or the video reached the end that is stated for it |
//! | when the video ends: from the segment, or from a tag of the track | if it ended earlier, by more than the tolerance |
//! | when the longest track ends, and the file is whole or can't state its length | never: another track may be longer |
//! | when the longest track ends, and nothing of the file | if the video ended more than a second earlier |
//! | frames were damaged, or missing after a decoding error | always |
//! | frames were dropped because a sink was late | always |

use smart_default::SmartDefault;

use crate::record::container::Extent;

/// Maximum time between the end of the video and a later end of the longest track, ns. Our choice;
/// audio often ends a few packets later.
const CONTAINER_TOLERANCE: f64 = 1e9;

/// Number of intervals between frames that may be missing at the end.
const INTERVALS: f64 = 1.5;

/// The same maximum in a file that is whole, as a number of longest intervals: the last picture may
/// be a still one.
const LONGEST_INTERVALS: f64 = 3.0;

/// Maximum deviation of the time from frame to frame from the value in the container, as a fraction
/// of that. With a larger deviation, the frames are not the container's. Common rates differ by 4
/// %.
const SAME_RATE: f64 = 0.01;

/// Name of one of [`Found::decode_errors`].
pub(super) const DECODING_ERROR: &str = "decoding error";

/// Name of one of [`Found::corrupted`].
pub(super) const DAMAGED_FRAME: &str = "damaged frame";

/// Separator of the reasons of an incomplete record.
pub(super) const REASONS: &str = "; ";

/// Statements of the elements upstream about the video.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Promise {
    /// Time at which the video or its longest track ends, ns.
    pub end: Option<End>,
    /// Frames in the container, if all of them were requested.
    pub frames: Option<u64>,
    /// Usual time from frame to frame in the container, ns.
    pub period: Option<f64>,
    /// Length of the file.
    pub extent: Extent,
}

/// The time of an end, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// End of the video.
    Video(u64),
    /// End of the longest track, or of a part of the stream.
    Container(u64),
}

/// Cause of the end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ending {
    /// The end of the stream.
    #[default]
    Stream,
    /// A request of a program, while the stream continues.
    Program,
}

/// Figures of the recorded stream.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Found {
    /// Time at which the last frame ends, ns; `None` if frames have no times.
    pub end: Option<u64>,
    /// Cause of its end.
    pub ending: Ending,
    /// Usual time from frame to frame, ns.
    pub period: f64,
    /// Longest time from frame to frame, ns.
    pub longest: f64,
    /// Frames that arrived.
    pub frames: u64,
    /// Frames in the record, with those that were filled in.
    pub recorded: u64,
    /// Frames after which the stream was interrupted.
    pub decode_errors: u64,
    /// Frames that the decoder marked as damaged.
    pub corrupted: u64,
    /// Frames that were dropped because a sink was late.
    pub dropped: u64,
}

/// Completeness of a record. The default describes a record that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct Completeness {
    /// Reason why the record lacks a part of the video; `None` if it has all of it.
    #[default(Some("the stream broke off".to_owned()))]
    pub reason: Option<String>,
    /// True if the recording was only ended early, and nothing is wrong with the video.
    pub is_ended_early: bool,
    /// Time at which the video should end, ns.
    pub expected_duration: Option<u64>,
    /// Frames that it should have.
    pub expected_frames: Option<u64>,
    /// See [`Found`].
    pub decode_errors: u64,
    /// See [`Found`].
    pub corrupted: u64,
    /// See [`Found`].
    pub dropped: u64,
    /// True if the record would be complete without [`Self::dropped`].
    pub lacks_only_dropped_frames: bool,
}

impl Completeness {
    /// Returns true if the record has all of the video.
    pub fn is_complete(&self) -> bool {
        self.reason.is_none()
    }

    /// Compares the received frames with the promise.
    pub fn of(promise: &Promise, found: &Found) -> Self {
        let frames = stated_frames(promise, found);
        let is_whole = frames == Some(found.frames);
        let early = early_end(promise, found).filter(|_| !is_whole);
        let is_ended = early.is_some() && found.ending == Ending::Program;
        let lost = frames.filter(|_| !is_ended);
        let reasons: Vec<String> = [
            cut(promise, found).filter(|_| !is_whole),
            early.map(|(end, expected)| {
                let [end, expected] = [end, expected].map(|time| time as f64 * 1e-9);
                let what = match found.ending {
                    Ending::Stream => "the video ends",
                    Ending::Program => "the recording was ended",
                };
                format!("{what} at {end:.3} s of {expected:.3} s")
            }),
            lost.and_then(|frames| missing(read(found), frames)),
            counted(found.decode_errors, DECODING_ERROR),
            counted(found.corrupted, DAMAGED_FRAME),
            dropped(found.dropped),
        ]
        .into_iter()
        .flatten()
        .collect();
        let expected_duration = match promise.end {
            Some(End::Video(time)) => Some(time),
            Some(End::Container(_)) if early.is_some() => early.map(|(_, expected)| expected),
            Some(End::Container(time)) => Some(time).filter(|_| is_of_video(promise, found)),
            None => None,
        };
        Self {
            lacks_only_dropped_frames: found.dropped > 0 && reasons.len() == 1,
            reason: (!reasons.is_empty()).then(|| reasons.join(REASONS)),
            is_ended_early: is_ended && reasons.len() == 1,
            expected_duration,
            expected_frames: frames,
            decode_errors: found.decode_errors,
            corrupted: found.corrupted,
            dropped: found.dropped,
        }
    }
}

/// Frames that were read. Frames that a late sink dropped were read, too, and are filled in.
fn read(found: &Found) -> u64 {
    match found.dropped {
        0 => found.frames,
        _ => found.recorded.max(found.frames),
    }
}

/// The dropped frames in words; `None` if there are none.
fn dropped(frames: u64) -> Option<String> {
    let frames = counted(frames, "frame")?;
    Some(format!(
        "{frames} dropped by the decoder because a sink was late"
    ))
}

/// The number of frames in the container, if those that came are some of them.
fn stated_frames(promise: &Promise, found: &Found) -> Option<u64> {
    let is_same_rate = is_same_rate(found.period, promise.period);
    promise
        .frames
        .filter(|frames| is_same_rate && found.frames <= *frames)
}

/// Returns true if frames come at the rate of the container, by the usual times between them, ns.
pub(super) fn is_same_rate(found: f64, stated: Option<f64>) -> bool {
    let stated = stated.filter(|_| found > 0.0);
    stated.is_none_or(|stated| (found / stated - 1.0).abs() <= SAME_RATE)
}

/// Says how many frames are missing; `None` if none is.
pub(super) fn missing(found: u64, stated: u64) -> Option<String> {
    (found < stated).then(|| format!("{found} of {stated} frames could be read"))
}

/// Returns when the video ended and when it should have ended, ns, if it ended too early.
fn early_end(promise: &Promise, found: &Found) -> Option<(u64, u64)> {
    let (expected, tolerance) = match (promise.end?, promise.extent) {
        (End::Video(time), Extent::Cut { .. }) => (time, found.period / 2.0),
        (End::Video(time), Extent::Whole) => {
            let still = LONGEST_INTERVALS * found.longest;
            (time, still.max(INTERVALS * found.period))
        }
        (End::Video(time), Extent::Open | Extent::Unknown)
        | (End::Container(time), Extent::Cut { .. }) => (time, INTERVALS * found.period),
        (End::Container(time), Extent::Unknown) => {
            (time, CONTAINER_TOLERANCE.max(INTERVALS * found.period))
        }
        (End::Container(_), Extent::Whole | Extent::Open) => return None,
    };
    let end = found.end?;
    (expected as f64 - end as f64 > tolerance).then_some((end, expected))
}

/// The missing part of a file that was cut off, in words, unless the video has come to its stated
/// end.
fn cut(promise: &Promise, found: &Found) -> Option<String> {
    let Extent::Cut {
        promised,
        found: bytes,
    } = promise.extent
    else {
        return None;
    };
    let is_reached = matches!(promise.end, Some(End::Video(_)))
        && found.end.is_some()
        && early_end(promise, found).is_none();
    (!is_reached)
        .then(|| format!("the file is cut off: it has {bytes} of at least {promised} bytes"))
}

/// Returns true if the longest track ends with the video, and its end is stated, not derived from
/// the data that is there.
fn is_of_video(promise: &Promise, found: &Found) -> bool {
    let (Some(End::Container(time)), Some(end)) = (promise.end, found.end) else {
        return false;
    };
    matches!(promise.extent, Extent::Whole | Extent::Unknown)
        && (time as f64 - end as f64).abs() <= CONTAINER_TOLERANCE
}

/// A count in words; `None` for 0.
pub(super) fn counted(count: u64, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const CUT: Extent = Extent::Cut {
        promised: 1000,
        found: 600,
    };

    /// 25 frames per second that end at a time in ms.
    fn found(end: u64) -> Found {
        Found {
            end: Some(end * 1_000_000),
            period: 40e6,
            longest: 40e6,
            ..Found::default()
        }
    }

    fn promise(end: Option<End>, extent: Extent) -> Promise {
        Promise {
            end,
            extent,
            ..Promise::default()
        }
    }

    fn is_complete(end: Option<End>, extent: Extent, found: &Found) -> bool {
        Completeness::of(&promise(end, extent), found).is_complete()
    }

    #[test]
    fn the_rules() {
        use End::{Container, Video};
        use Extent::{Open, Unknown, Whole};
        let (video, container) = (Some(Video(4 * S)), Some(Container(4 * S)));
        for (end, extent, found_ms, complete) in [
            (None, Unknown, 4000, true),
            (None, Whole, 100, true),
            (None, Open, 100, true),
            (None, CUT, 4000, false),
            // Its last frame is missing, or only what comes after the video.
            (video, CUT, 3960, false),
            (video, CUT, 4000, true),
            (container, CUT, 4000, false),
            (video, Unknown, 3960, true),
            (video, Unknown, 3920, false),
            (video, Whole, 3880, true),
            (video, Whole, 3600, false),
            // Audio is longer.
            (container, Whole, 2000, true),
            (container, Open, 2000, true),
            (container, Unknown, 3100, true),
            (container, Unknown, 2000, false),
            // Unknown values cannot be compared.
            (video, Whole, 5000, true),
        ] {
            let is = is_complete(end, extent, &found(found_ms));
            assert_eq!(is, complete, "{end:?} {extent:?} {found_ms}");
        }
        assert!(is_complete(video, Whole, &Found::default()));
        let still = Found {
            longest: 1.5e9,
            ..found(1000)
        };
        assert!(is_complete(video, Whole, &still));
    }

    #[test]
    fn a_recording_that_was_ended_early_is_no_damage() {
        let promise = promise(Some(End::Video(4 * S)), Extent::Whole);
        let ended = Found {
            ending: Ending::Program,
            ..found(2000)
        };
        let damaged = Found {
            corrupted: 1,
            ..ended
        };
        for (found, is_ended_early, reason) in [
            (found(2000), false, "the video ends at 2.000 s of 4.000 s"),
            (ended, true, "the recording was ended at 2.000 s of 4.000 s"),
            (
                damaged,
                false,
                "the recording was ended at 2.000 s of 4.000 s; 1 damaged frame",
            ),
        ] {
            let of = Completeness::of(&promise, &found);
            assert_eq!(of.reason.as_deref(), Some(reason));
            assert_eq!(of.is_ended_early, is_ended_early, "{reason}");
        }
    }

    #[test]
    fn damage_is_counted() {
        let damaged = Found {
            decode_errors: 1,
            corrupted: 2,
            ..found(4000)
        };
        let completeness = Completeness::of(&Promise::default(), &damaged);
        let reason = completeness.reason.expect("damaged");
        assert_eq!(reason, "1 decoding error; 2 damaged frames");
        assert!(!completeness.lacks_only_dropped_frames);
    }

    #[test]
    fn dropped_frames_are_no_damage() {
        let late = Found {
            dropped: 3,
            ..found(4000)
        };
        let dropped = "3 frames dropped by the decoder because a sink was late";
        for (recorded, missing) in [(100, ""), (96, "96 of 100 frames could be read; ")] {
            let promise = Promise {
                frames: Some(100),
                ..Promise::default()
            };
            let found = Found {
                frames: recorded - 3,
                recorded,
                ..late
            };
            let of = Completeness::of(&promise, &found);
            assert_eq!(of.reason, Some(format!("{missing}{dropped}")));
            assert_eq!(of.lacks_only_dropped_frames, missing.is_empty());
        }
    }

    #[test]
    fn a_stated_number_of_frames_decides() {
        let of = |came: u64, promise: Promise| {
            let found = Found {
                frames: came,
                ..found(3000)
            };
            let of = Completeness::of(&promise, &found);
            (of.expected_frames, of.reason)
        };
        let stated = |extent, period| Promise {
            frames: Some(100),
            period,
            ..promise(Some(End::Video(4 * S)), extent)
        };
        for extent in [Extent::Whole, CUT] {
            assert_eq!(of(100, stated(extent, None)), (Some(100), None));
        }
        let (expected, reason) = of(75, stated(Extent::Whole, Some(40e6)));
        let want = "the video ends at 3.000 s of 4.000 s; 75 of 100 frames could be read";
        assert_eq!((expected, reason.as_deref()), (Some(100), Some(want)));
        // Frames at another rate, or more of them, are not the frames of the file.
        assert_eq!(of(75, stated(Extent::Whole, Some(20e6))).0, None);
        assert_eq!(of(101, stated(Extent::Whole, None)).0, None);
        // Nothing is computed from a duration.
        assert_eq!(
            of(75, promise(Some(End::Video(3 * S)), Extent::Whole)),
            (None, None)
        );
    }

    #[test]
    fn an_expected_duration_is_what_was_stated_of_the_video() {
        use End::{Container, Video};
        for (end, extent, want) in [
            (Video(4 * S), Extent::Whole, Some(4 * S)),
            (Container(4 * S), Extent::Unknown, Some(4 * S)),
            (Container(6 * S), Extent::Whole, None),
            (Container(6 * S), Extent::Unknown, Some(6 * S)),
            // As of an index that was made from what is left.
            (Container(4 * S), CUT, None),
            (Container(4 * S), Extent::Open, None),
        ] {
            let of = Completeness::of(&promise(Some(end), extent), &found(4000));
            assert_eq!(of.expected_duration, want, "{end:?} {extent:?}");
        }
    }

    #[test]
    fn the_reason_has_figures() {
        let promise = promise(Some(End::Video(4 * S)), CUT);
        let reason = Completeness::of(&promise, &found(2160)).reason;
        assert_eq!(
            reason.expect("cut"),
            "the file is cut off: it has 600 of at least 1000 bytes; the video ends at 2.160 s of 4.000 s"
        );
    }
}
