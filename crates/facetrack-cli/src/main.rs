// SPDX-License-Identifier: MPL-2.0
//! Fetches what the plugin needs, says what is missing, and sums up records: the tool behind `make setup`, `make doctor`,
//! `make env` and `make demo`. It needs no GStreamer to build.

mod apt;
mod doctor;
mod env;
mod fetch;
mod output;
mod packs;
mod pip;
mod places;
mod plot;
mod program;
mod report;
mod size;
mod source;
mod store;
mod terms;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use facetrack::manifest;

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(code) => code,
        Err(error) => {
            output::complain(format_args!("facetrack: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("facetrack")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Fetches and checks what the facetrack plugin needs")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("fetch")
                .about("Fetch models, ONNX Runtime and the sample clip; what is in place is only checked")
                .arg(
                    Arg::new("file")
                        .help("File names or families of models/manifest.json, such as insightface; without, all that do not have to be asked for")
                        .num_args(0..),
                )
                .arg(
                    Arg::new("manifest")
                        .long("manifest")
                        .help("Manifest to use instead of the built-in one")
                        .value_parser(value_parser!(PathBuf)),
                )
                .arg(
                    Arg::new("to")
                        .long("to")
                        .value_name("DIR")
                        .help("Folder to fetch into instead of the user's, such as /usr/local/share/facetrack for all users")
                        .value_parser(value_parser!(PathBuf)),
                ),
        )
        .subcommand(
            Command::new("doctor").about(
                "Say what is installed and what is missing; status 0 when the engine mediapipe can run",
            ),
        )
        .subcommand(
            Command::new("env")
                .about("Print the exports that let gst-launch-1.0 in any shell find plugin, models and runtime, and the shell this tool"),
        )
        .subcommand(
            Command::new("path")
                .about("Print where a fetched file lies")
                .arg(Arg::new("file").help("File name of models/manifest.json").required(true)),
        )
        .subcommand(
            Command::new("report")
                .about("Sum up a tracking file that trackjsonsink wrote")
                .arg(
                    Arg::new("track")
                        .help("Dense JSON file")
                        .required(true)
                        .value_parser(value_parser!(PathBuf)),
                )
                .arg(
                    Arg::new("seconds")
                        .long("seconds")
                        .help("How long the run took, for its speed")
                        .value_parser(value_parser!(f64)),
                )
                .arg(
                    Arg::new("blendshape")
                        .long("blendshape")
                        .help("Which channel to draw over time")
                        .default_value("jawOpen"),
                ),
        )
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Box<dyn std::error::Error>> {
    match matches.subcommand() {
        Some(("fetch", arguments)) => {
            let names: Vec<&String> = arguments.get_many("file").unwrap_or_default().collect();
            let manifest = fetch::manifest(arguments.get_one("manifest"))?;
            let to = arguments.get_one("to").map(PathBuf::as_path);
            fetch::run(&manifest, &names, to)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("doctor", _)) => Ok(doctor::run()?),
        Some(("env", _)) => {
            output::print(env::exports())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("path", arguments)) => {
            let path = fetch::path(manifest::manifest(), text(arguments, "file"))?;
            output::print_line(path.display())?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("report", arguments)) => {
            let track: &PathBuf = arguments.get_one("track").expect("clap requires it");
            let elapsed = arguments
                .get_one("seconds")
                .and_then(|&seconds| Duration::try_from_secs_f64(seconds).ok());
            output::print(report::of_file(
                track,
                text(arguments, "blendshape"),
                elapsed,
            )?)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => unreachable!("clap requires one of the subcommands above"),
    }
}

fn text<'a>(arguments: &'a ArgMatches, name: &str) -> &'a str {
    arguments
        .get_one::<String>(name)
        .expect("clap requires it or has a default")
}
