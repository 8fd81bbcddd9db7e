// SPDX-License-Identifier: MPL-2.0
//! The commands on every page, as a user would type them.

use std::collections::BTreeSet;

use crate::common::file;
use crate::docs;
use crate::pages;

/// Commands that other tests run, as a part of a longer one.
const RUN_ELSEWHERE: [(&str, &str); 1] =
    [("cargo test -p facetrack", "`make test` tests the workspace")];

/// The first lines of blocks that no test can run, and the reason.
const NOT_RUN: [(&str, &str); 30] = [
    (
        "blurred.mp4: 3 faces covered in 250 frames",
        "output of a command",
    ),
    (
        "@software{gst_plugin_facetrack,",
        "an entry for a list of references",
    ),
    (
        "   all angles 0           yaw > 0           pitch > 0            roll > 0",
        "a drawing",
    ),
    (
        "sudo apt-get install v4l2loopback-dkms",
        "changes the kernel",
    ),
    (
        "gst-launch-1.0 filesrc location=clip.mp4 ! decodebin ! videoconvert ! videoflip video-direction=auto ! facetrack ! videoconvert ! objectdetectionoverlay ! videoconvert ! autovideosink",
        "needs GStreamer 1.24; `tests/elements/analytics.rs` has it",
    ),
    (
        "gst-launch-1.0 v4l2src ! videoconvert ! videoflip video-direction=auto ! queue ! facetrack ! relationmeta2onvifmeta ! onvifmetadataextractor name=onvif onvif.src ! queue ! fakesink onvif.meta_src ! queue ! rtponvifmetadatapay ! udpsink host=192.168.0.20 port=5004",
        "needs gst-plugins-rs",
    ),
    ("[Unit]", "a unit of systemd"),
    ("systemctl --user daemon-reload", "needs systemd"),
    (
        "sudo apt install ./target/deb/gstreamer1.0-facetrack_*.deb",
        "installs a package; `make test-deb` does",
    ),
    (
        "cargo build --release --features analytics",
        "needs GStreamer 1.24",
    ),
    (
        "cargo cinstall --package gst-plugin-facetrack --prefix=/usr --library-type=cdylib",
        "needs cargo-c; `make test-install` installs with it",
    ),
    (
        "cargo cinstall --package gst-plugin-facetrack --prefix=\"$HOME/.local\" --libdir=\"$HOME/.local/lib\" --library-type=staticlib",
        "needs cargo-c; `make test-install` links the library",
    ),
    (
        "scripts/without-paths.sh cargo build --release --locked --offline",
        "needs the tarball; `make reproducible` builds it",
    ),
    ("python3 -m venv ~/facetrack-gpu", "fetches gigabytes"),
    (
        "python3 -m venv --system-site-packages facetrack-python",
        "fetches packages; `python/tests` import the package from the checkout",
    ),
    (
        "export FACETRACK_ONNXRUNTIME=$(ls ~/facetrack-gpu/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.1.*)",
        "needs a GPU",
    ),
    (
        "FACETRACK_MODELS_DIR=<folder> facetrack fetch",
        "has a placeholder",
    ),
    (
        "mkdir -p ~/.insightface/models/buffalo_l && unzip buffalo_l.zip -d ~/.insightface/models/buffalo_l",
        "needs an archive that no test downloads",
    ),
    (
        "facetrack run tracks/facetrack-failed.jsonl --out tracks --retry-failed",
        "needs a run with failures; `tests/run` has it",
    ),
    (
        "gst-launch-1.0 v4l2src ! queue max-size-buffers=1 max-size-bytes=0 max-size-time=0 leaky=downstream ! videoconvert ! facetrack max-age=30 ! facetrackoverlay ! videoconvert ! autovideosink sync=false",
        "drops frames, so that ids and faces differ from run to run",
    ),
    (
        "facetrack run /data/clips --out /data/tracks --shard 16",
        "needs a scheduler; `tests/run` has it",
    ),
    (
        "facetrack run --videos_json_path videos.json --tracking_engine mediapipe --cpu_internal_workers 15",
        "needs a list of videos; `tests/run` has it",
    ),
    (
        "facetrack run videos.txt --out tracks --fetch 'rclone copyto {} {local}'",
        "needs a store; `tests/run` has it",
    ),
    (
        "facetrack run videos.csv --shard 64 --out /data/tracks --fetch 'rclone copyto {} {local}'",
        "needs a store; `tests/run` has it",
    ),
    (
        "facetrack-preview --send \"protocol=livelink host=192.168.1.5\" --gain jawOpen=1.5 --save face.json",
        "opens a window; `examples/preview/tests` presses the keys",
    ),
    (
        "sudo apt install ./target/deb/gstreamer1.0-facetrack_*.deb ./target/deb/facetrack-preview_*.deb",
        "installs packages; `make test-deb` does",
    ),
    (
        "blender --background face.blend --python examples/blender_shape_keys.py -- clip-livelink.csv --object Face --save animated.blend",
        "needs Blender; `make test-blender` runs the script",
    ),
    (
        "hq submit --array=0-63 examples/cluster/hyperqueue.sh 64 /data/clips --out /data/tracks",
        "needs a scheduler; `python/tests/test_hyperqueue.py` has the script",
    ),
    (
        "sbatch --array=0-63%16 examples/cluster/slurm.sh /data/clips --out /data/tracks",
        "needs a scheduler; `python/tests/clusters/test_slurm.py` has it",
    ),
    (
        "kubectl apply --filename examples/cluster/kubernetes.yaml",
        "needs a cluster; `python/tests/test_kubernetes.py` checks the file",
    ),
];

macro_rules! pages_with_commands {
    ($($name:ident: $page:literal,)*) => {
        /// The pages with commands.
        const PAGES: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $name() {
                for block in pages::blocks_in($page, "sh") {
                    check_block($page, &block);
                }
            }
        )*
    };
}

pages_with_commands! {
    of_the_readme: "README.md",
    of_contributing: "CONTRIBUTING.md",
    of_the_readme_of_the_command: "crates/facetrack-cli/README.md",
    of_getting_started: "docs/get-started.md",
    of_installing: "docs/installing.md",
    of_the_cookbook: "docs/cookbook.md",
    of_many_videos: "docs/run.md",
    of_the_viewer: "docs/view.md",
    of_blurring: "docs/blur.md",
    of_exports: "docs/export.md",
    of_live_pipelines: "docs/live.md",
    of_avatars: "docs/avatars.md",
    of_other_programs: "docs/programs.md",
    of_applications: "docs/applications.md",
    of_gpu: "docs/gpu.md",
    of_troubleshooting: "docs/troubleshooting.md",
    for_users_of_mediapipe: "docs/coming-from-mediapipe.md",
    for_users_of_openseeface: "docs/coming-from-openseeface.md",
    of_facetrack: "docs/elements/facetrack.md",
    of_facetrackblur: "docs/elements/facetrackblur.md",
    of_facetrackoverlay: "docs/elements/facetrackoverlay.md",
    of_trackjsonsink: "docs/elements/trackjsonsink.md",
    of_trackjsonload: "docs/elements/trackjsonload.md",
    of_trackudpsink: "docs/elements/trackudpsink.md",
}

/// Folder of the pages about engines.
const ENGINES: &str = "docs/engines/";

#[test]
fn of_the_engines() {
    for page in pages::guides().filter(|page| page.starts_with(ENGINES)) {
        for block in pages::blocks_in(&page, "sh") {
            check_block(&page, &block);
        }
    }
}

#[test]
fn every_page_with_commands_is_tested() {
    let mut pages: BTreeSet<String> = pages::guides().collect();
    pages.retain(|page| !page.starts_with(ENGINES) && !pages::blocks_in(page, "sh").is_empty());
    assert_eq!(pages, PAGES.iter().map(|page| (*page).to_owned()).collect());
}

#[test]
fn blocks_that_are_not_run_have_a_reason() {
    let known: BTreeSet<String> = NOT_RUN.iter().map(|(line, _)| (*line).to_owned()).collect();
    let blocks = pages::guides().flat_map(|page| pages::blocks_in(&page, "text"));
    let first = |block: String| block.lines().next().unwrap_or_default().to_owned();
    assert_eq!(blocks.map(first).collect::<BTreeSet<_>>(), known);
}

#[test]
fn blocks_are_in_known_languages() {
    for page in pages::guides().filter(|page| page != "ARCHITECTURE.md") {
        for block in pages::blocks(&page) {
            let known = ["sh", "text", "rust", "python", "c", "toml", "r", "mermaid"];
            assert!(
                known.contains(&block.language.as_str()),
                "{page}: {}",
                block.text
            );
        }
    }
}

/// Runs a block. In a block with an example program, commands use the files of earlier commands.
fn check_block(page: &str, block: &str) {
    let commands = block
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let (ours, mut commands): (Vec<_>, Vec<_>) =
        commands.partition(|line| line.contains("cargo run --release "));
    ours.into_iter().for_each(check_crate_example);
    if !block.contains(" examples/") {
        for command in commands {
            check(page, command);
        }
        return;
    }
    if !docs::has_matplotlib() {
        commands.retain(|line| !line.contains("plot_blendshapes.py"));
    }
    if let Some(finished) = docs::run(&commands.join("\n")) {
        assert!(finished.success, "{page}: {block}\n{}", finished.text);
    }
}

/// Programs of the workspace are run by `tests/documents/examples.rs`.
fn check_crate_example(command: &str) {
    let name = command.split("--example ").nth(1).expect("a name");
    let name = name.split(' ').next().unwrap_or_default();
    let tests = docs::text("tests/documents/examples.rs");
    assert!(tests.contains(&format!("(\"{name}\")")), "{command}");
}

fn check(page: &str, command: &str) {
    if RUN_ELSEWHERE.iter().any(|(known, _)| command == *known) {
        return;
    }
    let mut words = command.split([' ', '"']).filter(|word| !word.contains('='));
    match words.next().unwrap_or_default() {
        "make" => has_target(command.trim_start_matches("make ")),
        "eval" => has_target("env"),
        "cargo" => assert!(
            docs::text("Makefile").contains(command),
            "{page}: `make` does not run `{command}`"
        ),
        "meson" | "ninja" => assert!(file("meson.build").is_file()),
        "gst-launch-1.0" => launch(page, command),
        "gst-inspect-1.0" | "facetrack" => {
            if let Some(finished) = docs::run(command) {
                assert!(finished.success, "{page}: {command}\n{}", finished.text);
            }
        }
        other => panic!("{page}: no test checks commands like `{other}`: {command}"),
    }
}

/// Runs a launch line of a page or of the documentation of an element.
pub fn launch(page: &str, command: &str) {
    assert!(docs::turns_upright(command), "{page}: {command}");
    if let Some(finished) = docs::run(command) {
        let text = &finished.text;
        assert!(
            docs::came_to_its_end(&finished),
            "{page}: {command}\n{text}"
        );
        assert_eq!(docs::errors(text).next(), None, "{page}: {command}\n{text}");
        assert!(!text.is_empty(), "{page}: {command} shows nothing");
    }
}

fn has_target(target: &str) {
    let makefile = docs::text("Makefile");
    assert!(
        makefile.contains(&format!("\n{target}: ")),
        "the Makefile has no target `{target}`"
    );
}
