// SPDX-License-Identifier: MPL-2.0
//! Measures the faces of a frame in parallel.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies `measure` to each of `items`, on as many threads as there are `tools`, each with a tool of
/// its own. The results are in the order of the items.
///
/// # Errors
/// The first error of `measure`, in the order of the items.
pub fn map<T, I, R, E>(
    tools: &mut [T],
    items: &[I],
    measure: impl Fn(&mut T, &I) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    T: Send,
    I: Sync,
    R: Send,
    E: Send,
{
    let used = tools.len().min(items.len());
    let Some((own, others)) = tools[..used].split_first_mut() else {
        return Ok(Vec::new());
    };
    let next = AtomicUsize::new(0);
    let work = |tool: &mut T| {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return results;
            };
            results.push((index, measure(tool, item)));
        }
    };
    let mut results = thread::scope(|scope| {
        let start = |tool| {
            let thread = thread::Builder::new().name("facetrack-face".to_owned());
            // Without it the other threads do its work.
            thread.spawn_scoped(scope, || work(tool)).ok()
        };
        let threads: Vec<_> = others.iter_mut().filter_map(start).collect();
        let mut results = work(own);
        for thread in threads {
            results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
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
