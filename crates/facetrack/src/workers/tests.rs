// SPDX-License-Identifier: MPL-2.0
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::analyzer::{Analyzer, Tuning};
use crate::engine::{Engine, EngineInfo, Found, Frame, Thresholds};
use crate::image::ImageView;
use crate::report::ReportSource;
use crate::tracker::TrackerConfig;

/// Finds nothing.
struct Idle;

impl Finder for Idle {
    fn find(&mut self, _frame: &Frame<'_>, _thresholds: &Thresholds) -> Result<Found, EngineError> {
        Ok(Found::all(Vec::new()))
    }
}

fn finders(count: usize) -> Vec<Box<dyn Finder>> {
    let finder = |_| Box::new(Idle) as Box<dyn Finder>;
    (0..count).map(finder).collect()
}

fn analyzer() -> Analyzer {
    let engine = Engine::new(EngineInfo::default(), Idle, ());
    let (tracker, source) = (TrackerConfig::default(), ReportSource::default());
    Analyzer::new(engine, tracker, Tuning::default(), source)
}

/// Searches a frame of one pixel.
fn search(
    analyzer: &Analyzer,
) -> impl FnOnce(&mut dyn Finder) -> Result<Detections, EngineError> + use<> {
    let search = analyzer.detect_job();
    move |finder| {
        let image = ImageView::rgb(1, 1, &[0; 3]).unwrap();
        let time = Duration::ZERO;
        search.run(finder, &Frame { image, time })
    }
}

#[test]
fn as_many_frames_as_workers_are_searched_at_once() {
    let workers = Workers::start(finders(3)).unwrap();
    let analyzer = analyzer();
    let all_search = Arc::new(Barrier::new(3));
    let pending: Vec<_> = (0..3)
        .map(|_| {
            let (search, all_search) = (search(&analyzer), all_search.clone());
            workers.detect(move |finder| {
                all_search.wait();
                search(finder)
            })
        })
        .collect();
    assert!(pending.into_iter().all(|pending| pending.wait().is_ok()));
}

#[test]
fn a_search_that_nobody_waits_for_does_not_begin() {
    let workers = Workers::start(finders(1)).unwrap();
    let analyzer = analyzer();
    let (begin, begun) = mpsc::channel::<()>();
    let runs = Arc::new(AtomicUsize::new(0));
    let first = search(&analyzer);
    let first = workers.detect(move |finder| {
        // Until the second search is cancelled.
        let _ = begun.recv();
        first(finder)
    });
    let (second, count) = (search(&analyzer), runs.clone());
    drop(workers.detect(move |finder| {
        count.fetch_add(1, Ordering::SeqCst);
        second(finder)
    }));
    drop(begin);
    assert!(first.wait().is_ok());
    drop(workers);
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn a_panic_ends_only_its_own_search() {
    let workers = Workers::start(finders(1)).unwrap();
    let panicking = workers.detect(|_| panic!("for the test"));
    let payload = catch_unwind(AssertUnwindSafe(|| panicking.wait())).unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"for the test"));
    let mut next = workers.detect(search(&analyzer()));
    while !next.is_done() {
        thread::yield_now();
    }
    assert!(next.wait().is_ok());
}
