// SPDX-License-Identifier: MPL-2.0
//! The program `facetrack-preview`: shows a camera or another video with its tracked faces, or with
//! the faces of a record.
//!
//! Two pipelines, so that the picture can be drawn again with other layers or at another size while
//! the video is paused:
//!
//! ```text
//! tracking  source ! … ! facetrack or trackjsonload ! appsink      the newest frame is kept
//! drawing   appsrc ! videoconvertscale ! facetrackoverlay ! textoverlay ! appsink      at the size of the window
//! ```
//!
//! Nothing waits for the window: newer frames and pictures replace those that it has not shown yet.

mod controls;
mod drawing;
mod faders;
mod failure;
mod gauge;
mod neutral;
mod notice;
mod outputs;
mod pipelines;
mod record;
mod screen;
mod source;
mod stage;
mod tracking;
mod window;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Command, CommandFactory, Parser};
use facetrack::gain::Gains;
use facetrack::printable::Line;
use winit::event_loop::{EventLoop, EventLoopProxy};

use drawing::Drawing;
use faders::Faders;
use outputs::Outputs;
use pipelines::Event;
use record::Record;
use source::Source;
use tracking::{Options, Tracking};
use window::Preview;

/// Shows a video with its tracked faces in a window
#[derive(Parser)]
#[command(name = "facetrack-preview", version, after_help = controls::help())]
struct Arguments {
    #[arg(
        help = "A file, /dev/video0, pipewire or pipewire:<target>, rtsp://…, or another URI; without it the first \
                camera, or the sample clip where there is none"
    )]
    source: Option<String>,
    /// Engine to begin with: facetrack's property of that name
    #[arg(long)]
    engine: Option<String>,
    /// Layers to begin with, such as boxes+mesh: facetrackoverlay's property of that name
    #[arg(long)]
    layers: Option<String>,
    /// Receiver of the key u: properties of trackudpsink, such as "protocol=livelink
    /// host=192.168.1.5"
    #[arg(long, value_name = "PROPERTIES", default_value = "protocol=vmc")]
    send: String,
    /// First record of the key r; others get a number
    #[arg(long, value_name = "FILE", default_value = "preview.json")]
    save: PathBuf,
    /// Record of this video to show, instead of tracking its faces
    #[arg(long, value_name = "FILE", requires = "source", conflicts_with_all = ["engine", "gain"])]
    record: Option<PathBuf>,
    /// Factors for blendshapes, such as jawOpen=1.5: facetrack's property blendshape-gain
    #[arg(long, value_name = "CHANNEL=FACTOR,…")]
    gain: Option<Gains>,
    /// Show an error in a window too: for a start without a terminal
    #[arg(long)]
    desktop: bool,
    /// Pause when the video gets there; until then all frames of a file are analysed, however long
    /// that takes
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    freeze_at: Option<gst::ClockTime>,
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let Err(error) = show(&arguments) else {
        return ExitCode::SUCCESS;
    };
    let text = format!("facetrack-preview: {}", Line(error));
    eprintln!("{text}");
    if arguments.desktop
        && let Err(error) = failure::show(&text)
    {
        eprintln!(
            "facetrack-preview: the error cannot be shown in a window: {}",
            Line(error)
        );
    }
    ExitCode::FAILURE
}

/// The command line of the program.
pub fn command_line() -> Command {
    Arguments::command()
}

/// Searches a record for findings, which may take some seconds.
fn search(path: PathBuf, events: EventLoopProxy<Event>) {
    std::thread::spawn(move || {
        let found = record::findings(&path).map_or_else(Event::Warned, Event::Searched);
        // Without an event loop the program is ending.
        let _ = events.send_event(found);
    });
}

/// Parses a time of the video.
fn seconds(text: &str) -> Result<gst::ClockTime, String> {
    let seconds = text.parse().map_err(|_| "it takes a number of seconds")?;
    gst::ClockTime::try_from_seconds_f64(seconds)
        .map_err(|_| "no video has such a time: it takes a number of seconds from 0 on".to_owned())
}

fn show(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let source = match &arguments.source {
        Some(text) => Source::named(text),
        None => Source::find()?,
    };
    let record = arguments.record.as_deref().map(Record::open).transpose()?;
    let faders = Faders::new(arguments.gain.unwrap_or_default());
    let options = Options {
        engine: arguments.engine.as_deref(),
        record: record.as_ref(),
        gains: &faders.gains,
        freeze_at: arguments.freeze_at,
    };

    let events = EventLoop::with_user_event()
        .build()
        .map_err(|error| format!("no window can be opened: {error}"))?;
    let drawing = Drawing::new(arguments.layers.as_deref(), events.create_proxy())?;
    let outputs = Outputs::new(&arguments.send, &arguments.save, events.create_proxy());
    let shown = (drawing.clone(), outputs.clone());
    let tracking = Tracking::new(&source, &options, shown, events.create_proxy())?;
    println!("{}\n\n{}\n", Line(&source), controls::help());
    if let Some(path) = &arguments.record {
        search(path.clone(), events.create_proxy());
    }
    let mut preview = Preview::new(tracking, drawing, outputs, faders, record);
    events.run_app(&mut preview)?;
    preview.outcome()
}
