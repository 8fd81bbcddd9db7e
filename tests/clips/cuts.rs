// SPDX-License-Identifier: MPL-2.0
//! Hard cuts, in clips that `ffmpeg` joins, and what looks like cuts and is none.

use std::path::Path;

use crate::common;
use crate::common::encoded::{self, ffmpeg};
use crate::common::player::{self, track};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// A shot of 20 frames, 25 per second, 1280×180. Its content depends on SEED.
const SHOT: &str = "-f lavfi -i nullsrc=s=96x14:r=25:d=0.8,\
    geq=lum=128+127*sin(SEED*(X*X*3+Y*Y*7+X*Y*SEED)):cb=128:cr=128,\
    scale=1280:180:flags=bicubic,format=yuv420p,setsar=1";

/// The left part of the inputs, which is 320×180.
const INPUTS: &str = "[0]crop=320:180:0:0[a];[1]crop=320:180:0:0[b];[2]crop=320:180:0:0[c]";

/// Filters of a clip of the inputs a, b and c, and the indices of the frames after hard cuts.
const CLIPS: [(&str, &str, &[usize]); 12] = [
    ("joined", "[a][b][c]concat=n=3", &[20, 40]),
    (
        "noisy",
        "[a][b][c]concat=n=3,noise=alls=30:allf=t",
        &[20, 40],
    ),
    (
        "dark",
        "[a][b][c]concat=n=3,lutyuv=y=16+(val-16)/6",
        &[20, 40],
    ),
    (
        "over-black",
        "[a]drawbox=t=fill:color=black:enable=gte(n\\,16)[d];[d][b][c]concat=n=3",
        &[20, 40],
    ),
    (
        "reframed",
        "[a]split[d][e];[e]crop=200:112:60:40,scale=320:180,setsar=1[f];[d][f][c]concat=n=3",
        &[20, 40],
    ),
    (
        "fades",
        "[a]fade=out:8:10[d];[b]fade=in:0:10[e];[d][e]concat=n=2",
        &[],
    ),
    ("dissolve", "[a][b]xfade=fade:duration=0.4:offset=0.4", &[]),
    (
        "flash",
        "[a]drawbox=t=fill:color=white:enable=between(n\\,9\\,10),\
         lutyuv=y=clip(val*2\\,16\\,235):enable=eq(n\\,14)",
        &[],
    ),
    (
        "black-frames",
        "[a]drawbox=t=fill:color=black:enable=between(n\\,9\\,12)",
        &[],
    ),
    ("pan", "[0]crop=320:180:n*48:0", &[]),
    ("shake", "[0]crop=320:180:40+mod(n*17\\,40):0", &[]),
    (
        "window",
        "[b]scale=150:80[w];[a][w]overlay=80:40:enable=gte(n\\,10)",
        &[],
    ),
];

/// Writes a clip.
fn write(filters: &str, path: &Path) {
    let inputs = ["1", "2", "3"].map(|seed| SHOT.replace("SEED", seed));
    // Outputs that no filter takes would have to be encoded.
    let unused = ["a", "b", "c"]
        .iter()
        .filter(|it| !filters.contains(&format!("[{it}]")));
    let sinks: String = unused.map(|it| format!(";[{it}]nullsink")).collect();
    let inputs = inputs.join(" ");
    let graph = match filters.strip_prefix("[0]") {
        Some(filters) => format!("[0]{filters}"),
        None => format!("{INPUTS};{filters}{sinks}"),
    };
    let encoder = "-c:v libx264 -preset veryfast -crf 30 -pix_fmt yuv420p";
    ffmpeg(&format!("{inputs} -filter_complex {graph} {encoder}"), path);
}

fn cuts(reports: &[FrameReport]) -> Vec<usize> {
    (0..reports.len()).filter(|at| reports[*at].cut).collect()
}

/// The id of the face in each frame.
fn ids(reports: &[FrameReport]) -> Vec<u32> {
    reports.iter().map(|report| report.faces[0].id).collect()
}

#[test]
fn ids_end_at_hard_cuts_and_nowhere_else() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    common::init();
    for (name, filters, want) in CLIPS {
        let clip = folder.path().join(name).with_extension("mp4");
        write(filters, &clip);
        let reports = track(&clip, "engine=scripted script=face");
        assert_eq!(cuts(&reports), want, "{name}");
        let shot = |at: usize| 1 + want.iter().filter(|cut| **cut <= at).count() as u32;
        let shots: Vec<_> = (0..reports.len()).map(shot).collect();
        assert_eq!(ids(&reports), shots, "{name}");
        let ignoring = track(&clip, "engine=scripted script=face on-cut=ignore");
        assert_eq!(cuts(&ignoring), [] as [usize; 0], "{name}");
        assert_eq!(ids(&ignoring), vec![1; reports.len()], "{name}");
    }
}

/// The first frame of a shot is analysed, however many workers there are.
#[test]
fn cuts_are_the_same_for_any_number_of_workers() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    common::init();
    let clip = folder.path().join("clip.mp4");
    write("[a][b][c]concat=n=3", &clip);
    for schedule in [
        "",
        "inference-interval=7",
        "max-fps=2",
        "max-fps=3 predict=true",
    ] {
        let of = |workers| {
            let engine = "engine=scripted script=face running-mode=image";
            track(&clip, &format!("{engine} workers={workers} {schedule}"))
        };
        let one = of(1);
        assert_eq!(cuts(&one), [20, 40], "{schedule}");
        let several = of(4);
        assert_eq!(
            (cuts(&several), ids(&several)),
            (cuts(&one), ids(&one)),
            "{schedule}"
        );
    }
}

#[test]
fn a_record_keeps_its_cuts() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    common::init();
    let [clip, record] = ["clip.mp4", "clip.json"].map(|name| folder.path().join(name));
    write("[a][b][c]concat=n=3", &clip);
    for format in ["dense", "jsonl"] {
        let line = format!(
            "filesrc location={} ! decodebin ! facetrack engine=scripted script=face \
             ! trackjsonsink overwrite=true format={format} location={}",
            clip.display(),
            record.display()
        );
        common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
        let text = std::fs::read_to_string(&record).expect("a record");
        let marked: Vec<_> = text
            .lines()
            .filter(|line| line.contains("\"cut\":true"))
            .collect();
        assert_eq!(marked.len(), 2, "{marked:?}");
        assert!(marked[0].starts_with("{\"frame\":21,"), "{marked:?}");
        let elements = format!("decodebin ! trackjsonload location={}", record.display());
        let (pipeline, out) = player::open(&clip, &elements);
        let reports: Vec<_> = std::iter::from_fn(|| out.pull_sample().ok())
            .filter_map(|sample| sample.buffer().and_then(FaceTrackMeta::from_buffer))
            .collect();
        pipeline.set_state(gst::State::Null).expect("it stops");
        assert_eq!(cuts(&reports), [20, 40], "{format}");
    }
}
