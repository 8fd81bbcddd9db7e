// SPDX-License-Identifier: MPL-2.0
//! Engines that fail by script.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::device::CudaTuning;
use crate::image::ImageView;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Result of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    Faces,
    OutOfMemory,
    Illegal,
    BadInput,
}

impl Run {
    fn result(self) -> Result<Found, EngineError> {
        let (model, reason) = ("det.onnx".to_owned(), format!("{self:?}"));
        Err(EngineError::Model(match self {
            Self::Faces => return Ok(Found::all(Vec::new())),
            Self::OutOfMemory => ModelError::OutOfMemory { model, reason },
            Self::Illegal => ModelError::Gpu { model, reason },
            Self::BadInput => ModelError::Run { model, reason },
        }))
    }
}

/// Events of the engines of a test.
type Diary = Arc<Mutex<Vec<String>>>;

/// An engine that does on a GPU what the script says, and is well on the processor.
struct Fake {
    models: [ModelFile; 1],
    placement: Placement,
    det_size: usize,
    script: Arc<Mutex<Vec<Run>>>,
    diary: Diary,
    can_shrink: bool,
}

impl Fake {
    fn note(&self, what: &str) {
        let (device, size) = (self.placement.device(), self.det_size);
        self.diary
            .lock()
            .unwrap()
            .push(format!("{what} {device} {size}"));
    }

    fn next(&self) -> Run {
        let mut script = self.script.lock().unwrap();
        match self.placement {
            Placement::Cuda(_) if !script.is_empty() => script.remove(0),
            _ => Run::Faces,
        }
    }
}

impl Finder for Fake {
    fn find(&mut self, _frame: &Frame<'_>, _thresholds: &Thresholds) -> Result<Found, EngineError> {
        self.note("frame");
        self.next().result()
    }
}

impl ResizableDetector for Fake {
    fn models(&self) -> &[ModelFile] {
        &self.models
    }

    fn runtimes(&self) -> Runtimes {
        Runtimes::default()
    }

    fn det_size(&self) -> usize {
        self.det_size
    }

    fn set_det_size(&mut self, side: usize) {
        if self.can_shrink {
            self.det_size = side;
        }
    }

    fn warm_up(&mut self) -> Result<(), EngineError> {
        self.note("warm-up");
        self.next().result().map(|_| ())
    }
}

/// The model of an engine on `placement`.
fn model_of(placement: &Placement) -> ModelFile {
    ModelFile {
        name: placement.device(),
        sha256: String::new(),
    }
}

/// A test's world.
#[derive(Clone)]
struct World {
    cuda: Cuda,
    script: Arc<Mutex<Vec<Run>>>,
    diary: Diary,
    opens_on_gpu: bool,
    largest_that_opens: usize,
    can_move: bool,
    can_shrink: bool,
    placements: Arc<Mutex<Vec<Placement>>>,
}

impl World {
    /// Each test has a GPU of its own, since claims are of the process.
    fn new(gpu: u32, script: &[Run]) -> Self {
        Self {
            cuda: Cuda {
                index: gpu,
                visible_devices: None,
                max_vram: 2 * GIB,
                free_memory: 8 * GIB,
                fallback: true,
                tuning: CudaTuning {
                    warm_up_runs: 0,
                    ..CudaTuning::default()
                },
            },
            script: Arc::new(Mutex::new(script.to_vec())),
            diary: Diary::default(),
            opens_on_gpu: true,
            largest_that_opens: usize::MAX,
            can_move: true,
            can_shrink: true,
            placements: Arc::default(),
        }
    }

    fn without_fallback(mut self) -> Self {
        self.cuda.fallback = false;
        self
    }

    fn open(&self, placement: &Placement, det_size: usize) -> Result<Fake, EngineError> {
        self.placements.lock().unwrap().push(placement.clone());
        if *placement == Placement::Cpu {
            if !self.can_move {
                return Err(EngineError::config("model", "the files are gone"));
            }
        } else {
            if !self.opens_on_gpu {
                Run::Illegal.result()?;
            }
            if det_size > self.largest_that_opens {
                Run::OutOfMemory.result()?;
            }
        }
        Ok(Fake {
            models: [model_of(placement)],
            placement: placement.clone(),
            det_size: if self.can_shrink { det_size } else { 640 },
            script: self.script.clone(),
            diary: self.diary.clone(),
            can_shrink: self.can_shrink,
        })
    }

    fn load(&self) -> Result<GpuFallback<Fake>, EngineError> {
        self.load_on(&Placement::Cuda(self.cuda.clone()))
    }

    fn load_on(&self, placement: &Placement) -> Result<GpuFallback<Fake>, EngineError> {
        let world = self.clone();
        let open = move |placement: &Placement, det_size| world.open(placement, det_size);
        GpuFallback::load(placement, NEED, Box::new(open))
    }

    fn diary(&self) -> Vec<String> {
        self.diary.lock().unwrap().clone()
    }
}

const NEED: Need = Need {
    det_size: 640,
    weights: 100 * MIB,
    others: 2,
};

fn look(engine: &mut impl Finder) -> Result<Found, EngineError> {
    let pixels = [0; 3];
    let image = ImageView::rgb(1, 1, &pixels).unwrap();
    let time = Duration::ZERO;
    engine.find(&Frame { image, time }, &Thresholds::DEFAULT)
}

fn reduced(det_size: usize) -> Notice {
    Notice::DetectionSizeReduced {
        det_size,
        reason: Run::OutOfMemory.result().unwrap_err().to_string(),
    }
}

fn fell_back(run: Run) -> Notice {
    Notice::FellBackToCpu {
        reason: run.result().unwrap_err().to_string(),
        models: vec![model_of(&Placement::Cpu)],
        runtimes: Runtimes::default(),
    }
}

#[test]
fn a_gpu_that_works_is_left_alone() {
    let world = World::new(800, &[]);
    let mut engine = world.load().unwrap();
    look(&mut engine).unwrap();
    look(&mut engine).unwrap();
    assert_eq!(world.diary(), ["frame cuda:800 640", "frame cuda:800 640"]);
    assert_eq!(engine.take_notices(), []);
    assert_eq!(
        *world.placements.lock().unwrap(),
        [Placement::Cuda(world.cuda)]
    );
}

#[test]
fn memory_that_runs_out_halves_the_size_once_then_ends_on_the_processor() {
    let world = World::new(801, &[Run::OutOfMemory, Run::Faces, Run::OutOfMemory]);
    let mut engine = world.load().unwrap();
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), [reduced(320)]);
    assert_eq!(engine.take_notices(), [], "told once");
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::OutOfMemory)]);
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), []);
    assert_eq!(
        world.diary(),
        [
            "frame cuda:801 640",
            "frame cuda:801 320",
            "frame cuda:801 320",
            "frame cpu 640",
            "frame cpu 640",
        ]
    );
}

#[test]
fn both_steps_may_fall_into_one_frame() {
    let world = World::new(802, &[Run::OutOfMemory, Run::OutOfMemory]);
    let mut engine = world.load().unwrap();
    look(&mut engine).unwrap();
    let notices = [reduced(320), fell_back(Run::OutOfMemory)];
    assert_eq!(engine.take_notices(), notices);
    assert_eq!(
        world.diary(),
        ["frame cuda:802 640", "frame cuda:802 320", "frame cpu 640"]
    );
}

#[test]
fn another_failure_of_the_gpu_ends_on_the_processor_at_once() {
    let world = World::new(803, &[Run::Illegal]);
    let mut engine = world.load().unwrap();
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::Illegal)]);
    assert_eq!(world.diary(), ["frame cuda:803 640", "frame cpu 640"]);
}

#[test]
fn without_fallback_a_failure_is_an_error() {
    for run in [Run::OutOfMemory, Run::Illegal] {
        let world = World::new(804, &[run]).without_fallback();
        let mut engine = world.load().unwrap();
        let told = look(&mut engine).unwrap_err().to_string();
        assert_eq!(told, run.result().unwrap_err().to_string());
        assert_eq!(engine.take_notices(), []);
        assert_eq!(world.diary(), ["frame cuda:804 640"]);
    }
}

#[test]
fn a_failure_that_is_not_the_gpus_is_an_error() {
    let world = World::new(805, &[Run::BadInput]);
    let mut engine = world.load().unwrap();
    assert!(look(&mut engine).is_err());
    assert_eq!(engine.take_notices(), []);
    assert_eq!(world.diary(), ["frame cuda:805 640"]);
}

#[test]
fn a_size_that_is_too_small_to_halve_ends_on_the_processor() {
    let world = World::new(806, &[Run::OutOfMemory]);
    let mut engine = world.load().unwrap();
    engine.engine.set_det_size(288);
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::OutOfMemory)]);
}

#[test]
fn a_detector_of_one_size_ends_on_the_processor_and_is_said_to_be_no_smaller() {
    let mut world = World::new(814, &[Run::OutOfMemory]);
    world.can_shrink = false;
    let mut engine = world.load().unwrap();
    look(&mut engine).unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::OutOfMemory)]);
    assert_eq!(world.diary(), ["frame cuda:814 640", "frame cpu 640"]);
    drop(engine);

    world.cuda.free_memory = 1536 * MIB;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.engine.det_size(), 640);
    assert_eq!(engine.take_notices(), []);
}

#[test]
fn what_can_not_fall_back_says_why() {
    let mut world = World::new(807, &[Run::Illegal]);
    world.can_move = false;
    let mut engine = world.load().unwrap();
    let told = look(&mut engine).unwrap_err().to_string();
    assert_eq!(told, "model: the files are gone");
    assert_eq!(engine.take_notices(), []);
}

#[test]
fn networks_that_do_not_open_on_the_gpu_open_on_the_processor() {
    let mut world = World::new(808, &[]);
    world.opens_on_gpu = false;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::Illegal)]);
    look(&mut engine).unwrap();
    assert_eq!(world.diary(), ["frame cpu 640"]);

    let world = world.without_fallback();
    assert!(world.load().is_err());
}

#[test]
fn memory_that_runs_out_while_networks_open_halves_the_size_then_ends_on_the_processor() {
    let mut world = World::new(816, &[]);
    world.largest_that_opens = 320;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.take_notices(), [reduced(320)]);
    look(&mut engine).unwrap();
    assert_eq!(world.diary(), ["frame cuda:816 320"]);
    drop(engine);

    world.largest_that_opens = 319;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::OutOfMemory)]);
    drop(engine);

    let world = world.without_fallback();
    assert!(world.load().is_err());
}

#[test]
fn warm_up_runs_are_made_on_the_gpu_alone() {
    let mut world = World::new(809, &[]);
    world.cuda.tuning.warm_up_runs = 3;
    drop(world.load().unwrap());
    assert_eq!(world.diary(), ["warm-up cuda:809 640"; 3]);
    drop(world.load_on(&Placement::Cpu).unwrap());
    assert_eq!(world.diary().len(), 3);
}

#[test]
fn memory_that_runs_out_in_a_warm_up_halves_the_size_then_ends_on_the_processor() {
    let mut world = World::new(810, &[Run::Faces, Run::OutOfMemory]);
    world.cuda.tuning.warm_up_runs = 3;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.take_notices(), [reduced(320)]);
    let [large, small] = ["warm-up cuda:810 640", "warm-up cuda:810 320"];
    assert_eq!(world.diary(), [large, large, small, small]);
    drop(engine);

    world.script.lock().unwrap().extend([Run::OutOfMemory; 2]);
    world.diary.lock().unwrap().clear();
    let mut engine = world.load().unwrap();
    let notices = [reduced(320), fell_back(Run::OutOfMemory)];
    assert_eq!(engine.take_notices(), notices);
    assert_eq!(world.diary(), [large, small, "warm-up cpu 640"]);
    drop(engine);

    let world = world.without_fallback();
    world.script.lock().unwrap().push(Run::OutOfMemory);
    assert!(world.load().is_err());
}

#[test]
fn another_failure_in_a_warm_up_ends_on_the_processor() {
    let mut world = World::new(815, &[Run::Illegal]);
    world.cuda.tuning.warm_up_runs = 3;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.take_notices(), [fell_back(Run::Illegal)]);
    assert_eq!(world.diary(), ["warm-up cuda:815 640", "warm-up cpu 640"]);
}

#[test]
fn too_little_memory_lowers_the_size_before_it_gives_up() {
    let mut world = World::new(811, &[]);
    world.cuda.free_memory = 1536 * MIB;
    let mut engine = world.load().unwrap();
    assert_eq!(engine.engine.det_size(), 512);
    let notices = engine.take_notices();
    let [Notice::DetectionSizeReduced { det_size, reason }] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert_eq!(*det_size, 512);
    assert_eq!(
        reason,
        "insufficient VRAM (1.5 GiB free < 1.7 GiB required)"
    );
    drop(engine);

    world.cuda.free_memory = 1024 * MIB;
    let mut engine = world.load().unwrap();
    let notices = engine.take_notices();
    let [Notice::FellBackToCpu { reason, .. }] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(
        reason.contains("insufficient VRAM (1.0 GiB free < "),
        "{reason}"
    );
    look(&mut engine).unwrap();
    assert_eq!(world.diary(), ["frame cpu 640"]);

    let refused = world.without_fallback().load().err().unwrap();
    assert!(matches!(refused, EngineError::Device(_)), "{refused}");
}

#[test]
fn a_second_engine_has_what_the_first_left_over() {
    let mut world = World::new(812, &[]);
    world.cuda.max_vram = 1300 * MIB;
    let first = world.load().unwrap();
    let mut second = world.load().unwrap();
    assert_eq!(second.take_notices(), []);
    let limits: Vec<u64> = world
        .placements
        .lock()
        .unwrap()
        .iter()
        .filter_map(|placement| match placement {
            Placement::Cuda(cuda) => Some(cuda.max_vram),
            Placement::Cpu => None,
        })
        .collect();
    assert_eq!(limits, [1300 * MIB, 1300 * MIB - NEED.arenas()]);
    let mut third = world.load().unwrap();
    let notices = third.take_notices();
    let [Notice::FellBackToCpu { reason, .. }] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(reason.contains("other engines"), "{reason}");
    drop((first, second));
    assert_eq!(world.load().unwrap().take_notices(), []);
}

#[test]
fn what_fell_back_claims_nothing() {
    let mut world = World::new(813, &[Run::Illegal]);
    world.cuda.max_vram = NEED.arenas();
    let mut first = world.load().unwrap();
    look(&mut first).unwrap();
    assert_eq!(first.take_notices(), [fell_back(Run::Illegal)]);
    assert_eq!(world.load().unwrap().take_notices(), []);
}
