// SPDX-License-Identifier: MPL-2.0
//! Memory, file descriptors and threads of a long stream, and of many loads, for each engine.
//!
//! Run `make soak`, or `cargo bench --bench soak -- FRAMES LOADS [ENGINE]...`. Frames of the sample
//! clip go through `facetrack ! facetrackoverlay ! trackjsonsink` again and again. Then the engine
//! is loaded and unloaded. Each engine has a process of its own.
//!
//! The slope of resident memory is a linear regression over samples after a warm-up. The warm-up is
//! the first fifth of the samples: the memory pools of the C library and of ONNX Runtime, and the
//! statistics of `facetrack`, grow until they have seen every size that the clip needs. Large blocks
//! of memory are returned to the system when they are freed, so that only those in use count.

mod common;
#[path = "common/sample.rs"]
mod sample;

use std::error::Error;
use std::fs;
use std::process::{Command, ExitCode};

use facetrack::engine::EngineKind;
use gst::prelude::*;

/// Frames of the clip that are repeated, in its own order.
const CLIP: usize = 100;

/// A size with a face of about 60 px, at which 100,000 frames take minutes.
const CAPS: &str = "format=I420,width=320,height=180";

const PERIOD: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// Samples of a run.
const SAMPLES: usize = 100;

/// Maximum slope of resident memory, kB per 1,000 frames.
const MAX_FRAME_SLOPE: f64 = 1.0;

/// Maximum slope of resident memory, kB per load. Each load reads models and starts threads, which
/// leaves a few fragments in the pools of the C library.
const MAX_LOAD_SLOPE: f64 = 1.0;

/// Makes glibc map each block of at least this size, in bytes, on its own. By default, the size
/// rises to the largest block that was freed, and what is below stays in pools: resident memory then
/// varies by 15 MB from load to load.
const MAPPED: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().filter(|it| *it != "--bench").collect();
    let [frames, loads, engines @ ..] = arguments.as_slice() else {
        println!("usage: cargo bench --bench soak -- FRAMES LOADS [ENGINE]...");
        return Ok(ExitCode::SUCCESS);
    };
    let is_sound = match engines {
        [engine] if std::env::var_os(MAPPED.0).is_some() => {
            soak(engine, frames.parse()?, loads.parse()?)?
        }
        [] => each(&EngineKind::ALL.map(EngineKind::name), frames, loads)?,
        engines => each(engines, frames, loads)?,
    };
    Ok(if is_sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs each engine in a process of its own. Returns whether all are sound.
fn each(engines: &[impl AsRef<str>], frames: &str, loads: &str) -> Outcome<bool> {
    let program = std::env::current_exe()?;
    let mut is_sound = true;
    for engine in engines {
        let mut command = Command::new(&program);
        let command = command.env(MAPPED.0, MAPPED.1);
        let command = command.args([frames, loads, engine.as_ref()]);
        is_sound &= command.status()?.success();
    }
    Ok(is_sound)
}

fn soak(engine: &str, frames: usize, loads: usize) -> Outcome<bool> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    if let Err(missing) = load(&element(engine)?) {
        println!("SKIPPED: {engine}: {missing}");
        return Ok(true);
    }
    let stream = stream(engine, frames)?;
    let is_stream_sound = stream.judge(engine, "1,000 frames", 1000.0, MAX_FRAME_SLOPE);
    let reloads = reloads(engine, loads)?;
    Ok(reloads.judge(engine, "load", 1.0, MAX_LOAD_SLOPE) && is_stream_sound)
}

fn element(engine: &str) -> Outcome<gst::Element> {
    let element = gst::ElementFactory::make("facetrack").property("engine", engine);
    Ok(element.build()?)
}

/// Loads the engine of an element and unloads it.
fn load(element: &gst::Element) -> Outcome<()> {
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let loaded = element.set_state(gst::State::Paused);
    element.set_state(gst::State::Null)?;
    element.set_bus(None);
    match bus.pop_filtered(&[gst::MessageType::Error]) {
        Some(message) => Err(error_of(&message)),
        None => Ok(loaded.map(|_| ())?),
    }
}

fn error_of(message: &gst::Message) -> Box<dyn Error> {
    match message.view() {
        gst::MessageView::Error(error) => error.error().into(),
        _ => format!("{message:?}").into(),
    }
}

/// Loads and unloads an engine again and again.
fn reloads(engine: &str, loads: usize) -> Outcome<Usages> {
    let element = element(engine)?;
    let mut usages = Usages::default();
    for number in 1..=loads {
        load(&element)?;
        usages.sample(number, loads)?;
    }
    Ok(usages)
}

/// Plays the clip again and again.
fn stream(engine: &str, frames: usize) -> Outcome<Usages> {
    if frames == 0 {
        return Ok(Usages::default());
    }
    let clip = common::frames(&sample::clip()?, CAPS, CLIP)?;
    let pipeline = gst::parse::launch(&format!(
        "appsrc name=in format=time block=true max-buffers=4 \
         ! facetrack engine={engine} max-faces=2 ! facetrackoverlay \
         ! trackjsonsink location=/dev/null format=jsonl verbose=true"
    ))?;
    let bin = pipeline.downcast_ref::<gst::Bin>().ok_or("no bin")?;
    let source = bin.by_name("in").and_downcast::<gst_app::AppSrc>();
    let source = source.ok_or("no source")?;
    source.set_caps(clip[0].caps_owned().as_ref());
    pipeline.set_state(gst::State::Playing)?;
    let mut usages = Usages::default();
    for number in 0..frames {
        source.push_buffer(frame(&clip, number)?)?;
        usages.sample(number + 1, frames)?;
    }
    source.end_of_stream()?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    let bus = pipeline.bus().ok_or("no bus")?;
    let end = bus.timed_pop_filtered(gst::ClockTime::NONE, &ends);
    pipeline.set_state(gst::State::Null)?;
    match end.filter(|end| end.type_() == gst::MessageType::Error) {
        Some(message) => Err(error_of(&message)),
        None => Ok(usages),
    }
}

/// The frame of the endless clip with this number, from 0. Faces are new in each pass, so that
/// what is kept for each id would show.
fn frame(clip: &[gst::Sample], number: usize) -> Outcome<gst::Buffer> {
    let place = number % clip.len();
    let mut buffer = clip[place].buffer_owned().ok_or("no frame")?;
    let fields = buffer.make_mut();
    fields.set_pts(number as u64 * PERIOD);
    fields.set_duration(PERIOD);
    if place == 0 {
        fields.set_flags(gst::BufferFlags::DISCONT);
    }
    Ok(buffer)
}

/// Resources of the process.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Number of frames or loads so far.
    count: f64,
    /// Resident memory, kB.
    memory: f64,
    descriptors: usize,
    threads: usize,
}

impl Usage {
    fn now(count: usize) -> Outcome<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        Ok(Self {
            count: count as f64,
            memory: figure(&status, "VmRSS:")?,
            descriptors: fs::read_dir("/proc/self/fd")?.count(),
            threads: figure(&status, "Threads:")? as usize,
        })
    }
}

/// The number in a line of `/proc/self/status`.
fn figure(status: &str, name: &str) -> Outcome<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.ok_or("no such line")?.parse()?)
}

/// Samples of a run.
#[derive(Default)]
struct Usages(Vec<Usage>);

impl Usages {
    /// Adds a sample at this number of `total`, if one is due.
    fn sample(&mut self, number: usize, total: usize) -> Outcome<()> {
        if number.is_multiple_of((total / SAMPLES).max(1)) {
            self.0.push(Usage::now(number)?);
        }
        Ok(())
    }

    /// Prints the growth after the warm-up. Returns whether it is small enough.
    fn judge(&self, engine: &str, unit: &str, per: f64, max_slope: f64) -> bool {
        let samples = &self.0[self.0.len() / 5..];
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
            return true;
        };
        let slope = per * slope(samples);
        println!(
            "{engine:<20}{slope:>9.3} kB per {unit:<13} {:>7.0} kB at {:>7}, {:>7.0} kB at {:>7}; \
             descriptors {} → {}, threads {} → {}",
            first.memory,
            first.count,
            last.memory,
            last.count,
            first.descriptors,
            last.descriptors,
            first.threads,
            last.threads
        );
        slope <= max_slope && last.descriptors <= first.descriptors && last.threads <= first.threads
    }
}

/// Slope of memory over the count, by least squares.
fn slope(samples: &[Usage]) -> f64 {
    let mean = |of: fn(&Usage) -> f64| samples.iter().map(of).sum::<f64>() / samples.len() as f64;
    let (count, memory) = (mean(|it| it.count), mean(|it| it.memory));
    let sum = |of: &dyn Fn(&Usage) -> f64| samples.iter().map(of).sum::<f64>();
    let covariance = sum(&|it| (it.count - count) * (it.memory - memory));
    covariance / sum(&|it| (it.count - count).powi(2)).max(1.0)
}
