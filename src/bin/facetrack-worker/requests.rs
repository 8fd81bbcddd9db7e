// SPDX-License-Identifier: MPL-2.0
//! Requests of the command.

use std::io::{self, BufRead};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use facetrack_jobs::Request;
use rustix::process::{Signal, getpid, kill_process};

/// Requests from standard input, which a thread reads.
pub struct Requests {
    receiver: Receiver<Request>,
    flags: Arc<Flags>,
}

#[derive(Default)]
struct Flags {
    /// Whether the current video is to stop.
    stop: AtomicBool,
    /// Whether a job was read and is not done.
    busy: AtomicBool,
}

impl Requests {
    pub fn of_stdin() -> Self {
        let (sender, receiver) = channel();
        let flags = Arc::new(Flags::default());
        let own = flags.clone();
        thread::spawn(move || read(&sender, &own));
        Self { receiver, flags }
    }

    /// The next request; `None` at the end of the input.
    pub fn next(&self) -> Option<Request> {
        self.receiver.recv().ok()
    }

    /// Whether the current video is to stop.
    pub fn is_stopping(&self) -> bool {
        self.flags.stop.load(Ordering::Relaxed)
    }

    pub fn job_is_done(&self) {
        self.flags.busy.store(false, Ordering::SeqCst);
    }
}

fn read(sender: &Sender<Request>, flags: &Flags) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let request = serde_json::from_str(&line);
        match request {
            Ok(Request::Stop) => flags.stop.store(true, Ordering::Relaxed),
            Ok(request) => {
                let is_job = matches!(request, Request::Job(_));
                flags.busy.fetch_or(is_job, Ordering::SeqCst);
                // The main thread has ended after an error.
                let _ = sender.send(request);
            }
            Err(error) => {
                eprintln!("facetrack-worker: request not understood: {error}: {line}");
                process::exit(1);
            }
        }
    }
    // The command has ended, and the current video is of no use to anyone. A run that follows may
    // need its files now, so nothing is waited for.
    if flags.busy.load(Ordering::SeqCst) {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
