// SPDX-License-Identifier: MPL-2.0
//! Ends videos that make no progress, because a demuxer waits forever or is in an endless loop. A
//! slow machine, a slow disk or a slow engine is not a reason to end a video.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

use facetrack_assets::lock::lock;
use facetrack_jobs::{Answer, Cause, Outcome, Status, send};
use gst_base::prelude::*;
use gstfacetrack::facetrack::FaceTrack;
use gstfacetrack::trackjsonsink::TrackJsonSink;

/// Interval at which a video is checked.
const CHECK: Duration = Duration::from_secs(1);

/// Number of idle checks in a row after which a video is ended. At an idle check, no thread works and
/// nothing is read. Our choice: without work to do, a pipeline continues within milliseconds.
const MAX_IDLE: u32 = 5;

/// CPU time, in ticks, that a thread takes without progress before its video is ended: a minute. Our
/// choice: the slowest decoders take some seconds for a frame. A busy machine does not shorten it.
const MAX_TICKS: u64 = 60 * 100;

/// Ticks in one check of a process that does nothing: threads that look at clocks take some time.
const IDLE_TICKS: u64 = 1;

/// Folder with the descriptions of this process's threads, and of the calling thread.
const THREADS: &str = "/proc/self/task";
const THIS_THREAD: &str = "/proc/thread-self";

/// Places of the state of a thread and its ticks of CPU time, in user and kernel mode, after its name
/// in its description (`man 5 proc_pid_stat`).
const STATE: usize = 0;
const TICKS: [usize; 2] = [11, 12];

/// States of threads that work, or that wait for a processor or a disk.
const WORKING: [&str; 2] = ["R", "D"];

/// The message about a video that is ended.
const STALLED: &str = "the file cannot be read: it is damaged, or lacks its beginning or end";

/// The parts of a pipeline that show its progress.
pub(crate) struct Parts<'a> {
    pub file: &'a gst::Element,
    pub decoder: &'a gst::Element,
    pub facetrack: &'a FaceTrack,
    pub sink: &'a TrackJsonSink,
}

/// Watches a video until it is dropped.
pub(crate) struct Watch {
    /// State of the video. It is locked while an outcome is sent; the other thread waits until the
    /// first outcome was sent.
    state: Arc<Mutex<State>>,
    thread: Thread,
}

/// State of a video.
enum State {
    Played,
    /// The outcome is known.
    Concluded(Box<Outcome>),
    /// The pipeline has been dropped.
    Over,
}

/// The progress of a video, as the threads of its pipeline see it.
#[derive(Default)]
struct Progress {
    /// End of the farthest part of the file that was read, bytes.
    read: AtomicU64,
    /// The latest time of a decoded frame, ns.
    decoded: AtomicU64,
    recorded: AtomicU64,
    /// True if a part of the file is being read.
    is_reading: AtomicBool,
    /// True if the sink has all frames.
    is_ending: AtomicBool,
}

/// Progress of a video at a check.
#[derive(Default, Clone)]
struct Sample {
    progress: [u64; 3],
    is_reading: bool,
    /// True if a frame is being analysed, or the record is being written.
    is_ours: bool,
    /// CPU time of the threads in ticks, by number.
    ticks: HashMap<String, u64>,
    is_working: bool,
}

/// Decides if a video has stalled.
struct Judge {
    last: Sample,
    /// The last sample that showed progress.
    moved: Sample,
    idle: u32,
}

impl Watch {
    /// Watches a pipeline in a thread of its own, since calls into a pipeline that has stalled may
    /// not return. Then that thread gives the answer, and the command ends this process.
    pub(crate) fn over(parts: &Parts<'_>, path: &Path) -> Self {
        let progress = Arc::new(Progress::default());
        progress.see_reading(parts.file, path);
        progress.see_decoding(parts.decoder);
        progress.see_recording(parts.sink);
        let state = Arc::new(Mutex::new(State::Played));
        let (facetrack, sink) = (parts.facetrack.clone(), parts.sink.clone());
        let of_thread = state.clone();
        let thread = thread::spawn(move || {
            let sample = |is_played: bool| {
                let is_writing = progress.is_ending.load(Ordering::Relaxed) || sink.is_recording();
                progress.sample(is_played && (is_writing || facetrack.is_analyzing()))
            };
            watch(sample, &of_thread);
        });
        let thread = thread.thread().clone();
        Self { state, thread }
    }

    /// The outcome of a video that has stalled.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &*lock(&self.state) {
            State::Concluded(outcome) => Some(*outcome.clone()),
            _ => None,
        }
    }

    /// Takes note of the outcome, before the pipeline is stopped.
    pub(crate) fn conclude(&self, outcome: &Outcome) {
        *lock(&self.state) = State::Concluded(Box::new(outcome.clone()));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *lock(&self.state) = State::Over;
        self.thread.unpark();
    }
}

fn watch(sample: impl Fn(bool) -> Sample, state: &Mutex<State>) {
    let mut judge = Judge::new(sample(true));
    loop {
        thread::park_timeout(CHECK);
        let mut state = lock(state);
        let outcome = match &*state {
            State::Over => return,
            State::Played => None,
            State::Concluded(outcome) => Some(outcome.clone()),
        };
        if !judge.has_stalled(sample(outcome.is_none())) {
            continue;
        }
        let Some(outcome) = outcome else {
            let stalled = Outcome::without_record(Status::Failed, STALLED);
            *state = State::Concluded(Box::new(stalled));
            judge = Judge::new(sample(false));
            continue;
        };
        let cause = Some(Cause::Stalled);
        let answer = Answer::Done(Box::new(Outcome { cause, ..*outcome }));
        // Without a reader, standard input ends too.
        let _ = send(io::stdout().lock(), &answer);
        loop {
            thread::park();
        }
    }
}

impl Progress {
    /// Notes which parts of the file at `path` are read. Demuxers pull it, also through decodebin's
    /// `typefind`.
    fn see_reading(self: &Arc<Self>, file: &gst::Element, path: &Path) {
        let size = fs::metadata(path).map_or(0, |found| found.len());
        let Some(pad) = file.static_pad("src") else {
            return;
        };
        let (begun, done) = (self.clone(), self.clone());
        let before = gst::PadProbeType::BLOCK | gst::PadProbeType::PULL;
        pad.add_probe(before, move |_, info| {
            // Data never follows a read behind the end.
            let is_inside = info.offset < size;
            begun.is_reading.store(is_inside, Ordering::Relaxed);
            gst::PadProbeReturn::Pass
        });
        let after = gst::PadProbeType::BUFFER | gst::PadProbeType::PULL;
        pad.add_probe(after, move |_, info| {
            let end = info.offset + u64::from(info.size);
            done.read.fetch_max(end, Ordering::Relaxed);
            done.is_reading.store(false, Ordering::Relaxed);
            gst::PadProbeReturn::Ok
        });
    }

    fn see_decoding(self: &Arc<Self>, decoder: &gst::Element) {
        let progress = self.clone();
        decoder.connect_pad_added(move |_, pad| {
            let progress = progress.clone();
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
                let time = info.buffer().and_then(|buffer| buffer.pts());
                let time = time.map_or(0, gst::ClockTime::nseconds);
                progress.decoded.fetch_max(time, Ordering::Relaxed);
                gst::PadProbeReturn::Ok
            });
        });
    }

    fn see_recording(self: &Arc<Self>, sink: &TrackJsonSink) {
        let progress = self.clone();
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        sink.sink_pad().add_probe(kinds, move |_, info| {
            match info.event().map(|event| event.type_()) {
                Some(gst::EventType::Eos) => progress.is_ending.store(true, Ordering::Relaxed),
                Some(_) => (),
                None => _ = progress.recorded.fetch_add(1, Ordering::Relaxed),
            }
            gst::PadProbeReturn::Ok
        });
    }

    fn sample(&self, is_ours: bool) -> Sample {
        let figures = [&self.read, &self.decoded, &self.recorded];
        let (mut ticks, mut is_working) = (HashMap::new(), false);
        for (thread, text) in threads() {
            let fields = text.rsplit(')').next().unwrap_or_default();
            let fields: Vec<_> = fields.split_whitespace().collect();
            let time = TICKS
                .iter()
                .filter_map(|at| fields.get(*at)?.parse::<u64>().ok());
            ticks.insert(thread, time.sum());
            is_working |= fields
                .get(STATE)
                .is_some_and(|state| WORKING.contains(state));
        }
        Sample {
            progress: figures.map(|figure| figure.load(Ordering::Relaxed)),
            is_reading: self.is_reading.load(Ordering::Relaxed),
            is_ours,
            ticks,
            is_working,
        }
    }
}

/// The numbers and descriptions of the other threads.
fn threads() -> impl Iterator<Item = (String, String)> {
    let own = fs::read_link(THIS_THREAD).unwrap_or_default();
    let own = own.file_name().map(ToOwned::to_owned);
    let all = fs::read_dir(THREADS).into_iter().flatten().flatten();
    let others = all.filter(move |thread| Some(thread.file_name()) != own);
    others.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("stat")).ok()?;
        Some((thread.file_name().to_string_lossy().into_owned(), text))
    })
}

impl Sample {
    /// Ticks of each thread since an earlier sample.
    fn ticks_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = u64> + 'a {
        self.ticks.iter().map(|(thread, ticks)| {
            let before = earlier.ticks.get(thread).copied().unwrap_or(0);
            ticks.saturating_sub(before)
        })
    }
}

impl Judge {
    fn new(now: Sample) -> Self {
        let (last, moved) = (now.clone(), now);
        let idle = 0;
        Self { last, moved, idle }
    }

    /// Returns true if the video has stalled, with its state one check after the last one.
    fn has_stalled(&mut self, now: Sample) -> bool {
        let has_moved = now.progress != self.moved.progress;
        if has_moved || now.is_ours {
            *self = Self::new(now);
            return false;
        }
        let has_worked = now.ticks_since(&self.last).sum::<u64>() > IDLE_TICKS;
        let is_idle = !(has_worked || now.is_working || now.is_reading);
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        let is_in_a_loop = now.ticks_since(&self.moved).any(|ticks| ticks > MAX_TICKS);
        self.last = now;
        is_in_a_loop || self.idle >= MAX_IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ticks: u64) -> Sample {
        let ticks = HashMap::from([("7".to_owned(), ticks)]);
        Sample {
            ticks,
            ..Sample::default()
        }
    }

    /// The state of a video at each check.
    type Samples = fn(u64) -> Sample;

    /// The number of checks after which a video has stalled.
    fn checks(sample: impl Fn(u64) -> Sample) -> Option<u64> {
        let mut judge = Judge::new(sample(0));
        (1..1000).find(|check| judge.has_stalled(sample(*check)))
    }

    #[test]
    fn videos_that_do_nothing_or_go_round_in_circles_have_stalled() {
        let cases: [(&str, Samples, Option<u64>); 8] = [
            ("nothing", |_| sample(0), Some(5)),
            ("a loop", |check| sample(100 * check), Some(61)),
            (
                "a loop with a fifth of a processor",
                |check| sample(20 * check),
                Some(301),
            ),
            (
                "a loop that reads",
                |check| Sample {
                    is_reading: true,
                    ..sample(100 * check)
                },
                Some(61),
            ),
            (
                "no processor",
                |_| Sample {
                    is_working: true,
                    ..sample(0)
                },
                None,
            ),
            (
                "a slow disk",
                |_| Sample {
                    is_reading: true,
                    ..sample(0)
                },
                None,
            ),
            (
                "a slow engine",
                |check| Sample {
                    is_ours: true,
                    ..sample(100 * check)
                },
                None,
            ),
            (
                "slow progress",
                |check| Sample {
                    progress: [0, check / 50, 0],
                    ..sample(100 * check)
                },
                None,
            ),
        ];
        for (name, sample, stalled) in cases {
            assert_eq!(checks(sample), stalled, "{name}");
        }
    }

    #[test]
    fn a_thread_that_works_is_seen() {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        let busy = thread::spawn(move || while !flag.load(Ordering::Relaxed) {});
        let progress = Progress::default();
        let first = progress.sample(false);
        let works = || {
            progress
                .sample(false)
                .ticks_since(&first)
                .any(|ticks| ticks > 10)
        };
        while !works() {
            thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        busy.join().expect("it ends");
    }
}
