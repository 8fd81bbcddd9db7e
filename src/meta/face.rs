// SPDX-License-Identifier: MPL-2.0
//! One face as a structure.

use super::MetaError;
use super::fields::{Fields, Scale, bytes_from_floats, malformed};
use crate::face::blendshape::Blendshapes;
use crate::face::geometry::{Point, Rect};
use crate::face::observation::{
    HeadPose, Landmark, LandmarkScheme, Landmarks, Observation, Origin,
};
use crate::face::report::TrackedFace;

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
        fields.set("landmark-scheme", landmarks.scheme.name());
        fields.set("landmarks", landmark_bytes(&landmarks.points, scale));
    }
    if !face.key_points.is_empty() {
        let points = face.key_points.iter();
        let floats = points.flat_map(|p| [over(p.x, scale.x), over(p.y, scale.y)]);
        fields.set("key-points", bytes_from_floats(floats));
    }
    if let Some(blendshapes) = &face.blendshapes {
        fields.set("blendshape-names", blendshapes.names().join(","));
        let values = blendshapes.values().iter().copied();
        fields.set("blendshapes", bytes_from_floats(values));
    }
    if let Some(pose) = &face.pose {
        let values = pose.matrix.as_flattened().iter().copied();
        fields.set("pose", bytes_from_floats(values));
    }
    fields
}

pub(super) fn face_from_structure(
    fields: Fields<'_>,
    scale: Scale,
) -> Result<TrackedFace, MetaError> {
    let face = Observation {
        bbox: Rect::new(
            (fields.double("x")? * scale.x) as f32,
            (fields.double("y")? * scale.y) as f32,
            (fields.double("width")? * scale.x) as f32,
            (fields.double("height")? * scale.y) as f32,
        ),
        confidence: fields
            .optional("confidence", Fields::double)?
            .map(|confidence| confidence as f32),
        origin: fields.named("origin", Origin::from_name)?,
        landmarks: fields.optional("landmarks", |fields, name| {
            landmarks_from_fields(fields, name, scale)
        })?,
        key_points: fields
            .optional("key-points", Fields::floats::<2>)?
            .unwrap_or_default()
            .into_iter()
            .map(|[x, y]| Point::new(times(x, scale.x), times(y, scale.y)))
            .collect(),
        blendshapes: fields.optional("blendshapes", blendshapes_from_fields)?,
        pose: fields.optional("pose", pose_from_fields)?,
        gaze: None,
        fit: None,
        features: None,
    };
    let id = fields.positive("id")?;
    Ok(TrackedFace { id, face })
}

fn landmark_bytes(points: &[Landmark], scale: Scale) -> gst::glib::Bytes {
    bytes_from_floats(
        points
            .iter()
            .flat_map(|p| [over(p.x, scale.x), over(p.y, scale.y), over(p.z, scale.x)]),
    )
}

fn landmarks_from_fields(
    fields: Fields<'_>,
    name: &str,
    scale: Scale,
) -> Result<Landmarks, MetaError> {
    let points = fields
        .floats::<3>(name)?
        .into_iter()
        .map(|[x, y, z]| Landmark {
            x: times(x, scale.x),
            y: times(y, scale.y),
            z: times(z, scale.x),
        })
        .collect();
    let scheme = fields.named("landmark-scheme", LandmarkScheme::from_name)?;
    Ok(Landmarks::new(scheme, points))
}

fn blendshapes_from_fields(fields: Fields<'_>, name: &str) -> Result<Blendshapes, MetaError> {
    let values: Vec<f32> = fields
        .floats::<1>(name)?
        .into_iter()
        .map(|[value]| value)
        .collect();
    let names: Vec<String> = fields
        .text("blendshape-names")?
        .split_terminator(',')
        .map(str::to_owned)
        .collect();
    if names.len() != values.len() {
        return Err(malformed(name));
    }
    Ok(Blendshapes::new(names.into(), values))
}

fn pose_from_fields(fields: Fields<'_>, name: &str) -> Result<HeadPose, MetaError> {
    let rows = fields.floats::<4>(name)?;
    let matrix = rows.try_into().map_err(|_| malformed(name))?;
    Ok(HeadPose { matrix })
}

fn over(pixels: f32, scale: f64) -> f32 {
    (f64::from(pixels) / scale) as f32
}

fn times(normalised: f32, scale: f64) -> f32 {
    (f64::from(normalised) * scale) as f32
}
