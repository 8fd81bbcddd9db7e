// SPDX-License-Identifier: MPL-2.0
//! One face as a structure.

use std::sync::Arc;

use super::MetaError;
use super::fields::{
    Fields, Scale, bytes_from_floats, bytes_from_landmarks, bytes_from_points, malformed,
    names_from, over,
};
use super::fit::{fit_from_structure, structure_from_fit};
use super::morphable::{morphable_from_structure, structure_from_morphable};
use facetrack::blendshape::{BlendshapeSource, Blendshapes};
use facetrack::geometry::Rect;
use facetrack::observation::{
    Attributes, Features, Gaze, Gender, HeadPose, LandmarkScheme, Landmarks, Observation, Origin,
    Pupil,
};
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
    fields.set("origin", face.origin.name());
    if let Some(confidence) = face.confidence {
        fields.set("confidence", f64::from(confidence));
    }
    if let Some(landmarks) = &face.landmarks {
        LANDMARKS.write(&mut fields, landmarks, scale);
    }
    if let Some(contour) = &face.contour {
        CONTOUR.write(&mut fields, contour, scale);
    }
    if !face.key_points.is_empty() {
        fields.set("key-points", bytes_from_points(&face.key_points, scale));
    }
    if let Some(blendshapes) = &face.blendshapes {
        fields.set("blendshape-names", blendshapes.names().join(","));
        let values = blendshapes.values().iter().copied();
        fields.set("blendshapes", bytes_from_floats(values));
        fields.set("blendshape-source", blendshapes.source().name());
    }
    if let Some(pose) = &face.pose {
        let values = pose.matrix.as_flattened().iter().copied();
        fields.set("pose", bytes_from_floats(values));
    }
    if let Some(Attributes { age, gender }) = face.attributes {
        fields.set("age", f64::from(age));
        fields.set("gender", gender.name());
    }
    if let Some(embedding) = &face.embedding {
        let values = embedding.iter().copied();
        fields.set("embedding", bytes_from_floats(values));
    }
    if let Some(gaze) = &face.gaze {
        fields.set("gaze", gaze_bytes(gaze, scale));
    }
    if let Some(Features(values)) = face.features {
        fields.set("features", bytes_from_floats(values));
    }
    if let Some(fit) = &face.fit {
        fields.set("fit", structure_from_fit(fit, scale));
    }
    if let Some(morphable) = &face.morphable {
        fields.set("morphable", structure_from_morphable(morphable, scale));
    }
    fields
}

pub(super) fn face_from_structure(
    fields: Fields<'_>,
    scale: Scale,
) -> Result<TrackedFace, MetaError> {
    let face = Observation {
        bbox: Rect::new(
            (fields.double("x")? * scale.x + scale.left) as f32,
            (fields.double("y")? * scale.y + scale.top) as f32,
            (fields.double("width")? * scale.x) as f32,
            (fields.double("height")? * scale.y) as f32,
        ),
        confidence: fields
            .optional("confidence", Fields::double)?
            .map(|confidence| confidence as f32),
        origin: fields.named("origin", Origin::from_name)?,
        landmarks: LANDMARKS.read(fields, scale)?,
        key_points: fields
            .optional("key-points", |fields, name| fields.points(name, scale))?
            .unwrap_or_default(),
        blendshapes: fields.optional("blendshapes", blendshapes_from_fields)?,
        pose: fields.optional("pose", pose_from_fields)?,
        gaze: fields.optional("gaze", |fields, name| gaze_from_fields(fields, name, scale))?,
        fit: fields.optional("fit", |fields, name| {
            fit_from_structure(fields.structure(name)?, scale)
        })?,
        morphable: fields.optional("morphable", |fields, name| {
            morphable_from_structure(fields.structure(name)?, scale)
        })?,
        features: fields.optional("features", Fields::vector)?.map(Features),
        contour: CONTOUR.read(fields, scale)?,
        attributes: fields.optional("age", attributes_from_fields)?,
        embedding: fields.optional("embedding", Fields::values)?.map(Arc::from),
    };
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

const CONTOUR: LandmarkFields = LandmarkFields {
    scheme: "contour-scheme",
    points: "contour",
    confidences: "contour-confidences",
};

impl LandmarkFields {
    fn write(&self, fields: &mut gst::StructureRef, landmarks: &Landmarks, scale: Scale) {
        fields.set(self.scheme, landmarks.scheme.name());
        fields.set(self.points, bytes_from_landmarks(&landmarks.points, scale));
        if !landmarks.confidences.is_empty() {
            let confidences = landmarks.confidences.iter().copied();
            fields.set(self.confidences, bytes_from_floats(confidences));
        }
    }

    fn read(&self, fields: Fields<'_>, scale: Scale) -> Result<Option<Landmarks>, MetaError> {
        fields.optional(self.points, |fields, name| {
            let points: Vec<_> = fields.landmarks(name, scale)?.collect();
            let scheme = fields.named(self.scheme, LandmarkScheme::from_name)?;
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
        age: fields.double(name)? as f32,
        gender: fields.named("gender", Gender::from_name)?,
    })
}

fn blendshapes_from_fields(fields: Fields<'_>, name: &str) -> Result<Blendshapes, MetaError> {
    let values = fields.values(name)?;
    let names = names_from(fields.text("blendshape-names")?);
    if names.len() != values.len() {
        return Err(malformed(name));
    }
    let source = fields.optional("blendshape-source", |fields, name| {
        fields.named(name, BlendshapeSource::from_name)
    })?;
    Ok(Blendshapes::new(names, values).from_source(source.unwrap_or_default()))
}

fn pose_from_fields(fields: Fields<'_>, name: &str) -> Result<HeadPose, MetaError> {
    let rows = fields.floats::<4>(name)?;
    let matrix = rows.try_into().map_err(|_| malformed(name))?;
    Ok(HeadPose { matrix })
}

fn gaze_bytes(gaze: &Gaze, scale: Scale) -> gst::glib::Bytes {
    bytes_from_floats([gaze.right, gaze.left].into_iter().flat_map(|pupil| {
        let Pupil {
            position,
            confidence,
        } = pupil;
        [
            over(position.x, scale.x),
            over(position.y, scale.y),
            confidence,
        ]
    }))
}

fn gaze_from_fields(fields: Fields<'_>, name: &str, scale: Scale) -> Result<Gaze, MetaError> {
    let [right, left] = fields.floats::<3>(name)?[..] else {
        return Err(malformed(name));
    };
    let pupil = |[x, y, confidence]: [f32; 3]| Pupil {
        position: scale.point(x, y),
        confidence,
    };
    Ok(Gaze {
        right: pupil(right),
        left: pupil(left),
    })
}
