// SPDX-License-Identifier: MPL-2.0
//! Requests of the command.

use std::io::{self, BufRead};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use facetrack::printable::Line;
use facetrack_jobs::Request;
use rustix::process::{Signal, getpid, kill_process};

/// Requests from standard input, which a thread reads.
pub(crate) struct Requests {
    receiver: Receiver<Request>,
    /// True if the current video is to stop.
    stop: Arc<AtomicBool>,
}

impl Requests {
    pub(crate) fn of_stdin() -> Self {
        let (sender, receiver) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let own = stop.clone();
        thread::spawn(move || read(&sender, &own));
        Self { receiver, stop }
    }

    /// The next request; `None` at the end of the input.
    pub(crate) fn next(&self) -> Option<Request> {
        self.receiver.recv().ok()
    }

    /// Returns true if the current video is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn read(sender: &Sender<Request>, stop: &AtomicBool) {
    let mut has_begun = false;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(Request::Stop) => stop.store(true, Ordering::Relaxed),
            Ok(request) => {
                has_begun = true;
                // The main thread has ended after an error.
                let _ = sender.send(request);
            }
            Err(error) => {
                let line = Line(line);
                eprintln!("facetrack-worker: request not understood: {error}: {line}");
                process::exit(1);
            }
        }
    }
    // The command has ended, so the current video is not needed any more. A following run may need
    // its files now, so this thread does not wait.
    if has_begun {
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
