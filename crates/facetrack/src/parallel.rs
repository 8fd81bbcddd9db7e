// SPDX-License-Identifier: MPL-2.0
//! Divides work among threads: the faces of a frame, and the rows of a network.

use std::cell::Cell;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, thread};

use facetrack_net::Spawn;
use once_cell::sync::Lazy;
use rayon::{ThreadPool, ThreadPoolBuilder};

use facetrack_assets::lock::lock;

/// Threads that all engines share: with the thread that waits for them, one per core. A thread that
/// is started for each frame costs more than a small network, because it has no memory yet. A
/// thread more than there are cores takes time from the others, because an idle thread looks for
/// work before it sleeps. `None` if the system has no threads left.
static POOL: Lazy<Option<ThreadPool>> = Lazy::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    // Without a number, an environment variable would determine it.
    let threads = ThreadPoolBuilder::new().num_threads((cores - 1).max(1));
    let named = threads.thread_name(|_| "facetrack-face".to_owned());
    // Without a handler, a panic would end the process. Threads that wait for the work notice the
    // panic.
    named.panic_handler(drop).build().ok()
});

/// The pool, if more than one thread is wanted.
fn pool(threads: usize) -> Option<&'static ThreadPool> {
    (threads > 1).then(|| POOL.as_ref()).flatten()
}

/// Threads that run networks.
static BUSY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Number of faces that are measured at once, this thread's among them.
    static FACES: Cell<usize> = const { Cell::new(1) };
}

/// Number of threads that run a network together. One is this thread, and the others belong to the
/// pool.
struct Team(usize);

impl Team {
    /// Reserves `wanted` threads, or fewer if not every thread has a core.
    fn new(wanted: usize) -> Self {
        let helpers = pool(wanted).map_or(0, ThreadPool::current_num_threads);
        let idle = |busy| helpers.saturating_sub(busy);
        let size = |busy| 1 + idle(busy).min(wanted.saturating_sub(1));
        let add = |busy| Some(busy + size(busy));
        let before = BUSY.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        Self(before.map_or(1, size))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        BUSY.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Calls `run`, which runs a network, with a number of threads and a function that gives work to the
/// other threads. Faces that are measured at once share `threads`. The number is not larger than a
/// face's share, nor than the number of cores that run no network.
pub(crate) fn with_threads<R>(threads: usize, run: impl FnOnce(usize, &Spawn<'_>) -> R) -> R {
    let team = Team::new(threads / FACES.get());
    run(team.0, &|work| {
        if let Some(pool) = pool(team.0) {
            pool.spawn(work);
        }
    })
}

/// Applies `measure` to each of `items`, on as many threads as there are `tools`, each with a tool of
/// its own. The results are in the order of the items.
///
/// # Errors
/// Returns the first error of `measure`, in the order of the items.
pub(crate) fn map<T: Send, I: Send, R: Send, E: Send>(
    tools: &mut [T],
    items: impl IntoIterator<Item = I, IntoIter: ExactSizeIterator + Send>,
    measure: impl Fn(&mut T, I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let items = items.into_iter();
    let used = tools.len().min(items.len());
    let tools: Vec<_> = tools[..used].iter_mut().map(Mutex::new).collect();
    let (queue, results) = (Mutex::new(items.enumerate()), Mutex::new(Vec::new()));
    // The lock is free again while an item is measured.
    let next = || lock(&queue).next();
    let work = |number: usize| {
        let Some(tool) = tools.get(number) else {
            return;
        };
        let _faces = scopeguard::guard(FACES.replace(used), |faces| FACES.set(faces));
        while let Some((index, item)) = next() {
            let result = measure(&mut lock(tool), item);
            lock(&results).push((index, result));
        }
    };
    match pool(used) {
        Some(pool) => pool.in_place_scope(|scope| {
            for number in 1..used {
                let work = &work;
                scope.spawn(move |_| work(number));
            }
            work(0);
        }),
        None => work(0),
    }
    let mut results = mem::take(&mut *lock(&results));
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        let doubled: Vec<usize> = items.iter().map(|item| 2 * item).collect();
        for tools in 1..5 {
            let results = map(&mut vec![(); tools], &items, |(), item| {
                Ok::<_, ()>(2 * item)
            });
            assert_eq!(results.as_ref(), Ok(&doubled), "{tools} tools");
        }
    }

    #[test]
    fn every_item_is_measured_once() {
        let mut counts = [0; 3];
        let count = |count: &mut usize, _: &usize| {
            *count += 1;
            Ok::<_, ()>(())
        };
        assert!(map(&mut counts, &[0; 50], count).is_ok());
        assert_eq!(counts.iter().sum::<usize>(), 50);
        assert_eq!(map(&mut counts, &[], count), Ok(Vec::new()));
    }

    #[test]
    fn the_first_error_is_returned() {
        let even = |(): &mut (), item: &usize| {
            if item.is_multiple_of(2) {
                Ok(())
            } else {
                Err(*item)
            }
        };
        assert_eq!(map(&mut [(), ()], &[0, 2, 3, 5, 4], even), Err(3));
    }

    #[test]
    fn faces_that_are_measured_at_once_share_the_threads() {
        let shared = map(&mut [(), ()], [3, 1], |(), threads| {
            Ok::<_, ()>(with_threads(threads, |threads, _| threads))
        });
        assert_eq!(shared, Ok(vec![1, 1]));
        assert_eq!(FACES.get(), 1);
    }
}
