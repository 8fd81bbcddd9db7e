// SPDX-License-Identifier: MPL-2.0
//! Tracks faces in many videos, fetches what the plugin needs, reports missing files, and shows
//! records: the tool behind `make setup`, `make doctor`, `make env` and `make demo`. It needs no
//! GStreamer to build.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![warn(unreachable_pub)]

mod apt;
mod blur;
mod doctor;
mod env;
mod error;
mod export;
mod faces;
mod fetch;
mod guard;
mod index;
mod output;
mod packs;
mod pip;
mod pipe;
mod places;
mod program;
mod replaced;
mod run;
mod size;
mod source;
mod store;
mod table;
mod terms;
mod view;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use facetrack::printable::Lines;
use facetrack_assets::manifest;

use crate::error::StoreError;

/// Name of the command.
const NAME: &str = "facetrack";

/// Exit status after which another try may succeed, such as after a full disk. `EX_TEMPFAIL` of
/// sysexits.h.
const TRY_AGAIN: u8 = 75;

/// Tracks faces in many videos, and fetches and checks what the facetrack plugin needs
#[derive(Parser)]
#[command(name = NAME, version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch models, ONNX Runtime and the sample clip; files already in place are only checked
    Fetch {
        /// File names or families of models/manifest.json, such as insightface; by default every
        /// file that need not be requested by name
        file: Vec<String>,
        /// Manifest to use instead of the built-in one
        #[arg(long)]
        manifest: Option<PathBuf>,
        /// Folder to fetch into instead of the user's, such as /usr/local/share/facetrack for all
        /// users
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
    },
    /// Track faces in videos, folders or lists of videos; a run that was interrupted continues
    Run(Box<run::RunArguments>),
    /// Export records as tables for other programs
    Export(export::ExportArguments),
    /// Write a page that shows a record over its video in a browser; of a folder, a page for each video
    View(view::ViewArguments),
    /// Copy videos with their faces covered, and check the copies
    Blur(blur::BlurArguments),
    /// Write the results of many videos, and their faces, to Parquet files
    Index(index::IndexArguments),
    /// Say what is installed and what is missing; status 0 if the engine mediapipe can run
    Doctor,
    /// Print the exports with which gst-launch-1.0 finds plugin, models and runtime, and a shell
    /// finds this command
    Env,
    /// Print the completions for a shell, such as bash, fish or zsh
    Completions {
        /// Name of the shell
        shell: Shell,
    },
    /// Write the man pages to a folder, for packages
    #[command(hide = true)]
    Man {
        /// Folder that exists
        folder: PathBuf,
    },
    /// Print the path of a fetched file
    Path {
        /// File name of models/manifest.json
        file: String,
    },
}

/// The description of the command line, which man pages and shell completions are made from.
fn command_line() -> clap::Command {
    Arguments::command()
}

/// The completions for a shell, as a script for it.
fn completions(shell: Shell) -> String {
    // `generate` panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), NAME, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Runs the command with the arguments of this process.
pub fn main() -> ExitCode {
    // It is for `facetrack run` only, so it is in no help text.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|name| name == guard::NAME) {
        return guard::run(&arguments.collect::<Vec<_>>());
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => return show(&answer),
    };
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            output::complain(format_args!("facetrack: {error}"));
            if error::is_full(&*error) {
                TRY_AGAIN.into()
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Shows the help, the version or wrong usage.
fn show(answer: &clap::Error) -> ExitCode {
    let text = answer.render();
    if answer.use_stderr() {
        eprint!("{}", Lines(text));
    } else if let Err(error) = output::print(text) {
        output::complain(format_args!("facetrack: {error}"));
        return TRY_AGAIN.into();
    }
    let code = u8::try_from(answer.exit_code());
    code.unwrap_or(u8::MAX).into()
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    match command {
        Command::Fetch { file, manifest, to } => {
            let manifest = fetch::manifest(manifest.as_deref())?;
            fetch::run(&manifest, &file, to.as_deref())?;
        }
        Command::Run(arguments) => return run::run(&arguments),
        Command::Export(arguments) => return export::run(&arguments),
        Command::View(arguments) => return view::run(&arguments),
        Command::Blur(arguments) => return blur::run(&arguments),
        Command::Index(arguments) => return index::run(&arguments),
        Command::Doctor => return Ok(doctor::run()?),
        Command::Env => output::print_exactly(env::exports())?,
        Command::Completions { shell } => output::print_exactly(completions(shell))?,
        Command::Man { folder } => {
            let written = clap_mangen::generate_to(command_line(), &folder);
            written.map_err(StoreError::at(&folder))?;
        }
        Command::Path { file } => {
            let path = fetch::path(manifest::manifest(), &file)?;
            output::print_exactly(format_args!("{}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
