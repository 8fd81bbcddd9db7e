// SPDX-License-Identifier: MPL-2.0
//! Long videos that are tracked in parts.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::clips;
use crate::common::encoded;
use crate::common::engine::engine;
use crate::deaths::{slow, wait_for};
use crate::program::{SCRIPTED, children, files, marker, record, run, signal, status};
use facetrack::engine::{EngineConfig, EngineKind};

/// A face that the scripted engine finds in every frame.
const FACE: &str = "--engine scripted --set script=face";

/// The record of a video of the folder.
fn bytes(folder: &Path, record: &str) -> Vec<u8> {
    let path = folder.join(record);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A recorded video with two faces; says so if there is none.
fn two_faces() -> Option<PathBuf> {
    let video = clips::recorded()
        .first()?
        .with_file_name("synth_two_faces.mp4");
    Some(video)
}

/// Tracks a video uncut, and in parts by one, two and five jobs, which makes no difference. Returns
/// the folder with the records `uncut/a.json` and `1/a.json`.
fn tracked(video: &Path, options: &str, grid: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let video = video.display();
    run(folder.path(), &format!("{video} --out uncut {options}")).exits(0);
    for jobs in [1, 2, 5] {
        let line = format!("{video} --out {jobs} --jobs {jobs} {options} {grid}");
        run(folder.path(), &line).exits(0);
        let found = files(&folder.path().join(jobs.to_string()));
        assert_eq!(found.len(), 2, "a record and its status file: {found:?}");
    }
    let name = Path::new(&video.to_string()).with_extension("json");
    let name = name.file_name().expect("a name").to_owned();
    for out in ["uncut", "1", "2", "5"] {
        let out = folder.path().join(out);
        fs::rename(out.join(&name), out.join("a.json")).expect("it is there");
    }
    let one = bytes(folder.path(), "1/a.json");
    assert!(one == bytes(folder.path(), "2/a.json"), "two jobs");
    assert!(one == bytes(folder.path(), "5/a.json"), "five jobs");
    folder
}

#[test]
fn frames_without_memory_are_the_same_in_parts() {
    let clips = tempfile::tempdir().expect("a folder");
    let video = clips.path().join("clip.mp4");
    clips::video(&video, 83);
    let matroska = clips.path().join("clip.mkv");
    clips::play(&format!(
        "filesrc location={} ! qtdemux ! h264parse ! matroskamux ! filesink location={}",
        video.display(),
        matroska.display()
    ));
    for video in [video, matroska] {
        let folder = tracked(&video, FACE, "--segment 0.71s --warm-up 0.2s");
        let [uncut, parts] =
            ["uncut", "1"].map(|out| bytes(folder.path(), &format!("{out}/a.json")));
        assert!(uncut == parts, "{}", video.display());
    }
    let Some(video) = two_faces() else { return };
    let yunet = EngineKind::OpenCvYunet;
    if engine(yunet, &EngineConfig::default()).is_some() {
        let folder = tracked(&video, "--engine opencv-yunet", "--segment 3s");
        assert!(bytes(folder.path(), "uncut/a.json") == bytes(folder.path(), "1/a.json"));
    }
}

/// One cut is in a warm-up, and one is at the start of a part.
#[test]
fn cuts_in_parts_are_those_of_the_whole() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let clips = tempfile::tempdir().expect("a folder");
    let video = clips.path().join("clip.mp4");
    let shot = |seed| {
        format!(
            "-f lavfi -i nullsrc=s=24x14:r=25:d=1,\
             geq=lum=128+127*sin({seed}*(X*X*3+Y*Y*7+X*Y*{seed})):cb=128:cr=128,\
             scale=320:180:flags=bicubic"
        )
    };
    let shots = ["1", "2", "3", "4"].map(shot).join(" ");
    let encoder = "-c:v libx264 -preset veryfast -g 10 -pix_fmt yuv420p";
    let join = "-filter_complex [0][1][2][3]concat=n=4";
    encoded::ffmpeg(&format!("{shots} {join} {encoder}"), &video);
    for grid in [
        "--segment 1s --warm-up 0.3s",
        "--segment 1.2s --warm-up 0.4s",
    ] {
        let folder = tracked(&video, FACE, grid);
        let [uncut, parts] =
            ["uncut", "1"].map(|out| bytes(folder.path(), &format!("{out}/a.json")));
        assert!(uncut == parts, "{grid}");
        let text = String::from_utf8(uncut).expect("JSON");
        assert_eq!(text.matches("\"cut\":true").count(), 3);
        assert!(text.contains("obj_4") && !text.contains("obj_5"));
    }
}

/// All landmarks of a record, with frame and id, and the width of their face.
fn landmarks(record: &Json) -> Vec<(String, Vec<f64>, f64)> {
    let mut all = Vec::new();
    for frame in record["frames"].as_array().expect("frames") {
        for face in frame["tracked_objects"].as_array().expect("faces") {
            let width = face["bbox_width"].as_f64().expect("a width");
            let points = face["landmarks"].as_array().expect("landmarks");
            let values = points
                .iter()
                .flat_map(|point| point.as_array().expect("a point").iter().take(2));
            let values = values.map(|value| value.as_f64().expect("a number"));
            all.push((
                format!("{} {}", frame["frame"], face["id"]),
                values.collect(),
                width,
            ));
        }
    }
    all
}

/// A video mode restarts in each part, and agrees with the whole after its warm-up.
#[test]
fn landmarks_and_ids_in_parts_are_those_of_the_whole() {
    let Some(video) = clips::recorded().into_iter().next() else {
        return;
    };
    if engine(EngineKind::MediaPipe, &EngineConfig::default()).is_none() {
        return;
    }
    let folder = tracked(
        &video,
        "--set verbose=true --set max-faces=1",
        "--segment 1.2s --warm-up 1.1s",
    );
    let [uncut, parts] =
        ["uncut", "1"].map(|out| landmarks(&record(&folder.path().join(out).join("a.json"))));
    assert_eq!(uncut.len(), 72);
    let mut most = 0.0_f64;
    for ((frame, uncut, width), (other, parts, _)) in uncut.iter().zip(&parts) {
        assert_eq!((frame, uncut.len()), (other, parts.len()));
        let differences = uncut.iter().zip(parts).map(|(a, b)| (a - b).abs() / width);
        most = differences.fold(most, f64::max);
    }
    assert!(most > 0.0 && most <= 0.001, "{most} of the width of a face");
}

#[test]
fn an_interrupted_video_continues_with_the_parts_that_are_left() {
    let clips = clips::videos(&[80]);
    let folder = clips.path();
    let options = format!("in --json {FACE} --segment 0.5s --warm-up 0.2s");
    run(folder, &format!("{options} --out whole --jobs 1")).exits(0);
    let slowly = || {
        run(
            folder,
            &format!("in --out out --json --jobs 1 {SCRIPTED} --segment 0.5s --warm-up 0.2s"),
        )
    };
    let mut child = slow(slowly(), 30).start();
    assert!(wait_for(&mut child, "\"part\":4"));
    signal("TERM", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(75));
    let done = |name: &String| name.ends_with(".json.done");
    let parts: Vec<_> = files(&folder.join("out"))
        .into_iter()
        .filter(done)
        .collect();
    assert!((3..6).contains(&parts.len()), "{parts:?}");
    let first = folder.join("out/clip0.json.parts/00001.json");
    let before = fs::metadata(&first)
        .expect("a part")
        .modified()
        .expect("a time");

    // The second run loses its worker, too.
    let mut child = slow(slowly(), 30).start();
    assert!(wait_for(&mut child, "\"progress\""));
    assert_eq!(
        fs::metadata(&first)
            .expect("a part")
            .modified()
            .expect("a time"),
        before
    );
    let workers = children(child.id());
    signal("KILL", workers[0]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(
        files(&folder.join("out")),
        ["clip0.json", "clip0.json.done"]
    );
    assert_eq!(marker(&folder.join("out/clip0.json"))["attempts"], 2);
    let frames = |out: &str| record(&folder.join(out).join("clip0.json"))["frames"].clone();
    let times = |frames: Json| {
        frames
            .as_array()
            .expect("frames")
            .iter()
            .map(|frame| frame["pts"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(times(frames("out")), times(frames("whole")));
    let text = slow(slowly(), 30).exits(0);
    assert!(!text.contains("\"part\""), "{text}");
}

#[test]
fn damaged_and_unusual_videos_in_parts() {
    let clips = tempfile::tempdir().expect("a folder");
    let folder = clips.path();
    fs::create_dir(folder.join("in")).expect("a folder");
    clips::video(&folder.join("in/whole.mp4"), 75);
    clips::cut(
        &folder.join("in/whole.mp4"),
        0.6,
        &folder.join("in/cut.mp4"),
    );
    clips::video(&folder.join("in/short.mp4"), 5);
    clips::play(&format!(
        "videotestsrc num-buffers=75 ! video/x-raw,width=160,height=120,framerate=25/1 ! x264enc key-int-max=10 ! mpegtsmux ! filesink location={}",
        folder.join("in/stream.ts").display()
    ));
    clips::play(&format!(
        "audiotestsrc num-buffers=50 ! wavenc ! filesink location={}",
        folder.join("in/sound.mov").display()
    ));
    run(folder, &format!("in --out uncut {FACE}")).exits(1);
    run(
        folder,
        &format!("in --out out {FACE} --segment 0.5s --warm-up 0.2s"),
    )
    .exits(1);
    for name in ["whole", "cut", "short", "stream"] {
        let [uncut, parts] =
            ["uncut", "out"].map(|out| folder.join(out).join(format!("{name}.json")));
        assert_eq!(status(&parts), status(&uncut), "{name}");
        let frames = |path: &Path| record(path)["frames"].clone();
        assert!(frames(&parts) == frames(&uncut), "{name}");
    }
    assert_eq!(status(&folder.join("out/sound.json")), "no-video");
    let [uncut, parts] =
        ["uncut", "out"].map(|out| record(&folder.join(out).join("cut.json"))["metadata"].clone());
    assert_eq!(parts["complete"], false);
    for key in [
        "total_frames",
        "incomplete_reason",
        "expected_duration",
        "fps",
    ] {
        assert_eq!(parts[key], uncut[key], "{key}");
    }
    for (set, reason) in [
        ("format=jsonl", "leave out format=jsonl"),
        (
            "neutral-time=1",
            "neutral-time cannot be used with --segment",
        ),
        ("select=largest", "select=largest cannot be used with"),
        ("select=first", "facetrack export --faces largest"),
    ] {
        let line = format!("in --out no {SCRIPTED} --segment 1s --set {set}");
        let text = run(folder, &line).exits(2);
        assert!(text.contains(reason), "{text}");
    }
    run(folder, &format!("in --out no {SCRIPTED} --warm-up 1s")).exits(2);
}

#[test]
fn a_forced_run_removes_earlier_parts() {
    let folder = clips::videos(&[10]);
    let folder = folder.path();
    let parts = folder.join("out/clip0.json.parts");
    fs::create_dir_all(&parts).expect("a folder");
    for name in ["claim", "00001.json"] {
        fs::write(parts.join(name), "{}").expect("room");
    }
    // Shorter than a part.
    let line = format!("in --out out {SCRIPTED} --force --segment 60s");
    let failing = run(folder, &line).arg("--set");
    failing.arg("script=face; fail at=3").exits(1);
    assert_eq!(status(&folder.join("out/clip0.json")), "failed");
    assert!(!parts.join("00001.json").exists(), "{:?}", files(folder));
}

/// Changes the duration of a Matroska file to the time of its last frame, ms. Some programs write
/// this.
fn end_with_last_frame(file: &Path, time: u32) {
    // A Duration of eight bytes.
    const DURATION: [u8; 3] = [0x44, 0x89, 0x88];
    let mut bytes = fs::read(file).expect("a file");
    let mut places = bytes.windows(DURATION.len());
    let place = places.position(|place| place == DURATION);
    let place = place.expect("a duration") + DURATION.len();
    bytes[place..place + 8].copy_from_slice(&f64::from(time).to_be_bytes());
    fs::write(file, bytes).expect("room");
}

/// Files whose frames have uneven times, start late, or have other times after a seek.
#[test]
fn odd_times_are_the_same_in_parts() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let clips = tempfile::tempdir().expect("a folder");
    let folder = clips.path();
    fs::create_dir(folder.join("in")).expect("a folder");
    let source = "-f lavfi -i testsrc=size=64x48:rate=25:duration=4";
    let encoder = "-pix_fmt yuv420p -c:v libx264 -preset veryfast -g 12 -threads 1";
    let sound = "-f lavfi -i sine=duration=4";
    let uneven = "-vf select=not(mod(n\\,3))+lt(n\\,15) -vsync vfr";
    for (name, line) in [
        ("frames.mp4", format!("{source} {encoder} -bf 3")),
        ("uneven.mp4", format!("{source} {uneven} {encoder}")),
        ("uneven-too.mkv", format!("{source} {uneven} {encoder}")),
        (
            "late.mkv",
            format!("{source} {sound} {encoder} -c:a aac -output_ts_offset 10"),
        ),
        (
            "fragments.mp4",
            format!("{source} {encoder} -movflags frag_keyframe+empty_moov"),
        ),
        (
            "slower.mkv",
            format!("{source} -vf setpts=4*PTS -vsync passthrough {encoder}"),
        ),
    ] {
        encoded::ffmpeg(&line, &folder.join("in").join(name));
    }
    end_with_last_frame(&folder.join("in/slower.mkv"), 99 * 160);
    let whole = folder.join("in/frames.mp4");
    let cut = format!("-ss 1.013 -i {} -c copy", whole.display());
    encoded::ffmpeg(&cut, &folder.join("in/trimmed.mp4"));
    run(folder, &format!("in --out uncut {FACE}")).exits(0);
    run(
        folder,
        &format!("in --out out {FACE} --segment 0.5s --warm-up 0.2s"),
    )
    .exits(0);
    for name in files(&folder.join("uncut")) {
        if name.ends_with(".json") {
            let [uncut, parts] = ["uncut", "out"].map(|out| bytes(&folder.join(out), &name));
            assert!(uncut == parts, "{name}");
        }
    }
}

/// Some cannot be decoded from any frame on, others yield other frames then.
#[test]
fn files_that_cannot_be_entered_are_tracked_as_a_whole() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let clips = tempfile::tempdir().expect("a folder");
    let folder = clips.path();
    fs::create_dir(folder.join("in")).expect("a folder");
    let [source, slow] =
        ["25", "2"].map(|rate| format!("-f lavfi -i testsrc2=size=64x48:rate={rate}:duration=4"));
    let [sound, long] = ["4", "8"].map(|time| format!("-f lavfi -i sine=duration={time}"));
    let encoder = "-pix_fmt yuv420p -c:v libx264 -preset veryfast -threads 1";
    let still = "-vf setpts=PTS+trunc(N/50)*3/TB -vsync vfr";
    for (name, line) in [
        ("slow.mp4", format!("{slow} {encoder} -g 4")),
        ("still.mp4", format!("{source} {still} {encoder} -g 12")),
        (
            "sound.mp4",
            format!("{source} {long} {encoder} -g 12 -c:a aac"),
        ),
        ("stream.ts", format!("{source} {encoder} -g 250")),
        (
            "fragments.mp4",
            format!("{source} {encoder} -g 12 -movflags frag_keyframe+empty_moov"),
        ),
        (
            "refresh.mkv",
            format!("{source} {encoder} -bf 0 -x264-params intra-refresh=1:keyint=40"),
        ),
        // These can be entered.
        ("one.mp4", format!("{source} {encoder} -g 250")),
        (
            "open.mp4",
            format!("{source} {sound} {encoder} -g 12 -bf 3 -x264-params open-gop=1 -c:a aac"),
        ),
    ] {
        encoded::ffmpeg(&line, &folder.join("in").join(name));
    }
    run(folder, &format!("in --out uncut {FACE}")).exits(0);
    let line = format!("in --out out {FACE} --segment 1s --warm-up 0.4s");
    let text = run(folder, &line).exits(0);
    for (name, is_whole) in [
        ("slow", Some(true)),
        ("still", Some(true)),
        ("sound", Some(true)),
        ("stream", Some(true)),
        ("fragments", Some(true)),
        // By the place of the first part.
        ("refresh", None),
        ("one", Some(false)),
        ("open", Some(false)),
    ] {
        let name = format!("{name}.json");
        let [uncut, parts] = ["uncut", "out"].map(|out| bytes(&folder.join(out), &name));
        assert!(uncut == parts, "{name}");
        let whole = marker(&folder.join("out").join(&name))["whole"].clone();
        assert_eq!(
            whole.is_string(),
            is_whole.unwrap_or(whole.is_string()),
            "{name}"
        );
        if let Some(reason) = whole.as_str() {
            let note = format!("(tracked as a whole: {reason})");
            assert!(text.contains(&note), "{note} {text}");
        }
    }
}

/// A record was swapped, and an account edited.
#[test]
fn parts_that_were_changed_are_tracked_again() {
    let clips = clips::videos(&[80]);
    let folder = clips.path();
    let line = format!("in --json --jobs 1 {SCRIPTED} --segment 0.5s --warm-up 0.2s");
    run(folder, &format!("{line} --out whole")).exits(0);
    let mut child = slow(run(folder, &format!("{line} --out out")), 30).start();
    assert!(wait_for(&mut child, "\"part\":4"));
    signal("TERM", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(75));
    let part = |name: &str| folder.join("out/clip0.json.parts").join(name);
    fs::copy(part("00002.json"), part("00001.json")).expect("room");
    let account = fs::read_to_string(part("00003.json.done")).expect("a part");
    let edited = account.replacen("\"gap_frames\": 0", "\"gap_frames\": 1", 1);
    assert_ne!(edited, account);
    fs::write(part("00003.json.done"), edited).expect("room");
    let text = slow(run(folder, &format!("{line} --out out")), 30).exits(0);
    for (number, is_tracked) in [(1, true), (2, false), (3, true), (4, true)] {
        let started = format!("\"part\":{number},");
        assert_eq!(text.contains(&started), is_tracked, "{number} {text}");
    }
    let times = |out: &str| -> Vec<Json> {
        let record = record(&folder.join(out).join("clip0.json"));
        let frames = record["frames"].as_array().expect("frames").iter();
        frames.map(|frame| frame["pts"].clone()).collect()
    };
    assert_eq!(times("out"), times("whole"));
}
