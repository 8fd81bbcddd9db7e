// SPDX-License-Identifier: MPL-2.0
//! Shows a camera or another video with its tracked faces: `cargo run --release --example preview`.
//!
//! Two pipelines, so that the picture can be drawn again with other layers or at another size while
//! the video is paused:
//!
//! ```text
//! tracking  source ! … ! facetrack ! appsink      the newest frame is kept
//! drawing   appsrc ! videoconvertscale ! facetrackoverlay ! textoverlay ! appsink      at the size of the window
//! ```
//!
//! Nothing waits for the window: newer frames and pictures replace those that it has not shown yet.

mod controls;
mod drawing;
mod gauge;
mod notice;
mod outputs;
mod pipelines;
mod screen;
mod source;
mod stage;
mod tracking;
mod window;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use facetrack::printable::Line;
use winit::event_loop::EventLoop;

use drawing::Drawing;
use outputs::Outputs;
use source::Source;
use tracking::{Options, Tracking};
use window::Preview;

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("preview: {}", Line(error));
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("preview")
        .about("Shows a video with what facetrack finds in it, in a window")
        .after_help(controls::help())
        .arg(Arg::new("source").value_name("SOURCE").help(
            "A file, /dev/video0, pipewire or pipewire:<target>, rtsp://…, or another URI; without it the first camera, \
             or the sample clip where there is none",
        ))
        .arg(
            Arg::new("engine")
                .long("engine")
                .help("Engine to begin with: facetrack's property of that name"),
        )
        .arg(
            Arg::new("layers")
                .long("layers")
                .help("Layers to begin with, such as boxes+mesh: facetrackoverlay's property of that name"),
        )
        .arg(
            Arg::new("send")
                .long("send")
                .value_name("PROPERTIES")
                .default_value("protocol=vmc")
                .help("Receiver of the key u: properties of trackudpsink, such as \"protocol=livelink host=192.168.1.5\""),
        )
        .arg(
            Arg::new("record")
                .long("record")
                .value_name("FILE")
                .default_value("preview.json")
                .value_parser(clap::value_parser!(PathBuf))
                .help("First record of the key r; others get a number"),
        )
        .arg(
            Arg::new("freeze-at")
                .long("freeze-at")
                .value_name("SECONDS")
                .value_parser(seconds)
                .help("Pause when the video gets there; until then all frames of a file are analysed, however long that takes"),
        )
}

/// Parses a time of the video.
fn seconds(text: &str) -> Result<gst::ClockTime, String> {
    let seconds = text.parse().map_err(|_| "it takes a number of seconds")?;
    gst::ClockTime::try_from_seconds_f64(seconds)
        .map_err(|_| "no video has such a time: it takes a number of seconds from 0 on".to_owned())
}

fn run(arguments: &ArgMatches) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    gstfacetrack::plugin_register_static()?;
    let text = |name| arguments.get_one::<String>(name).map(String::as_str);
    let source = match text("source") {
        Some(text) => Source::named(text),
        None => Source::find()?,
    };
    let options = Options {
        engine: text("engine"),
        freeze_at: arguments.get_one("freeze-at").copied(),
    };

    let events = EventLoop::with_user_event()
        .build()
        .map_err(|error| format!("no window can be opened: {error}"))?;
    let drawing = Drawing::new(text("layers"), events.create_proxy())?;
    let record: Option<&PathBuf> = arguments.get_one("record");
    let outputs = Outputs::new(
        text("send").unwrap_or_default(),
        record.ok_or("--record has a default")?,
        events.create_proxy(),
    );
    let shown = (drawing.clone(), outputs.clone());
    let tracking = Tracking::new(&source, &options, shown, events.create_proxy())?;
    println!("{}\n\n{}\n", Line(&source), controls::help());
    let mut preview = Preview::new(tracking, drawing, outputs);
    events.run_app(&mut preview)?;
    preview.outcome()
}
