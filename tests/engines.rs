// SPDX-License-Identifier: MPL-2.0
//! One contract over every engine, and MediaPipe's engine against MediaPipe.

mod drawn;

use std::time::Duration;

use drawn::{Face, draw};
use gstfacetrack::face::engine::{
    Engine, EngineConfig, EngineError, EngineKind, Frame, RunningMode, Wanted, load,
};
use gstfacetrack::face::image::{ColorRange, Colorimetry, ImageView, PixelFormat, Plane};
use gstfacetrack::face::model::ModelError;
use gstfacetrack::face::observation::{LandmarkScheme, Observation};
use gstfacetrack::face::smoothing::{LandmarkSmoother, OneEuro};
use serde::Deserialize;

const FORMATS: [PixelFormat; 13] = [
    PixelFormat::Rgb,
    PixelFormat::Bgr,
    PixelFormat::Rgbx,
    PixelFormat::Bgrx,
    PixelFormat::Xrgb,
    PixelFormat::Xbgr,
    PixelFormat::Gray8,
    PixelFormat::Nv12,
    PixelFormat::Nv21,
    PixelFormat::I420,
    PixelFormat::Yv12,
    PixelFormat::Yuy2,
    PixelFormat::Uyvy,
];

/// The engine; `None`, said aloud, where its models or runtime are not installed.
fn engine(kind: EngineKind, config: &EngineConfig) -> Option<Box<dyn Engine>> {
    match load(kind, config) {
        Ok(engine) => Some(engine),
        Err(EngineError::Model(
            reason @ (ModelError::Missing { .. } | ModelError::Runtime { .. }),
        )) => {
            eprintln!("SKIPPED: {}: {reason}", kind.name());
            None
        }
        Err(reason) => panic!("{}: {reason}", kind.name()),
    }
}

/// Every engine that can be had here.
fn engines() -> impl Iterator<Item = (EngineKind, Box<dyn Engine>)> {
    EngineKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, engine(kind, &EngineConfig::default())?)))
}

/// The engines that look at pixels.
fn seeing_engines() -> impl Iterator<Item = (EngineKind, Box<dyn Engine>)> {
    engines().filter(|(kind, _)| *kind != EngineKind::Scripted)
}

fn face_at(x: f64, y: f64, size: f64) -> Face {
    Face {
        x,
        y,
        size,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    }
}

/// An image in any format, full range BT.601.
struct Image {
    format: PixelFormat,
    width: usize,
    height: usize,
    planes: Vec<(Vec<u8>, usize)>,
}

impl Image {
    fn view(&self) -> ImageView<'_> {
        let planes: Vec<_> = self
            .planes
            .iter()
            .map(|(data, stride)| Plane {
                data,
                stride: *stride,
            })
            .collect();
        let colorimetry = Colorimetry {
            range: ColorRange::Full,
            ..Colorimetry::default()
        };
        ImageView::new(self.format, self.width, self.height, colorimetry, &planes).unwrap()
    }

    /// Rows are padded by five bytes.
    fn from_rgb(format: PixelFormat, width: usize, height: usize, rgb: &[u8]) -> Self {
        use PixelFormat::*;
        let pixel = |x: usize, y: usize| -> [f32; 3] {
            let (x, y) = (x.min(width - 1), y.min(height - 1));
            std::array::from_fn(|channel| f32::from(rgb[(y * width + x) * 3 + channel]))
        };
        let luma = |[r, g, b]: [f32; 3]| 0.299 * r + 0.587 * g + 0.114 * b;
        // Chroma over `w`×`h` pixels; 0 is U, 1 is V.
        let chroma = |which: usize, x: usize, y: usize, w: usize, h: usize| {
            let sum: f32 = (0..w * h)
                .map(|i| {
                    let p = pixel(x + i % w, y + i / w);
                    match which {
                        0 => (p[2] - luma(p)) / 1.772,
                        _ => (p[0] - luma(p)) / 1.402,
                    }
                })
                .sum();
            sum / (w * h) as f32 + 128.0
        };
        let value = |plane: usize, column: usize, y: usize| -> f32 {
            let rgb_of = |bytes: usize, order: [usize; 4]| {
                let channel = order[column % bytes];
                pixel(column / bytes, y)
                    .get(channel)
                    .copied()
                    .unwrap_or(77.0)
            };
            let packed = |y_first: usize| {
                let (pair, slot) = (column / 4 * 2, column % 4);
                match slot % 2 == y_first {
                    true => luma(pixel(pair + slot / 2, y)),
                    false => chroma(slot / 2, pair, y, 2, 1),
                }
            };
            match (format, plane) {
                (Rgb, _) => rgb_of(3, [0, 1, 2, 3]),
                (Bgr, _) => rgb_of(3, [2, 1, 0, 3]),
                (Rgbx, _) => rgb_of(4, [0, 1, 2, 3]),
                (Bgrx, _) => rgb_of(4, [2, 1, 0, 3]),
                (Xrgb, _) => rgb_of(4, [3, 0, 1, 2]),
                (Xbgr, _) => rgb_of(4, [3, 2, 1, 0]),
                (Yuy2, _) => packed(0),
                (Uyvy, _) => packed(1),
                (_, 0) => luma(pixel(column, y)),
                (Nv12, _) => chroma(column % 2, column / 2 * 2, y * 2, 2, 2),
                (Nv21, _) => chroma(1 - column % 2, column / 2 * 2, y * 2, 2, 2),
                (I420, _) => chroma(plane - 1, column * 2, y * 2, 2, 2),
                (_, _) => chroma(2 - plane, column * 2, y * 2, 2, 2),
            }
        };
        let planes = format
            .plane_layout(width, height)
            .into_iter()
            .enumerate()
            .map(|(plane, (row_bytes, rows))| {
                let stride = row_bytes + 5;
                let mut data = vec![0xaa; stride * rows];
                for y in 0..rows {
                    for column in 0..row_bytes {
                        data[y * stride + column] =
                            value(plane, column, y).round().clamp(0.0, 255.0) as u8;
                    }
                }
                (data, stride)
            })
            .collect();
        Self {
            format,
            width,
            height,
            planes,
        }
    }
}

/// Faces in an image, with everything that the engine measures.
fn look(engine: &mut dyn Engine, image: ImageView<'_>, time_ms: u64) -> Vec<Observation> {
    let frame_size = (image.width(), image.height());
    let time = Duration::from_millis(time_ms);
    let mut faces = engine.process(&Frame { image, time }).unwrap();
    for face in &mut faces {
        engine
            .complete(face, frame_size, Wanted::Everything)
            .unwrap();
    }
    faces
}

fn look_at_rgb(
    engine: &mut dyn Engine,
    (width, height): (usize, usize),
    rgb: &[u8],
    time_ms: u64,
) -> Vec<Observation> {
    let image = ImageView::rgb(width, height, rgb).unwrap();
    look(engine, image, time_ms)
}

/// A walk over frames with and without a face.
fn walk(engine: &mut dyn Engine) -> Vec<Vec<Observation>> {
    let size = (160, 120);
    (0..6u32)
        .map(|i| {
            let face = face_at(70.0 + 3.0 * f64::from(i), 60.0, 34.0);
            let faces: &[_] = if i == 3 { &[] } else { &[face] };
            let rgb = draw(size.0, size.1, faces);
            look_at_rgb(engine, size, &rgb, u64::from(i) * 40)
        })
        .collect()
}

fn assert_sound(kind: EngineKind, engine: &dyn Engine, face: &Observation) {
    let info = engine.info();
    let name = kind.name();
    let bbox = face.bbox;
    let mut numbers = vec![bbox.x, bbox.y, bbox.width, bbox.height];
    numbers.extend(face.key_points.iter().flat_map(|p| [p.x, p.y]));
    if let Some(landmarks) = &face.landmarks {
        assert_eq!(Some(landmarks.scheme), info.landmarks, "{name}");
        numbers.extend(landmarks.points.iter().flat_map(|p| [p.x, p.y, p.z]));
        if landmarks.scheme == LandmarkScheme::MediaPipe478 {
            assert_eq!(landmarks.points.len(), 478, "{name}");
        }
    }
    if let Some(blendshapes) = &face.blendshapes {
        assert_eq!(blendshapes.names(), &info.blendshapes, "{name}");
        assert_eq!(blendshapes.values().len(), info.blendshapes.len(), "{name}");
        numbers.extend(blendshapes.values());
    }
    if let Some(pose) = &face.pose {
        assert!(info.pose, "{name}");
        numbers.extend(pose.matrix.iter().flatten());
    }
    assert!(numbers.iter().all(|n| n.is_finite()), "{name}: {face:?}");
    assert!(bbox.width > 0.0 && bbox.height > 0.0, "{name}: {bbox:?}");
    if let Some(confidence) = face.confidence {
        assert!((0.0..=1.0).contains(&confidence), "{name}: {confidence}");
    }
    assert!(
        face.key_points.len() == info.key_points || face.key_points.is_empty(),
        "{name}"
    );
}

#[test]
fn every_engine_has_its_name() {
    for (kind, engine) in engines() {
        assert_eq!(engine.info().name, kind.name());
    }
}

#[test]
fn black_frames_hold_no_face() {
    for (kind, mut engine) in seeing_engines() {
        let black = vec![0; 320 * 240 * 3];
        for time in [0, 40] {
            let faces = look_at_rgb(engine.as_mut(), (320, 240), &black, time);
            assert!(faces.is_empty(), "{}: {faces:?}", kind.name());
        }
    }
}

#[test]
fn frames_of_any_size_and_format_are_taken() {
    let sizes = [
        (1, 1),
        (1, 2),
        (2, 1),
        (3, 3),
        (17, 5),
        (16384, 2),
        (2, 16384),
        (257, 255),
    ];
    for (kind, mut engine) in engines() {
        for (index, (width, height)) in sizes.into_iter().enumerate() {
            let noise: Vec<u8> = (0..width * height * 3)
                .map(|i| (i * i * 31 % 251) as u8)
                .collect();
            for format in FORMATS {
                let image = Image::from_rgb(format, width, height, &noise);
                for face in look(engine.as_mut(), image.view(), index as u64 * 40) {
                    assert_sound(kind, engine.as_ref(), &face);
                }
            }
        }
    }
}

#[test]
fn a_change_of_size_while_following_a_face_is_survived() {
    for (kind, mut engine) in seeing_engines() {
        let rgb = draw(160, 120, &[face_at(80.0, 60.0, 34.0)]);
        assert_eq!(look_at_rgb(engine.as_mut(), (160, 120), &rgb, 0).len(), 1);
        for (time, size) in [(40, (1, 1)), (80, (16, 4)), (120, (40, 30))] {
            let grey = vec![100; size.0 * size.1 * 3];
            for face in look_at_rgb(engine.as_mut(), size, &grey, time) {
                assert_sound(kind, engine.as_ref(), &face);
            }
        }
    }
}

#[test]
fn engines_are_deterministic_and_reset_forgets() {
    for (kind, mut first) in engines() {
        let Some(mut second) = engine(kind, &EngineConfig::default()) else {
            continue;
        };
        let once = walk(first.as_mut());
        assert_eq!(once, walk(second.as_mut()), "{}", kind.name());
        for face in once.iter().flatten() {
            assert_sound(kind, first.as_ref(), face);
        }
        // The script counts frames from the load, whatever the stream does.
        if kind != EngineKind::Scripted {
            first.reset();
            assert_eq!(once, walk(first.as_mut()), "{}", kind.name());
        }
    }
}

#[test]
fn every_format_shows_the_same_face() {
    let (width, height) = (201, 151);
    let rgb = draw(width, height, &[face_at(100.0, 75.0, 40.0)]);
    for (kind, mut engine) in seeing_engines() {
        let mut reference = None;
        for format in FORMATS {
            engine.reset();
            let image = Image::from_rgb(format, width, height, &rgb);
            let faces = look(engine.as_mut(), image.view(), 0);
            assert_eq!(faces.len(), 1, "{} {format:?}", kind.name());
            let reference = reference.get_or_insert_with(|| faces[0].clone());
            let iou = faces[0].bbox.iou(&reference.bbox);
            // Grey lacks the colours that the networks were shown.
            let limit = if format == PixelFormat::Gray8 {
                0.8
            } else {
                0.95
            };
            assert!(iou > limit, "{} {format:?}: {iou}", kind.name());
        }
    }
}

fn mediapipe_error(config: EngineConfig) -> EngineError {
    load(EngineKind::MediaPipe, &config)
        .err()
        .expect("this model can't be loaded")
}

#[test]
fn models_that_can_not_be_used_are_errors_at_load() {
    let folder = tempfile::tempdir().unwrap();
    let config = |file: &str| EngineConfig {
        model: Some(folder.path().join(file)),
        ..EngineConfig::default()
    };
    let missing = mediapipe_error(config("nothing.task"));
    assert!(matches!(
        missing,
        EngineError::Model(ModelError::Missing { .. })
    ));
    assert!(missing.to_string().contains("nothing.task"), "{missing}");

    std::fs::write(folder.path().join("text.task"), "no bundle").unwrap();
    let text = mediapipe_error(config("text.task"));
    assert!(matches!(
        text,
        EngineError::Model(ModelError::Format { .. })
    ));
    assert!(text.to_string().contains("text.task"), "{text}");

    let Some(bundle) = installed_bundle() else {
        return;
    };
    let cut = &bundle[..bundle.len() / 2];
    std::fs::write(folder.path().join("cut.task"), cut).unwrap();
    let cut = mediapipe_error(config("cut.task"));
    assert!(
        matches!(cut, EngineError::Model(ModelError::Format { .. })),
        "{cut}"
    );

    let mut changed = bundle;
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(folder.path().join("face_landmarker.task"), changed).unwrap();
    let changed = mediapipe_error(config("face_landmarker.task"));
    assert!(
        matches!(changed, EngineError::Model(ModelError::Hash { .. })),
        "{changed}"
    );
    assert!(changed.to_string().contains("make setup"), "{changed}");
}

fn installed_bundle() -> Option<Vec<u8>> {
    let path = gstfacetrack::face::locate::model("face_landmarker.task", "mediapipe", None, None);
    match path {
        Ok(path) => Some(std::fs::read(path).unwrap()),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

/// A scene of `golden/faces.json`.
#[derive(Deserialize)]
struct Scene {
    name: String,
    width: usize,
    height: usize,
    running_mode: String,
    max_faces: usize,
    frames: Vec<SceneFrame>,
}

#[derive(Deserialize)]
struct SceneFrame {
    t_ms: u64,
    faces: Vec<Face>,
    found: usize,
    pixel_sum: u64,
}

/// What MediaPipe measured of a face.
struct Golden {
    landmarks: Vec<[f32; 3]>,
    blendshapes: Vec<f32>,
    matrix: Vec<f32>,
}

const GOLDEN_VALUES: usize = 478 * 3 + 52 + 16;

impl Golden {
    fn new(values: &[f32]) -> Self {
        let (landmarks, rest) = values.split_at(478 * 3);
        let (blendshapes, matrix) = rest.split_at(52);
        Self {
            landmarks: landmarks
                .chunks_exact(3)
                .map(|p| [p[0], p[1], p[2]])
                .collect(),
            blendshapes: blendshapes.to_vec(),
            matrix: matrix.to_vec(),
        }
    }

    /// Distance of the outer eye corners, px.
    fn eyes(&self) -> f32 {
        let ([ax, ay, _], [bx, by, _]) = (self.landmarks[33], self.landmarks[263]);
        (ax - bx).hypot(ay - by)
    }

    /// Largest errors: landmarks and depth per distance of the eyes, blendshapes, matrix.
    fn errors(&self, face: &Observation) -> [f32; 4] {
        let points = &face.landmarks.as_ref().unwrap().points;
        let pairs = || points.iter().zip(&self.landmarks);
        let shift = pairs().map(|(p, q)| (p.x - q[0]).hypot(p.y - q[1]));
        let depth = pairs().map(|(p, q)| (p.z - q[2]).abs());
        let matrix = face.pose.unwrap().matrix;
        [
            max(shift) / self.eyes(),
            max(depth) / self.eyes(),
            max_difference(
                face.blendshapes.as_ref().unwrap().values(),
                &self.blendshapes,
            ),
            max_difference(matrix.as_flattened(), &self.matrix),
        ]
    }
}

fn max(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, f32::max)
}

fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    max(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

/// Looks at a frame as MediaPipe Tasks does: with smoothing of the only face of a video.
fn look_as_the_task_does(
    engine: &mut dyn Engine,
    smoother: &mut Option<LandmarkSmoother>,
    frame: Frame<'_>,
) -> Vec<Observation> {
    let frame_size = (frame.image.width(), frame.image.height());
    let mut faces = engine.process(&frame).unwrap();
    if let Some(smoother) = smoother {
        match faces.first_mut() {
            Some(face) => smoother.smooth(face.landmarks.as_mut().unwrap(), frame.time),
            None => *smoother = LandmarkSmoother::new(OneEuro::MEDIAPIPE),
        }
    }
    for face in &mut faces {
        engine
            .complete(face, frame_size, Wanted::Everything)
            .unwrap();
    }
    faces
}

/// Three and more times the largest errors measured; the networks alone differ by 2e-3 px from LiteRT, and a
/// followed face sees its own differences again.
const GOLDEN_LIMITS: [f32; 4] = [0.002, 0.002, 0.01, 0.01];

#[test]
fn drawn_faces_are_measured_as_mediapipe_does() {
    let scenes: Vec<Scene> = serde_json::from_str(include_str!("golden/faces.json")).unwrap();
    let record: Vec<f32> = include_bytes!("golden/faces.bin")
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let mut goldens = record.chunks_exact(GOLDEN_VALUES).map(Golden::new);
    let mut worst = [0.0f32; 4];
    for scene in scenes {
        let running_mode = match scene.running_mode.as_str() {
            "video" => RunningMode::Video,
            _ => RunningMode::Image,
        };
        let config = EngineConfig {
            running_mode,
            max_faces: Some(scene.max_faces),
            ..EngineConfig::default()
        };
        let Some(mut engine) = engine(EngineKind::MediaPipe, &config) else {
            return;
        };
        let is_smoothed = running_mode == RunningMode::Video && scene.max_faces == 1;
        let mut smoother = is_smoothed.then(|| LandmarkSmoother::new(OneEuro::MEDIAPIPE));
        for (index, frame) in scene.frames.iter().enumerate() {
            let pixels = draw(scene.width, scene.height, &frame.faces);
            let sum: u64 = pixels.iter().copied().map(u64::from).sum();
            assert_eq!(sum, frame.pixel_sum, "the drawing is that of the generator");
            let image = ImageView::rgb(scene.width, scene.height, &pixels).unwrap();
            let time = Duration::from_millis(frame.t_ms);
            let seen = Frame { image, time };
            let faces = look_as_the_task_does(engine.as_mut(), &mut smoother, seen);
            assert_eq!(faces.len(), frame.found, "{} frame {index}", scene.name);
            for golden in goldens.by_ref().take(frame.found) {
                let errors = faces
                    .iter()
                    .map(|face| golden.errors(face))
                    .min_by(|a, b| a[0].total_cmp(&b[0]))
                    .unwrap();
                for (error, worst) in errors.into_iter().zip(&mut worst) {
                    *worst = worst.max(error);
                }
                let within = errors
                    .iter()
                    .zip(GOLDEN_LIMITS)
                    .all(|(e, limit)| *e <= limit);
                assert!(within, "{} frame {index}: {errors:?}", scene.name);
            }
        }
    }
    assert!(goldens.next().is_none(), "every recorded face was compared");
    eprintln!("largest errors: landmarks, depth per eye distance, blendshapes, matrix {worst:?}");
}
