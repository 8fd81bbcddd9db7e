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
    LANDMARKS.write(&mut fields, face.landmarks.as_ref(), scale);
    SECONDARY_LANDMARKS.write(&mut fields, face.secondary_landmarks.as_ref(), scale);
    if !face.key_points.is_empty() {
        fields.set("key-points", bytes_of_points(&face.key_points, scale));
    }
    if let Some(blendshapes) = &face.blendshapes {
        fields.set("blendshape-names", blendshapes.names().join(","));
        fields.set("blendshapes", bytes(blendshapes.values()));
        fields.set("blendshape-source", blendshapes.source().to_string());
    }
    let pose = face
        .pose
        .as_ref()
        .map(|pose| bytes(pose.matrix.as_flattened()));
    fields.set_if_some("pose", pose);
    if let Some(Attributes { age, gender }) = face.attributes {
        fields.set("age", f64::from(age));
        fields.set("gender", gender.to_string());
    }
    fields.set_if_some("embedding", face.embedding.as_deref().map(bytes));
    let gaze = face.gaze.map(|gaze| gaze_bytes(gaze, scale));
    fields.set_if_some("gaze", gaze);
    let features = face.features.as_ref().map(|Features(values)| bytes(values));
    fields.set_if_some("features", features);
    let fit = face.fit.as_ref().map(|fit| fit_structure(fit, scale));
    fields.set_if_some("fit", fit);
    let morphable = face.morphable.as_ref();
    let morphable = morphable.map(|fit| morphable_structure(fit, scale));
    fields.set_if_some("morphable", morphable);
    fields
}

pub(super) fn face_from_structure(
    fields: Fields<'_>,
    scale: Scale,
) -> Result<TrackedFace, MetaError> {
    let double = |name| fields.get::<f64>(name);
    let mut face = Observation {
        bbox: Rect::new(
            (double("x")? * scale.x + scale.left) as f32,
            (double("y")? * scale.y + scale.top) as f32,
            (double("width")? * scale.x) as f32,
            (double("height")? * scale.y) as f32,
        ),
        confidence: fields
            .optional("confidence", Fields::get::<f64>)?
            .map(|confidence| confidence as f32),
        origin: fields.named("origin")?,
        landmarks: LANDMARKS.read(fields)?,
        key_points: fields
            .optional("key-points", Fields::points)?
            .unwrap_or_default(),
        blendshapes: fields.optional("blendshapes", blendshapes_from_fields)?,
        pose: fields.optional("pose", pose_from_fields)?,
        gaze: fields.optional("gaze", gaze_from_fields)?,
        fit: fields.optional("fit", |fields, name| {
            fit_from(fields.structure(name)?, scale)
        })?,
        morphable: fields.optional("morphable", |fields, name| {
            morphable_from(fields.structure(name)?, scale)
        })?,
        features: fields.optional("features", Fields::vector)?.map(Features),
        secondary_landmarks: SECONDARY_LANDMARKS.read(fields)?,
        attributes: fields.optional("age", attributes_from_fields)?,
        embedding: fields.optional("embedding", Fields::values)?.map(Arc::from),
    };
    scale.place(&mut face);
    let id = fields.positive("id")?;
    Ok(TrackedFace { id, face })
}

/// The fields that landmarks are in.
struct LandmarkFields {
    scheme: &'static str,
    points: &'static str,
    confidences: &'static str,
}

const LANDMARKS: LandmarkFields = LandmarkFields {
    scheme: "landmark-scheme",
    points: "landmarks",
    confidences: "landmark-confidences",
};

const SECONDARY_LANDMARKS: LandmarkFields = LandmarkFields {
    scheme: "contour-scheme",
    points: "contour",
    confidences: "contour-confidences",
};

impl LandmarkFields {
    fn write(&self, fields: &mut gst::StructureRef, landmarks: Option<&Landmarks>, scale: Scale) {
        let Some(landmarks) = landmarks else {
            return;
        };
        fields.set(self.scheme, landmarks.scheme.to_string());
        fields.set(self.points, bytes_of_landmarks(&landmarks.points, scale));
        if !landmarks.confidences.is_empty() {
            fields.set(self.confidences, bytes(&landmarks.confidences));
        }
    }

    fn read(&self, fields: Fields<'_>) -> Result<Option<Landmarks>, MetaError> {
        fields.optional(self.points, |fields, name| {
            let points: Vec<_> = fields.landmarks(name)?;
            let scheme = fields.named(self.scheme)?;
            let confidences = fields.optional(self.confidences, Fields::values)?;
            let confidences = confidences.unwrap_or_default();
            if !confidences.is_empty() && confidences.len() != points.len() {
                return Err(malformed(self.confidences));
            }
            Ok(Landmarks {
                confidences,
                ..Landmarks::new(scheme, points)
            })
        })
    }
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
    Ok(Blendshapes::new(names, values).from_source(source.unwrap_or_default()))
}

fn pose_from_fields(fields: Fields<'_>, name: &str) -> Result<HeadPose, MetaError> {
    let rows = fields.floats::<4>(name)?;
    let matrix = rows.try_into().map_err(|_| malformed(name))?;
    Ok(HeadPose { matrix })
}

fn gaze_bytes(gaze: Gaze, scale: Scale) -> gst::glib::Bytes {
    let pupils = [gaze.right, gaze.left].map(|pupil| {
        let [x, y] = scale.normalised(pupil.position);
        [x, y, pupil.confidence]
    });
    bytes(pupils.as_flattened())
}

fn gaze_from_fields(fields: Fields<'_>, name: &str) -> Result<Gaze, MetaError> {
    let [right, left] = fields.floats::<3>(name)?[..] else {
        return Err(malformed(name));
    };
    let pupil = |[x, y, confidence]: [f32; 3]| Pupil {
        position: Point::new(x, y),
        confidence,
    };
    Ok(Gaze {
        right: pupil(right),
        left: pupil(left),
    })
}
