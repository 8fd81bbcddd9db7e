// SPDX-License-Identifier: MPL-2.0

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndarray::{ArrayD, IxDyn};

use super::fake::{Fake, Runs};
use super::gpu_fallback::ResizableDetector;
use super::networks::Networks;
use super::opened::Opened;
use super::*;
use crate::device::{Cuda, CudaTuning, Placement};
use crate::engine::{Finder, Frame, Thresholds};
use crate::image::ImageView;
use crate::model::Runtimes;
use crate::observation::{Fields, Landmarks};

/// A pack that knows where it was opened.
#[derive(Default, Clone)]
struct FakePack {
    modules: Vec<Module>,
    opened: Arc<Mutex<Vec<Placement>>>,
    detector_runs: Arc<Mutex<Vec<Runs>>>,
}

impl FakePack {
    fn of(modules: &[Module]) -> Self {
        Self {
            modules: modules.to_vec(),
            ..Self::default()
        }
    }

    fn network(&self, module: Module) -> Fake {
        match module {
            Module::Detection => {
                let detector = detector();
                self.detector_runs
                    .lock()
                    .unwrap()
                    .push(detector.runs.clone());
                detector
            }
            Module::Landmark2d106 => Fake::of_faces(None, 192, 212, |_| points::<2>(106)),
            Module::Landmark3d68 => Fake::of_faces(None, 192, 3309, |_| points::<3>(1103)),
            Module::GenderAge => Fake::of_faces(None, 96, 3, |_| vec![0.0, 1.0, 0.5]),
            Module::Recognition => Fake::of_faces(None, 112, 4, |_| vec![1.0; 4]),
        }
    }
}

impl FakePack {
    fn open(&self, placement: &Placement) -> Vec<Opened> {
        self.opened.lock().unwrap().push(placement.clone());
        let modules = self.modules.iter();
        let mut networks: Vec<Opened> = modules.map(|m| self.network(*m).opened(*m)).collect();
        for network in &mut networks {
            network.file.name.push_str(&placement.device());
        }
        networks
    }
}

/// Points of a spiral.
fn points<const N: usize>(count: usize) -> Vec<f32> {
    (0..count)
        .map(|i| i as f32 / 10.0)
        .flat_map(|angle| {
            let point = [
                angle.cos() / 2.0,
                angle.sin() / 2.0,
                (3.0 * angle).cos() / 4.0,
            ];
            point.into_iter().take(N)
        })
        .collect()
}

/// Sees one face of 64×64 px in the middle of frames of 128×128.
fn detector() -> Fake {
    let output: &[_] = &[None, None, None];
    Fake::new(&[None, Some(3), None, None], &[output; 9], |input| {
        let [height, width] = [input.shape()[2], input.shape()[3]];
        let levels = [1, 4, 10]
            .into_iter()
            .flat_map(|values| [8, 16, 32].map(|stride| (values, stride)));
        let mut outputs: Vec<ArrayD<f32>> = levels
            .map(|(values, stride)| [1, 2 * (height / stride) * (width / stride), values])
            .map(|shape| ArrayD::zeros(IxDyn(&shape)))
            .collect();
        let middle = 2 * (height / 64 * (width / 32) + width / 64);
        outputs[2][[0, middle, 0]] = 0.75;
        let points = [-0.5, -0.5, 0.5, -0.5, 0.0, 0.0, -0.4, 0.5, 0.4, 0.5];
        for (i, way) in points.into_iter().enumerate() {
            outputs[8][[0, middle, i]] = way;
            outputs[5][[0, middle, i.min(3)]] = 1.0;
        }
        outputs
    })
}

fn config(settings: Settings) -> EngineConfig {
    EngineConfig {
        insightface: Settings {
            det_size: 128,
            ..settings
        },
        ..EngineConfig::default()
    }
}

fn with_embedding() -> Settings {
    Settings {
        embedding: true,
        ..Settings::default()
    }
}

fn ready(opened: Vec<Opened>, config: &EngineConfig) -> Result<Networks, EngineError> {
    let (runtimes, det_size) = (Runtimes::default(), config.insightface.det_size);
    Networks::new(opened, runtimes, "a pack".as_ref(), config, det_size)
}

fn open(pack: &FakePack, config: &EngineConfig) -> Result<Networks, EngineError> {
    load::check(config)?;
    ready(pack.open(&config.placement), config)
}

fn engine(modules: &[Module], settings: Settings) -> Networks {
    open(&FakePack::of(modules), &config(settings)).unwrap()
}

fn found(engine: &mut Networks, thresholds: &Thresholds) -> Vec<Observation> {
    let pixels = vec![9; 128 * 128 * 3];
    let frame = Frame {
        image: ImageView::rgb(128, 128, &pixels).unwrap(),
        time: Duration::ZERO,
    };
    engine.find(&frame, thresholds).unwrap().faces
}

fn find(engine: &mut Networks) -> Observation {
    let mut faces = found(engine, &ENTRY.thresholds);
    assert_eq!(faces.len(), 1);
    let context = Context {
        id: 1,
        frame_size: (128, 128),
        time: Duration::ZERO,
        wanted: Wanted::Everything,
    };
    let mut derived = Derived {
        pose: PoseFinder::new(),
        jaw_open: JawOpen::new(1.0),
    };
    derived.complete(&mut faces[0], &context).unwrap();
    faces.remove(0)
}

#[test]
fn what_is_reported_is_what_the_packs_networks_measure() {
    use Module::*;
    let scheme = |landmarks: &Option<Landmarks>| landmarks.as_ref().map(|l| l.scheme);
    let (contour, space) = (LandmarkScheme::InsightFace106, LandmarkScheme::Ibug68);
    for (modules, landmarks, contours, rest) in [
        (&[Detection][..], None, None, &[][..]),
        (
            &[Detection, Landmark2d106],
            Some(contour),
            None,
            &["jawOpen"],
        ),
        (
            &[Detection, Landmark3d68],
            Some(space),
            None,
            &["jawOpen", "pose"],
        ),
        (
            &[Landmark2d106, Detection, Landmark3d68],
            Some(space),
            Some(contour),
            &["jawOpen", "pose"],
        ),
        (&[Detection, GenderAge], None, None, &["attributes"]),
        (&[Recognition, Detection], None, None, &["embedding"]),
    ] {
        let has = |what: &str| rest.contains(&what);
        let settings = Settings {
            embedding: has("embedding"),
            ..Settings::default()
        };
        let mut engine = engine(modules, settings);
        let face = find(&mut engine);
        let info = engine.info();
        assert_eq!(scheme(&face.landmarks), landmarks);
        assert_eq!(info.landmarks, landmarks);
        assert_eq!(scheme(&face.secondary_landmarks), contours);
        assert_eq!((info.key_points, face.key_points.len()), (5, 5));
        assert_eq!(face.pose.is_some(), has("pose"));
        let measures = [
            (Fields::POSE, has("pose")),
            (Fields::ATTRIBUTES, has("attributes")),
        ];
        assert_eq!(info.measures, Fields::of(measures));
        assert_eq!(face.attributes.is_some(), has("attributes"));
        assert_eq!(info.embedding, if has("embedding") { 4 } else { 0 });
        assert_eq!(
            face.embedding.as_deref().unwrap_or_default().len(),
            info.embedding
        );
        let channels = if has("jawOpen") { 1 } else { 0 };
        assert_eq!(info.blendshapes.len(), channels);
        let blendshapes = face.blendshapes.map(|own| own.names().len());
        assert_eq!(blendshapes.unwrap_or_default(), channels);
        assert_eq!(info.models.len(), modules.len());
        assert_eq!(face.confidence, Some(0.75));
        assert_eq!((face.bbox.width, face.bbox.height), (64.0, 64.0));
    }
}

#[test]
fn without_a_pack_the_measurements_of_a_full_one_are_listed() {
    use Module::*;
    let allowed = |modules: &[Module]| Settings {
        allowed_modules: Some(modules.to_vec()),
        ..Settings::default()
    };
    let (contour, space) = (LandmarkScheme::InsightFace106, LandmarkScheme::Ibug68);
    for (settings, landmarks, attributes, embedding) in [
        (Settings::default(), Some(space), true, 0),
        (with_embedding(), Some(space), true, 512),
        (allowed(&[Landmark2d106]), Some(contour), false, 0),
        (allowed(&[GenderAge, Recognition]), None, true, 0),
    ] {
        let info = describe(&config(settings));
        assert_eq!(info.landmarks, landmarks);
        let measures = [
            (Fields::POSE, landmarks == Some(space)),
            (Fields::ATTRIBUTES, attributes),
        ];
        assert_eq!(
            (info.measures, info.embedding),
            (Fields::of(measures), embedding)
        );
        assert_eq!(info.key_points, 5);
    }
}

#[test]
fn networks_that_are_not_asked_for_are_not_wanted() {
    use Module::*;
    let wanted = |allowed: Option<&[Module]>, embedding| {
        let settings = Settings {
            allowed_modules: allowed.map(<[_]>::to_vec),
            embedding,
            ..Settings::default()
        };
        settings.wanted()
    };
    let all = wanted(None, true);
    assert_eq!(all, Module::ALL);
    assert_eq!(wanted(None, false), Module::ALL[..4]);
    assert_eq!(wanted(Some(&[]), false), [Detection]);
    assert_eq!(
        wanted(Some(&[GenderAge, Recognition]), false),
        [Detection, GenderAge]
    );
    assert_eq!(wanted(Some(&[Recognition]), true), [Detection, Recognition]);
}

#[test]
fn settings_and_packs_that_can_not_be_used_are_errors_that_name_the_property() {
    use Module::*;
    let sized = |det_size| Settings {
        det_size,
        ..Settings::default()
    };
    for size in [16, 100, 639, 8192, usize::MAX] {
        let mut config = config(Settings::default());
        config.insightface = sized(size);
        let error = open(&FakePack::of(&[Detection]), &config).err();
        let error = error.expect("no size for a detector");
        assert!(matches!(error, EngineError::Config { .. }), "{error}");
        assert!(error.to_string().contains("det_size"), "{error}");
    }
    let forbidden = Settings {
        allowed_modules: Some(vec![Landmark2d106]),
        ..with_embedding()
    };
    for (modules, settings, part) in [
        (
            &[Detection, Recognition][..],
            forbidden,
            "embedding: it needs the module recognition",
        ),
        (&[Detection], with_embedding(), "embedding: "),
        (&[GenderAge], Settings::default(), "a pack"),
    ] {
        let error = open(&FakePack::of(modules), &config(settings)).err();
        let error = error.expect("unusable").to_string();
        assert!(error.contains(part), "{error}");
    }
}

/// Makes networks.
type Maker = fn() -> Vec<Opened>;

/// Sees no face, and would not know its key points.
fn detector_without_points() -> Opened {
    let output: &[_] = &[None, None, None];
    let detector = Fake::new(&[None, Some(3), None, None], &[output; 6], |input| {
        let cells = |stride| (input.shape()[2] / stride) * (input.shape()[3] / stride);
        let levels = [1, 4]
            .into_iter()
            .flat_map(|values| [8, 16, 32].map(|stride| [1, 2 * cells(stride), values]));
        levels.map(|shape| ArrayD::zeros(IxDyn(&shape))).collect()
    });
    detector.opened(Module::Detection)
}

#[test]
fn networks_that_can_not_be_used_are_reported_with_what_fetches_others() {
    use Module::*;
    fn of_112(module: Module) -> Opened {
        Fake::of_faces(None, 112, 4, |_| vec![1.0; 4]).opened(module)
    }
    fn of_four() -> Opened {
        Fake::of_faces(Some(4), 96, 3, |_| vec![0.0; 3]).opened(GenderAge)
    }
    let cases: [(Maker, Settings, &str); 3] = [
        (
            || vec![detector_without_points(), of_112(Recognition)],
            with_embedding(),
            "no key points",
        ),
        (
            || vec![detector().opened(Detection), of_four()],
            Settings::default(),
            "fake.onnx has other tensors",
        ),
        (
            || vec![of_112(Detection)],
            Settings::default(),
            "fake.onnx has other tensors",
        ),
    ];
    for (networks, settings, part) in cases {
        let error = ready(networks(), &config(settings)).err();
        let error = error.expect("unusable").to_string();
        for part in [part, "a pack"] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
    let without_points = vec![detector_without_points()];
    let engine = ready(without_points, &config(Settings::default())).unwrap();
    assert_eq!(engine.info().key_points, 0);
}

#[test]
fn tuning_that_contradicts_itself_is_an_error_on_a_gpu() {
    let tuned = |tensorrt, deterministic| {
        let tuning = CudaTuning {
            tensorrt,
            deterministic,
            ..CudaTuning::default()
        };
        let placement = Placement::Cuda(Cuda {
            index: 0,
            visible_devices: None,
            max_vram: 0,
            free_memory: 0,
            fallback: true,
            tuning,
        });
        let config = EngineConfig {
            placement,
            ..config(Settings::default())
        };
        open(&FakePack::of(&[Module::Detection]), &config).err()
    };
    for fits in [(false, false), (false, true), (true, false)] {
        assert!(tuned(fits.0, fits.1).is_none());
    }
    let error = tuned(true, true).expect("they contradict one another");
    assert!(matches!(error, EngineError::Config { .. }), "{error}");
    assert!(error.to_string().contains("deterministic: "), "{error}");
}

#[test]
fn networks_are_opened_where_the_settings_place_them() {
    let pack = FakePack::of(&[Module::Detection, Module::GenderAge]);
    let cuda = Placement::Cuda(Cuda {
        index: 1,
        visible_devices: None,
        max_vram: 0,
        free_memory: 0,
        fallback: true,
        tuning: CudaTuning::default(),
    });
    let config = EngineConfig {
        placement: cuda.clone(),
        ..config(Settings::default())
    };
    let mut engine = open(&pack, &config).unwrap();
    engine.set_det_size(64);
    assert_eq!(engine.det_size(), 64);
    let last_run = |network: usize| {
        let runs = pack.detector_runs.lock().unwrap()[network].clone();
        runs.lock().unwrap().last().cloned().unwrap()
    };
    find(&mut engine);
    assert_eq!(last_run(0), [1, 3, 64, 64]);
    let config = EngineConfig {
        placement: Placement::Cpu,
        ..config
    };
    let mut engine = open(&pack, &config).unwrap();
    assert_eq!(*pack.opened.lock().unwrap(), [cuda, Placement::Cpu]);
    assert_eq!(engine.det_size(), 128, "as the settings have it");
    let names = engine.models().iter().map(|file| &*file.name);
    assert!(names.eq(["detection.onnxcpu", "genderage.onnxcpu"]));
    assert_eq!(engine.models(), engine.info().models);
    assert!(find(&mut engine).attributes.is_some());
    assert_eq!(last_run(1), [1, 3, 128, 128]);
}

#[test]
fn thresholds_are_those_of_the_frame() {
    let mut engine = engine(&[Module::Detection], Settings::default());
    find(&mut engine);
    let thresholds = Thresholds {
        detection: 0.8,
        ..ENTRY.thresholds
    };
    assert!(found(&mut engine, &thresholds).is_empty());
}

#[test]
fn a_warm_up_runs_the_networks_on_nothing() {
    let pack = FakePack::of(Module::ALL);
    let config = config(with_embedding());
    let mut engine = open(&pack.clone(), &config).unwrap();
    let runs = pack.detector_runs.lock().unwrap()[0].clone();
    let before = runs.lock().unwrap().len();
    engine.warm_up().unwrap();
    assert_eq!(runs.lock().unwrap().len(), before + 1);
}
