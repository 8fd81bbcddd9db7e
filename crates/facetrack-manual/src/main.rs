// SPDX-License-Identifier: MPL-2.0
//! Writes the man pages of `facetrack` and `facetrack-preview`, and the completions of `facetrack` for bash, fish and
//! zsh, into the folders `facetrack` and `facetrack-preview` of a folder:
//! `cargo run --package facetrack-manual -- <folder>`. Cargo builds it together with the programs, which an example
//! would make it build twice.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use clap_complete::Shell;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os()
        .nth(1)
        .ok_or("usage: facetrack-manual <folder>")?;
    write_manual(folder.as_ref())
}

fn write_manual(folder: &Path) -> Result<(), Box<dyn Error>> {
    let command = folder.join("facetrack");
    write_pages(facetrack_cli::command_line(), &command)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        clap_complete::generate_to(
            shell,
            &mut facetrack_cli::command_line(),
            "facetrack",
            &command,
        )?;
    }
    write_pages(
        facetrack_preview::command_line(),
        &folder.join("facetrack-preview"),
    )
}

fn write_pages(command: clap::Command, folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    Ok(clap_mangen::generate_to(command, folder)?)
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
