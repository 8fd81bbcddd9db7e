// SPDX-License-Identifier: MPL-2.0
//! Videos with changed bytes. The decoders of libav conceal the damage, and set no flag on the
//! frames.

use std::fs;
use std::path::Path;

use crate::common::encoded::{ffmpeg, has_ffmpeg};
use crate::program::{SCRIPTED, marker, run};

/// Names of videos, and how ffmpeg encodes them. Their decoders find most damage.
const ENCODINGS: [(&str, &str); 6] = [
    ("h264.mp4", "-c:v libx264 -preset fast"),
    (
        "h264-open.ts",
        "-c:v libx264 -preset fast -x264-params open-gop=1",
    ),
    ("mpeg2.ts", "-c:v mpeg2video -bf 2 -q:v 4"),
    ("mpeg4.avi", "-c:v mpeg4 -bf 2 -q:v 4 -tag:v XVID"),
    ("sorenson.flv", "-c:v flv -q:v 4"),
    ("ffv1.mkv", "-c:v ffv1 -level 3"),
];

/// Damaged copies of each video.
const COPIES: u64 = 3;

/// Changed bytes of a copy.
const CHANGES: usize = 60;

/// Multiplier of random numbers (Knuth, MMIX).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

fn encode(folder: &Path) {
    let source = "-f lavfi -i testsrc2=size=320x180:rate=25 -frames:v 75 -g 24 -pix_fmt yuv420p";
    for (name, options) in ENCODINGS {
        ffmpeg(&format!("{source} {options}"), &folder.join(name));
    }
}

/// Changes bytes of the middle half, which are media data.
fn damage(bytes: &mut [u8], seed: u64) {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(1);
        (state >> 33) as usize
    };
    for _ in 0..CHANGES {
        let at = bytes.len() / 4 + random() % (bytes.len() / 2);
        bytes[at] ^= (1 + random() % 255) as u8;
    }
}

#[test]
fn changed_bytes_are_found_by_decoders_that_conceal_them() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let inputs = folder.join("in");
    fs::create_dir(&inputs).expect("a folder");
    encode(&inputs);
    for (name, _) in ENCODINGS {
        let whole = fs::read(inputs.join(name)).expect("a video");
        for copy in 0..COPIES {
            let mut bytes = whole.clone();
            damage(&mut bytes, copy);
            fs::write(inputs.join(format!("{copy}-{name}")), bytes).expect("room");
        }
    }
    run(folder, &format!("in --out out --jobs 1 {SCRIPTED}")).exits(1);
    let marker = |name: &str| {
        marker(
            &folder
                .join("out")
                .join(Path::new(name).with_extension("json")),
        )
    };
    for (name, _) in ENCODINGS {
        let whole = marker(name);
        assert_eq!(whole["status"], "complete", "{name}: {whole}");
        assert_eq!(whole["decode_errors"], 0, "{name}: {whole}");
        for copy in 0..COPIES {
            let damaged = marker(&format!("{copy}-{name}"));
            assert_ne!(damaged["status"], "complete", "{name} {copy}: {damaged}");
        }
    }
}
