// SPDX-License-Identifier: MPL-2.0
pub(super) mod synthetic;

use super::*;

/// Two triangles that share an edge.
pub(super) fn small_shape() -> ShapeModel {
    ShapeModel {
        mean: vec![
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [1.0, 1.0, 0.5],
            [0.0, 1.0, 0.0],
        ],
        components: 2,
        basis: (0..24).map(|value| value as f32).collect(),
        triangles: vec![[0, 1, 2], [0, 2, 3]],
        texture_coordinates: vec![[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [0.0, 0.0]],
    }
}

type Parts = (ShapeModel, Vec<Expression>, LandmarkMapping, ModelContours);

fn small_parts() -> Parts {
    let expression = Expression {
        name: "joy".to_owned(),
        offsets: vec![[0.0, 0.5, 0.0]; 4],
    };
    let mapping = LandmarkMapping {
        vertices: vec![(8, 0), (26, 1), (30, 2), (36, 3)],
        right_contour: vec![0, 1],
        left_contour: vec![16],
    };
    let contours = ModelContours {
        right: vec![0],
        left: vec![1, 2],
    };
    (small_shape(), vec![expression], mapping, contours)
}

fn model_of(parts: Parts) -> Result<FaceModel, String> {
    let (shape, expressions, mapping, contours) = parts;
    FaceModel::new(shape, expressions, mapping, contours)
}

#[test]
fn parts_that_belong_together_make_a_model() {
    let (shape, expressions, mapping, contours) = small_parts();
    let model = model_of(small_parts()).unwrap();
    assert_eq!(model.shape(), &shape);
    assert_eq!(model.expressions(), expressions);
    assert_eq!(model.mapping(), &mapping);
    assert_eq!(model.contours(), &contours);
    assert_eq!(shape.basis_row(1, 2), [10.0, 11.0]);
}

#[test]
fn parts_that_do_not_belong_together_are_refused_with_the_reason() {
    type Break = fn(&mut Parts);
    let cases: [(Break, &str); 21] = [
        (|p| p.0.mean.clear(), "no vertices"),
        (|p| p.0.components = 0, "0 components"),
        (|p| p.0.components = 3, "3·vertices·components"),
        (|p| p.0.components = 1001, "1001 components; 1 to 1000"),
        (|p| p.0.basis.truncate(20), "3·vertices·components"),
        (|p| p.0.basis[3] = f32::NAN, "not finite"),
        (|p| p.0.mean[1][2] = f32::INFINITY, "not finite"),
        (|p| p.0.texture_coordinates[0][1] = f32::NAN, "not finite"),
        (
            |p| p.0.texture_coordinates.truncate(3),
            "3 texture coordinates for 4",
        ),
        (|p| p.0.triangles.clear(), "no triangles"),
        (|p| p.0.triangles[1][2] = 4, "vertex 4 of 4"),
        (|p| p.1.clear(), "the expressions: there are 0"),
        (
            |p| p.1[0].offsets.truncate(3),
            "\"joy\" has 3 vertices, the shape 4",
        ),
        (|p| p.1[0].offsets[0][0] = f32::NAN, "\"joy\" is not finite"),
        (
            |p| p.1 = vec![p.1[0].clone(); 501],
            "501 expressions; 1 to 500",
        ),
        (|p| p.2.vertices.truncate(3), "the landmarks: 3"),
        (|p| p.2.vertices[0].1 = 4, "landmark 9 is vertex 4 of 4"),
        (|p| p.2.vertices[3].0 = 68, "no landmark 69 of 68"),
        (|p| p.2.left_contour[0] = 68, "no landmark 69 of 68"),
        (|p| p.3.right.clear(), "the contours: the right"),
        (|p| p.3.left[1] = 4, "the left contour has vertex 4 of 4"),
    ];
    for (number, (damage, reason)) in cases.into_iter().enumerate() {
        let mut parts = small_parts();
        damage(&mut parts);
        let error = model_of(parts).unwrap_err();
        assert!(error.contains(reason), "case {number}: {error}");
    }
}
