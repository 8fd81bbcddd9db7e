// SPDX-License-Identifier: MPL-2.0
//! Checks GStreamer, and that it finds the plugin. Its programs run in the user's folder because
//! GStreamer's variables may have relative paths.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use super::finding::Finding;
use crate::{places, program};

/// Elements that play the usual files, with the Debian package of each.
const ELEMENTS: [(&str, &str); 5] = [
    ("filesrc", "libgstreamer1.0-0"),
    ("decodebin", "gstreamer1.0-plugins-base"),
    ("videoconvert", "gstreamer1.0-plugins-base"),
    ("qtdemux", "gstreamer1.0-plugins-good"),
    ("avdec_h264", "gstreamer1.0-libav"),
];

/// An element for reading MPEG-TS and some other formats, and for writing MP4.
const PARSER: &str = "h264parse";

const INSPECT: &str = "gst-inspect-1.0";
const PLUGIN_PATH: &str = "GST_PLUGIN_PATH";

/// Version and elements.
pub(super) fn framework() -> Vec<Finding> {
    match version() {
        Ok(version) => [vec![Finding::good(version)], elements()].concat(),
        Err(reason) => {
            let remedy = "sudo apt-get install gstreamer1.0-tools";
            vec![Finding::bad(reason, remedy)]
        }
    }
}

/// Checks that the plugin is built, and that GStreamer finds it in this shell.
pub(super) fn plugin() -> Vec<Finding> {
    let mut findings = Vec::new();
    let built = places::built_plugin();
    if let Some(folder) = &built {
        let shown = folder.display();
        findings.push(match file_of_plugin(Some(folder)) {
            Ok(file) => Finding::good(format!("built: {file}")),
            Err(reason) => Finding::bad(
                format!("built in {shown}, but GStreamer cannot load it: {reason}"),
                format!("{PLUGIN_PATH}={shown} GST_DEBUG=GST_PLUGIN_LOADING:4 {INSPECT} facetrack"),
            ),
        });
    }
    findings.push(match (file_of_plugin(None), &built) {
        (Ok(file), _) => Finding::good(format!("found in this shell: {file}")),
        (Err(_), Some(_)) => Finding::bad(
            "not found in this shell by gst-launch-1.0",
            "eval \"$(make -s env)\"",
        ),
        (Err(_), None) => Finding::bad(
            "not found by gst-launch-1.0, and not built",
            format!("make build, or {PLUGIN_PATH}=<the folder of libgstfacetrack.so>"),
        ),
    });
    findings
}

fn version() -> Result<String, String> {
    let printed = program::output(Command::new(INSPECT).arg("--version"))?;
    let version = printed.lines().find(|line| line.starts_with("GStreamer "));
    let version = version.ok_or_else(|| format!("{INSPECT} does not print its version"))?;
    Ok(version.to_owned())
}

fn elements() -> Vec<Finding> {
    let (present, missing): (Vec<_>, Vec<_>) =
        ELEMENTS.iter().partition(|(element, _)| exists(element));
    let has_parser = exists(PARSER);
    let names = present.iter().map(|(element, _)| *element);
    let names: Vec<_> = names.chain(has_parser.then_some(PARSER)).collect();
    let mut findings = Vec::new();
    if !names.is_empty() {
        findings.push(Finding::good(format!("elements: {}", names.join(", "))));
    }
    findings.extend(missing.iter().map(|(element, package)| {
        Finding::bad(
            format!("element {element} is missing"),
            format!("sudo apt-get install {package}"),
        )
    }));
    if !has_parser {
        findings.push(Finding::note(format!(
            "element {PARSER} is missing: reading MPEG-TS and writing MP4 need gstreamer1.0-plugins-bad"
        )));
    }
    findings
}

fn exists(element: &str) -> bool {
    program::output(Command::new(INSPECT).args(["--exists", element])).is_ok()
}

/// The file that GStreamer takes the plugin from, with `folder` before its plugin path.
fn file_of_plugin(folder: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new(INSPECT);
    command.args(["--plugin", "facetrack"]);
    if let Some(folder) = folder {
        command.env(PLUGIN_PATH, with_plugin_path(folder));
    }
    let printed = program::output(&mut command)?;
    filename(&printed).ok_or_else(|| "it has no file".to_owned())
}

/// The plugin path of this shell with `folder` before it.
pub(super) fn with_plugin_path(folder: &Path) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os(PLUGIN_PATH).filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

fn filename(inspected: &str) -> Option<String> {
    let mut lines = inspected.lines();
    let rest = lines.find_map(|line| line.trim().strip_prefix("Filename"))?;
    Some(rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_from_the_details() {
        let printed = "Plugin Details:\n  Name                     facetrack\n  Filename                 /x y/libgstfacetrack.so\n";
        assert_eq!(filename(printed).unwrap(), "/x y/libgstfacetrack.so");
        assert_eq!(filename("Plugin Details:\n"), None);
    }
}
