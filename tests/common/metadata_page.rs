// SPDX-License-Identifier: MPL-2.0
//! The tables of the page about the metadata: the fields that are written, with the sentences of the
//! JSON Schema where a key of the record has the same meaning.

use std::fmt::Write as _;

use facetrack::observation::{Features, FitFailure, LandmarkScheme};
use gst::glib;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;
use serde_json::Value as Json;

use super::faces::full_face;
use super::reports::{report, with_report};

/// Keys of a face in a record, for fields with other names.
const KEYS: [(&str, &str); 5] = [
    ("landmark-confidences", "landmark_confidence"),
    ("pose", "pose.matrix"),
    ("morphable.shape", "eos.shape_coeffs"),
    ("morphable.rotation", "eos_fit.rotation"),
    ("morphable.failure", "eos_fit.failure"),
];

/// Fields whose values have another form than in a record.
#[rustfmt::skip]
const OWN: [(&str, &str); 30] = [
    ("id", "Number of the id, from 1. It stays the same from frame to frame and is never reused in a stream."),
    ("x", "Left edge of the box; may lie outside the frame."),
    ("y", "Top edge of the box; may lie outside the frame."),
    ("width", "Width of the box."),
    ("height", "Height of the box."),
    ("confidence", "The engine's own score, 0 to 1; absent if it has none."),
    ("landmark-scheme", "Number and order of the landmarks:"),
    ("landmarks", "x, y, z of each landmark; z is a fraction of the frame width."),
    ("secondary-landmark-scheme", "As `landmark-scheme`, for a second set of landmarks: InsightFace's 106 points, if `landmarks` has other points."),
    ("secondary-landmarks", "As `landmarks`."),
    ("secondary-landmark-confidences", "As `landmark-confidences`."),
    ("key-points", "x, y of each key point of the detector. For YuNet: eyes, tip of the nose, corners of the mouth; of each pair, the one on the left of the picture first."),
    ("blendshape-names", "Names separated by commas."),
    ("blendshapes", "One value for each name."),
    ("blendshape-source", "`measured` by a network, or `derived` from other values; absent means measured."),
    ("raw-blendshapes", "The values before [rest values](live.md#neutral-face) were subtracted and [gains](live.md#gain) applied; absent if none were, or if the results come from a record without these values."),
    ("blendshapes-corrected", "True if rest values were subtracted, or gains applied."),
    ("gaze", "x, y, confidence of the right pupil, then of the left pupil."),
    ("features", "OpenSeeFace's 14 features, −1 to 1, in the order of its packets:"),
    ("fit", "OpenSeeFace's 3-D face model fitted to the landmarks, in its conventions; only with `engine=openseeface`."),
    ("fit.error", "Distance of the jaw line and the tip of the nose from the model."),
    ("fit.projected", "x, y of the model's points in the picture, as selected by `pnp-points`."),
    ("morphable", "Morphable model fitted to the landmarks, or the reason why the fit failed; only with `engine=eos`."),
    ("morphable.expression", "Strength of each expression, from 0."),
    ("morphable.expression-names", "Names of the expressions, separated by commas."),
    ("morphable.origin", "x, y of the model's origin."),
    ("morphable.scale", "One millimetre of the model."),
    ("morphable.residual", "Mean distance of the landmarks from their vertices."),
    ("morphable.contour", "x, y of the vertices that were matched with the landmarks of the jaw line."),
    ("morphable.mesh", "x, y, z of every vertex, as `landmarks`; absent unless requested."),
];

/// The table of the fields of a face, or of the structure `group` in it.
pub fn table(schema: &Json, group: &str) -> String {
    let mut table = "| field | type | meaning |\n|---|---|---|\n".to_owned();
    let mut known = Vec::new();
    for face in structures() {
        let fields = match group {
            "" => face,
            group => face.get(group).expect("a structure"),
        };
        for (name, value) in fields.iter() {
            if !known.contains(&name.to_string()) {
                known.push(name.to_string());
                let meaning = meaning(schema, group, name);
                let _ = writeln!(table, "| `{name}` | {} | {meaning} |", kind(value));
            }
        }
    }
    table
}

/// Faces that have every field.
fn structures() -> Vec<gst::Structure> {
    let mut face = full_face(1, 300.0);
    let secondary = face.face.secondary_landmarks.as_mut().expect("landmarks");
    secondary.confidences = vec![0.5; secondary.points.len()];
    let mut unfitted = full_face(2, 500.0);
    unfitted.face.morphable = Some(Err(FitFailure::OutOfFrame));
    let buffer = with_report(gst::Buffer::new(), &report(vec![face, unfitted]));
    let meta = gst::meta::CustomMeta::from_buffer(&buffer, FaceTrackMeta::NAME);
    let meta = meta.expect("attached");
    let faces = ["face-0", "face-1"].map(|name| meta.structure().get(name).expect("a face"));
    faces.into()
}

fn kind(value: &glib::SendValue) -> &'static str {
    match value.type_() {
        glib::Type::U32 => "uint",
        glib::Type::F64 => "double",
        glib::Type::BOOL => "boolean",
        glib::Type::STRING => "string",
        kind if kind == gst::Structure::static_type() => "structure",
        kind => {
            assert_eq!(kind, glib::Bytes::static_type());
            "bytes"
        }
    }
}

fn meaning(schema: &Json, group: &str, name: &str) -> String {
    let path = match group {
        "" => name.to_owned(),
        group => format!("{group}.{name}"),
    };
    let of = |table: &[(&str, &'static str)]| {
        let row = table.iter().find(|(field, _)| *field == path);
        row.map(|(_, text)| *text)
    };
    match (path.as_str(), of(&OWN)) {
        ("features", Some(text)) => format!("{text} {}", list(&Features::NAMES)),
        ("landmark-scheme", Some(text)) => {
            let schemes = LandmarkScheme::ALL.iter().map(LandmarkScheme::to_string);
            format!("{text} {}", list(&schemes.collect::<Vec<_>>()))
        }
        (_, Some(text)) => text.to_owned(),
        _ => of_record(schema, of(&KEYS).unwrap_or(&path.replace('-', "_"))),
    }
}

fn list(names: &[impl AsRef<str>]) -> String {
    let names = names.iter().map(|name| format!("`{}`", name.as_ref()));
    names.collect::<Vec<_>>().join(", ")
}

/// The sentences about a key of a face, without the field of the sink that selects it.
fn of_record(schema: &Json, key: &str) -> String {
    let face = &schema["$defs"]["object"];
    let property = key
        .split('.')
        .fold(face, |object, key| &object["properties"][key]);
    let text = property["description"].as_str();
    let mut text = text.unwrap_or_else(|| panic!("no key {key}")).to_owned();
    while let Some(start) = text.find(" (fields=") {
        let end = text[start..]
            .find(')')
            .map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
    }
    if let Some(words) = property["enum"].as_array() {
        let words: Vec<_> = words.iter().filter_map(Json::as_str).collect();
        text = format!("{text} {}", list(&words));
    }
    text
}
