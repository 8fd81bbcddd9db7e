// SPDX-License-Identifier: MPL-2.0
//! Sessions of a network that several users share.
//!
//! A session runs once at a time, so a pool has as many sessions as its users run at once, but no
//! more than there are cores: more sessions would need memory and save no time. A user borrows any
//! session for each run, since all give the same results.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use smart_default::SmartDefault;

use facetrack_assets::lock::lock;

/// The sessions of a network.
#[derive(SmartDefault)]
pub(super) struct Pool<T> {
    state: Mutex<State<T>>,
    is_returned: Condvar,
    /// Lock that is held while a session is opened, so that users that open the same network wait
    /// for one another.
    opening: Mutex<()>,
}

#[derive(SmartDefault)]
struct State<T> {
    idle: Vec<T>,
    /// Sessions, idle or borrowed.
    sessions: usize,
    /// Runs at once of all users.
    runs: usize,
}

/// A user of a pool. It leaves when dropped.
pub(super) struct User<T> {
    pool: Arc<Pool<T>>,
    runs: usize,
    max_sessions: usize,
}

impl<T> User<T> {
    /// Joins the users of `pool`, to run `runs` times at once. `open` opens more sessions, until
    /// there are `max_sessions`.
    ///
    /// # Errors
    /// Returns the errors of `open`.
    pub(super) fn join<E>(
        pool: &Arc<Pool<T>>,
        [runs, max_sessions]: [usize; 2],
        open: impl Fn() -> Result<T, E>,
    ) -> Result<Self, E> {
        let _opening = lock(&pool.opening);
        lock(&pool.state).runs += runs;
        // It leaves if a session cannot be opened.
        let user = Self {
            pool: pool.clone(),
            runs,
            max_sessions,
        };
        for _ in 0..user.missing_sessions() {
            let session = open()?;
            lock(&pool.state).sessions += 1;
            user.give_back(session);
        }
        Ok(user)
    }

    fn missing_sessions(&self) -> usize {
        let state = lock(&self.pool.state);
        let wanted = self.max_sessions.min(state.runs);
        wanted.saturating_sub(state.sessions)
    }

    /// Does `work` with a session, as soon as one is idle.
    pub(super) fn with_session<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut session = scopeguard::guard(self.borrow(), |session| self.give_back(session));
        work(&mut session)
    }

    fn borrow(&self) -> T {
        let mut state = lock(&self.pool.state);
        loop {
            if let Some(session) = state.idle.pop() {
                return session;
            }
            let returned = self.pool.is_returned.wait(state);
            state = returned.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give_back(&self, session: T) {
        lock(&self.pool.state).idle.push(session);
        self.pool.is_returned.notify_one();
    }
}

impl<T> Drop for User<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.pool.state);
        state.runs -= self.runs;
        let wanted = self.max_sessions.min(state.runs);
        let surplus = state.sessions - wanted.min(state.sessions);
        let kept = state.idle.len() - surplus.min(state.idle.len());
        let closed = state.idle.split_off(kept);
        state.sessions -= closed.len();
        // They are closed without the lock.
        drop(state);
    }
}

#[cfg(test)]
mod tests;
