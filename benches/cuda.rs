// SPDX-License-Identifier: MPL-2.0
//! The engine `insightface` on a GPU against itself on the processor, and what each latency option does, for
//! `benches/cuda.sh`.
//!
//! `cargo bench --bench cuda -- cuda|cpu PACK CLIP [ONNXRUNTIME [CUDA_LIB_PATH]]` shows the clip's frames at 1080p to the
//! engine, once on the processor and then once for each option. It fails where there is no GPU, where an option fails, and
//! where what is seen differs by more than the bar. `cpu` takes the processor in the GPU's place, which
//! tries everything but the GPU.

mod common;
#[path = "cuda/parity.rs"]
mod parity;

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use facetrack::device::{
    ConvAlgorithmSearch, CudaTuning, DeviceChoice, LibrarySearch, MachineProbe, Placement, Request,
    negotiate, nvidia_driver,
};
use facetrack::engine::{self, Engine, EngineConfig, EngineKind, Frame, insightface};
use facetrack::image::ImageView;
use facetrack::observation::Observation;
use parity::Parity;

/// Size of the frames, px, and how many of them the clip gives.
const SIZE: (usize, usize) = (1920, 1080);
const FRAMES: usize = 60;

/// The arguments.
struct Arguments {
    device: DeviceChoice,
    clip: PathBuf,
    request: Request,
    config: EngineConfig,
}

/// An option against what is usual.
struct Row {
    name: &'static str,
    tuning: CudaTuning,
    /// Half precision is not held to the bar, which is about floats of 32 bits.
    is_exact: bool,
}

/// What a row came to.
struct Figures {
    load: Duration,
    first: Duration,
    median: Duration,
    slowest: Duration,
    /// Taken from the GPU's free memory while frames ran, MiB; `None` without a GPU.
    memory: Option<u64>,
    parity: Parity,
}

type Faces = Vec<Vec<Observation>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let Some(arguments) = arguments()? else {
        println!(
            "usage: cargo bench --bench cuda -- cuda|cpu PACK CLIP [ONNXRUNTIME [CUDA_LIB_PATH]]"
        );
        return Ok(());
    };
    gst::init()?;
    // What is missing is told before minutes of work on the processor.
    placement(&arguments, CudaTuning::default())?;
    println!("{}", title(&arguments));
    let frames = frames(&arguments.clip)?;
    let (expected, _) = look(&arguments.config, &frames)?;
    let faces: usize = expected.iter().map(Vec::len).sum();
    if faces == 0 {
        return Err("the clip shows no face".into());
    }
    println!("{} frames with {faces} faces\n", frames.len());
    println!("{}", Figures::HEADER);
    let mut failures = Vec::new();
    for row in rows() {
        let placement = match placement(&arguments, row.tuning) {
            Ok(placement) => placement,
            Err(reason) => {
                println!("| {} | not to be had here: {reason} |", row.name);
                continue;
            }
        };
        match measure(&arguments, placement, &frames, &expected) {
            Ok(figures) => {
                println!("{}", figures.line(row.name));
                let misses = row.is_exact && !figures.parity.is_met();
                failures.extend(misses.then(|| format!("{}: {}", row.name, parity::BAR)));
            }
            Err(reason) => {
                println!("| {} | failed: {reason} |", row.name);
                failures.push(format!("{}: {reason}", row.name));
            }
        }
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(format!("\nmissed:\n{}", failures.join("\n")).into()),
    }
}

fn arguments() -> Result<Option<Arguments>, Box<dyn Error>> {
    // Cargo adds an argument of its own.
    let arguments: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
    let [device, pack, clip, rest @ ..] = &arguments[..] else {
        return Ok(None);
    };
    let device = match device.as_str() {
        "cuda" => DeviceChoice::Cuda,
        "cpu" => DeviceChoice::Cpu,
        other => return Err(format!("unknown device {other}").into()),
    };
    let folder = rest.get(1).map(PathBuf::from);
    let onnxruntime = rest.first().map(PathBuf::from);
    Ok(Some(Arguments {
        device,
        clip: clip.into(),
        request: Request {
            device: Some(DeviceChoice::Cuda),
            fallback: false,
            libraries: LibrarySearch::of(folder, &|name| env::var(name).ok()),
            onnxruntime: onnxruntime.clone(),
            ..Request::default()
        },
        config: EngineConfig {
            model: Some(pack.into()),
            onnxruntime,
            nms_threshold: insightface::NMS_THRESHOLD,
            pack: insightface::Settings {
                embedding: true,
                ..insightface::Settings::default()
            },
            ..EngineConfig::default()
        },
    }))
}

/// Each option by itself, but for half precision, which TensorRT has as well. TensorRT comes last, since its libraries stay
/// in memory.
fn rows() -> Vec<Row> {
    let with = |name, is_exact, change: fn(&mut CudaTuning)| {
        let mut tuning = CudaTuning::default();
        change(&mut tuning);
        Row {
            name,
            tuning,
            is_exact,
        }
    };
    vec![
        with("as it is by default", true, |_| {}),
        with("warm-up-runs=0", true, |it| it.warm_up_runs = 0),
        with("cudnn-conv-algo-search=heuristic", true, |it| {
            it.conv_algorithm_search = ConvAlgorithmSearch::Heuristic;
        }),
        with("cudnn-conv-algo-search=default", true, |it| {
            it.conv_algorithm_search = ConvAlgorithmSearch::Default;
        }),
        with("tf32=false", true, |it| it.tf32 = false),
        with("deterministic=true", true, |it| it.deterministic = true),
        with("arena-shrinkage=true", true, |it| it.arena_shrinkage = true),
        with("pinned-io=true", true, |it| it.pinned_io = true),
        with("cuda-graph=true", true, |it| it.cuda_graph = true),
        with("fp16=true", false, |it| it.fp16 = true),
        with("tensorrt=true", true, |it| it.tensorrt = true),
        with("tensorrt=true fp16=true", false, |it| {
            (it.tensorrt, it.fp16) = (true, true);
        }),
    ]
}

/// Where the engine runs with `tuning`: on a GPU that passed, or on the processor where that was asked for.
fn placement(arguments: &Arguments, tuning: CudaTuning) -> Result<Placement, Box<dyn Error>> {
    if arguments.device == DeviceChoice::Cpu {
        return Ok(Placement::Cpu);
    }
    let request = Request {
        tuning,
        ..arguments.request.clone()
    };
    let probe = &mut MachineProbe::default();
    Ok(negotiate(EngineKind::InsightFace, &request, probe)?.placement)
}

fn title(arguments: &Arguments) -> String {
    let device = match (arguments.device, nvidia_driver()) {
        (DeviceChoice::Cuda, Ok(driver)) => {
            let names: Vec<&str> = driver.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
            let names = names.join(", ");
            format!(
                "{names}, driver {} for CUDA {}",
                driver.version, driver.cuda
            )
        }
        _ => "the processor in a GPU's place".to_owned(),
    };
    format!("insightface, {}×{}, {device}", SIZE.0, SIZE.1)
}

fn frames(clip: &Path) -> Result<Vec<gst::Sample>, Box<dyn Error>> {
    let (width, height) = SIZE;
    common::frames(
        clip,
        &format!("format=RGB,width={width},height={height}"),
        FRAMES,
    )
}

fn measure(
    arguments: &Arguments,
    placement: Placement,
    frames: &[gst::Sample],
    expected: &Faces,
) -> Result<Figures, Box<dyn Error>> {
    let free = free_memory();
    let config = EngineConfig {
        placement,
        ..arguments.config.clone()
    };
    let (found, mut figures) = look(&config, frames)?;
    figures.memory = free.zip(figures.memory).map(|(before, after)| {
        let taken = before.saturating_sub(after);
        taken >> 20
    });
    figures.parity = Parity::of(expected, &found);
    Ok(figures)
}

/// Free memory of all GPUs, bytes.
fn free_memory() -> Option<u64> {
    let driver = nvidia_driver().ok()?;
    Some(driver.gpus.iter().map(|gpu| gpu.free_memory).sum())
}

/// What the engine sees in `frames`, and how long that takes.
fn look(config: &EngineConfig, frames: &[gst::Sample]) -> Result<(Faces, Figures), Box<dyn Error>> {
    let start = Instant::now();
    let mut engine = engine::load(EngineKind::InsightFace, config)?;
    let load = start.elapsed();
    let mut times = Vec::new();
    let mut faces = Faces::new();
    for sample in frames {
        let start = Instant::now();
        faces.push(look_at(&mut engine, sample)?);
        times.push(start.elapsed());
    }
    let memory = free_memory();
    if let Some(notice) = engine.finder.take_notices().first() {
        return Err(format!("it did not run as it was told to: {notice:?}").into());
    }
    let first = times[0];
    times.sort_unstable();
    let figures = Figures {
        load,
        first,
        median: times[times.len() / 2],
        slowest: times[times.len() * 95 / 100],
        memory,
        parity: Parity::default(),
    };
    Ok((faces, figures))
}

fn look_at(engine: &mut Engine, sample: &gst::Sample) -> Result<Vec<Observation>, Box<dyn Error>> {
    let buffer = sample.buffer().ok_or("no frame")?;
    let pixels = buffer.map_readable()?;
    let frame = Frame {
        image: ImageView::rgb(SIZE.0, SIZE.1, &pixels)?,
        time: Duration::from_nanos(buffer.pts().ok_or("no time")?.nseconds()),
    };
    Ok(engine.look(&frame)?)
}

impl Figures {
    const HEADER: &str = "\
| | load s | first frame ms | ms a frame, median | 95 % below ms | fps | GPU MiB | landmarks px | embedding cosine |
|---|--:|--:|--:|--:|--:|--:|--:|--:|";

    fn line(&self, name: &str) -> String {
        let milliseconds = |time: Duration| 1000.0 * time.as_secs_f64();
        let memory = self.memory.map_or("–".to_owned(), |mib| mib.to_string());
        format!(
            "| {name} | {:.2} | {:.1} | {:.2} | {:.2} | {:.1} | {memory} | {} |",
            self.load.as_secs_f64(),
            milliseconds(self.first),
            milliseconds(self.median),
            milliseconds(self.slowest),
            1.0 / self.median.as_secs_f64(),
            self.parity
        )
    }
}
