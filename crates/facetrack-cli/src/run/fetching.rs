// SPDX-License-Identifier: MPL-2.0
//! The command of `--fetch`.

use std::env;
use std::io;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use crate::guard;

/// The placeholder of the video in the command.
const REMOTE: &str = "{}";

/// The placeholder of the local file in the command.
pub(super) const LOCAL: &str = "{local}";

/// The command of `--fetch`, as words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FetchCommand(Vec<String>);

impl FromStr for FetchCommand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("a quotation mark is not closed")?;
        for placeholder in [REMOTE, LOCAL] {
            let mut arguments = words.iter().skip(1);
            if !arguments.any(|word| word.contains(placeholder)) {
                return Err(format!(
                    "{placeholder} is missing. Write the command as in 'rclone copyto {REMOTE} {LOCAL}'"
                ));
            }
        }
        Ok(Self(words))
    }
}

impl FetchCommand {
    /// The name of the program.
    pub(crate) fn program(&self) -> &str {
        &self.0[0]
    }

    /// The command that copies `video` to the file `local`, with a guard.
    ///
    /// # Errors
    /// Returns an error if the path of this program is not known.
    pub(crate) fn command(&self, video: &Path, local: &Path) -> io::Result<Command> {
        let (video, local) = (video.to_string_lossy(), local.to_string_lossy());
        let filled = |word: &String| word.replace(LOCAL, &local).replace(REMOTE, &video);
        let mut command = Command::new(env::current_exe()?);
        command.arg(guard::NAME);
        command.args(self.0.iter().map(filled));
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_need_both_names() {
        for (text, part) in [
            ("rclone copyto {} /tmp/x", "{local} is missing"),
            ("{} {local}", "{} is missing"),
            ("cp '{} {local}", "quotation mark"),
        ] {
            let error = text.parse::<FetchCommand>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
