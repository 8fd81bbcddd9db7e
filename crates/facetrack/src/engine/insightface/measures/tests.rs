// SPDX-License-Identifier: MPL-2.0

use super::super::fake::Fake;
use super::super::network::Batch;
use super::*;
use crate::geometry::Rect;

/// A face of 40×60 px around (100, 80), with key points.
fn face() -> Observation {
    let key_points = [
        (90.0, 70.0),
        (110.0, 70.0),
        (100.0, 80.0),
        (93.0, 95.0),
        (107.0, 95.0),
    ];
    Observation {
        key_points: key_points.map(|(x, y)| Point::new(x, y)).to_vec(),
        ..Observation::from_bbox(Rect::new(80.0, 50.0, 40.0, 60.0))
    }
}

/// Measurements of a face and of one far away, by networks that answer the same for every picture.
fn measured(networks: &[(Module, usize, Vec<f32>)]) -> [Observation; 2] {
    let networks = networks.iter().map(|(module, side, answer)| {
        let (len, answer) = (answer.len(), answer.clone());
        let fake = Fake::of_faces(None, *side, len, move |face| {
            if face.iter().any(|level| *level > 0.0) {
                answer.clone()
            } else {
                // As in the trial run on zeros.
                vec![0.0; len]
            }
        });
        FaceNetwork::new(fake.opened(*module), Batch::UpTo(64)).unwrap()
    });
    let mut networks: Vec<_> = networks.collect();
    let pixels = vec![9; 200 * 160 * 3];
    let image = ImageView::rgb(200, 160, &pixels).unwrap();
    let far = Observation::from_bbox(Rect::new(1e9, 0.0, 40.0, 60.0));
    let mut faces = [face(), far];
    measure(&mut networks, &image, &mut faces).unwrap();
    assert_eq!(
        Observation {
            bbox: faces[0].bbox,
            key_points: faces[0].key_points.clone(),
            ..faces[1].clone()
        },
        face(),
        "nothing is measured of what is out of reach"
    );
    faces
}

fn place(point: &Landmark) -> [f32; 3] {
    [point.x, point.y, point.z]
}

#[test]
fn landmarks_lie_in_a_square_around_the_box() {
    // The middle, corners of the square of 90 px and a quarter of it; z in the same measure.
    let places = [[0.0, 0.0], [-1.0, -1.0], [1.0, 1.0], [0.5, -0.5]];
    let wanted = [[100.0, 80.0], [55.0, 35.0], [145.0, 125.0], [122.5, 57.5]];
    let flat: Vec<f32> = (0..106).flat_map(|i| places[i % 4]).collect();
    let [face, _] = measured(&[(Module::Landmark2d106, 192, flat.clone())]);
    let landmarks = face.landmarks.unwrap();
    assert_eq!(landmarks.scheme, LandmarkScheme::InsightFace106);
    assert_eq!(face.secondary_landmarks, None);
    for (i, point) in landmarks.points.iter().enumerate() {
        let [x, y] = wanted[i % 4];
        let point = place(point);
        assert!(
            (point[0] - x).abs() < 1e-3 && (point[1] - y).abs() < 1e-3,
            "{point:?}"
        );
        assert_eq!(point[2], 0.0);
    }

    // The last 68 of 1103 points count; z grows towards the viewer there.
    let deep = (0..1103).flat_map(|i| {
        let own = i + 68 - 1103.min(i + 68);
        let [x, y] = places[own % 4];
        if i < 1103 - 68 {
            [9.0; 3]
        } else {
            [x, y, if own < 34 { 1.0 } else { 0.5 }]
        }
    });
    let [face, _] = measured(&[
        (Module::Landmark2d106, 192, flat),
        (Module::Landmark3d68, 192, deep.collect()),
    ]);
    let landmarks = face.landmarks.unwrap();
    assert_eq!(landmarks.scheme, LandmarkScheme::Ibug68);
    let contour = face.secondary_landmarks.unwrap();
    assert_eq!(contour.scheme, LandmarkScheme::InsightFace106);
    for (i, point) in landmarks.points.iter().enumerate() {
        let [x, y] = wanted[i % 4];
        let z = if i < 34 { -11.25 } else { 11.25 };
        let point = place(point);
        for (got, want) in point.into_iter().zip([x, y, z]) {
            assert!((got - want).abs() < 1e-3, "{i} {point:?}");
        }
    }
}

#[test]
fn age_gender_and_embedding_are_read() {
    for (answer, age, gender) in [
        ([0.25, 0.75, 0.345], 34.5, Gender::Male),
        ([0.75, 0.25, 0.08], 8.0, Gender::Female),
        ([0.5, 0.5, 0.08], 8.0, Gender::Female),
    ] {
        let [face, _] = measured(&[(Module::GenderAge, 96, answer.to_vec())]);
        let attributes = face.attributes.unwrap();
        assert!((attributes.age - age).abs() < 1e-4, "{attributes:?}");
        assert_eq!(attributes.gender, gender);
    }
    let [face, _] = measured(&[(Module::Recognition, 112, vec![3.0, 0.0, -4.0])]);
    assert_eq!(face.embedding.as_deref(), Some(&[0.6, 0.0, -0.8][..]));
    let [face, _] = measured(&[(Module::Recognition, 112, vec![0.0; 3])]);
    assert_eq!(face.embedding, None, "no direction");
}

#[test]
fn what_is_no_number_stays_absent() {
    let [face, _] = measured(&[
        (Module::Landmark2d106, 192, vec![f32::NAN; 212]),
        (Module::GenderAge, 96, vec![f32::INFINITY; 3]),
        (Module::Recognition, 112, vec![f32::NAN; 3]),
    ]);
    assert_eq!(
        (face.landmarks, face.attributes, face.embedding),
        (None, None, None)
    );
}

#[test]
fn an_embedding_of_a_side_that_faces_are_not_aligned_to_is_refused() {
    let fake = Fake::of_faces(None, 144, 3, |_| vec![0.0; 3]);
    let error = FaceNetwork::new(fake.opened(Module::Recognition), Batch::UpTo(64)).err();
    let error = error.unwrap().to_string();
    assert!(
        error.contains("fake.onnx") && error.contains("144×144"),
        "{error}"
    );
}
