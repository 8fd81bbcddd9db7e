// SPDX-License-Identifier: MPL-2.0
//! The CSV file that Epic's app Live Link Face records: a row per frame with a timecode, the number
//! of values, 52 blendshapes and 9 angles.
//!
//! Columns, units and signs follow recordings of the app, such as `anim/alex_rom_4.csv` of
//! alexdjulin/LiveLinkFace-CSV-Retarget-For-Motionbuilder, `MySlate_1_iPhone.csv` of
//! dwskillman/BlendFiles and `recording/recording.csv` of sentien-io/SentienLiveLinkFace:
//!
//! - The timecode is `hh:mm:ss:ff.sss` with 60 frames per second, whatever the rate of the camera.
//! - A row without a face ends after the number of values, which is 0.
//! - Angles are in radians. Positive angles of an eye turn it to the right of the person and down,
//!   and follow from the channels: in these recordings `LeftEyeYaw` is 0.59 to 0.62 times
//!   `EyeLookInLeft` − `EyeLookOutLeft`, with a correlation of 0.999.
//! - Positive angles of the head turn it to the left of the person, lift the chin, and tilt the head
//!   counter-clockwise in the image, as in the app's packets: see [`facetrack::packet::livelink`]. In
//!   the third recording the eyes turn against the head with these signs, as eyes do that keep their
//!   aim: by 0.93 rad for each rad of yaw (differences of 6 frames, correlation −0.91), and by 0.69 rad
//!   for each rad of pitch (−0.37).

use facetrack::packet::MAX_EYE_ANGLE;

use super::frame::{Face, Frame, number};
use super::{Form, Layout, Target};
use crate::faces::Contents;
use crate::table::{Cell, Column, FileFormat, Kind};

pub(super) const FORM: Form = Form {
    has_one_face: true,
    takes_columns: false,
    needs_landmarks: |_| false,
    target: Target::Table(FileFormat::RaggedCsv, |_, contents| {
        Ok(Box::new(LiveLink::new(contents)?))
    }),
};

/// The blendshapes in the order of the file. Their names in ARKit begin with a small letter.
#[rustfmt::skip]
const BLENDSHAPES: [&str; 52] = [
    "EyeBlinkLeft", "EyeLookDownLeft", "EyeLookInLeft", "EyeLookOutLeft", "EyeLookUpLeft", "EyeSquintLeft",
    "EyeWideLeft", "EyeBlinkRight", "EyeLookDownRight", "EyeLookInRight", "EyeLookOutRight", "EyeLookUpRight",
    "EyeSquintRight", "EyeWideRight",
    "JawForward", "JawRight", "JawLeft", "JawOpen",
    "MouthClose", "MouthFunnel", "MouthPucker", "MouthRight", "MouthLeft", "MouthSmileLeft", "MouthSmileRight",
    "MouthFrownLeft", "MouthFrownRight", "MouthDimpleLeft", "MouthDimpleRight", "MouthStretchLeft",
    "MouthStretchRight", "MouthRollLower", "MouthRollUpper", "MouthShrugLower", "MouthShrugUpper", "MouthPressLeft",
    "MouthPressRight", "MouthLowerDownLeft", "MouthLowerDownRight", "MouthUpperUpLeft", "MouthUpperUpRight",
    "BrowDownLeft", "BrowDownRight", "BrowInnerUp", "BrowOuterUpLeft", "BrowOuterUpRight",
    "CheekPuff", "CheekSquintLeft", "CheekSquintRight", "NoseSneerLeft", "NoseSneerRight", "TongueOut",
];

/// The angles, which follow.
#[rustfmt::skip]
const ROTATIONS: [&str; 9] = [
    "HeadYaw", "HeadPitch", "HeadRoll",
    "LeftEyeYaw", "LeftEyePitch", "LeftEyeRoll", "RightEyeYaw", "RightEyePitch", "RightEyeRoll",
];

/// Thousandths of a frame of the timecode per second: it has 60 frames.
const TIMECODE_UNIT: u128 = 60_000;

/// Angles of the head in a record, in degrees.
const HEAD: [&str; 3] = ["pose.yaw", "pose.pitch", "pose.roll"];

/// A row per frame.
struct LiveLink {
    /// Column of each of [`BLENDSHAPES`], if it was measured.
    channels: [Option<usize>; 52],
    /// Columns of [`HEAD`], if the record has them.
    head: [Option<usize>; 3],
    /// True if a face has them.
    has_pose: bool,
}

impl LiveLink {
    /// The layout for a record with these contents.
    ///
    /// # Errors
    /// Returns an error if no face of the record has blendshapes.
    fn new(contents: &Contents) -> Result<Self, String> {
        let channels = BLENDSHAPES.map(|name| {
            let is_channel = |it: &Column| {
                it.name
                    .strip_prefix("blendshapes.")
                    .is_some_and(|it| it.eq_ignore_ascii_case(name))
            };
            contents.columns.iter().position(is_channel)
        });
        if channels.iter().all(Option::is_none) {
            return Err("it has no blendshapes, which livelink-csv needs. Track with an engine that measures them, such as mediapipe".to_owned());
        }
        let head = HEAD.map(|name| contents.place(name));
        Ok(Self {
            channels,
            head,
            has_pose: contents.has_pose,
        })
    }

    /// The 61 values of a face. Those that were not measured are 0, as the format has no way to
    /// leave them out.
    fn values(&self, face: &Face) -> impl Iterator<Item = f32> {
        let measured = |place: Option<usize>| {
            let value = place.and_then(|place| number(&face.cells[place], 0));
            value.unwrap_or(0.0) as f32
        };
        let blendshapes = self.channels.map(measured);
        let [yaw, pitch, roll] = self.head.map(|angle| measured(angle).to_radians());
        blendshapes
            .into_iter()
            .chain([yaw, -pitch, roll])
            .chain(eyes(&blendshapes))
    }
}

/// Yaw, pitch and roll of the left eye and of the right eye.
fn eyes(blendshapes: &[f32; 52]) -> [f32; 6] {
    let channel = |name| BLENDSHAPES.iter().position(|known| *known == name);
    let value = |name| channel(name).map_or(0.0, |place| blendshapes[place]);
    let angle = |positive, negative| MAX_EYE_ANGLE * (value(positive) - value(negative));
    [
        angle("EyeLookInLeft", "EyeLookOutLeft"),
        angle("EyeLookDownLeft", "EyeLookUpLeft"),
        0.0,
        angle("EyeLookOutRight", "EyeLookInRight"),
        angle("EyeLookDownRight", "EyeLookUpRight"),
        0.0,
    ]
}

impl Layout for LiveLink {
    fn columns(&self) -> Vec<Column> {
        let names = ["Timecode", "BlendShapeCount"].into_iter();
        let names = names.chain(BLENDSHAPES).chain(ROTATIONS);
        names.map(|name| Column::new(name, Kind::Text)).collect()
    }

    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String> {
        let mut row = vec![Cell::Text(timecode(frame.time()?))];
        let values = frame.faces.first().map(|face| self.values(face));
        let values = values.into_iter().flatten();
        // Adding 0 turns −0 into 0.
        let values = values.map(|value| Cell::Text(format!("{:.10}", value + 0.0)));
        let values: Vec<_> = values.collect();
        row.push(Cell::Integer(values.len() as i64));
        row.extend(values);
        Ok(vec![row])
    }

    fn warning(&self) -> Option<&'static str> {
        (!self.has_pose).then_some("it has no head pose, so HeadYaw, HeadPitch and HeadRoll are 0. Record with an engine that measures the pose")
    }
}

/// `hh:mm:ss:ff.sss` of a time in ns. Hours begin again after a day.
fn timecode(time: u64) -> String {
    let thousandths = (u128::from(time) * TIMECODE_UNIT + 500_000_000) / 1_000_000_000;
    let (seconds, rest) = (thousandths / TIMECODE_UNIT, thousandths % TIMECODE_UNIT);
    format!(
        "{:02}:{:02}:{:02}:{:02}.{:03}",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        rest / 1000,
        rest % 1000
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use facetrack::blendshape::MEDIAPIPE_CHANNELS;

    use super::*;

    #[test]
    fn the_blendshapes_are_those_of_arkit() {
        let small = |name: &str| name[..1].to_lowercase() + &name[1..];
        let ours: BTreeSet<_> = BLENDSHAPES.iter().map(|name| small(name)).collect();
        let known = MEDIAPIPE_CHANNELS.iter().skip(1).chain(&["tongueOut"]);
        assert_eq!(ours, known.map(|name| name.to_string()).collect());
    }

    #[test]
    fn timecodes_count_sixty_frames_per_second() {
        for (time, want) in [
            (0, "00:00:00:00.000"),
            (40_000_000, "00:00:00:02.400"),
            (33_366_667, "00:00:00:02.002"),
            (999_999_999, "00:00:01:00.000"),
            (3_661_500_000_000, "01:01:01:30.000"),
            (90_000_000_000_000, "01:00:00:00.000"),
        ] {
            assert_eq!(timecode(time), want);
        }
    }

    #[test]
    fn eyes_turn_as_their_channels_say() {
        let mut blendshapes = [0.0; 52];
        // Both eyes to the left of the person, and down.
        for name in [
            "EyeLookOutLeft",
            "EyeLookInRight",
            "EyeLookDownLeft",
            "EyeLookDownRight",
        ] {
            let place = BLENDSHAPES.iter().position(|known| *known == name);
            blendshapes[place.unwrap()] = 0.5;
        }
        let angle = 0.5 * MAX_EYE_ANGLE;
        let turned = [-angle, angle, 0.0];
        assert_eq!(eyes(&blendshapes), [turned, turned].concat()[..]);
    }
}
