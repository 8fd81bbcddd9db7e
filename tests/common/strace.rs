// SPDX-License-Identifier: MPL-2.0
//! System calls that fail on purpose, with strace.

use std::process::Command;

use super::skip_for_want_of;

/// Returns true if strace is missing or may not trace, with a message.
pub fn is_missing() -> bool {
    let mut strace = Command::new("strace");
    let traced = strace.args(["-o", "/dev/null", "true"]).status();
    let is_missing = !traced.is_ok_and(|status| status.success());
    if is_missing {
        skip_for_want_of("strace", "strace");
    }
    is_missing
}

/// A system call that fails.
#[derive(Debug, Clone, Copy)]
pub struct Fault<'a> {
    /// The call.
    pub call: &'a str,
    /// Name of its error.
    pub error: &'a str,
    /// Numbers of the calls that fail, in strace's form: `3`, or `3+` from the third on.
    pub when: &'a str,
}

/// Output and system calls of a program.
pub struct Traced {
    /// Its standard output.
    pub text: String,
    /// The calls, one per line; `(INJECTED)` marks those that failed.
    pub calls: String,
}

impl Fault<'_> {
    /// Runs `program` with this fault. If there are `paths`, only calls on them count.
    pub fn inject(&self, program: &Command, paths: &[&str]) -> Traced {
        let Self { call, error, when } = self;
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut traced = Command::new("strace");
        traced.args(["-f", "--quiet=all", "-o"]).arg(log.path());
        traced.args(paths.iter().flat_map(|path| ["-P", path]));
        traced.arg(format!("--trace={call}"));
        traced.arg(format!("--inject={call}:error={error}:when={when}"));
        traced.arg(program.get_program()).args(program.get_args());
        let variables = program.get_envs();
        traced.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let output = traced.output().expect("strace runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{self:?}: {output:?}");
        let calls = std::fs::read_to_string(log.path()).expect("a log");
        Traced { text, calls }
    }
}
