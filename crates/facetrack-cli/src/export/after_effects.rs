// SPDX-License-Identifier: MPL-2.0
//! Keyframes for After Effects, as its clipboard has them: the box as position and scale of a layer
//! of the size of the picture, the pose as its rotation, and the points as effects `Point Control`.
//!
//! The layout follows `README.md` in baku89/ae-keyframes; the effects follow `src/ofxAEKeyframe.h` in
//! baku89/ofxAEKeyframe. Frames are counted from 0.

use super::openface;
use super::tracks::{Curve, Program, Tracks, center_and_size, changed, decimal};

pub(super) const PROGRAM: Program = Program {
    extension: "txt",
    start: START,
    first_frame: 0,
    text,
};

const START: &str = "Adobe After Effects 8.0 Keyframe Data\n";

/// Decimals of a value: thousandths of a pixel, and rates such as 23.976.
const DECIMALS: usize = 3;

/// The full size, in percent.
const PERCENT: f64 = 100.0;

fn text(tracks: &Tracks) -> Result<String, String> {
    let rate = tracks.fps.ok_or("it has no frame rate. Set --fps")?;
    let face = tracks.faces.values().next().ok_or("it has no face")?;
    let [rate, width, height, aspect] =
        [rate, tracks.width, tracks.height, tracks.pixel_aspect].map(|it| decimal(it, DECIMALS));
    let mut out = format!(
        "{START}\n\tUnits Per Second\t{rate}\n\tSource Width\t{width}\n\tSource Height\t{height}\n\
         \tSource Pixel Aspect Ratio\t{aspect}\n\tComp Pixel Aspect Ratio\t{aspect}\n"
    );
    let [x, y, across, down] = center_and_size(&face.edges);
    let zero = changed(&x, |_| 0.0);
    let scale = [
        changed(&across, |it| PERCENT * it / tracks.width),
        changed(&down, |it| PERCENT * it / tracks.height),
        changed(&x, |_| PERCENT),
    ];
    add(
        &mut out,
        "Transform\tPosition",
        "X pixels\tY pixels\tZ pixels",
        &[x, y, zero],
    );
    add(
        &mut out,
        "Transform\tScale",
        "X percent\tY percent\tZ percent",
        &scale,
    );
    let names = ["X Rotation", "Y Rotation", "Rotation"];
    for (name, angle) in std::iter::zip(names, rotation(&face.pose)) {
        add(&mut out, &format!("Transform\t{name}"), "degrees", &[angle]);
    }
    for (number, (_, point)) in std::iter::zip(1.., &face.points) {
        let name = format!("Effects\tPoint Control #{number}\tPoint #2");
        add(&mut out, &name, "X pixels\tY pixels", point);
    }
    Ok(out + "\n\nEnd of Keyframe Data\n")
}

/// Adds the keyframes of a property, if it has any.
fn add(out: &mut String, property: &str, units: &str, curves: &[Curve]) {
    let frames = curves.first().into_iter().flatten();
    let keys = frames.enumerate().map(|(place, (frame, _))| {
        let values = curves.iter().map(|curve| decimal(curve[place].1, DECIMALS));
        format!("\t{frame}\t{}\t\n", values.collect::<Vec<_>>().join("\t"))
    });
    let keys: String = keys.collect();
    if !keys.is_empty() {
        *out += &format!("\n{property}\n\tFrame\t{units}\t\n{keys}");
    }
}

/// Angles about x, y and z in degrees. The rotation is Rx·Ry·Rz in axes to the right, down and away
/// from the camera, as in OpenFace.
fn rotation([.., yaw, pitch, roll]: &[Curve; 6]) -> [Curve; 3] {
    let keys = yaw.iter().zip(pitch).zip(roll);
    let angles = keys.map(|(((frame, yaw), (_, pitch)), (_, roll))| {
        let angles = openface::rotation([*yaw, *pitch, *roll].map(|it| it as f32));
        (*frame, angles.map(|it| f64::from(it.to_degrees())))
    });
    let angles: Vec<_> = angles.collect();
    [0, 1, 2].map(|axis| {
        let keys = angles.iter().map(|(frame, angles)| (*frame, angles[axis]));
        keys.collect()
    })
}
