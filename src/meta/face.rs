// SPDX-License-Identifier: MPL-2.0
//! One face as a structure.

use std::sync::Arc;

use super::MetaError;
use super::fields::{Fields, Scale, bytes, bytes_of_landmarks, bytes_of_points, malformed};
use super::fits::{fit_from, fit_structure, morphable_from, morphable_structure};
use facetrack::blendshape::Blendshapes;
use facetrack::geometry::{Point, Rect};
use facetrack::observation::{Attributes, Features, Gaze, HeadPose, Landmarks, Observation, Pupil};
use facetrack::report::TrackedFace;

pub(super) fn structure_from_face(tracked: &TrackedFace, scale: Scale) -> gst::Structure {
    let face = &tracked.face;
    let bbox = &face.bbox;
    let mut fields = gst::Structure::new_empty("face");
    fields.set("id", tracked.id);
    fields.set("x", f64::from(bbox.x) / scale.x);
    fields.set("y", f64::from(bbox.y) / scale.y);
    fields.set("width", f64::from(bbox.width) / scale.x);
    fields.set("height", f64::from(bbox.height) / scale.y);
    fields.set("origin", face.origin.to_string());
    fields.set_if_some("confidence", face.confidence.map(f64::from));
    for (names, landmarks) in [
        (LANDMARKS, &face.landmarks),
        (SECONDARY_LANDMARKS, &face.secondary_landmarks),
    ] {
        if let Some(landmarks) = landmarks {
            set_landmarks(&mut fields, names, landmarks, scale);
        }
    }
    if !face.key_points.is_empty() {
        fields.set("key-points", bytes_of_points(&face.key_points, scale));
    }
    if let Some(blendshapes) = &face.blendshapes {
        fields.set("blendshape-names", blendshapes.names().join(","));
        fields.set("blendshapes", bytes(blendshapes.values()));
        fields.set("blendshape-source", blendshapes.source().to_string());
        fields.set_if_some(RAW_BLENDSHAPES, blendshapes.raw().map(bytes));
        if blendshapes.is_corrected() {
            fields.set(CORRECTED, true);
        }
    }
    let pose = face.pose.map(|pose| bytes(pose.matrix.as_flattened()));
    fields.set_if_some("pose", pose);
    if let Some(Attributes { age, gender }) = face.attributes {
        fields.set("age", f64::from(age));
        fields.set("gender", gender.to_string());
    }
    fields.set_if_some("embedding", face.embedding.as_deref().map(bytes));
    fields.set_if_some("gaze", face.gaze.map(|gaze| gaze_bytes(gaze, scale)));
    fields.set_if_some("features", face.features.map(|it| bytes(&it.0)));
    let fit = face.fit.as_ref();
    fields.set_if_some("fit", fit.map(|fit| fit_structure(fit, scale)));
    let fit = face.morphable.as_ref();
    fields.set_if_some("morphable", fit.map(|fit| morphable_structure(fit, scale)));
    fields
}

pub(super) fn face_from_structure(fields: Fields<'_>) -> Result<TrackedFace, MetaError> {
    let scale = fields.scale;
    let double = |name| fields.get::<f64>(name);
    let confidence = fields.optional("confidence", Fields::get::<f64>)?;
    let key_points = fields.optional("key-points", Fields::points)?;
    let pose = fields.optional("pose", Fields::matrix)?;
    let secondary = match landmarks(fields, SECONDARY_LANDMARKS)? {
        None => landmarks(fields, SECONDARY_LANDMARKS_1)?,
        found => found,
    };
    let mut face = Observation {
        bbox: Rect::new(
            (double("x")? * scale.x + scale.left) as f32,
            (double("y")? * scale.y + scale.top) as f32,
            (double("width")? * scale.x) as f32,
            (double("height")? * scale.y) as f32,
        ),
        confidence: confidence.map(|confidence| confidence as f32),
        origin: fields.named("origin")?,
        landmarks: landmarks(fields, LANDMARKS)?,
        key_points: key_points.unwrap_or_default(),
        blendshapes: fields.optional("blendshapes", blendshapes_from_fields)?,
        pose: pose.map(|matrix| HeadPose { matrix }),
        gaze: fields.optional("gaze", gaze_from_fields)?,
        fit: fields.optional("fit", fit_from)?,
        morphable: fields.optional("morphable", morphable_from)?,
        features: fields.optional("features", Fields::vector)?.map(Features),
        secondary_landmarks: secondary,
        attributes: fields.optional("age", attributes_from_fields)?,
        embedding: fields.optional("embedding", Fields::values)?.map(Arc::from),
    };
    scale.place(&mut face);
    let id = fields.positive("id")?;
    Ok(TrackedFace { id, face })
}

/// The fields that landmarks are in: scheme, points and confidences.
const LANDMARKS: [&str; 3] = ["landmark-scheme", "landmarks", "landmark-confidences"];
const SECONDARY_LANDMARKS: [&str; 3] = [
    "secondary-landmark-scheme",
    "secondary-landmarks",
    "secondary-landmark-confidences",
];

/// The fields of the secondary landmarks in version 1 of the metadata.
const SECONDARY_LANDMARKS_1: [&str; 3] = ["contour-scheme", "contour", "contour-confidences"];

/// The field with blendshapes before their correction.
const RAW_BLENDSHAPES: &str = "raw-blendshapes";

/// The field that marks corrected blendshapes.
const CORRECTED: &str = "blendshapes-corrected";

fn set_landmarks(
    fields: &mut gst::StructureRef,
    [scheme, points, confidences]: [&str; 3],
    landmarks: &Landmarks,
    scale: Scale,
) {
    fields.set(scheme, landmarks.scheme.to_string());
    fields.set(points, bytes_of_landmarks(&landmarks.points, scale));
    if !landmarks.confidences.is_empty() {
        fields.set(confidences, bytes(&landmarks.confidences));
    }
}

fn landmarks(
    fields: Fields<'_>,
    [scheme, points, confidences]: [&str; 3],
) -> Result<Option<Landmarks>, MetaError> {
    fields.optional(points, |fields, name| {
        let scores = fields.optional(confidences, Fields::values)?;
        let points = fields.landmarks(name)?;
        Landmarks::new(fields.named(scheme)?, points)
            .with_confidences(scores.unwrap_or_default())
            .ok_or_else(|| malformed(confidences))
    })
}

fn attributes_from_fields(fields: Fields<'_>, name: &str) -> Result<Attributes, MetaError> {
    Ok(Attributes {
        age: fields.get::<f64>(name)? as f32,
        gender: fields.named("gender")?,
    })
}

fn blendshapes_from_fields(fields: Fields<'_>, name: &str) -> Result<Blendshapes, MetaError> {
    let (names, values) = fields.named_values("blendshape-names", name)?;
    let source = fields.optional("blendshape-source", Fields::named)?;
    let raw = fields.optional(RAW_BLENDSHAPES, Fields::values)?;
    let blendshapes = Blendshapes::restored(names, values, raw, source.unwrap_or_default())
        .ok_or_else(|| malformed(RAW_BLENDSHAPES))?;
    let is_corrected = fields.optional(CORRECTED, Fields::get)?;
    Ok(if is_corrected.unwrap_or(false) {
        blendshapes.assume_corrected()
    } else {
        blendshapes
    })
}

fn gaze_bytes(gaze: Gaze, scale: Scale) -> gst::glib::Bytes {
    let pupils = [gaze.right, gaze.left].map(|pupil| {
        let [x, y] = scale.normalised(pupil.position);
        [x, y, pupil.confidence]
    });
    bytes(pupils.as_flattened())
}

fn gaze_from_fields(fields: Fields<'_>, name: &str) -> Result<Gaze, MetaError> {
    let pupils = fields.matrix::<3, 2>(name)?;
    let [right, left] = pupils.map(|[x, y, confidence]| Pupil {
        position: Point::new(x, y),
        confidence,
    });
    Ok(Gaze { right, left })
}
