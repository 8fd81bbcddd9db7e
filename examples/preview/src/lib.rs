// SPDX-License-Identifier: MPL-2.0
//! The program `facetrack-preview`: shows a camera or another video with its tracked faces, or with
//! the faces of a record.
//!
//! Two pipelines, so that the picture can be drawn again with other layers or at another size while
//! the video is paused:
//!
//! ```text
//! tracking  source ! queue ! … ! facetrack or trackjsonload ! appsink      the newest frame is kept
//! drawing   appsrc ! videoconvertscale ! facetrackoverlay ! appsink      at its size in the window
//! ```
//!
//! The source is a part of its own, which is replaced when a camera was lost. The rest keeps its state.
//!
//! Nothing waits for the window: newer frames and pictures replace those that it has not shown yet.

mod connection;
mod controls;
mod display;
mod drawing;
mod faders;
mod failure;
mod gauge;
mod layout;
mod neutral;
mod notice;
mod outputs;
mod panel;
mod pipelines;
mod pixels;
mod profile;
mod record;
mod screen;
mod source;
mod stage;
mod state;
mod text;
mod tracking;
mod view;
mod window;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{CommandFactory, Parser};
use facetrack::gain::Gains;
use facetrack::printable::Line;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use winit::event_loop::EventLoopProxy;

use drawing::Drawing;
use faders::Faders;
use outputs::Outputs;
use pipelines::Event;
use profile::Profile;
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
    #[arg(long, value_name = "FILE", requires = "source", conflicts_with_all = ["engine", "gain", "profile"])]
    record: Option<PathBuf>,
    /// Factors for blendshapes, such as jawOpen=1.5: facetrack's property blendshape-gain. They
    /// replace those of the profile
    #[arg(long, value_name = "CHANNEL=FACTOR,…", value_parser = gains, default_value = "", hide_default_value = true)]
    gain: String,
    /// File that keeps the neutral face and the gains for the next start; it is created if it does
    /// not exist
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Show an error in a window too: for a start without a terminal
    #[arg(long)]
    desktop: bool,
    /// Pause when the video gets there; until then all frames of a file are analysed, however long
    /// that takes
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    freeze_at: Option<gst::ClockTime>,
    /// Print the man page, for packages
    #[arg(long, hide = true)]
    man_page: bool,
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let arguments = Arguments::parse();
    let shown = match arguments.man_page {
        true => print_man_page().map_err(Into::into),
        false => show(&arguments),
    };
    let Err(error) = shown else {
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

fn print_man_page() -> io::Result<()> {
    clap_mangen::Man::new(Arguments::command()).render(&mut io::stdout())
}

/// Searches a record for findings, which may take some seconds.
fn search(path: PathBuf, events: EventLoopProxy<Event>) {
    thread::spawn(move || {
        let found = record::findings(&path).map_or_else(Event::Warned, Event::Searched);
        // Without an event loop the program is ending.
        let _ = events.send_event(found);
    });
}

/// Ends the program as the key q does if the terminal or the system asks for it, so that records and
/// the profile are complete.
///
/// # Errors
/// Returns the error of the system.
fn end_on_signals(events: EventLoopProxy<Event>) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        for _ in signals.forever() {
            // Without an event loop the program is ending.
            let _ = events.send_event(Event::Quit);
        }
    });
    Ok(())
}

/// Checks a list of gains.
fn gains(text: &str) -> Result<String, String> {
    text.parse::<Gains>()?;
    Ok(text.to_owned())
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
    let events = display::connect()?;
    let source = match &arguments.source {
        Some(text) => Source::named(text),
        None => Source::find()?,
    };
    let record = arguments.record.as_deref().map(Record::open).transpose()?;
    let profile = arguments
        .profile
        .as_deref()
        .map(Profile::open)
        .transpose()?;
    let profile = profile.unwrap_or_default();
    let faders = Faders::new(profile.gains(&arguments.gain)?);
    let options = Options {
        engine: arguments.engine.as_deref(),
        record: record.as_ref(),
        gains: &faders.gains,
        neutral: profile.neutral(),
        freeze_at: arguments.freeze_at,
    };

    let drawing = Drawing::new(arguments.layers.as_deref(), events.create_proxy())?;
    let outputs = Outputs::new(&arguments.send, &arguments.save, events.create_proxy());
    let shown = (drawing.clone(), outputs.clone());
    println!("{}\n\n{}\n", Line(&source), controls::help());
    let tracking = Tracking::new(source, &options, shown, events.create_proxy())?;
    end_on_signals(events.create_proxy())?;
    if let Some(path) = &arguments.record {
        search(path.clone(), events.create_proxy());
    }
    let mut preview = Preview::new(tracking, drawing, outputs, (faders, profile), record);
    events.run_app(&mut preview)?;
    preview.outcome()
}
