// SPDX-License-Identifier: MPL-2.0
//! Writes the man pages of `facetrack` and `facetrack-preview`, and the completions of `facetrack` for bash, fish and
//! zsh, into the folders `facetrack` and `facetrack-preview` of a folder:
//! `cargo run --package facetrack-manual -- <folder>`. Cargo builds it together with the programs, which an example
//! would make it build twice.

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

use clap_complete::{Generator, Shell};
use facetrack_assets::file::is_full;

/// Name of the command.
const NAME: &str = "facetrack";

/// Exit statuses of wrong usage and of a full disk, as of `facetrack`.
const USAGE: u8 = 2;
const TRY_AGAIN: u8 = 75;

fn main() -> ExitCode {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: facetrack-manual <folder>");
        return USAGE.into();
    };
    let folder = Path::new(&folder);
    let Err(error) = write_manual(folder) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("{}: {error}", folder.display());
    if is_full(&error) {
        TRY_AGAIN.into()
    } else {
        ExitCode::FAILURE
    }
}

fn write_manual(folder: &Path) -> io::Result<()> {
    let command = folder.join(NAME);
    write_pages(facetrack_cli::command_line(), &command)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let script = facetrack_cli::completions(shell);
        fs::write(command.join(shell.file_name(NAME)), script)?;
    }
    write_pages(
        facetrack_preview::command_line(),
        &folder.join("facetrack-preview"),
    )
}

fn write_pages(command: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(command, folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_subcommand_has_a_man_page_and_completions() {
        let folder = tempfile::tempdir().unwrap();
        super::write_manual(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("facetrack/facetrack.1").contains("facetrack\\-run(1)"));
        assert!(read("facetrack-preview/facetrack-preview.1").contains("record"));
        let command = facetrack_cli::command_line();
        assert!(command.get_subcommands().count() > 5);
        for name in command.get_subcommands().map(clap::Command::get_name) {
            let page = read(&format!("facetrack/facetrack-{name}.1"));
            assert!(page.contains(&format!("facetrack\\-{name}")), "{page}");
            for completions in ["_facetrack", "facetrack.bash", "facetrack.fish"] {
                assert!(
                    read(&format!("facetrack/{completions}")).contains(name),
                    "{name}: {completions}"
                );
            }
        }
    }
}
