// SPDX-License-Identifier: MPL-2.0
//! A folder of pictures to lines of JSON, with a tracker per core:
//! `cargo run --release --example folder -- pictures > pictures.jsonl`.

mod common;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use facetrack::{EngineError, EngineKind, RunningMode, SearchPaths, Tracker};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: folder FOLDER")?;
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
    paths.sort();

    // The networks are loaded once, whatever the number of trackers.
    let count = thread::available_parallelism()?.get().min(paths.len());
    let trackers = (0..count)
        .map(|_| tracker())
        .collect::<Result<Vec<_>, _>>()?;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for mut tracker in trackers {
            let (next, paths) = (&next, &paths);
            scope.spawn(move || {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match line(&mut tracker, path) {
                        Ok(line) => println!("{line}"),
                        Err(error) => eprintln!("{}: {error}", path.display()),
                    }
                }
            });
        }
    });
    Ok(())
}

fn tracker() -> Result<Tracker, EngineError> {
    Tracker::builder(EngineKind::MediaPipe)
        .paths(SearchPaths::from_vars(std::env::var_os))
        .running_mode(RunningMode::Image)
        .build()
}

fn line(tracker: &mut Tracker, path: &Path) -> Result<String, Box<dyn Error>> {
    let picture = common::Picture::read(path)?;
    // The next picture shows other people, so ids begin again.
    tracker.restart();
    let report = tracker.track(&picture.view()?, Duration::ZERO)?;
    Ok(format!("{:?}\t{}", path.display(), report.to_json()))
}
