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

/// A manifest of version 2 with these tasks.
fn manifest(tasks: &str) -> (&'static str, Vec<u8>) {
    let text = format!(
        r#"{{"manifest_version": 2, "model_id": "small", "license": "MODEL.LICENSE", "tasks": {{{tasks}}}}}"#
    );
    ("manifest.json", text.into_bytes())
}

#[test]
fn a_manifest_names_the_network_of_each_task_and_its_range() {
    let recogniser = file(&of_faces(112, 512));
    let sha256 = ModelFile::of(Path::new("embedding.onnx"), &recogniser).sha256;
    let tasks = format!(
        r#""detection": {{"file": "nets/b.onnx", "preprocessing": "embedded"}},
        "verification": {{"file": "verifier.onnx"}},
        "recognition": {{"file": "embedding.onnx", "sha256": "{sha256}"}}"#
    );
    let folder = folder(&[
        manifest(&tasks),
        ("a.onnx", file(&scrfd())),
        ("106.onnx", file(&of_faces(192, 212))),
        ("embedding.onnx", recogniser),
    ]);
    std::fs::create_dir(folder.path().join("nets")).unwrap();
    std::fs::write(folder.path().join("nets/b.onnx"), file(&scrfd())).unwrap();
    let networks = open(
        folder.path(),
        Precision::Single,
        |_| true,
        |_, _, _| Ok((Box::new(Fake::new(&[], &[], |_| Vec::new())), None, None)),
    );
    let found: Vec<_> = networks
        .unwrap()
        .into_iter()
        .map(|network| (network.module, network.file.name, network.range))
        .collect();
    assert_eq!(
        found,
        [
            (Module::Detection, "b.onnx".to_owned(), ValueRange::BYTE),
            (
                Module::Recognition,
                "embedding.onnx".to_owned(),
                around_grey(127.5)
            ),
        ]
    );
    let paths = files(folder.path()).unwrap();
    assert_eq!(paths.len(), 2);
    let scaled = r#""detection": {"file": "a.onnx", "preprocessing": {"mean": 0, "std": 255}}"#;
    let (name, text) = manifest(scaled);
    std::fs::write(folder.path().join(name), text).unwrap();
    let declared = package::declared(folder.path()).unwrap().unwrap();
    assert_eq!(declared[0].range, ValueRange::UNIT);
}

#[test]
fn a_manifest_that_can_not_be_used_is_an_error_and_another_version_is_ignored() {
    let detector = file(&scrfd());
    let refused = |tasks: &str| {
        let folder = folder(&[manifest(tasks), ("det.onnx", detector.clone())]);
        opened(folder.path(), |_| true).unwrap_err().to_string()
    };
    let zeros = "0".repeat(64);
    let wrong_hash = format!(r#""detection": {{"file": "det.onnx", "sha256": "{zeros}"}}"#);
    for (tasks, part) in [
        (
            r#""detection": {"file": "../det.onnx"}"#,
            "not an ONNX file of the pack",
        ),
        (
            r#""detection": {"file": "/det.onnx"}"#,
            "not an ONNX file of the pack",
        ),
        (
            r#""detection": {"file": "det.bin"}"#,
            "not an ONNX file of the pack",
        ),
        (r#""detection": {}"#, "missing field `file`"),
        (
            r#""detection": {"file": "det.onnx", "preprocessing": "grey"}"#,
            "neither \"embedded\" nor mean and std",
        ),
        (
            r#""detection": {"file": "det.onnx", "preprocessing": {"mean": 0, "std": 0}}"#,
            "std 0 cannot be used",
        ),
        (
            wrong_hash.as_str(),
            "its SHA-256 is not the one in manifest.json",
        ),
        (
            r#""recognition": {"file": "det.onnx"}"#,
            "has other tensors than its task",
        ),
        (r#""detection": {"file": "lost.onnx"}"#, "lost.onnx"),
        ("", "none of its .onnx files is a detector"),
    ] {
        let error = refused(tasks);
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    for text in [
        &b"{\"manifest_version\": 1}"[..],
        b"{\"models\": []}",
        b"[2]",
        b"no JSON",
    ] {
        let folder = folder(&[
            ("manifest.json", text.to_vec()),
            ("det.onnx", detector.clone()),
        ]);
        let found = opened(folder.path(), |_| true).unwrap();
        assert_eq!(found, [(Module::Detection, "det.onnx".to_owned())]);
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
