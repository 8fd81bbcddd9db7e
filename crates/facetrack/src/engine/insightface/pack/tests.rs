// SPDX-License-Identifier: MPL-2.0

use facetrack_graph::proto::{
    DimensionProto, FLOAT, FLOAT16, GraphProto, ModelProto, ShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use prost::Message;

use super::super::fake::{Fake, spec};
use super::*;

/// The outside of a network with one input.
fn outline(input: &[Option<usize>], outputs: &[&[Option<usize>]]) -> OnnxOutline {
    OnnxOutline {
        inputs: vec![spec(input)],
        outputs: outputs.iter().map(|shape| spec(shape)).collect(),
        ..OnnxOutline::default()
    }
}

/// A network of faces.
fn of_faces(side: usize, values: usize) -> OnnxOutline {
    let input = [None, Some(3), Some(side), Some(side)];
    outline(&input, &[&[Some(1), Some(values)]])
}

fn scrfd() -> OnnxOutline {
    let output: &[_] = &[None, None, Some(1)];
    outline(&[None, Some(3), None, None], &[output; 9])
}

#[test]
fn networks_are_recognised_by_their_tensors() {
    let fixed = [Some(1), Some(3), Some(640), Some(640)];
    let flat: &[_] = &[Some(12800), Some(1)];
    for (network, module) in [
        (scrfd(), Some(Module::Detection)),
        (outline(&fixed, &[flat; 6]), Some(Module::Detection)),
        (outline(&fixed, &[flat; 15]), Some(Module::Detection)),
        (of_faces(192, 212), Some(Module::Landmark2d106)),
        (of_faces(192, 3309), Some(Module::Landmark3d68)),
        (of_faces(192, 10), None),
        (of_faces(96, 3), Some(Module::GenderAge)),
        (of_faces(96, 2), None),
        (of_faces(112, 512), Some(Module::Recognition)),
        (of_faces(128, 256), Some(Module::Recognition)),
        (of_faces(120, 512), None),
        (of_faces(64, 512), None),
        (outline(&[None, None], &[&[None, Some(3)]]), None),
        (
            outline(&[None, Some(3), None, None], &[&[None, Some(3)]]),
            None,
        ),
        (OnnxOutline::default(), None),
    ] {
        assert_eq!(recognise(&network), module, "{network:?}");
    }
    // The swapper takes a face and an embedding.
    let mut swapper = of_faces(128, 512);
    swapper.inputs.push(spec(&[Some(1), Some(512)]));
    assert_eq!(recognise(&swapper), None);
}

#[test]
fn pixels_are_given_as_the_first_nodes_want_them() {
    let grey = around_grey;
    for (module, first_nodes, wanted) in [
        (
            Module::Landmark2d106,
            &["_minusscalar0", "_mulscalar0"][..],
            ValueRange::BYTE,
        ),
        (Module::GenderAge, &["Sub_0", "Mul_1"], ValueRange::BYTE),
        (Module::Landmark3d68, &["id", "bn_data"], ValueRange::BYTE),
        (
            Module::Landmark3d68,
            &["a", "b", "c", "bn_data"],
            grey(128.0),
        ),
        (Module::Landmark2d106, &["Sub_0", "Conv_1"], grey(128.0)),
        (Module::Recognition, &["Conv_0", "PRelu_1"], grey(127.5)),
        (
            Module::Recognition,
            &["Conv_0", "Sub_1", "Mul_2"],
            ValueRange::BYTE,
        ),
        (Module::Recognition, &["bn_data"], grey(127.5)),
        (Module::Detection, &["Sub_0", "Mul_1"], grey(128.0)),
    ] {
        let names: Vec<String> = first_nodes.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(range(module, &names), wanted, "{module:?} {first_nodes:?}");
    }
    assert_eq!(grey(127.5), ValueRange::SIGNED);
}

/// An ONNX file without nodes.
fn file(network: &OnnxOutline) -> Vec<u8> {
    let elem_type = match network.precision {
        Precision::Single => FLOAT,
        Precision::Half => FLOAT16,
    };
    let value = |spec: &TensorSpec| {
        let extents = spec.shape.iter().copied();
        let dim = extents.map(DimensionProto::of).collect();
        let shape = Some(ShapeProto { dim });
        let tensor_type = Some(TensorTypeProto { elem_type, shape });
        ValueInfoProto {
            name: spec.name.clone(),
            kind: Some(TypeProto { tensor_type }),
        }
    };
    let graph = GraphProto {
        input: network.inputs.iter().map(value).collect(),
        output: network.outputs.iter().map(value).collect(),
        ..GraphProto::default()
    };
    let model = ModelProto {
        graph: Some(graph),
        ..ModelProto::new(7)
    };
    model.encode_to_vec()
}

/// A folder with these files.
fn folder(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    folder
}

/// The modules that are opened, each with its file's name.
fn opened(
    folder: &Path,
    wanted: impl Fn(Module) -> bool,
) -> Result<Vec<(Module, String)>, ModelError> {
    opened_in(Precision::Single, folder, wanted)
}

fn opened_in(
    precision: Precision,
    folder: &Path,
    wanted: impl Fn(Module) -> bool,
) -> Result<Vec<(Module, String)>, ModelError> {
    let networks = open(folder, precision, wanted, |_, path, bytes| {
        assert_eq!(std::fs::read(path).unwrap(), bytes);
        Ok((Box::new(Fake::new(&[], &[], |_| Vec::new())), None, None))
    })?;
    Ok(networks
        .into_iter()
        .inspect(|network| assert!(network.path.ends_with(&network.file.name)))
        .map(|network| (network.module, network.file.name))
        .collect())
}

#[test]
fn the_first_network_of_each_wanted_task_is_opened() {
    let mut swapper = of_faces(128, 512);
    swapper.inputs.push(spec(&[Some(1), Some(512)]));
    let folder = folder(&[
        ("2d106.onnx", file(&of_faces(192, 212))),
        ("b_det.onnx", file(&scrfd())),
        ("a_det.onnx", file(&scrfd())),
        ("gender.onnx", file(&of_faces(96, 3))),
        ("inswapper_128.onnx", file(&swapper)),
        ("w600k.onnx", file(&of_faces(112, 512))),
        ("LICENSE", b"no network".to_vec()),
    ]);
    std::fs::create_dir(folder.path().join("folder.onnx")).unwrap();
    let found = opened(folder.path(), |module| module != Module::Recognition).unwrap();
    let wanted = [
        (Module::Landmark2d106, "2d106.onnx"),
        (Module::Detection, "a_det.onnx"),
        (Module::GenderAge, "gender.onnx"),
    ];
    assert_eq!(
        found,
        wanted.map(|(module, name)| (module, name.to_owned()))
    );
}

#[test]
fn of_two_precisions_the_one_that_was_asked_for_is_opened() {
    let half = |mut network: OnnxOutline| {
        network.precision = Precision::Half;
        file(&network)
    };
    let folder = folder(&[
        ("age_a_half.onnx", half(of_faces(96, 3))),
        ("age_b.onnx", file(&of_faces(96, 3))),
        ("age_c.onnx", file(&of_faces(96, 3))),
        ("age_d_half.onnx", half(of_faces(96, 3))),
        ("contour.onnx", file(&of_faces(192, 212))),
        ("det.onnx", file(&scrfd())),
        ("det_half.onnx", half(scrfd())),
        ("embedding_half.onnx", half(of_faces(112, 512))),
    ]);
    for (precision, files) in [
        (
            Precision::Single,
            ["age_b", "contour", "det", "embedding_half"],
        ),
        (
            Precision::Half,
            ["age_a_half", "contour", "det_half", "embedding_half"],
        ),
    ] {
        let found = opened_in(precision, folder.path(), |_| true).unwrap();
        let found: Vec<String> = found.into_iter().map(|(_, file)| file).collect();
        assert_eq!(found, files.map(|name| format!("{name}.onnx")));
    }
}

#[test]
fn packs_that_can_not_be_used_are_errors_that_name_what_is_wrong() {
    let whole = file(&scrfd());
    let half = whole[..whole.len() / 2].to_vec();
    let none: &[(&str, Vec<u8>)] = &[];
    for (files, parts) in [
        (none, &["none of its .onnx files is a detector"][..]),
        (
            &[("genderage.onnx2", whole.clone())],
            &["none of its .onnx files"],
        ),
        (
            &[("age.onnx", file(&of_faces(96, 3)))],
            &["none of its .onnx files"],
        ),
        (
            &[("a.onnx", whole), ("det.onnx", half)],
            &["det.onnx", "cut short"],
        ),
        (&[("det.onnx", Vec::new())], &["det.onnx", "no graph"]),
        // With bytes that differ from the manifest's.
        (
            &[("2d106det.onnx", file(&of_faces(192, 212)))],
            &["2d106det.onnx", "damaged"],
        ),
        (&[("det.onnx", b"404: Not Found".to_vec())], &["det.onnx"]),
    ] {
        let folder = folder(files);
        let error = opened(folder.path(), |_| true).unwrap_err().to_string();
        let path = folder.path().to_str().unwrap();
        for part in parts.iter().chain([&path]) {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
    let error = opened(Path::new("/nowhere/pack"), |_| true).unwrap_err();
    assert!(error.to_string().contains("/nowhere/pack"), "{error}");
}
