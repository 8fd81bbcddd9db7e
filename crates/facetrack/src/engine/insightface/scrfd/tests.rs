// SPDX-License-Identifier: MPL-2.0

use std::path::Path;

use facetrack_graph::Graph;
use ndarray::{ArrayD, IxDyn};

use super::super::Module;
use super::super::fake::{Fake, Runs};
use super::super::rewrite::{Parts, divided, whole};
use super::*;
use crate::geometry::Point;

const ANY: [Option<usize>; 4] = [None, Some(3), None, None];

/// A box at stride 8: its score, the cell (column and row) of its anchor, and the ways to its sides
/// in cells.
type Found = (f32, [usize; 2], [f32; 4]);

/// A network of 9 outputs that sees `found` in every input that is large enough.
fn scrfd(input: [Option<usize>; 4], found: Vec<Found>) -> Fake {
    let output: &[_] = &[None, None, None];
    Fake::new(&input, &[output; 9], move |input| {
        let [height, width] = [input.shape()[2], input.shape()[3]];
        let mut outputs: Vec<_> = [1, 4, 10]
            .into_iter()
            .flat_map(|values| [8, 16, 32].map(|stride| (values, stride)))
            .map(|(values, stride)| [1, 2 * (height / stride) * (width / stride), values])
            .map(|shape| ArrayD::zeros(IxDyn(&shape)))
            .collect();
        let cells = [width / 8, height / 8];
        let is_inside = |(_, [column, row], _): &&Found| *column < cells[0] && *row < cells[1];
        for (score, [column, row], ways) in found.iter().filter(is_inside) {
            let index = 2 * (row * (width / 8) + column);
            outputs[0][[0, index, 0]] = *score;
            for (i, way) in ways.iter().enumerate() {
                outputs[3][[0, index, i]] = *way;
            }
        }
        outputs
    })
}

fn config(det_size: usize) -> EngineConfig {
    let mut config = EngineConfig::default();
    config.insightface.det_size = det_size;
    config
}

fn detector(fake: Fake, config: &EngineConfig) -> (Detector, Runs) {
    let runs = fake.runs.clone();
    let detector = Detector::new(
        fake.opened(Module::Detection),
        config,
        config.insightface.det_size,
    )
    .unwrap();
    (detector, runs)
}

fn detect(detector: &mut Detector, [width, height]: [usize; 2]) -> Vec<Detection> {
    let pixels = vec![9; width * height * 3];
    let image = ImageView::rgb(width, height, &pixels).unwrap();
    detector.detect(&image, 0.5).unwrap().faces
}

#[test]
fn frames_are_seen_in_a_square_of_the_size_that_was_asked_for() {
    let unlimited = |width| EngineConfig {
        detect_max_width: Some(width),
        ..config(640)
    };
    for (input, config, shape) in [
        (ANY, config(640), [1, 3, 640, 640]),
        (ANY, config(320), [1, 3, 320, 320]),
        (ANY, config(2048), [1, 3, 1280, 1280]),
        (ANY, unlimited(0), [1, 3, 640, 640]),
        (ANY, unlimited(400), [1, 3, 384, 384]),
        (ANY, unlimited(1), [1, 3, 32, 32]),
        (
            [None, Some(3), Some(480), Some(640)],
            config(320),
            [1, 3, 480, 640],
        ),
        (
            [Some(1), Some(3), Some(640), Some(640)],
            config(320),
            [1, 3, 640, 640],
        ),
    ] {
        let face = (0.75, [2, 1], [1.0, 1.0, 1.0, 1.0]);
        let (mut detector, runs) = detector(scrfd(input, vec![face]), &config);
        let faces = detect(&mut detector, [1280, 720]);
        assert_eq!(runs.lock().unwrap().last().unwrap(), &shape);
        let scale = 1280.0 / shape[3] as f32;
        let got = faces[0].bbox;
        for (got, want) in [(got.x, 8.0), (got.y, 0.0), (got.width, 16.0)] {
            assert!(
                (got - want * scale).abs() < 0.1 * scale,
                "{got} {want} {scale}"
            );
        }
    }
}

#[test]
fn the_side_is_that_of_the_input() {
    for (input, width, side) in [
        (ANY, None, 640),
        (ANY, Some(400), 384),
        ([None, Some(3), Some(480), Some(320)], None, 480),
    ] {
        let config = EngineConfig {
            detect_max_width: width,
            ..config(640)
        };
        let (mut detector, _) = detector(scrfd(input, Vec::new()), &config);
        assert_eq!(detector.side(), side);
        detector.side = 160;
        let smaller = if input == ANY { 160 } else { side };
        assert_eq!(detector.side(), smaller);
    }
}

#[test]
fn a_narrow_detector_is_counted_on_as_what_it_is() {
    for (width, side) in [
        (None, 1280),
        (Some(0), 2048),
        (Some(400), 384),
        (Some(1), 32),
    ] {
        let config = EngineConfig {
            detect_max_width: width,
            ..config(2048)
        };
        assert_eq!(wanted_side(&config), side, "{width:?}");
    }
}

#[test]
fn the_size_can_be_changed_between_frames() {
    let (mut detector, runs) = detector(scrfd(ANY, Vec::new()), &config(640));
    for side in [640, 320] {
        detector.side = side;
        assert_eq!(detector.side(), side);
        detect(&mut detector, [640, 360]);
        assert_eq!(*runs.lock().unwrap().last().unwrap(), [1, 3, side, side]);
    }
}

#[test]
fn a_repeated_frame_is_not_searched_again() {
    // One input, and two with `det-size=0`.
    for (det_size, searches) in [(640, 1), (0, 2)] {
        let found = vec![(0.9, [2, 2], [1.0; 4])];
        let (config, fake) = (config(det_size), scrfd(ANY, found));
        let all_runs = fake.runs.clone();
        let opened = fake.opened(Module::Detection);
        let mut detector = Detector::new(opened, &config, wanted_side(&config)).unwrap();
        let runs = || std::mem::take(&mut *all_runs.lock().unwrap()).len();
        runs();
        for (size, want) in [
            ([640, 360], searches),
            ([640, 360], 0),
            ([640, 350], searches),
            ([640, 350], 0),
        ] {
            assert!(!detect(&mut detector, size).is_empty());
            assert_eq!(runs(), want, "{det_size} {size:?}");
        }
    }
}

#[test]
fn the_better_of_two_that_overlap_is_left() {
    // Boxes of 3 and 4 pixels: with the last pixel in them they share 16 of 25, or 4×2 pixels of
    // 24.
    let found = |score, column, way| (score, [column, 2], [0.0, 0.0, way, way]);
    for (a, b, left) in [
        (found(0.75, 4, 4.0), found(0.875, 5, 4.0), 1),
        (found(0.75, 4, 4.0), found(0.875, 6, 4.0), 2),
        (found(0.75, 4, 1.0), found(0.875, 5, 1.0), 2),
    ] {
        let (mut detector, _) = detector(scrfd(ANY, vec![a, b]), &config(320));
        let faces = detect(&mut detector, [320, 320]);
        assert_eq!(faces.len(), left);
        assert_eq!(faces[0].score, 0.875, "the better one first");
    }
}

#[test]
fn boxes_are_compared_with_their_last_pixels() {
    // One pixel wide: 2 of 2×2 pixels against 1 of 1.
    let bbox = with_last_pixels(&Rect::new(1.0, 2.0, 3.0, 4.0));
    assert_eq!(bbox, Rect::new(1.0, 2.0, 4.0, 5.0));
}

#[test]
fn of_too_many_faces_the_large_and_central_ones_are_left() {
    let found = vec![
        // In a corner, and well seen.
        (0.875, [1, 1], [1.0, 1.0, 1.0, 1.0]),
        // In the middle, small.
        (0.625, [20, 20], [1.0, 1.0, 1.0, 1.0]),
        // Large, next to it.
        (0.75, [26, 20], [4.0, 4.0, 4.0, 4.0]),
    ];
    for (max_faces, scores) in [
        (None, &[0.875, 0.75, 0.625][..]),
        (Some(3), &[0.875, 0.75, 0.625]),
        (Some(2), &[0.625, 0.75]),
        (Some(1), &[0.625]),
    ] {
        let config = EngineConfig {
            max_faces,
            ..config(320)
        };
        let (mut detector, _) = detector(scrfd(ANY, found.clone()), &config);
        let faces = detect(&mut detector, [320, 320]);
        let got: Vec<f32> = faces.iter().map(|face| face.score).collect();
        assert_eq!(got, scores, "{max_faces:?}");
        assert_eq!(faces[0].key_points.len(), 5);
    }
    let mut two = vec![
        Detection {
            bbox: Rect::new(0.0, 0.0, 10.0, 10.0),
            score: 0.9,
            key_points: vec![Point::default()],
        };
        2
    ];
    two[1].bbox.x = 45.0;
    two[1].bbox.y = 45.0;
    central_first(&mut two, [101, 101]);
    assert_eq!(two[0].bbox.x, 45.0);
}

#[test]
fn a_network_that_yields_no_numbers_is_refused() {
    let shapes = [1, 4, 10].map(|values| [8, 16, 32].map(|stride| (values, 640 / stride)));
    for broken in 0..9 {
        let output: &[_] = &[None, None, None];
        let fake = Fake::new(&ANY, &[output; 9], move |_| {
            let shapes = shapes.as_flattened().iter().enumerate();
            let outputs = shapes.map(|(index, (values, cells))| {
                let value = if index == broken { f32::NAN } else { 0.0 };
                ArrayD::from_elem(vec![1, 2 * cells * cells, *values], value)
            });
            outputs.collect()
        });
        let error = Detector::new(fake.opened(Module::Detection), &config(640), 640).err();
        let error = error.expect("no faces would ever be found");
        assert!(matches!(error, ModelError::Run { .. }), "{error}");
        assert!(error.to_string().contains("fake.onnx"), "{error}");
    }
}

#[test]
fn networks_that_are_no_scrfd_are_refused() {
    let output: &[_] = &[None, None, None];
    for (input, outputs) in [
        (&ANY[..], 7),
        (&[None, Some(1), None, None], 9),
        (&[Some(4), Some(3), None, None], 9),
        (&[None, Some(3), None], 9),
        // The right tensors, and nothing comes out.
        (&ANY, 9),
    ] {
        let fake = Fake::new(input, &vec![output; outputs], |_| Vec::new());
        let error = Detector::new(fake.opened(Module::Detection), &config(640), 640).err();
        let error = error.expect("no SCRFD");
        assert!(matches!(error, ModelError::Tensors { .. }), "{error}");
        assert!(error.to_string().contains("fake.onnx"), "{error}");
    }
}

/// A detector whose features of each stride consist of `value` and have so many pixels per cell.
fn separated(pixels_per_cell: [usize; 3], value: f32) -> Opened {
    let output: &[_] = &[None, None, None];
    let main = Fake::new(&ANY, &[output; 6], move |input| {
        let cells = |pixels| input.shape()[2] / pixels * (input.shape()[3] / pixels);
        let scores = [8, 16, 32].map(|stride| ArrayD::zeros(vec![1, 2 * cells(stride), 1]));
        let features = pixels_per_cell.map(|pixels| {
            let channels = boxes::tests::CHANNELS;
            ArrayD::from_elem(vec![cells(pixels), channels], value)
        });
        scores.into_iter().chain(features).collect()
    });
    let (_, boxes) = boxes::tests::cut(true);
    Opened {
        boxes: Some(boxes),
        ..main.opened(Module::Detection)
    }
}

#[test]
fn boxes_that_do_not_belong_to_the_scores_are_refused() {
    let new = |opened| Detector::new(opened, &config(640), 640);
    let detector = new(separated([8, 16, 32], 0.0)).unwrap();
    assert_eq!(detector.key_points(), 5);
    let swapped = new(separated([16, 8, 32], 0.0)).err().expect("other cells");
    assert!(matches!(swapped, ModelError::Tensors { .. }), "{swapped}");
    let broken = new(separated([8, 16, 32], f32::NAN))
        .err()
        .expect("no numbers");
    assert!(matches!(broken, ModelError::Run { .. }), "{broken}");
}

/// The published detector, divided and whole, in the built-in runtime; `None` where it is not
/// installed.
fn published(config: &EngineConfig) -> Option<[Detector; 2]> {
    use crate::model::SessionOptions;
    use crate::model::{Opener, RuntimeChoice};
    use facetrack_assets::locate::SearchPaths;

    let (paths, options) = (
        SearchPaths::from_vars(std::env::var_os),
        SessionOptions::default(),
    );
    let folder = paths.pack(Some(Path::new("insightface")));
    let folder = folder.inspect_err(|reason| eprintln!("SKIPPED: {reason}"));
    let path = folder.ok()?.join("scrfd_500m_bnkps.onnx");
    let bytes = std::fs::read(&path).unwrap();
    let opener = Opener::new(&paths, RuntimeChoice::BuiltIn);
    let open = |graph: Graph| {
        let content = graph.clone().encode();
        let read = || Ok(graph.clone());
        opener.open(&path, &content, read, options).unwrap()
    };
    let detectors = [divided(&bytes), whole(&bytes)].map(|parts| {
        let Parts { first, rest, boxes } = parts.unwrap();
        let opened = Opened {
            model: open(first),
            rest: rest.map(|(rest, border)| {
                assert_eq!((&border.strides[..], border.reach), (&[16, 8][..], 37));
                Rest::new(open(rest), border)
            }),
            boxes: Some(boxes.expect("its heads are convolutions")),
            range: ValueRange::between(-127.5 / 128.0, 127.5 / 128.0),
            ..scrfd(ANY, Vec::new()).opened(Module::Detection)
        };
        Detector::new(opened, config, wanted_side(config)).unwrap()
    });
    assert!(detectors[0].rest.is_some(), "it takes images of any size");
    Some(detectors)
}

#[test]
fn two_inputs_find_the_faces_of_both() {
    let detectors = [0, CLOSE, DET_SIZE].map(|side| {
        let config = EngineConfig {
            nms_threshold: Some(1.0),
            ..config(side)
        };
        published(&config)
    });
    let [
        Some([mut both, _]),
        Some([mut close, _]),
        Some([mut usual, _]),
    ] = detectors
    else {
        return;
    };
    for (width, height) in [(640, 360), (320, 240), (640, 360)] {
        let pixels: Vec<u8> = (0..width * height * 3)
            .map(|i| (i * i % 251) as u8)
            .collect();
        let image = ImageView::rgb(width, height, &pixels).unwrap();
        let found = |detector: &mut Detector| detector.detect(&image, 0.01).unwrap().faces;
        let expected = [found(&mut close), found(&mut usual)].concat();
        assert!(!expected.is_empty());
        assert_eq!(found(&mut both), nms::hard(expected, 1.0, with_last_pixels));
    }
}

#[test]
fn dividing_the_network_changes_no_face() {
    let config = EngineConfig {
        nms_threshold: Some(1.0),
        ..config(640)
    };
    let Some([mut divided, mut whole]) = published(&config) else {
        return;
    };
    // Noise of all sizes up to the edges of the frame, where most of what is found is.
    for (frame, seen) in [
        ([640, 360], [640, 448]),
        ([360, 640], [448, 640]),
        ([1280, 720], [640, 448]),
        ([320, 240], [640, 576]),
        ([640, 600], [640, 640]),
        ([100, 640], [192, 640]),
    ] {
        let [width, height] = frame;
        let pixels = (0..width * height * 3).map(|i| (i * i % 251) as u8);
        let pixels: Vec<u8> = pixels.collect();
        let image = ImageView::rgb(width, height, &pixels).unwrap();
        let ours = divided.detect(&image, 0.01).unwrap().faces;
        let theirs = whole.detect(&image, 0.01).unwrap().faces;
        assert_eq!(divided.network.shape(), [1, 3, seen[1], seen[0]]);
        assert_eq!(whole.network.shape(), [1, 3, 640, 640]);
        assert!(ours.len() > 1000, "{}", ours.len());
        assert_eq!(ours, theirs, "{frame:?}");
    }
}
