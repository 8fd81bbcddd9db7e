// SPDX-License-Identifier: MPL-2.0
//! The engine `insightface` on a GPU against itself on the CPU, and the effect of each latency
//! option, for `benches/cuda.sh`, which says how to make the frames.
//!
//! It shows raw frames to the engine, once on the CPU and then once for each option. It fails if
//! there is no GPU, if an option fails, and if the results differ by more than the bar. With `cpu`
//! it runs on the CPU in place of the GPU, which tests everything but the GPU.

#[path = "cuda/parity.rs"]
pub mod parity;

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use facetrack::device::{
    ConvAlgorithmSearch, CudaTuning, DeviceChoice, DriverInfo, LibrarySearch, MachineProbe,
    Placement, Request, negotiate, nvidia_driver,
};
use facetrack::engine::{self, EngineConfig, EngineKind, Frame, insightface};
use facetrack::image::{Colorimetry, ImageView, PixelFormat, Plane};
use facetrack::observation::Observation;
use facetrack_assets::locate::SearchPaths;
use parity::Parity;

/// Maximum number of frames that are read.
const FRAMES: usize = 60;

/// Frames per second, for the time of each frame.
const RATE: u32 = 30;

const USAGE: &str =
    "usage: cuda cuda|cpu PACK FRAMES rgb|nv12 WIDTH HEIGHT [ONNXRUNTIME [CUDA_LIB_PATH]]";

/// The arguments.
struct Arguments {
    device: DeviceChoice,
    frames: PathBuf,
    format: PixelFormat,
    size: [usize; 2],
    request: Request,
    config: EngineConfig,
}

/// An option to compare with the defaults.
struct Row {
    name: &'static str,
    tuning: CudaTuning,
    /// Half precision and TF32 need not meet the bar, which is for floats of 32 bits.
    is_exact: bool,
}

/// Results of a row.
struct Figures {
    load: Duration,
    first: Duration,
    median: Duration,
    slowest: Duration,
    /// GPU memory that the process uses, MiB; `None` without a GPU.
    memory: Option<u64>,
    parity: Parity,
}

type Faces = Vec<Vec<Observation>>;

fn main() -> ExitCode {
    // Cargo adds an argument of its own.
    let arguments: Vec<String> = env::args().skip(1).filter(|it| it != "--bench").collect();
    if arguments.is_empty() {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table.
///
/// # Errors
/// Returns the options that failed or missed the bar, or the reason why the table cannot be made.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let arguments = read_arguments(arguments)?;
    let gpu = FreeMemory::of(&arguments);
    // Before minutes of work on the CPU.
    placement(&arguments, CudaTuning::default())?;
    println!("{}", arguments.title());
    if let Some(taken) = gpu.taken(&arguments) {
        println!("CUDA and its libraries take {taken} MiB");
    }
    let frames = arguments.read_frames()?;
    let (expected, _) = measure(&arguments, &gpu, Placement::Cpu, &frames)?;
    let faces: usize = expected.iter().map(Vec::len).sum();
    if faces == 0 {
        return Err("the frames show no face".into());
    }
    println!("{} frames with {faces} faces\n", frames.len());
    println!("{}", Figures::HEADER);
    let mut failures = Vec::new();
    for row in rows() {
        let placement = match placement(&arguments, row.tuning) {
            Ok(placement) => placement,
            Err(reason) => {
                println!("| {} | not available here: {reason} |", row.name);
                continue;
            }
        };
        match measure(&arguments, &gpu, placement, &frames) {
            Ok((found, mut figures)) => {
                figures.parity = Parity::of(&expected, &found);
                println!("{}", figures.line(row.name));
                let misses = row.is_exact && !figures.parity.is_met();
                failures.extend(misses.then(|| format!("{}: {}", row.name, parity::BAR)));
                if row.tuning.deterministic {
                    let placement = self::placement(&arguments, row.tuning)?;
                    let (again, _) = measure(&arguments, &gpu, placement, &frames)?;
                    let differs = again != found;
                    failures.extend(differs.then(|| format!("{}: two runs differ", row.name)));
                }
            }
            Err(reason) => {
                println!("| {} | failed: {reason} |", row.name);
                failures.push(format!("{}: {reason}", row.name));
            }
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("\nmissed:\n{}", failures.join("\n")).into())
}

fn read_arguments(arguments: &[String]) -> Result<Arguments, Box<dyn Error>> {
    let [device, pack, frames, format, width, height, rest @ ..] = arguments else {
        return Err(USAGE.into());
    };
    let device = match device.as_str() {
        "cuda" => DeviceChoice::Cuda,
        "cpu" => DeviceChoice::Cpu,
        other => return Err(format!("unknown device {other}").into()),
    };
    let format = match format.as_str() {
        "rgb" => PixelFormat::Rgb,
        "nv12" => PixelFormat::Nv12,
        other => return Err(format!("unknown format {other}").into()),
    };
    let mut paths = SearchPaths::from_vars(env::var_os);
    paths.runtime = rest.first().map(PathBuf::from).or(paths.runtime);
    let libraries = rest.get(1).map(PathBuf::from);
    Ok(Arguments {
        device,
        frames: frames.into(),
        format,
        size: [width.parse()?, height.parse()?],
        request: Request {
            device: Some(DeviceChoice::Cuda),
            fallback: false,
            libraries: LibrarySearch::of(libraries, &|name| env::var(name).ok()),
            paths: paths.clone(),
            visible_devices: env::var("CUDA_VISIBLE_DEVICES").ok(),
            ..Request::default()
        },
        config: EngineConfig {
            model: Some(pack.into()),
            paths,
            insightface: insightface::Settings {
                embedding: true,
                ..insightface::Settings::default()
            },
            ..EngineConfig::default()
        },
    })
}

/// Each option by itself, except half precision, which TensorRT has as well. TensorRT comes last,
/// since its libraries stay in memory.
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
        with("defaults", true, |_| {}),
        with("warm-up-runs=0", true, |it| it.warm_up_runs = 0),
        with("cudnn-conv-algo-search=exhaustive", true, |it| {
            it.conv_algorithm_search = ConvAlgorithmSearch::Exhaustive;
        }),
        with("cudnn-conv-algo-search=default", true, |it| {
            it.conv_algorithm_search = ConvAlgorithmSearch::Default;
        }),
        with("tf32=true", false, |it| it.tf32 = true),
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

/// Device on which the engine runs with `tuning`: a GPU that passed the checks, or the CPU if that
/// was requested.
fn placement(arguments: &Arguments, tuning: CudaTuning) -> Result<Placement, Box<dyn Error>> {
    if arguments.device == DeviceChoice::Cpu {
        return Ok(Placement::Cpu);
    }
    let request = Request {
        tuning,
        ..arguments.request.clone()
    };
    let probe = &mut MachineProbe::default();
    Ok(negotiate(EngineKind::InsightFace.capabilities(), &request, probe)?.placement)
}

impl Arguments {
    fn title(&self) -> String {
        let visible = self.request.visible_devices.as_deref();
        let device = match (self.device, nvidia_driver(visible)) {
            (DeviceChoice::Cuda, Ok(driver)) => {
                let names: Vec<&str> = driver.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
                format!(
                    "{}, driver {} for CUDA {}",
                    names.join(", "),
                    driver.version,
                    driver.cuda
                )
            }
            _ => "the CPU in place of a GPU".to_owned(),
        };
        let [width, height] = self.size;
        format!("insightface, {width}×{height}, {device}")
    }

    /// The bytes of each frame.
    fn read_frames(&self) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
        let [width, height] = self.size;
        let planes = self.format.plane_layout(width, height);
        let length = planes.iter().map(|(stride, rows)| stride * rows).sum();
        let name = self.frames.display();
        let mut file = File::open(&self.frames).map_err(|error| format!("{name}: {error}"))?;
        let mut frames = Vec::new();
        while frames.len() < FRAMES {
            let mut frame = vec![0; length];
            match file.read_exact(&mut frame) {
                Ok(()) => frames.push(frame),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(format!("{name}: {error}").into()),
            }
        }
        if frames.is_empty() {
            return Err(format!("{name}: not one frame of {length} bytes").into());
        }
        Ok(frames)
    }

    fn image<'a>(&self, mut pixels: &'a [u8]) -> Result<ImageView<'a>, Box<dyn Error>> {
        let [width, height] = self.size;
        let mut planes = Vec::new();
        for (stride, rows) in self.format.plane_layout(width, height) {
            let (data, rest) = pixels.split_at(stride * rows);
            planes.push(Plane { data, stride });
            pixels = rest;
        }
        let colorimetry = Colorimetry::default();
        Ok(ImageView::new(
            self.format,
            width,
            height,
            colorimetry,
            &planes,
        )?)
    }
}

/// Free memory of all GPUs when the program started, bytes; `None` without a GPU.
struct FreeMemory(Option<u64>);

impl FreeMemory {
    fn of(arguments: &Arguments) -> Self {
        let driver = nvidia_driver(arguments.request.visible_devices.as_deref());
        let sum = |driver: DriverInfo| driver.gpus.iter().map(|gpu| gpu.free_memory).sum();
        Self(driver.ok().map(sum))
    }

    /// Memory taken since then, MiB.
    fn taken(&self, arguments: &Arguments) -> Option<u64> {
        let (before, after) = self.0.zip(Self::of(arguments).0)?;
        Some(before.saturating_sub(after) >> 20)
    }
}

/// The faces that the engine finds in `frames`, and how long that takes.
fn measure(
    arguments: &Arguments,
    gpu: &FreeMemory,
    placement: Placement,
    frames: &[Vec<u8>],
) -> Result<(Faces, Figures), Box<dyn Error>> {
    let config = EngineConfig {
        placement,
        ..arguments.config.clone()
    };
    let start = Instant::now();
    let mut engine = engine::load(EngineKind::InsightFace, &config)?;
    let load = start.elapsed();
    let mut times = Vec::new();
    let mut faces = Faces::new();
    for (index, pixels) in (0..).zip(frames) {
        let start = Instant::now();
        let frame = Frame {
            image: arguments.image(pixels)?,
            time: Duration::from_secs(1) * index / RATE,
        };
        faces.push(engine.look(&frame, &EngineKind::InsightFace.thresholds())?);
        times.push(start.elapsed());
    }
    let memory = gpu.taken(arguments);
    if let Some(notice) = engine.finder.take_notices().first() {
        return Err(format!("it did not run as requested: {notice:?}").into());
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
