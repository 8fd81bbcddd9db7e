// SPDX-License-Identifier: MPL-2.0
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

/// Joins a pool of numbered sessions. The pool has at most two.
fn join(pool: &Arc<Pool<usize>>, opened: &AtomicUsize) -> User<usize> {
    let open = || Ok::<_, Infallible>(opened.fetch_add(1, Ordering::SeqCst));
    User::join(pool, [1, 2], open).unwrap()
}

#[test]
fn a_pool_has_no_more_sessions_than_users_and_cores() {
    let (pool, opened) = (Arc::default(), AtomicUsize::new(0));
    let mut users = Vec::new();
    for sessions in [1, 2, 2, 2] {
        users.push(join(&pool, &opened));
        assert_eq!(lock(&pool.state).sessions, sessions);
    }
    for sessions in [2, 2, 1, 0] {
        users.pop();
        assert_eq!(lock(&pool.state).sessions, sessions);
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[test]
fn a_user_that_runs_several_times_at_once_has_as_many_sessions() {
    let (pool, opened) = (Arc::<Pool<usize>>::default(), AtomicUsize::new(0));
    let open = || Ok::<_, Infallible>(opened.fetch_add(1, Ordering::SeqCst));
    let several = User::join(&pool, [3, 4], open).unwrap();
    assert_eq!(lock(&pool.state).sessions, 3);
    let more = User::join(&pool, [3, 4], open).unwrap();
    assert_eq!(lock(&pool.state).sessions, 4);
    drop(several);
    assert_eq!(lock(&pool.state).sessions, 3);
    drop(more);
    assert_eq!(lock(&pool.state).sessions, 0);
}

#[test]
fn as_many_users_as_there_are_sessions_run_at_once() {
    let (pool, opened) = (Arc::default(), AtomicUsize::new(0));
    let users = [join(&pool, &opened), join(&pool, &opened)];
    let both_run = Barrier::new(2);
    let sessions = thread::scope(|scope| {
        let both_run = &both_run;
        let threads = users.each_ref().map(|user| {
            scope.spawn(move || {
                user.with_session(|session| {
                    both_run.wait();
                    *session
                })
            })
        });
        threads.map(|thread| thread.join().unwrap())
    });
    assert_ne!(sessions[0], sessions[1]);
}

#[test]
fn a_user_waits_for_a_session() {
    let (pool, opened) = (Arc::default(), AtomicUsize::new(0));
    let users: Vec<_> = (0..8).map(|_| join(&pool, &opened)).collect();
    let runs = AtomicUsize::new(0);
    thread::scope(|scope| {
        for user in &users {
            scope.spawn(|| {
                for _ in 0..1000 {
                    user.with_session(|_| runs.fetch_add(1, Ordering::SeqCst));
                }
            });
        }
    });
    assert_eq!(runs.into_inner(), 8000);
    assert_eq!(lock(&pool.state).idle.len(), 2);
}

#[test]
fn a_session_that_cannot_be_opened_leaves_no_user() {
    let (pool, opened) = (Arc::default(), AtomicUsize::new(0));
    assert_eq!(User::join(&pool, [2, 2], || Err(())).err(), Some(()));
    let user = join(&pool, &opened);
    assert_eq!(user.with_session(|session| *session), 0);
    assert_eq!(lock(&pool.state).runs, 1);
}

#[test]
fn a_panic_returns_the_session() {
    let (pool, opened) = (Arc::default(), AtomicUsize::new(0));
    let user = join(&pool, &opened);
    let panics = || user.with_session(|_: &mut usize| panic!("for the test"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!(user.with_session(|session| *session), 0);
}
