// SPDX-License-Identifier: MPL-2.0
//! Programs that are ended together with all programs of their process group.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Interval at which a program that is about to end is checked.
const POLL: Duration = Duration::from_millis(5);

/// Time for the system to end a killed program. Our choice. A program that waits for a lost network
/// disk takes longer; it is left to the system.
const DEATH: Duration = Duration::from_millis(500);

/// A program that leads a process group. The group is ended when this is dropped.
pub(super) struct ProcessGroup(pub Child);

impl ProcessGroup {
    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.0.id().try_into().ok()?)
    }

    /// Returns true if the program has ended. Its process id is not reused before
    /// [`ProcessGroup::end`].
    pub(super) fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let state = self.pid().map(|pid| waitid(WaitId::Pid(pid), options));
        !matches!(state, Some(Ok(None)))
    }

    /// Waits for the end of the program, for at most `time`. Returns true if it has ended.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.has_ended() {
            if start.elapsed() >= time {
                return false;
            }
            thread::sleep(POLL);
        }
        true
    }

    /// Ends the group, and returns how the program ended.
    ///
    /// # Errors
    /// Returns an error if the system cannot end the program now.
    pub(super) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(group) = self.pid() {
            // It may have no group yet, or be the last of it.
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.0.kill()?;
        if !self.ends_within(DEATH) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.0.wait()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The program has nothing to save.
        let _ = self.end();
    }
}
