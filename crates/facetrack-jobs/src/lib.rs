// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use facetrack::record::joining::{SeenFrame, Stated};
use facetrack::report::SearchExtent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Argument of the worker before the path of a video: it writes a small copy for browsers to
/// standard output, and reads no messages.
pub const PROXY: &str = "proxy";

/// The writing application in these copies, which is their mark.
pub const PROXY_MARK: &str = "facetrack view --proxy";

/// A message to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Loads the engine. The first message; the answer is [`Answer::Ready`] or
    /// [`Answer::Refused`].
    Setup(Setup),
    /// Tracks a video. The answer is [`Answer::Done`], after any number of [`Answer::Progress`].
    Track(Box<TrackRequest>),
    /// Asks how long a video is. The answer is [`Answer::Measured`].
    Measure(PathBuf),
    /// Prepares to cover faces, instead of [`Request::Setup`]. The answer is [`Answer::Ready`] or
    /// [`Answer::Refused`].
    SetUpBlur(BlurSetup),
    /// Covers the faces of a video. The answer is [`Answer::Done`], after any number of
    /// [`Answer::Progress`].
    Blur(Box<BlurRequest>),
    /// Stops the video at the next frame.
    Stop,
}

/// The settings of all videos.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Name of the engine; `None` for the default.
    pub engine: Option<String>,
    /// Names and values of properties of `facetrack` and `trackjsonsink`.
    pub properties: Vec<(String, String)>,
    /// Maximum number of threads per decoder; 0 = as the decoder decides.
    pub decoder_threads: u32,
}

/// A video to track.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TrackRequest {
    /// The video.
    pub video: PathBuf,
    /// Name of the video in the record.
    pub name: String,
    /// The record to write. An existing one is replaced.
    pub record: PathBuf,
    /// The segment of the video to track.
    pub segment: Segment,
    /// Time to track before the part, s, which is not in the record. Set only for parts whose
    /// records are joined. Then a part after the end of the video is not a failure, and `complete`
    /// in the record refers to the end of the video, not of the part.
    pub warm_up: Option<f64>,
}

/// How the faces of all videos are covered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlurSetup {
    /// Names and values of properties of `facetrackblur`.
    pub properties: Vec<(String, String)>,
}

/// A video whose faces are to be covered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlurRequest {
    /// The video.
    pub video: PathBuf,
    /// Its record.
    pub record: PathBuf,
    /// The video to write. An existing file is replaced.
    pub output: PathBuf,
    /// The container to write.
    pub container: Container,
    /// The file to write with a [`CoveredFrame`] for each frame, one per line. An existing file is
    /// replaced.
    pub covers: PathBuf,
}

/// What is covered in a frame of a copy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CoveredFrame {
    /// Time in the video, ns.
    pub time: u64,
    /// How far the frame was searched for faces.
    pub search: SearchExtent,
    /// True if the whole frame is covered.
    pub is_black: bool,
    /// Covered areas.
    pub covers: Vec<FaceArea>,
    /// Faces that stay visible.
    pub kept: Vec<FaceArea>,
}

/// A part of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct FaceArea {
    /// Id of the face.
    pub id: u32,
    /// Left, top, width and height, as fractions of the frame.
    pub bounds: [f32; 4],
}

/// A container for a video whose faces are covered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Container {
    /// MPEG-4 part 14.
    #[default]
    Mp4,
    /// QuickTime.
    Mov,
    /// Matroska.
    Mkv,
}

impl Container {
    /// The container of a file by its name; `None` for other names.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let suffix = path.extension()?.to_str()?.to_ascii_lowercase();
        match suffix.as_str() {
            "mp4" | "m4v" => Some(Self::Mp4),
            "mov" => Some(Self::Mov),
            "mkv" => Some(Self::Mkv),
            _ => None,
        }
    }
}

/// A segment of a video in stream time, s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Time of the first frame; `None` for the first frame of the video.
    pub start: Option<f64>,
    /// Time after the last frame; `None` for the end of the video.
    pub stop: Option<f64>,
}

impl Segment {
    /// Returns true if the segment is the whole video.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }
}

/// A message of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The engine is loaded.
    Ready(Ready),
    /// The settings are invalid, or the engine cannot be loaded.
    Refused(SetupError),
    /// State of the current video.
    Progress(Progress),
    /// The video has ended.
    Done(Box<Outcome>),
    /// Duration, in seconds, of a video that can be played from any frame, or the reason why it
    /// cannot be.
    Measured(Result<f64, String>),
}

/// The loaded engine, and everything besides the video that results depend on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Name of the engine.
    pub engine: String,
    /// Device that it runs on.
    pub device: String,
    /// Reason for that device.
    pub device_reason: String,
    /// SHA-256 of each model file, by file name.
    pub models: BTreeMap<String, String>,
    /// The options of both elements that change results, by name.
    pub options: Map<String, Value>,
}

/// Reason why a worker cannot start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SetupError {
    /// The reason and the remedy.
    pub message: String,
    /// True if a setting is invalid.
    pub is_usage: bool,
}

impl SetupError {
    /// Creates an error about an invalid setting.
    #[must_use]
    pub fn usage(message: String) -> Self {
        let is_usage = true;
        Self { message, is_usage }
    }

    /// Creates an error with another reason.
    #[must_use]
    pub fn other(reason: impl ToString) -> Self {
        let (message, is_usage) = (reason.to_string(), false);
        Self { message, is_usage }
    }
}

/// State of a video.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Frames recorded so far.
    pub frames: u64,
    /// Stream time of the current frame, s.
    pub position: Option<f64>,
    /// Duration of the video, s.
    pub duration: Option<f64>,
}

/// Final state of a video.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The record has every frame of the video.
    Complete,
    /// The record has all that could be read of a video that is cut off or damaged.
    Truncated,
    /// The file has no video.
    NoVideo,
    /// The file is not a video.
    Unsupported,
    /// Tracking failed. Another attempt may succeed.
    #[default]
    Failed,
    /// Not tracked, because another file has the name of the record.
    Skipped,
}

impl Status {
    /// The word in messages and files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::NoVideo => "no-video",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Returns true if the video has a record.
    #[must_use]
    pub fn has_record(self) -> bool {
        matches!(self, Self::Complete | Self::Truncated)
    }
}

/// Cause of a failure that the command treats in a special way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Another process writes the record, such as a worker that is about to end.
    Busy,
    /// The video cannot be opened or read: it is absent, not permitted, or its disk fails.
    Unreadable,
    /// The disk is full.
    OutOfSpace,
    /// The command stopped the video.
    Stopped,
    /// The pipeline of the video cannot be stopped, so the worker cannot be used any more.
    Stalled,
}

/// The outcome of a video.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// State of the video.
    pub status: Status,
    /// Frames that the container states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_frames: Option<u64>,
    /// Frames in the record.
    pub frames: u64,
    /// Frames that were missing in the stream.
    pub gap_frames: u64,
    /// Frames that the decoder marked as damaged.
    pub error_frames: u64,
    /// Frames that follow one that could not be decoded.
    pub decode_errors: u64,
    /// Faces, summed over all frames.
    pub faces: u64,
    /// Duration of the tracked video, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video_seconds: Option<f64>,
    /// CPU time, s.
    pub cpu_seconds: f64,
    /// Description of what is missing, or the reason why nothing was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The cause of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// For a segment: statements about the whole video.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stated: Option<Stated>,
    /// Tracked frames before the part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<SeenFrame>,
    /// The last frames of the part, which the next part has before its start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<SeenFrame>,
}

impl Outcome {
    /// A video without a record.
    #[must_use]
    pub fn without_record(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: Some(message.into()),
            ..Self::default()
        }
    }
}

/// Writes a message as a line.
///
/// # Errors
/// Returns the errors of `to`; [`io::ErrorKind::InvalidData`] for a path that is not UTF-8.
pub fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_lines() {
        let request = Request::Track(Box::new(TrackRequest {
            video: "/a b/c\nd.mp4".into(),
            ..TrackRequest::default()
        }));
        let mut sent = Vec::new();
        send(&mut sent, &request).expect("memory");
        send(&mut sent, &Request::Stop).expect("memory");
        let text = String::from_utf8(sent).expect("text");
        let mut lines = text.lines();
        let job = lines.next().expect("a line");
        assert_eq!(serde_json::from_str::<Request>(job).expect("JSON"), request);
        assert_eq!(lines.next(), Some(r#""stop""#));
    }

    #[test]
    fn words_are_those_in_files() {
        for status in [Status::NoVideo, Status::Complete, Status::Skipped] {
            let text = serde_json::to_value(status).expect("JSON");
            assert_eq!(text, status.word());
        }
    }
}
