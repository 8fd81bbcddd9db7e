// SPDX-License-Identifier: MPL-2.0
//! Shares the GPU between the engines of a process: one runs at a time, in the order of request,
//! each with its part of the memory.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Condvar, Mutex};

use facetrack_assets::lock::lock;

/// Turns of this process.
static TURNS: Turns = Turns::new();

/// Bytes that engines of this process have reserved, by GPU.
static RESERVED: Mutex<BTreeMap<u32, u64>> = Mutex::new(BTreeMap::new());

/// The right to run on the GPU, until it is dropped. It stays on its thread.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    turns: &'a Turns,
    /// A guard that is moved to another thread could outlive its frame.
    stays: PhantomData<*const ()>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        lock(&self.turns.tickets).start += 1;
        self.turns.changed.notify_all();
    }
}

/// Waits for the right to run on the GPU, which is granted in the order of request. A thread that
/// has the right must not wait again, so engines use [`MemoryReservation::turn`], which prevents it.
pub(crate) fn turn() -> Permit<'static> {
    TURNS.wait()
}

/// A part of a GPU's memory for the arenas of one engine, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryReservation {
    gpu: u32,
    bytes: u64,
}

impl MemoryReservation {
    /// Waits for the right to run on the GPU. The permit must be dropped before the next one is
    /// requested; otherwise the thread would wait for itself.
    pub(crate) fn turn(&mut self) -> Permit<'_> {
        turn()
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        *lock(&RESERVED).entry(self.gpu).or_default() -= self.bytes;
    }
}

/// Reserves memory of the GPU `gpu`. `wanted` gets the number of bytes that the other engines of this
/// process have reserved there, and returns how many more are needed. No other engine reserves memory
/// meanwhile.
///
/// # Errors
/// Returns the error of `wanted`; nothing is reserved then.
pub(crate) fn reserve<E>(
    gpu: u32,
    wanted: impl FnOnce(u64) -> Result<u64, E>,
) -> Result<MemoryReservation, E> {
    let mut reservations = lock(&RESERVED);
    let reserved = reservations.entry(gpu).or_default();
    let bytes = wanted(*reserved)?;
    *reserved += bytes;
    Ok(MemoryReservation { gpu, bytes })
}

/// Tickets: each thread takes the next number, and waits until its turn comes.
#[derive(Debug)]
struct Turns {
    /// Tickets that were taken and have not had their turn.
    tickets: Mutex<Range<u64>>,
    changed: Condvar,
}

impl Turns {
    const fn new() -> Self {
        Self {
            tickets: Mutex::new(0..0),
            changed: Condvar::new(),
        }
    }

    fn wait(&self) -> Permit<'_> {
        let mut tickets = lock(&self.tickets);
        let own = tickets.end;
        tickets.end += 1;
        let is_early = |tickets: &mut Range<u64>| tickets.start != own;
        drop(self.changed.wait_while(tickets, is_early));
        Permit {
            turns: self,
            stays: PhantomData,
        }
    }

    /// Number of threads that have the right or wait for it.
    #[cfg(test)]
    fn waiting(&self) -> u64 {
        let tickets = lock(&self.tickets);
        tickets.end - tickets.start
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn one_runs_at_a_time() {
        let turns = Turns::new();
        let (inside, runs) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let permit = turns.wait();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        runs.fetch_add(1, Ordering::SeqCst);
                        drop(permit);
                    }
                });
            }
        });
        assert_eq!(runs.into_inner(), 400);
        assert_eq!(turns.waiting(), 0);
    }

    #[test]
    fn who_came_first_is_first() {
        let turns = Turns::new();
        let order = Mutex::new(Vec::new());
        thread::scope(|scope| {
            let first = turns.wait();
            for number in 0..5 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let permit = turns.wait();
                    lock(order).push(number);
                    drop(permit);
                });
                // Until that thread stands in the queue.
                while turns.waiting() < 2 + number {
                    thread::yield_now();
                }
            }
            drop(first);
        });
        assert_eq!(*lock(&order), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_panic_ends_a_turn() {
        let turns = Turns::new();
        let panicked = thread::scope(|scope| {
            let turns = &turns;
            scope
                .spawn(move || {
                    let _permit = turns.wait();
                    panic!("on purpose");
                })
                .join()
        });
        assert!(panicked.is_err());
        drop(turns.wait());
    }

    #[test]
    fn claimed_memory_is_counted_and_comes_back() {
        /// A GPU that only this test uses.
        const GPU: u32 = 901;
        let wanting = |bytes| {
            move |others| match others + bytes <= 100 {
                true => Ok(bytes),
                false => Err(others),
            }
        };
        let first = reserve(GPU, wanting(60)).unwrap();
        assert_eq!(first.bytes, 60);
        assert_eq!(reserve(GPU, wanting(50)).unwrap_err(), 60);
        let second = reserve(GPU, wanting(40)).unwrap();
        assert_eq!(reserve(GPU, wanting(1)).unwrap_err(), 100);
        assert!(reserve(GPU + 1, wanting(100)).is_ok());
        drop(first);
        assert_eq!(reserve(GPU, wanting(61)).unwrap_err(), 40);
        drop(second);
        let mut all = reserve(GPU, wanting(100)).unwrap();
        drop(all.turn());
        drop(all.turn());
    }
}
