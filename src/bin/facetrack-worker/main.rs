// SPDX-License-Identifier: MPL-2.0
//! The worker of `facetrack run` and `facetrack blur`: tracks one video after another with one loaded
//! engine, or covers the faces in one after another. It reads requests from standard input and writes
//! answers to standard output, one JSON object per line.
//!
//! With the argument `proxy` and a video, it works for `facetrack view`: it writes a copy of the video
//! for browsers to standard output.

#![warn(unreachable_pub)]

mod blur;
mod branch;
mod damage;
mod ending;
mod engine;
mod faults;
mod liveness;
mod measure;
mod overlap;
mod pictures;
mod playback;
mod proxy;
mod requests;
mod streams;

use std::env;
use std::error::Error;
use std::io;
use std::process::ExitCode;

use blur::Blur;
use engine::Engine;
use facetrack::printable::Line;
use facetrack_jobs::{Answer, BlurSetup, PROXY, Ready, Request, Setup, send};
use requests::Requests;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("facetrack-worker: {}", Line(error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    if let [command, video] = &arguments[..]
        && command == PROXY
    {
        gst::init()?;
        return proxy::write(video.as_ref());
    }
    let requests = Requests::of_stdin();
    match requests.next() {
        Some(Request::Setup(setup)) => track(&setup, &requests),
        Some(Request::SetUpBlur(setup)) => cover(&setup, &requests),
        _ => Err("`facetrack run` starts this program; it does nothing by itself".into()),
    }
}

/// Covers the faces of one video after another.
fn cover(setup: &BlurSetup, requests: &Requests) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    let blur = match Blur::new(setup) {
        Ok(blur) => blur,
        Err(refused) => return answer(&Answer::Refused(refused)),
    };
    answer(&Answer::Ready(Ready::default()))?;
    while let Some(request) = requests.next() {
        if let Request::Blur(job) = request {
            answer(&Answer::Done(Box::new(blur.cover(&job, requests))))?;
        }
    }
    Ok(())
}

/// Tracks one video after another.
fn track(setup: &Setup, requests: &Requests) -> Result<(), Box<dyn Error>> {
    gst::init()?;
    damage::listen();
    let engine = match Engine::load(setup) {
        Ok(engine) => engine,
        Err(refused) => return answer(&Answer::Refused(refused)),
    };
    answer(&Answer::Ready(engine.ready.clone()))?;
    while let Some(request) = requests.next() {
        match request {
            Request::Track(job) => {
                let outcome = playback::track(&engine, &job, requests);
                answer(&Answer::Done(Box::new(outcome)))?;
            }
            Request::Measure(video) => answer(&Answer::Measured(measure::seconds(&video)))?,
            _ => (),
        }
    }
    Ok(())
}

fn answer(answer: &Answer) -> Result<(), Box<dyn Error>> {
    Ok(send(io::stdout().lock(), answer)?)
}
