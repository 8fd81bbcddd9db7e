// SPDX-License-Identifier: MPL-2.0
//! The JSON form of the metadata at the head of a record.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::metadata::Metadata;
use crate::record::stream::Totals;

/// Name and version of the JSON Schema that records follow. New keys may be added at the end of an
/// object; anything else is a new version.
pub const SCHEMA: &str = "facetrack-2";

/// The schema before it: `pts` are timestamps, and holes are filled by them.
pub const SCHEMA_1: &str = "facetrack-1";

/// The video and how it was analysed. Two runs over the same input with the same options produce
/// the same values.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "metadata"))]
#[serde(default, expecting = "an object")]
pub(crate) struct Head {
    /// The property video-path, or the path or URI that the source reports; empty if it is not
    /// known.
    #[serde(skip_deserializing)]
    video_path: String,
    /// Number of frames in this file.
    pub(crate) total_frames: Option<u64>,
    /// Frames per second: the nominal rate, or the measured rate if the nominal one is missing or
    /// wrong. If the rate varies, it is the number of frames divided by the duration; 0 if nothing
    /// is known.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub(crate) fps: f64,
    /// Engine that analysed the frames; empty if no frame was analysed. If the engine was changed, it
    /// is the first one, and the frames of others name theirs.
    pub(crate) tracking_engine: String,
    /// Width in pixels of the analysed frames.
    pub(crate) width: u32,
    /// Height in pixels of the analysed frames.
    pub(crate) height: u32,
    /// Name and version of this schema.
    #[cfg_attr(test, schemars(required, extend("const" = SCHEMA)))]
    pub(crate) schema: Option<String>,
    /// Name and version of the plugin.
    pub(crate) generator: String,
    /// Device that the engine ran on, the last one if it changed: cpu or cuda:<index>; empty if no
    /// frame was analysed.
    pub(crate) device: String,
    /// SHA-256 of each model file that was used, by file name.
    #[cfg_attr(test, schemars(extend("additionalProperties" = {"type": "string", "pattern": "^[0-9a-f]{64}$"})))]
    pub(crate) models: IndexMap<String, String>,
    /// Properties of trackjsonsink that affect the file, with their values.
    #[cfg_attr(test, schemars(extend("additionalProperties" = {"type": ["boolean", "number", "string"]})))]
    pub(crate) options: Map<String, Value>,
    /// Number of frames with the status gap, which were missing in the stream or carried no
    /// picture.
    #[serde(skip_deserializing)]
    padded_frames: Option<u64>,
    /// Runtime of the networks: `built-in`, or ONNX Runtime's name of its execution provider.
    pub(crate) execution_provider: String,
    /// Reason for the device, in older records; it differs between machines.
    #[cfg_attr(test, schemars(skip))]
    #[serde(skip_serializing)]
    pub(crate) device_reason: String,
    /// Time that the engine took to load, in records of the schema facetrack-1.
    #[cfg_attr(test, schemars(skip))]
    #[serde(skip_serializing)]
    pub(crate) load_time_ms: Option<f64>,
    /// True if the stream delivered all of the video that its container announces, and no damage
    /// was reported (decode_errors, corrupted_frames). Some damage cannot be known, because changed
    /// data decodes like any other. If false, the file contains everything that could be read;
    /// recording the same input again helps only if frames were dropped (dropped_frames) or the
    /// recording was ended early.
    #[serde(skip_deserializing)]
    complete: Option<bool>,
    /// Description of the missing or damaged part; present only if complete is false.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    incomplete_reason: Option<String>,
    /// Time in ns, on the scale of pts, at which the video ends according to its container; absent
    /// if it is not known.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    expected_duration: Option<u64>,
    /// Number of frames in the container; absent if it is not known, and for parts of a video. It is
    /// counted in the tables of local MP4 and MOV files, and read from local AVI files that were cut
    /// off; complete is false if fewer came.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    expected_frames: Option<u64>,
    /// Number of reported decoding errors, a lower bound of the damaged places: unexpected
    /// interruptions, since a decoder that cannot decode a frame marks the next one as
    /// discontinuous, and, with facetrack run, frames in which a decoder of libav found damage that
    /// it concealed. Interruptions are not counted for live sources.
    #[serde(skip_deserializing)]
    decode_errors: Option<u64>,
    /// Number of frames that the decoder marked as damaged. Most decoders mark none.
    #[serde(skip_deserializing)]
    corrupted_frames: Option<u64>,
    /// Number of frames that are known to have been dropped by a decoder or filter because a sink of
    /// the pipeline was late; absent if there are none. They have the status gap.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    dropped_frames: Option<u64>,
    /// True if the time of a frame cannot be computed from its number, because neither the nominal
    /// nor the measured rate gives the times of all frames to within half a frame; absent
    /// otherwise.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) variable_rate: bool,
    /// Rotation that the frames still need for display, from the tag image-orientation, for example
    /// rotate-90 (clockwise); absent for upright frames and without a tag. Positions refer to the
    /// frames before this rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) orientation: Option<String>,
    /// Width of a pixel divided by its height, for example 1.0666666666666667 for PAL DV; absent
    /// for square pixels. Positions are in pixels of the stored frames: multiply x by this ratio
    /// for the displayed picture.
    #[cfg_attr(test, schemars(extend("exclusiveMinimum" = 0)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pixel_aspect_ratio: Option<f64>,
    /// Stream time in ns of the first frame of the video, at which pts is 0; absent if it is 0. It
    /// depends on the container: MPEG transport streams begin at about 0.7 s, and a video may begin
    /// after its sound.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) start_time: u64,
    /// Properties of facetrack that affect the results and were set explicitly, with their values.
    /// Absent if none were.
    #[cfg_attr(test, schemars(extend("additionalProperties" = {"type": ["boolean", "number", "string"]})))]
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) facetrack_options: Map<String, Value>,
    /// Number of the first frame with a face that has blendshapes_corrected. Absent if there is none.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    corrected_from: Option<u64>,
    /// Rotation that was applied to the frames before they were analysed, from the tag
    /// image-orientation; absent if there was none. Positions refer to the frames after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) turned: Option<String>,
    /// Fingerprint of the video file: its size in bytes, a hyphen, and the first 16 digits of the
    /// SHA-256 of nine parts of 64 KiB, at equal distances; absent if the video is no local file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) video_fingerprint: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Head {
    /// The metadata with these counts. Without them, the counts are `null`.
    pub(crate) fn new(metadata: &Metadata, totals: Option<Totals>) -> Self {
        let metadata = metadata.clone();
        let completeness = metadata.completeness;
        let source = metadata.source.as_ref();
        let generator = source.map_or(metadata.generator, |source| source.generator.clone());
        let source = metadata.source.unwrap_or_default();
        let models = source.models.iter();
        Self {
            video_path: metadata.video_path,
            total_frames: totals.map(|totals| totals.frames),
            fps: metadata.fps,
            tracking_engine: source.engine.clone(),
            width: metadata.width,
            height: metadata.height,
            schema: Some(SCHEMA.to_owned()),
            generator,
            device: source.device.clone(),
            models: models
                .map(|model| (model.name.clone(), model.sha256.clone()))
                .collect(),
            options: metadata.options,
            padded_frames: totals.map(|totals| totals.padded),
            execution_provider: source.execution_provider.clone(),
            device_reason: String::new(),
            load_time_ms: None,
            complete: totals.map(|_| completeness.is_complete()),
            incomplete_reason: completeness.reason.filter(|_| totals.is_some()),
            expected_duration: completeness.expected_duration,
            expected_frames: completeness.expected_frames,
            decode_errors: totals.map(|_| completeness.decode_errors),
            corrupted_frames: totals.map(|_| completeness.corrupted),
            dropped_frames: Some(completeness.dropped).filter(|frames| *frames > 0),
            variable_rate: metadata.variable_rate,
            orientation: metadata.orientation,
            pixel_aspect_ratio: metadata.pixel_aspect_ratio,
            start_time: metadata.start_time,
            facetrack_options: serde_json::from_str(&source.options).unwrap_or_default(),
            corrected_from: totals.and_then(|totals| totals.corrected_from),
            turned: metadata.turned,
            video_fingerprint: metadata.video_fingerprint,
        }
    }
}
