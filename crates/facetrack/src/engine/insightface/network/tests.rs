// SPDX-License-Identifier: MPL-2.0

use super::super::Module;
use super::super::fake::{Fake, Runs};
use super::*;
use crate::geometry::{Point, Size};

const SIDE: usize = 4;

const CROWD: Batch = Batch::UpTo(64);

/// Says the first red and the last blue of each face.
fn network(images: Option<usize>, batch: Batch) -> (FaceNetwork, Runs) {
    let fake = Fake::of_faces(images, SIDE, 2, |face| vec![face[0], face[face.len() - 1]]);
    let runs = fake.runs.clone();
    let network = FaceNetwork::new(fake.opened(Module::GenderAge), batch).unwrap();
    runs.lock().unwrap().clear();
    (network, runs)
}

/// An image whose red is the column and whose blue is the row.
fn image() -> Vec<u8> {
    let pixels = (0..64 * 32).map(|i| [i % 64, 0, i / 64]);
    pixels.flatten().map(|value: usize| value as u8).collect()
}

/// The square whose elements lie on pixels from there on.
fn square(x: f32, y: f32) -> Option<RotatedRect> {
    let half = SIDE as f32 / 2.0;
    Some(RotatedRect {
        center: Point::new(x + half, y + half),
        size: Size::new(SIDE as f32, SIDE as f32),
        rotation: 0.0,
    })
}

fn values(answers: &[Option<Answer>]) -> Vec<Option<Vec<f32>>> {
    let values = |answer: &Answer| answer.values.clone();
    answers
        .iter()
        .map(|answer| answer.as_ref().map(values))
        .collect()
}

#[test]
fn faces_are_seen_together_and_alone_where_the_file_wants_it() {
    let pixels = image();
    let image = ImageView::rgb(64, 32, &pixels).unwrap();
    let regions = [square(5.0, 6.0), square(20.0, 1.0), square(40.0, 11.0)];
    for (images, batch, shapes) in [
        (None, CROWD, &[3][..]),
        (None, Batch::UpTo(2), &[2, 1]),
        (None, ALONE, &[1, 1, 1]),
        (None, Batch::Exactly(4), &[4]),
        (None, Batch::Exactly(2), &[2, 2]),
        (Some(1), CROWD, &[1, 1, 1]),
        (Some(1), Batch::Exactly(4), &[1, 1, 1]),
    ] {
        let (mut network, runs) = network(images, batch);
        let answers = network.run(&image, &regions).unwrap();
        let faces: Vec<usize> = runs.lock().unwrap().iter().map(|shape| shape[0]).collect();
        assert_eq!(faces, shapes);
        let wanted = [[5.0, 9.0], [20.0, 4.0], [40.0, 14.0]];
        assert_eq!(values(&answers), wanted.map(|values| Some(values.to_vec())));
        let corner = answers[1]
            .as_ref()
            .unwrap()
            .frame_from_input
            .apply(Point::default());
        assert_eq!(corner, Point::new(20.0, 1.0));
    }
}

#[test]
fn a_network_that_takes_one_face_and_does_not_say_so_sees_each_alone() {
    let pixels = image();
    let image = ImageView::rgb(64, 32, &pixels).unwrap();
    let input = [None, Some(3), Some(SIDE), Some(SIDE)];
    // It answers only for the first of several faces.
    let fake = Fake::new(&input, &[&[Some(1), Some(1)]], |input| {
        vec![ArrayD::from_elem(vec![1, 1], input[[0, 0, 0, 0]])]
    });
    let runs = fake.runs.clone();
    let mut network = FaceNetwork::new(fake.opened(Module::GenderAge), CROWD).unwrap();
    runs.lock().unwrap().clear();
    let answers = network.run(&image, &[square(5.0, 6.0), square(20.0, 1.0)]);
    let wanted = [Some(vec![5.0]), Some(vec![20.0])];
    assert_eq!(values(&answers.unwrap()), wanted);
    let faces: Vec<usize> = runs.lock().unwrap().iter().map(|shape| shape[0]).collect();
    assert_eq!(faces, [1, 1]);
}

#[test]
fn a_crowd_takes_several_runs() {
    let pixels = image();
    let image = ImageView::rgb(64, 32, &pixels).unwrap();
    let regions: Vec<_> = (0..150).map(|i| square((i % 60) as f32, 3.0)).collect();
    let (mut network, runs) = network(None, CROWD);
    let answers = network.run(&image, &regions).unwrap();
    let faces: Vec<usize> = runs.lock().unwrap().iter().map(|shape| shape[0]).collect();
    assert_eq!(faces, [64, 64, 22]);
    for (i, answer) in answers.iter().enumerate() {
        assert_eq!(answer.as_ref().unwrap().values, [(i % 60) as f32, 6.0]);
    }
}

#[test]
fn a_region_that_can_not_be_shown_has_no_answer_and_leaves_the_others_theirs() {
    let pixels = image();
    let image = ImageView::rgb(64, 32, &pixels).unwrap();
    let (mut network, runs) = network(None, CROWD);
    let none = [None, square(f32::NAN, 0.0), square(1e9, 0.0)];
    let all = [
        &none[..1],
        &[square(7.0, 2.0)],
        &none[1..],
        &[square(9.0, 2.0)],
    ]
    .concat();
    let answers = network.run(&image, &all).unwrap();
    let wanted = [None, Some(vec![7.0, 5.0]), None, None, Some(vec![9.0, 5.0])];
    assert_eq!(values(&answers), wanted);
    runs.lock().unwrap().clear();
    assert_eq!(
        values(&network.run(&image, &none).unwrap()),
        [None, None, None]
    );
    assert!(network.run(&image, &[]).unwrap().is_empty());
    assert!(runs.lock().unwrap().is_empty(), "nothing to run for");
}

#[test]
fn values_that_are_no_numbers_are_no_answer() {
    let pixels = image();
    let image = ImageView::rgb(64, 32, &pixels).unwrap();
    let fake = Fake::of_faces(None, SIDE, 1, |face| vec![1.0 / (face[0] - 5.0)]);
    let mut network = FaceNetwork::new(fake.opened(Module::GenderAge), CROWD).unwrap();
    let answers = network.run(&image, &[square(5.0, 0.0), square(7.0, 0.0)]);
    assert_eq!(values(&answers.unwrap()), [None, Some(vec![0.5])]);
}

#[test]
fn networks_with_other_tensors_are_refused() {
    let any = [None, Some(3), Some(8), Some(8)];
    let row: &[_] = &[Some(1), Some(2)];
    for (input, outputs) in [
        (&[None, Some(3), Some(8), None][..], &[row][..]),
        (&[None, Some(3), Some(8), Some(9)], &[row]),
        (&[None, Some(1), Some(8), Some(8)], &[row]),
        (&[Some(4), Some(3), Some(8), Some(8)], &[row]),
        (&[None, Some(3), Some(8)], &[row]),
        (&any, &[row, row]),
        (&any, &[&[Some(1), None]]),
    ] {
        let fake = Fake::new(input, outputs, |_| Vec::new());
        let error = FaceNetwork::new(fake.opened(Module::GenderAge), CROWD).err();
        let error = error.expect("other tensors");
        assert!(matches!(error, ModelError::Tensors { .. }), "{error}");
        assert!(error.to_string().contains("fake.onnx"), "{error}");
    }
    // It says it yields two values for each face, and yields one, nothing, or what is no number.
    for yielded in [
        Some(ArrayD::zeros(vec![2, 1])),
        None,
        Some(ArrayD::from_elem(vec![2, 2], f32::NAN)),
    ] {
        let fake = Fake::new(&any, &[row], move |_| yielded.iter().cloned().collect());
        let error = FaceNetwork::new(fake.opened(Module::GenderAge), CROWD).err();
        let error = error.expect("another output");
        assert!(matches!(error, ModelError::Run { .. }), "{error}");
        assert!(error.to_string().contains("fake.onnx"), "{error}");
    }
}

/// A picture of soft colours.
fn picture() -> Vec<u8> {
    let level = |phase: usize| (128.0 + 100.0 * (phase as f32 / 17.0).sin()) as u8;
    (0..200 * 150)
        .map(|i| (i % 200, i / 200))
        .flat_map(|(x, y)| [level(x + y), level(2 * x), level(3 * y + x)])
        .collect()
}

#[test]
fn published_networks_say_of_many_faces_what_they_say_of_each() {
    use std::path::Path;

    use crate::engine::EngineConfig;
    use crate::engine::insightface::{Settings, load};

    let settings = Settings {
        embedding: true,
        ..Settings::default()
    };
    let config = EngineConfig {
        model: Some(Path::new("insightface").to_owned()),
        insightface: settings,
        ..EngineConfig::default()
    };
    let opened = match load::folder(&config).and_then(|pack| pack.open(&config)) {
        Ok((opened, _)) => opened,
        Err(reason @ (ModelError::Missing(_) | ModelError::Runtime { .. })) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
        Err(reason) => panic!("{reason}"),
    };
    let pixels = picture();
    let image = ImageView::rgb(200, 150, &pixels).unwrap();
    let regions: Vec<_> = (0..5)
        .map(|i| RotatedRect {
            center: Point::new(40.0 + 30.0 * i as f32, 70.0),
            size: Size::new(60.0 + i as f32, 60.0 + i as f32),
            rotation: i as f32 / 10.0,
        })
        .map(Some)
        .collect();
    for opened in opened
        .into_iter()
        .filter(|own| own.module != Module::Detection)
    {
        let module = opened.module;
        let mut network = FaceNetwork::new(opened, CROWD).unwrap();
        let together = network.run(&image, &regions).unwrap();
        for (region, answer) in regions.chunks(1).zip(&together) {
            let alone = network.run(&image, region).unwrap();
            let (alone, answer) = (alone[0].as_ref().unwrap(), answer.as_ref().unwrap());
            for (a, b) in alone.values.iter().zip(&answer.values) {
                assert!((a - b).abs() < 1e-4, "{module:?}: {a} {b}");
            }
            assert_eq!(alone.frame_from_input, answer.frame_from_input);
        }
    }
}

#[test]
fn outputs_of_several_faces_stay_in_place() {
    use std::fs;

    use super::super::{pack, rewrite};
    use crate::model::{Opener, RuntimeChoice};
    use crate::model::{SessionOptions, Transfer};
    use facetrack_assets::locate::SearchPaths;

    let paths = SearchPaths::from_vars(std::env::var_os);
    let folder = match paths.pack(Some("insightface".as_ref())) {
        Ok(folder) => folder,
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            return;
        }
    };
    let opener = Opener::new(&paths, RuntimeChoice::OnnxRuntime);
    let mut networks = 0;
    for path in pack::files(&folder).unwrap() {
        let open = rewrite::with_open_outputs(&fs::read(&path).unwrap()).unwrap();
        let [copied, bound] = [Transfer::Copied, Transfer::Bound].map(|transfer| {
            let options = SessionOptions {
                transfer,
                ..SessionOptions::default()
            };
            opener.open_onnx(&path, &open, options)
        });
        let copied = match copied {
            Err(reason @ ModelError::Runtime { .. }) => {
                eprintln!("SKIPPED: {reason}");
                return;
            }
            copied => copied.unwrap(),
        };
        let Some((true, side, _)) = sizes(&*copied) else {
            continue;
        };
        networks += 1;
        let bound = bound.unwrap();
        for run in 0..3 {
            let faces = ArrayD::from_shape_fn(vec![4, CHANNELS, side, side], |at| {
                ((at[0] + run) * 40 + at[2]) as f32
            });
            let expected = copied.run(&[faces.view()]).unwrap();
            assert_eq!(bound.run(&[faces.view()]).unwrap(), expected, "{path:?}");
        }
    }
    assert_eq!(networks, 3);
}
