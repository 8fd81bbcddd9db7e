// SPDX-License-Identifier: MPL-2.0
//! Writes the man pages of the command `facetrack`, and its completions for bash, fish and zsh, into
//! a folder: `cargo run --package facetrack-cli --example manual -- <folder>`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use clap_complete::Shell;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).ok_or("usage: manual <folder>")?;
    write_manual(folder.as_ref())
}

fn write_manual(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(facetrack_cli::command_line(), folder)?;
    for shell in [Shell::Bash, Shell::Fish, Shell::Zsh] {
        let mut command = facetrack_cli::command_line();
        clap_complete::generate_to(shell, &mut command, "facetrack", folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    #[test]
    fn every_subcommand_has_a_man_page_and_completions() {
        let folder = tempfile::tempdir().unwrap();
        super::write_manual(folder.path()).unwrap();
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("facetrack.1").contains("facetrack\\-run(1)"));
        let command = facetrack_cli::command_line();
        assert!(command.get_subcommands().count() > 5);
        for name in command.get_subcommands().map(clap::Command::get_name) {
            let page = read(&format!("facetrack-{name}.1"));
            assert!(page.contains(&format!("facetrack\\-{name}")), "{page}");
            for completions in ["_facetrack", "facetrack.bash", "facetrack.fish"] {
                assert!(read(completions).contains(name), "{name}: {completions}");
            }
        }
    }
}
