// SPDX-License-Identifier: MPL-2.0

use nalgebra::Rotation3;

use super::*;
use crate::observation::{Landmark, LandmarkScheme};

const FRAME: (usize, usize) = (640, 360);

/// A face-sized bowl of 468 points, all of them in the basis.
fn metadata() -> Metadata {
    let vertex = |i: usize| {
        let (angle, radius) = (i as f32 * 2.4, 8.0 * (i as f32 / 468.0).sqrt());
        let (x, y) = (radius * angle.cos(), 1.3 * radius * angle.sin());
        [x, y, 7.0 - 0.06 * radius * radius, 0.0, 0.0]
    };
    Metadata {
        canonical_mesh: Some(Mesh {
            vertex_buffer: (0..MESH_COUNT).flat_map(vertex).collect(),
        }),
        procrustes_landmark_basis: (0..MESH_COUNT as u32)
            .map(|id| WeightedLandmark {
                landmark_id: Some(id),
                weight: Some(0.5),
            })
            .collect(),
    }
}

/// The bowl as the bundle would have it.
pub(crate) fn metadata_bytes() -> Vec<u8> {
    metadata().encode_to_vec()
}

fn landmarks(points: Vec<Landmark>) -> Landmarks {
    Landmarks::new(LandmarkScheme::MediaPipe478, points)
}

/// Landmarks of the bowl, with the depth that a weak perspective gives them.
fn seen(
    geometry: &FaceGeometry,
    rotation: &Rotation3<f64>,
    translation: Vector3<f64>,
) -> Landmarks {
    let focal = FRAME.1 as f64 / 2.0 / (VERTICAL_FOV_DEGREES.to_radians() / 2.0).tan();
    landmarks(
        geometry
            .basis
            .iter()
            .map(|(_, p)| {
                let at = rotation * p.source + translation;
                let scale = focal / -translation.z;
                Landmark {
                    x: (FRAME.0 as f64 / 2.0 + focal * at.x / -at.z) as f32,
                    y: (FRAME.1 as f64 / 2.0 - focal * at.y / -at.z) as f32,
                    z: (-(at.z - translation.z) * scale) as f32,
                }
            })
            .collect(),
    )
}

#[test]
fn a_projected_face_is_found_where_it_was() {
    let geometry = FaceGeometry::from_metadata(&metadata_bytes()).unwrap();
    for (yaw, pitch, roll) in [(0.0, 0.0, 0.0), (25.0, -10.0, 5.0), (-40.0, 15.0, -30.0)] {
        let euler = [pitch, yaw, roll].map(f64::to_radians);
        let rotation = Rotation3::from_axis_angle(&Vector3::y_axis(), euler[1])
            * Rotation3::from_axis_angle(&Vector3::x_axis(), euler[0])
            * Rotation3::from_axis_angle(&Vector3::z_axis(), euler[2]);
        let translation = Vector3::new(6.0, -4.0, -55.0);
        let pose = geometry
            .pose(&seen(&geometry, &rotation, translation), FRAME)
            .unwrap();
        let angles = pose.euler_degrees();
        for (got, want) in [
            (angles.yaw, yaw),
            (angles.pitch, pitch),
            (angles.roll, roll),
        ] {
            assert!((f64::from(got) - want).abs() < 3.0, "{angles:?} {want}");
        }
        let distance = -pose.matrix[2][3];
        assert!((distance - 55.0).abs() < 4.0, "{distance}");
        assert!((pose.matrix[0][3] - 6.0).abs() < 1.0, "{:?}", pose.matrix);
        assert_eq!(pose.matrix[3], [0.0, 0.0, 0.0, 1.0]);
    }
}

#[test]
fn degenerate_landmarks_have_no_pose() {
    let geometry = FaceGeometry::from_metadata(&metadata_bytes()).unwrap();
    for (name, points) in [
        ("none", vec![]),
        ("one place", vec![Landmark::default(); 478]),
        (
            "no numbers",
            vec![
                Landmark {
                    x: f32::NAN,
                    y: f32::NAN,
                    z: f32::NAN
                };
                478
            ],
        ),
    ] {
        assert_eq!(geometry.pose(&landmarks(points), FRAME), None, "{name}");
    }
    let far_beyond = (0..478u16)
        .map(|i| Landmark {
            x: f32::MAX / f32::from(i + 1),
            y: f32::MIN,
            z: f32::MAX,
        })
        .collect();
    let pose = geometry.pose(&landmarks(far_beyond), FRAME);
    assert!(pose.is_none_or(|pose| pose.matrix.iter().flatten().all(|v| v.is_finite())));
    let mut one_bad = seen(
        &geometry,
        &Rotation3::identity(),
        Vector3::new(0.0, 0.0, -50.0),
    );
    assert!(geometry.pose(&one_bad, FRAME).is_some());
    one_bad.points[100].z = f32::INFINITY;
    assert_eq!(geometry.pose(&one_bad, FRAME), None);
}

#[test]
fn broken_metadata_is_refused() {
    let refused = |metadata: Metadata| FaceGeometry::from_metadata(&metadata.encode_to_vec());
    assert!(FaceGeometry::from_metadata(&[0xff; 40]).is_err());
    assert!(FaceGeometry::from_metadata(&[]).is_err());
    let whole = metadata_bytes();
    assert!(FaceGeometry::from_metadata(&whole[..whole.len() / 2]).is_err());
    let mut no_basis = metadata();
    no_basis.procrustes_landmark_basis.clear();
    assert!(refused(no_basis).is_err());
    let mut beyond = metadata();
    beyond.procrustes_landmark_basis[0].landmark_id = Some(468);
    assert!(refused(beyond).is_err());
    for weight in [-1.0, f32::NAN] {
        let mut bad_weight = metadata();
        bad_weight.procrustes_landmark_basis[0].weight = Some(weight);
        assert!(refused(bad_weight).is_err());
    }
}
