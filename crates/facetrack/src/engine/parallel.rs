// SPDX-License-Identifier: MPL-2.0
//! Measures the faces of a frame in parallel.

use std::num::NonZero;
use std::sync::Mutex;
use std::{mem, thread};

use once_cell::sync::Lazy;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::lock::lock;

/// Threads that all engines share: with the thread that waits for them, one per core. A thread that
/// is started for each frame costs more than a small network, because it has no memory yet. A
/// thread more than there are cores takes time from the others, because an idle thread looks for
/// work before it sleeps. `None` if the system has no threads left.
static POOL: Lazy<Option<ThreadPool>> = Lazy::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    // Without a number, an environment variable would decide.
    let threads = ThreadPoolBuilder::new().num_threads((cores - 1).max(1));
    let named = threads.thread_name(|_| "facetrack-face".to_owned());
    named.build().ok()
});

/// Applies `measure` to each of `items`, on as many threads as there are `tools`, each with a tool of
/// its own. The results are in the order of the items.
///
/// # Errors
/// The first error of `measure`, in the order of the items.
pub fn map<T: Send, I: Send, R: Send, E: Send>(
    tools: &mut [T],
    items: impl IntoIterator<Item = I, IntoIter: ExactSizeIterator + Send>,
    measure: impl Fn(&mut T, I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let items = items.into_iter();
    let used = tools.len().min(items.len());
    let Some((own, others)) = tools[..used].split_first_mut() else {
        return Ok(Vec::new());
    };
    let (queue, results) = (Mutex::new(items.enumerate()), Mutex::new(Vec::new()));
    // The lock is free again while an item is measured.
    let next = || lock(&queue).next();
    let work = |tool: &mut T| {
        while let Some((index, item)) = next() {
            let result = measure(tool, item);
            lock(&results).push((index, result));
        }
    };
    match POOL.as_ref().filter(|_| !others.is_empty()) {
        Some(pool) => pool.in_place_scope(|scope| {
            for tool in others {
                scope.spawn(|_| work(tool));
            }
            work(own);
        }),
        None => work(own),
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
}
