// SPDX-License-Identifier: MPL-2.0
//! Shares the GPU between the engines of a process: one runs at a time, in the order of request,
//! each with its part of the memory.

use std::marker::PhantomData;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::lock::lock;

/// Of this process.
static TURNS: Turns = Turns::new();
static CLAIMS: Claims = Claims::new();

/// The right to run on the GPU, until it is dropped. It stays on its thread.
#[derive(Debug)]
pub struct Permit<'a> {
    turns: &'a Turns,
    /// A guard that went to another thread would outlive the frame that it was for.
    stays: PhantomData<*const ()>,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.turns.end();
    }
}

/// Waits for the right to run on the GPU, which is granted in the order of request. A thread that
/// has the right must not wait again, so engines use [`Claim::turn`], which prevents it.
pub fn turn() -> Permit<'static> {
    TURNS.wait()
}

/// A part of a GPU's memory for the arenas of one engine, given back when it is dropped.
#[derive(Debug)]
pub struct Claim {
    claims: &'static Claims,
    turns: &'static Turns,
    gpu: u32,
    bytes: u64,
}

impl Claim {
    /// Waits for the right to run on the GPU. It has to be dropped before the next is asked for:
    /// another way would wait for itself.
    pub fn turn(&mut self) -> Permit<'_> {
        self.turns.wait()
    }

    /// How much is claimed, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.give_back(self.gpu, self.bytes);
    }
}

/// Claims memory of the GPU `gpu`. `wanted` gets the number of bytes that the other engines of this
/// process have claimed there, and returns how many more are needed. No other engine claims memory
/// meanwhile.
///
/// # Errors
/// That of `wanted`, which claims nothing.
pub fn claim<E>(gpu: u32, wanted: impl FnOnce(u64) -> Result<u64, E>) -> Result<Claim, E> {
    let bytes = CLAIMS.take(gpu, wanted)?;
    Ok(Claim {
        claims: &CLAIMS,
        turns: &TURNS,
        gpu,
        bytes,
    })
}

/// Tickets: each thread takes the next number, and waits until it is shown.
#[derive(Debug)]
struct Turns {
    counters: Mutex<Counters>,
    shown: Condvar,
}

#[derive(Debug)]
struct Counters {
    next: u64,
    shown: u64,
}

impl Turns {
    const fn new() -> Self {
        Self {
            counters: Mutex::new(Counters { next: 0, shown: 0 }),
            shown: Condvar::new(),
        }
    }

    fn wait(&self) -> Permit<'_> {
        let mut counters = lock(&self.counters);
        let own = counters.next;
        counters.next += 1;
        drop(
            self.shown
                .wait_while(counters, |counters| counters.shown != own)
                .unwrap_or_else(PoisonError::into_inner),
        );
        Permit {
            turns: self,
            stays: PhantomData,
        }
    }

    fn end(&self) {
        lock(&self.counters).shown += 1;
        self.shown.notify_all();
    }

    /// How many have the right, or wait for it.
    #[cfg(test)]
    fn waiting(&self) -> u64 {
        let counters = lock(&self.counters);
        counters.next - counters.shown
    }
}

/// Memory that was claimed, by GPU.
#[derive(Debug)]
struct Claims(Mutex<Vec<(u32, u64)>>);

impl Claims {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn take<E>(&self, gpu: u32, wanted: impl FnOnce(u64) -> Result<u64, E>) -> Result<u64, E> {
        let mut claims = lock(&self.0);
        let of_others = claims.iter().filter(|(own, _)| *own == gpu);
        let bytes = wanted(of_others.map(|(_, bytes)| bytes).sum())?;
        claims.push((gpu, bytes));
        Ok(bytes)
    }

    fn give_back(&self, gpu: u32, bytes: u64) {
        let mut claims = lock(&self.0);
        if let Some(index) = claims.iter().position(|claim| *claim == (gpu, bytes)) {
            claims.swap_remove(index);
        }
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
    fn what_is_claimed_is_told_to_the_next_and_comes_back() {
        /// A GPU that only this test uses.
        const GPU: u32 = 901;
        let wanting = |bytes| {
            move |others| match others + bytes <= 100 {
                true => Ok(bytes),
                false => Err(others),
            }
        };
        let first = claim(GPU, wanting(60)).unwrap();
        assert_eq!(first.bytes(), 60);
        assert_eq!(claim(GPU, wanting(50)).unwrap_err(), 60);
        let second = claim(GPU, wanting(40)).unwrap();
        assert_eq!(claim(GPU, wanting(1)).unwrap_err(), 100);
        assert!(claim(GPU + 1, wanting(100)).is_ok());
        drop(first);
        assert_eq!(claim(GPU, wanting(61)).unwrap_err(), 40);
        drop(second);
        let mut all = claim(GPU, wanting(100)).unwrap();
        drop(all.turn());
        drop(all.turn());
    }
}
