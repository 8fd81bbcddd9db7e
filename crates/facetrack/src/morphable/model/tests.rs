// SPDX-License-Identifier: MPL-2.0
//! Small files that eos wrote (`tests/golden/make_eos_files.py`), whole and damaged.

use serde_json::Value;

use super::*;

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../../../../../tests/golden/eos/", $name)).as_slice()
    };
}

const VERSION_1: &[u8] = golden!("version1.bin");
const OWN_EXPRESSIONS: &[u8] = golden!("own_expressions.bin");
const EXPRESSIONS: &[u8] = golden!("expressions.bin");

/// The files that hold one and the same shape, and whether they hold expressions.
const SHAPES: [(&[u8], bool); 6] = [
    (VERSION_1, false),
    (golden!("version2.bin"), true),
    (golden!("version3.bin"), true),
    (golden!("version4.bin"), false),
    (golden!("coloured.bin"), false),
    (OWN_EXPRESSIONS, true),
];

/// Offsets of the parts of `version1.bin`: 5 vertices, 2 components and 4 triangles.
const MEAN: usize = 4;
const BASIS: usize = MEAN + 8 + 15 * 4;
const EIGENVALUES: usize = BASIS + 8 + 30 * 4;
const TRIANGLES: usize = EIGENVALUES + 8 + 2 * 4;
const COLOURS: usize = TRIANGLES + 8 + 4 * 12;
const TEXTURE: usize = COLOURS + 3 * 8 + 8;

fn expected() -> Value {
    serde_json::from_slice(golden!("expected.json")).expect("it is JSON")
}

fn numbers(value: &Value) -> Vec<f32> {
    let values = value.as_array().expect("a list").iter();
    let flat = values.flat_map(|value| match value {
        Value::Array(_) => numbers(value),
        number => vec![number.as_f64().expect("a number") as f32],
    });
    flat.collect()
}

fn with(bytes: &[u8], place: usize, instead: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[place..place + instead.len()].copy_from_slice(instead);
    bytes
}

#[test]
fn shapes_are_what_eos_reads() {
    let expected = expected();
    let expressions = Expression::all_from_bytes(EXPRESSIONS).unwrap();
    for (bytes, has_expressions) in SHAPES {
        let Contents {
            shape,
            expressions: own,
        } = Contents::from_bytes(bytes).unwrap();
        assert_eq!(own, has_expressions.then(|| expressions.clone()));
        assert_eq!(ShapeModel::from_bytes(bytes).as_ref(), Ok(&shape));
        assert_eq!(shape.mean.as_flattened(), numbers(&expected["mean"]));
        assert_eq!(shape.components, 2);
        assert_eq!(shape.basis, numbers(&expected["basis"]));
        let triangles: Vec<f32> = numbers(&expected["triangles"]);
        let corners = shape.triangles.as_flattened().iter();
        assert!(corners.map(|corner| *corner as f32).eq(triangles));
        let coordinates = numbers(&expected["texture_coordinates"]);
        assert_eq!(shape.texture_coordinates.as_flattened(), coordinates);
    }
}

#[test]
fn a_sample_of_the_shape_is_that_of_eos() {
    let sample = &expected()["sample"];
    let coefficients = numbers(&sample["coefficients"]);
    let shape = ShapeModel::from_bytes(VERSION_1).unwrap();
    for (at, expected) in numbers(&sample["shape"]).into_iter().enumerate() {
        let (vertex, axis) = (at / 3, at % 3);
        let moved = shape.basis_row(vertex, axis).iter().zip(&coefficients);
        let value: f32 = shape.mean[vertex][axis] + moved.map(|(b, c)| b * c).sum::<f32>();
        assert!(
            (value - expected).abs() < 1e-5,
            "{at}: {value}, not {expected}"
        );
    }
}

#[test]
fn expressions_are_what_eos_reads() {
    let expressions = Expression::all_from_bytes(EXPRESSIONS).unwrap();
    let names: Vec<&str> = expressions.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["brows up", "nez retroussé"]);
    for Expression { name, offsets } in &expressions {
        assert_eq!(
            offsets.as_flattened(),
            numbers(&expected()["expressions"][name])
        );
    }
}

#[test]
fn texture_coordinates_of_corners_are_left_out() {
    let shape = ShapeModel::from_bytes(golden!("textured.bin")).unwrap();
    assert_eq!(shape.mean.len(), 5);
    assert!(shape.texture_coordinates.is_empty());
}

#[test]
fn what_is_no_model_is_refused_with_the_reason() {
    assert_eq!(VERSION_1.len(), TEXTURE + 8 + 5 * 16);
    let int = |value: i32| value.to_le_bytes().to_vec();
    let float = |value: f32| value.to_le_bytes().to_vec();
    let count = |value: u64| value.to_le_bytes().to_vec();
    for (place, instead, reason) in [
        (0, int(0), "begins with version 0"),
        (0, int(5), "begins with version 5"),
        (0, b"PK\x03\x04".to_vec(), "of version 1 to 4"),
        (0, int(2), "neither 0 nor 1"),
        (MEAN, int(-15), "a side of the mean of the shape is -15"),
        (MEAN, int(i32::MAX), "would take 8589934588 bytes"),
        (MEAN, int(12), "the eigenvalues of the shape would take"),
        (BASIS, int(12), "the eigenvalues of the shape"),
        (
            BASIS + 4,
            int(i32::MAX),
            "the basis of the shape would take",
        ),
        (EIGENVALUES, int(1), "the triangles of the shape would take"),
        (MEAN + 8, float(f32::NAN), "a value of the mean is NaN"),
        (
            BASIS + 8,
            float(f32::INFINITY),
            "a value of the basis is inf",
        ),
        (BASIS + 8, float(3e38), "not finite"),
        (EIGENVALUES + 8, float(0.0), "an eigenvalue is 0"),
        (EIGENVALUES + 8, float(-1.0), "an eigenvalue is -1"),
        (
            EIGENVALUES + 8,
            float(f32::NAN),
            "a value of the eigenvalues is NaN",
        ),
        (
            TRIANGLES,
            count(u64::MAX),
            "the triangles of the shape would take",
        ),
        (TRIANGLES + 8, int(5), "a triangle has vertex 5 of 5"),
        (TRIANGLES + 8, int(-1), "a triangle has vertex -1"),
        (COLOURS, int(-1), "a side of the mean of the colours is -1"),
        (
            TEXTURE,
            count(1 << 60),
            "the texture coordinates would take",
        ),
        (TEXTURE, count(4), "16 bytes follow its end"),
        (TEXTURE + 8, f64::NAN.to_le_bytes().to_vec(), "not finite"),
        (TEXTURE + 8, 1e300_f64.to_le_bytes().to_vec(), "not finite"),
    ] {
        let error = Contents::from_bytes(&with(VERSION_1, place, &instead)).unwrap_err();
        assert!(error.contains(reason), "{instead:?} at {place}: {error}");
    }
    let fewer = [&VERSION_1[..TEXTURE], &count(4), &VERSION_1[TEXTURE + 24..]].concat();
    let error = Contents::from_bytes(&fewer).unwrap_err();
    assert_eq!(error, "there are 4 texture coordinates for 5 vertices");
    let error = Contents::from_bytes(golden!("pca_expressions.bin")).unwrap_err();
    assert!(error.contains("only blendshapes are read"), "{error}");
    assert!(Contents::from_bytes(EXPRESSIONS).is_err());
}

#[test]
fn what_are_no_expressions_is_refused_with_the_reason() {
    let name = 8 + 8;
    let matrix = name + "brows up".len();
    let int = |value: i32| value.to_le_bytes().to_vec();
    let count = |value: u64| value.to_le_bytes().to_vec();
    for (place, instead, reason) in [
        (0, count(u64::MAX), "the list of expressions would take"),
        (0, count(3), "the name of an expression would take"),
        (0, count(1), "bytes follow its end"),
        (8, count(1 << 40), "the name of an expression would take"),
        (name, vec![0xff], "not UTF-8"),
        (matrix, int(-1), "a side of brows up is -1"),
        (matrix, int(14), "14×1, not 3·vertices×1"),
        (matrix + 4, int(i32::MAX), "brows up would take"),
        (
            matrix + 8,
            f32::NAN.to_le_bytes().to_vec(),
            "a value of brows up is NaN",
        ),
    ] {
        let error = Expression::all_from_bytes(&with(EXPRESSIONS, place, &instead)).unwrap_err();
        assert!(error.contains(reason), "{instead:?} at {place}: {error}");
    }
    for number in [0, 501] {
        let empty = [count(number), vec![0; 501 * 16]].concat();
        let error = Expression::all_from_bytes(&empty).unwrap_err();
        assert_eq!(
            error,
            format!("there are {number} expressions; 1 to 500 can be used")
        );
    }
}

#[test]
fn files_that_are_cut_short_or_too_long_are_refused() {
    let files = SHAPES.map(|(bytes, _)| bytes);
    for bytes in files {
        for end in 0..bytes.len() {
            assert!(Contents::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
        }
        let longer = [bytes, &[0]].concat();
        assert!(Contents::from_bytes(&longer).is_err());
    }
    for end in 0..EXPRESSIONS.len() {
        assert!(
            Expression::all_from_bytes(&EXPRESSIONS[..end]).is_err(),
            "{end} bytes"
        );
    }
    assert!(Expression::all_from_bytes(&[EXPRESSIONS, &[0]].concat()).is_err());
}

#[test]
fn damaged_files_are_refused_or_read_but_never_panic() {
    let mut refused = 0;
    for (bytes, _) in SHAPES {
        for place in 0..bytes.len() {
            for damage in [0x01, 0x10, 0x80, 0xff] {
                let damaged = with(bytes, place, &[bytes[place] ^ damage]);
                refused += usize::from(Contents::from_bytes(&damaged).is_err());
            }
        }
    }
    for (place, byte) in EXPRESSIONS.iter().enumerate() {
        let damaged = with(EXPRESSIONS, place, &[byte ^ 0x80]);
        refused += usize::from(Expression::all_from_bytes(&damaged).is_err());
    }
    assert!(refused > 1000, "{refused}");
}
