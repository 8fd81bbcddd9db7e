// SPDX-License-Identifier: MPL-2.0
//! Videos that the elements of GStreamer do not read by themselves, and pictures that move.

use std::iter::{self, zip};
use std::path::Path;

use gst::prelude::*;
use serde_json::Value as Json;

use crate::common;
use crate::common::encoded::{ffmpeg, has_ffmpeg};
use crate::common::tool::{Tool, built};
use crate::program::{SCRIPTED, marker, record, run};

/// 50 frames, 25 per second.
const VIDEO: &str = "-f lavfi -i testsrc=size=64x48:rate=25:duration=2";
const X264: &str = "-pix_fmt yuv420p -c:v libx264 -preset ultrafast -threads 1";

/// A picture as the first stream of a file with two.
const COVER: &str = "-i FOLDER/cover.jpg VIDEO -map 0 -map 1 -c:v:0 copy -pix_fmt:v:1 yuv420p";

/// Videos with 50 frames and 64 pixels of width: the file's name, and what makes it.
const VIDEOS: [(&str, &str); 14] = [
    (
        "alpha-tag-vp8.webm",
        "VIDEO -pix_fmt yuv420p -c:v libvpx -b:v 100k -metadata:s:v:0 alpha_mode=1",
    ),
    (
        "alpha-tag-vp9.webm",
        "VIDEO -pix_fmt yuv420p -c:v libvpx-vp9 -b:v 100k -metadata:s:v:0 alpha_mode=1",
    ),
    (
        "alpha.webm",
        "VIDEO -pix_fmt yuva420p -c:v libvpx -b:v 100k -auto-alt-ref 0",
    ),
    (
        "long-sound.mp4",
        "VIDEO -f lavfi -i sine=duration=12 X264 -c:a aac",
    ),
    (
        "long-sound.mov",
        "VIDEO -f lavfi -i sine=duration=12 X264 -c:a aac -movflags +faststart",
    ),
    ("cover.mkv", "COVER -c:v:1 libx264"),
    ("cover.avi", "COVER -c:v:1 mpeg4 -disposition:v:0 default"),
    ("cover.mp4", "COVER -c:v:1 libx264"),
    (
        "default-is-second.mkv",
        "-f lavfi -i testsrc2=size=96x96:rate=25:duration=2 VIDEO -map 0 -map 1 X264 -disposition:v:0 0 -disposition:v:1 default",
    ),
    (
        "second-is-longer.avi",
        "-f lavfi -i testsrc2=size=96x96:rate=25:duration=1 VIDEO -map 0 -map 1 -c:v mpeg4",
    ),
    ("endless.nut", "VIDEO -c:v mpeg4"),
    ("drawn-over.mov", "VIDEO -pix_fmt rgb24 -c:v qtrle"),
    ("drawn-over.avi", "VIDEO -pix_fmt rgb555le -c:v msvideo1"),
    ("drawn-over.flv", "VIDEO -pix_fmt bgr24 -c:v flashsv"),
];

fn make(folder: &Path, (name, arguments): (&str, &str)) {
    let arguments = arguments
        .replace("COVER", COVER)
        .replace("FOLDER", &folder.display().to_string())
        .replace("VIDEO", VIDEO)
        .replace("X264", X264);
    ffmpeg(&arguments, &folder.join(name));
}

/// Times of the frames in a record, ms.
fn times(record: &Json) -> Vec<Option<u64>> {
    let frames = record["frames"].as_array().expect("frames");
    let ms = |frame: &Json| Some(frame["pts"].as_u64()? / 1_000_000);
    frames.iter().map(ms).collect()
}

#[test]
fn videos_that_look_unreadable_are_tracked() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // The records have the whole names, because some differ only in the suffix.
    let rows = VIDEOS.map(|(name, _)| format!("{name},{name}\n")).concat();
    std::fs::write(folder.join("list.csv"), format!("id,uri\n{rows}")).expect("room");
    let cover = "-f lavfi -i testsrc2=size=96x96 -frames:v 1 -pix_fmt yuvj420p";
    make(folder, ("cover.jpg", cover));
    for video in VIDEOS {
        make(folder, video);
    }
    run(folder, &format!("list.csv --out out --jobs 2 {SCRIPTED}")).exits(0);
    for (name, _) in VIDEOS {
        let record = record(&folder.join(format!("out/{name}.json")));
        let head = &record["metadata"];
        assert_eq!(head["width"], 64, "{name}");
        let times = times(&record);
        assert_eq!(times.len(), 50, "{name}: {head}");
        assert!(times.iter().all(Option::is_some), "{name}: {times:?}");
        assert!(times.is_sorted_by(|a, b| a < b), "{name}: {times:?}");
    }
    let view = Tool::new(built("facetrack").to_str().expect("UTF-8"));
    let pages = folder.join("pages");
    let paths = [folder.join("out"), pages.clone()].map(|path| path.display().to_string());
    let view = view.args(&format!("view {} --proxy --out {}", paths[0], paths[1]));
    let viewed = view.run();
    assert!(viewed.success, "{}", viewed.text);
    // No copy is tracked.
    let text = run(folder, &format!("pages --out copies {SCRIPTED}")).exits(2);
    assert!(text.contains("no video found"), "{text}");
    for (name, _) in VIDEOS {
        let record = record(&folder.join(format!("out/{name}.json")));
        let copied = packet_times(&pages.join(format!("videos/{name}-proxy.webm")));
        let is_same = |(a, b): (&Option<u64>, u64)| a.is_some_and(|a| a.abs_diff(b) <= 1);
        let times = times(&record);
        assert_eq!(copied.len(), times.len(), "{name}");
        assert!(
            zip(&times, copied.clone()).all(is_same),
            "{name}: {copied:?} {times:?}"
        );
    }
}

/// Times of the frames in a WebM file, ms.
fn packet_times(path: &Path) -> Vec<u64> {
    common::init();
    let line = format!(
        "filesrc location={} ! matroskademux ! appsink name=out sync=false",
        path.display()
    );
    let pipeline = gst::parse::launch(&line).expect("a pipeline");
    let pipeline = pipeline.downcast::<gst::Pipeline>().expect("one");
    let out = pipeline.by_name("out").expect("a sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let samples = iter::from_fn(|| out.pull_sample().ok());
    let times = samples.filter_map(|sample| sample.buffer()?.pts());
    let times = times.map(gst::ClockTime::mseconds).collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    times
}

#[test]
fn pictures_that_move_are_videos() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let uneven = "VIDEO -frames:v 4 -vf setpts=N*N*3 -vsync vfr";
    for picture in [
        ("moving.gif", uneven),
        ("moving.mjpeg", "VIDEO -frames:v 4 -pix_fmt yuvj420p"),
        ("moving.png", "VIDEO -frames:v 4 -f apng"),
        ("still.gif", "VIDEO -frames:v 1"),
        ("still.jpg", "VIDEO -frames:v 1 -pix_fmt yuvj420p"),
        ("still.png", "VIDEO -frames:v 1"),
    ] {
        make(folder, picture);
    }
    run(folder, &format!("moving.gif --out gif {SCRIPTED}")).exits(0);
    let gif = record(&folder.join("gif/moving.json"));
    assert_eq!(times(&gif), [0, 120, 480, 1080].map(Some));
    // A stream of JPEG pictures has no times.
    run(folder, &format!("moving.mjpeg --out mjpeg {SCRIPTED}")).exits(0);
    let mjpeg = record(&folder.join("mjpeg/moving.json"));
    assert_eq!(mjpeg["metadata"]["total_frames"], 4);
    for (name, reason) in [
        ("moving.png", "animated picture (image/png)"),
        ("still.gif", "still picture (image/gif)"),
        ("still.jpg", "still picture (image/jpeg)"),
        ("still.png", "still picture (image/png)"),
    ] {
        run(folder, &format!("{name} --out {name}.out {SCRIPTED}")).exits(42);
        let stem = name.split('.').next().unwrap_or_default();
        let marker = marker(&folder.join(format!("{name}.out/{stem}.json")));
        let message = marker["message"].as_str().expect("a reason");
        assert!(message.contains(reason), "{name}: {message}");
    }
}
