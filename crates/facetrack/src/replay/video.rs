// SPDX-License-Identifier: MPL-2.0
//! Compares the video of a record with the video that is played.

use std::time::Duration;

use thiserror::Error;

use super::Replay;

/// Maximum relative difference of two frame rates or pixel aspect ratios that are the same: some
/// containers round them.
const ROUNDING: f64 = 0.01;

/// Maximum time by which a record may exceed the duration of the container. Our choice: durations are
/// rounded, and some leave out the last frame.
const EXCESS: Duration = Duration::from_secs(1);

/// Properties of a video; those that are not known are `None`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Video {
    /// Width and height of its frames, px.
    pub size: Option<(u32, u32)>,
    /// Width of a pixel divided by its height.
    pub pixel_aspect_ratio: Option<f64>,
    /// Rotation that the frames still need for display, as in the tag `image-orientation`.
    pub orientation: Option<String>,
    /// Rotation that was applied to the frames, as in this tag.
    pub turned: Option<String>,
    /// [`fingerprint`](crate::record::container::fingerprint) of its file.
    pub fingerprint: Option<String>,
    /// Frames per second, if that is constant.
    pub fps: Option<f64>,
    /// Duration.
    pub duration: Option<Duration>,
}

/// A property in which the played video differs from the recorded one.
/// The faces of the record are probably at other positions, or at other times.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Difference {
    /// The frames are turned in another way.
    #[error("its frames {}, but the frames here {}", turned(.recorded), turned(.played))]
    Turned {
        /// Rotations of the recorded frames: the one they still need, and the one that was applied.
        recorded: [Option<String>; 2],
        /// Rotations of the frames that are played.
        played: [Option<String>; 2],
    },
    /// The frames have another size.
    #[error("its frames are {}×{}, but the frames here are {}×{}: they are scaled, cropped or turned", .recorded.0, .recorded.1, .played.0, .played.1)]
    Size {
        /// Width and height of the recorded frames, px.
        recorded: (u32, u32),
        /// Width and height of the frames that are played, px.
        played: (u32, u32),
    },
    /// The pixels have another shape.
    #[error("its pixels have the aspect ratio {recorded:.3}, but the pixels here {played:.3}")]
    Pixels {
        /// Pixel aspect ratio of the recorded frames.
        recorded: f64,
        /// Pixel aspect ratio of the frames that are played.
        played: f64,
    },
    /// The video comes from another file.
    #[error("it was made of another file, or the file was changed")]
    File,
    /// The frame rate is another one.
    #[error("its video has {recorded:.3} frames per second, but this one has {played:.3}")]
    Rate {
        /// Frames per second of the recorded video.
        recorded: f64,
        /// Frames per second of the video that is played.
        played: f64,
    },
    /// A frame with the same number has another time.
    #[error("its frame at {:.3} s has the number of the frame here at {:.3} s: frames are missing", .recorded.as_secs_f64(), .played.as_secs_f64())]
    Number {
        /// Time of the recorded frame.
        recorded: Duration,
        /// Time of the frame that is played.
        played: Duration,
    },
    /// The record is longer than the video.
    #[error("it has {:.1} s of video, but this one has only {:.1} s", .recorded.as_secs_f64(), .played.as_secs_f64())]
    Duration {
        /// Duration of the record.
        recorded: Duration,
        /// Duration of the video that is played.
        played: Duration,
    },
}

/// Says how frames are turned: the rotation that they still need, and the one that was applied.
fn turned([needed, applied]: &[Option<String>; 2]) -> String {
    match (needed, applied) {
        (Some(tag), _) => format!("still have to be turned ({tag})"),
        (None, Some(tag)) => format!("were turned ({tag})"),
        (None, None) => "were not turned".to_owned(),
    }
}

impl Video {
    /// The first property in which the `played` video differs from this recorded one.
    pub fn difference(&self, played: &Self) -> Option<Difference> {
        self.turned_otherwise(played)
            .or_else(|| self.shaped_otherwise(played))
            .or_else(|| self.timed_otherwise(played))
    }

    fn turned_otherwise(&self, played: &Self) -> Option<Difference> {
        // Older records do not state the rotation that was applied.
        let is_other = self.orientation != played.orientation
            || (self.turned.is_some() && self.turned != played.turned);
        let turns = |video: &Self| [video.orientation.clone(), video.turned.clone()];
        is_other.then(|| Difference::Turned {
            recorded: turns(self),
            played: turns(played),
        })
    }

    fn shaped_otherwise(&self, played: &Self) -> Option<Difference> {
        let (recorded, size) = self.size.zip(played.size)?;
        if recorded != size {
            let played = size;
            return Some(Difference::Size { recorded, played });
        }
        let ratios = self.pixel_aspect_ratio.zip(played.pixel_aspect_ratio);
        let (recorded, played) = ratios.filter(differ)?;
        Some(Difference::Pixels { recorded, played })
    }

    /// True if both videos are known to come from the same file.
    pub fn is_same_file(&self, played: &Self) -> bool {
        self.fingerprint.is_some() && self.fingerprint == played.fingerprint
    }

    /// The difference of the frame rates, if there is one.
    pub fn rate_difference(&self, played: &Self) -> Option<Difference> {
        let (recorded, played) = self.fps.zip(played.fps).filter(differ)?;
        Some(Difference::Rate { recorded, played })
    }

    /// The rates are only compared if the files are not known: a container may state a wrong one.
    fn timed_otherwise(&self, played: &Self) -> Option<Difference> {
        let files = self.fingerprint.as_ref().zip(played.fingerprint.as_ref());
        if files.is_some_and(|(recorded, played)| recorded != played) {
            return Some(Difference::File);
        }
        if files.is_none()
            && let Some(difference) = self.rate_difference(played)
        {
            return Some(difference);
        }
        let (recorded, played) = self.duration.zip(played.duration)?;
        (recorded > played.saturating_add(EXCESS))
            .then_some(Difference::Duration { recorded, played })
    }
}

fn differ((a, b): &(f64, f64)) -> bool {
    (a - b).abs() > ROUNDING * b.abs()
}

impl<S> Replay<S> {
    /// The video that the record was made of.
    pub fn video(&self) -> Video {
        let head = &self.index.head;
        let is_ours = head.schema.is_some();
        let constant = self.fps().filter(|_| !head.variable_rate);
        let times = self.index.entries.iter().filter_map(|entry| entry.pts);
        Video {
            size: head.size(),
            pixel_aspect_ratio: is_ours.then(|| self.pixel_aspect_ratio()),
            orientation: head.orientation.clone(),
            turned: head.turned.clone(),
            fingerprint: head.video_fingerprint.clone(),
            fps: constant,
            duration: times.max().map(Duration::from_nanos),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video() -> Video {
        Video {
            size: Some((640, 360)),
            pixel_aspect_ratio: Some(1.0),
            orientation: None,
            turned: Some("rotate-90".to_owned()),
            fingerprint: Some("1-a".to_owned()),
            fps: Some(25.0),
            duration: Some(Duration::from_secs(10)),
        }
    }

    #[test]
    fn each_property_of_another_video_is_noticed() {
        type Change = fn(&mut Video);
        let unknown: Change = |it| it.fingerprint = None;
        for (change, want) in [
            ((|_| ()) as Change, None),
            (|it| it.fps = Some(24.9), None),
            (|it| it.fps = Some(50.0), None),
            (
                |it| it.orientation = Some("rotate-90".to_owned()),
                Some("turned"),
            ),
            (|it| it.turned = None, Some("were not turned")),
            (
                |it| it.size = Some((360, 640)),
                Some("640×360, but the frames here are 360×640"),
            ),
            (|it| it.size = Some((320, 180)), Some("320×180")),
            (|it| it.pixel_aspect_ratio = Some(2.0), Some("2.000")),
            (
                |it| it.fingerprint = Some("1-b".to_owned()),
                Some("another file"),
            ),
            (unknown, None),
            (
                |it| (it.fingerprint, it.fps) = (None, Some(50.0)),
                Some("50.000"),
            ),
            (
                |it| (it.fingerprint, it.fps, it.size) = (None, None, None),
                None,
            ),
            (
                |it| {
                    it.fingerprint = None;
                    it.duration = Some(Duration::from_secs(8));
                },
                Some("only 8.0 s"),
            ),
        ] {
            let mut played = video();
            change(&mut played);
            let difference = video().difference(&played).map(|it| it.to_string());
            let is_expected = match (&difference, want) {
                (Some(text), Some(part)) => text.contains(part),
                (difference, want) => difference.is_none() && want.is_none(),
            };
            assert!(is_expected, "{played:?}: {difference:?}");
        }
    }

    #[test]
    fn older_records_do_not_state_an_applied_rotation() {
        let older = Video {
            turned: None,
            ..video()
        };
        assert_eq!(older.difference(&video()), None);
    }
}
