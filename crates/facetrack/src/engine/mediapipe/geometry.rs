// SPDX-License-Identifier: MPL-2.0
//! Head pose: the position of a canonical face for which a camera sees the landmarks.
//!
//! The face geometry pipeline of MediaPipe (`geometry_pipeline.cc`): the depth of landmarks is
//! known only up to an offset and a scale, so the canonical face is fitted to them twice to find
//! its distance, and once more to find the pose.

use nalgebra::{Vector2, Vector3};
use prost::Message;

use super::procrustes::{self, Correspondence, Similarity};
use crate::observation::{HeadPose, Landmarks};

/// Vertical angle of view of the camera: `ConfigureFaceGeometryEnvGeneratorCalculator` in
/// `face_geometry_from_landmarks_graph.cc`.
const VERTICAL_FOV_DEGREES: f64 = 63.0;

/// Distance of the plane that landmarks are projected on, cm: ibidem.
const NEAR: f64 = 1.0;

/// Metres for each unit of the translation of a pose: the canonical face is in centimetres.
pub(crate) const METRES: f32 = 0.01;

/// Number of mesh landmarks. The iris landmarks follow them and are not used.
const MESH_COUNT: usize = 468;

/// Numbers for a vertex: position and texture coordinate (`VERTEX_PT` in `mesh_3d.proto`).
const VERTEX_VALUES: usize = 5;

/// Landmarks no farther than this from their mean, in units of the frame's sides, are too close
/// together for a pose: `kIsScreenLandmarkListTooCompactThreshold` in `geometry_pipeline.cc`.
const TOO_COMPACT: f64 = 1e-3;

/// `GeometryPipelineMetadata` of `geometry_pipeline_metadata.proto`, as far as it is used.
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(message, optional, tag = "1")]
    canonical_mesh: Option<Mesh>,
    #[prost(message, repeated, tag = "2")]
    procrustes_landmark_basis: Vec<WeightedLandmark>,
}

/// `Mesh3d` of `mesh_3d.proto`.
#[derive(Clone, PartialEq, Message)]
struct Mesh {
    #[prost(float, repeated, packed = "false", tag = "3")]
    vertex_buffer: Vec<f32>,
}

/// `WeightedLandmarkRef` of `geometry_pipeline_metadata.proto`.
#[derive(Clone, PartialEq, Message)]
struct WeightedLandmark {
    #[prost(uint32, optional, tag = "1")]
    landmark_id: Option<u32>,
    #[prost(float, optional, tag = "2")]
    weight: Option<f32>,
}

/// The canonical face.
#[derive(Debug, Clone)]
pub(crate) struct FaceGeometry {
    /// The landmarks that move with the head and not with the expression, and their sources:
    /// right-handed, cm, the face looking along +z. They have no targets yet.
    basis: Vec<(usize, Correspondence)>,
}

impl FaceGeometry {
    /// Reads the bundle's `geometry_pipeline_metadata_landmarks.binarypb`.
    ///
    /// # Errors
    /// Returns a description of the error in the bytes.
    pub(crate) fn from_metadata(bytes: &[u8]) -> Result<Self, String> {
        let metadata = Metadata::decode(bytes).map_err(|e| e.to_string())?;
        let vertices = metadata.canonical_mesh.unwrap_or_default().vertex_buffer;
        if vertices.len() != MESH_COUNT * VERTEX_VALUES {
            return Err(format!(
                "the canonical face has {} numbers, expected {MESH_COUNT} × {VERTEX_VALUES}",
                vertices.len()
            ));
        }
        let basis = metadata.procrustes_landmark_basis.iter();
        let basis: Vec<_> = basis
            .map(|point| basis_point(point, &vertices))
            .collect::<Option<_>>()
            .ok_or("a landmark of the basis is not part of the canonical face")?;
        if basis.is_empty() {
            return Err("the landmark basis is empty".to_owned());
        }
        Ok(Self { basis })
    }

    /// The pose of a head whose landmarks, are given in pixels, in a frame of `frame_size` pixels;
    /// `None` when they do not determine one.
    pub(crate) fn pose(
        &self,
        landmarks: &Landmarks,
        frame_size: (usize, usize),
    ) -> Option<HeadPose> {
        let screen = Screen::new(landmarks, frame_size)?;
        let first = self.fit(|i| flip(screen.points[i]))?.scale;
        let second = self.fit(|i| flip(screen.unproject(i, first)))?.scale;
        let pose = self.fit(|i| flip(screen.unproject(i, first * second)))?;
        HeadPose::new(&(pose.rotation * pose.scale), &pose.translation)
    }

    fn fit(&self, target: impl Fn(usize) -> Vector3<f64>) -> Option<Similarity> {
        let points = self.basis.iter().map(|(landmark, point)| Correspondence {
            target: target(*landmark),
            ..*point
        });
        procrustes::solve(&points.collect::<Vec<_>>())
    }
}

fn basis_point(point: &WeightedLandmark, vertices: &[f32]) -> Option<(usize, Correspondence)> {
    let landmark = point.landmark_id() as usize;
    let vertex = vertices.chunks_exact(VERTEX_VALUES).nth(landmark)?;
    let point = Correspondence {
        source: Vector3::new(vertex[0], vertex[1], vertex[2]).map(f64::from),
        target: Vector3::zeros(),
        weight: f64::from(point.weight()),
    };
    (point.weight >= 0.0).then_some((landmark, point))
}

/// Landmarks on the near plane: x right, y up, z away from the camera, cm.
struct Screen {
    points: Vec<Vector3<f64>>,
    mean_depth: f64,
}

impl Screen {
    fn new(landmarks: &Landmarks, (width, height): (usize, usize)) -> Option<Self> {
        let (width, height) = (width as f64, height as f64);
        let mesh = landmarks.points.get(..MESH_COUNT)?;
        let normalized: Vec<_> = mesh
            .iter()
            .map(|p| {
                let (x, y, z) = (f64::from(p.x), f64::from(p.y), f64::from(p.z));
                Vector3::new(x / width, 1.0 - y / height, z / width)
            })
            .collect();
        if is_too_compact(&normalized) {
            return None;
        }
        let plane_height = 2.0 * NEAR * libm::tan(VERTICAL_FOV_DEGREES.to_radians() / 2.0);
        let plane_width = plane_height * width / height;
        let scale = Vector3::new(plane_width, plane_height, plane_width);
        let corner = Vector3::new(-plane_width / 2.0, -plane_height / 2.0, 0.0);
        let points: Vec<_> = normalized
            .iter()
            .map(|p| p.component_mul(&scale) + corner)
            .collect();
        let mean_depth = points.iter().map(|p| p.z).sum::<f64>() / MESH_COUNT as f64;
        Some(Self { points, mean_depth })
    }

    /// Returns the position of a landmark, if the face is as large as the canonical one and the
    /// near plane shows it at `scale` times its size.
    fn unproject(&self, index: usize, scale: f64) -> Vector3<f64> {
        let point = self.points[index];
        let depth = (point.z - self.mean_depth + NEAR) / scale;
        Vector3::new(point.x * depth / NEAR, point.y * depth / NEAR, depth)
    }
}

/// Returns true if the points lie too close together, or one of them is not a number.
fn is_too_compact(points: &[Vector3<f64>]) -> bool {
    let sum: Vector2<f64> = points.iter().map(Vector3::xy).sum();
    let mean = sum / points.len() as f64;
    let distances = points.iter().map(|p| (p.xy() - mean).norm());
    let reach = distances.fold(0.0, f64::max);
    !(reach > TOO_COMPACT && reach.is_finite())
}

/// Converts z away from the camera to the right-handed z towards it.
fn flip(p: Vector3<f64>) -> Vector3<f64> {
    Vector3::new(p.x, p.y, -p.z)
}

#[cfg(test)]
pub(crate) mod tests;
