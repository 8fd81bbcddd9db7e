// SPDX-License-Identifier: MPL-2.0
//! Files of every kind: videos that must be turned or deinterlaced, damaged ones, and files that
//! are not videos.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::clips;
use crate::common::rotated::{self, ROTATIONS};
use crate::common::{encoded, ffmpeg};
use crate::program::{SCRIPTED, files, marker, record, run, status};

fn write_others(folder: &Path) {
    let file = |name: &str| folder.join(name);
    clips::play(&format!(
        "audiotestsrc num-buffers=20 ! wavenc ! filesink location={}",
        file("sound.mp4").display()
    ));
    clips::play(&format!(
        "videotestsrc num-buffers=1 ! jpegenc ! filesink location={}",
        file("still.mp4").display()
    ));
    fs::write(file("text.mp4"), "This is a text.\n").expect("room");
    fs::write(file("empty.mp4"), "").expect("room");
    fs::create_dir(file("folder.mp4")).expect("a folder");
    let made = Command::new("mkfifo").arg(file("pipe.mp4")).status();
    assert!(made.expect("mkfifo runs").success());
    let noise: Vec<u8> = (0..60_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    fs::write(file("noise.mp4"), noise).expect("room");
}

#[test]
fn every_file_has_a_status() {
    let folder = clips::videos(&[30]);
    let folder = folder.path();
    let inputs = folder.join("in");
    write_others(&inputs);
    let whole = inputs.join("clip0.mp4");
    clips::cut(&whole, 0.6, &inputs.join("cut.mp4"));
    clips::cut(&whole, 0.02, &inputs.join("headless.mp4"));
    let expected = [
        ("clip0", "complete"),
        ("cut", "truncated"),
        ("empty", "no-video"),
        ("folder", "unsupported"),
        ("headless", "failed"),
        ("missing", "failed"),
        ("noise", "unsupported"),
        ("pipe", "unsupported"),
        ("sound", "no-video"),
        ("still", "unsupported"),
        ("text", "unsupported"),
    ];
    let list: String = expected
        .map(|(name, _)| format!("in/{name}.mp4\n"))
        .concat();
    fs::write(folder.join("list.txt"), list).expect("room");
    let line = format!("list.txt --out out --jobs 2 {SCRIPTED}");
    let text = run(folder, &line).exits(1);
    for (name, word) in expected {
        let path = folder.join(format!("out/{name}.json"));
        assert_eq!(status(&path), word, "{name}: {}", marker(&path));
        assert_eq!(
            path.exists(),
            ["complete", "truncated"].contains(&word),
            "{name}"
        );
        let message = marker(&path)["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(message.is_empty(), word == "complete", "{name}: {message}");
        assert!(text.contains(&format!("{name}.mp4")), "{name}: {text}");
        if word != "complete" {
            let code = match word {
                "no-video" | "unsupported" => 42,
                _ => 1,
            };
            run(folder, &format!("in/{name}.mp4 --out single {SCRIPTED}")).exits(match name {
                "folder" | "missing" => 2,
                _ => code,
            });
        }
    }
    let failed = fs::read_to_string(folder.join("out/facetrack-failed.jsonl")).expect("a list");
    assert_eq!(failed.lines().count(), expected.len() - 1);
    assert!(
        !files(&folder.join("out"))
            .iter()
            .any(|name| name.ends_with(".partial"))
    );
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let folder = clips::videos(&[3]);
    let folder = folder.path();
    let video = folder.join("in/clip0.mp4");
    fs::set_permissions(&video, fs::Permissions::from_mode(0o000)).expect("our own");
    if File::open(&video).is_ok() {
        eprintln!("SKIPPED: this user can read every file");
        return;
    }
    run(folder, &format!("in --out out {SCRIPTED}")).exits(1);
    assert_eq!(status(&folder.join("out/clip0.json")), "failed");
}

#[test]
fn damage_in_the_middle_is_reported() {
    let folder = clips::videos(&[100]);
    let folder = folder.path();
    let video = folder.join("in/clip0.mp4");
    let mut bytes = fs::read(&video).expect("a video");
    let middle = bytes.len() / 2;
    let length = bytes.len() / 4;
    bytes[middle..middle + length].fill(0xA5);
    fs::write(&video, bytes).expect("room");
    run(folder, &format!("in --out out {SCRIPTED}")).exits(1);
    let marker = marker(&folder.join("out/clip0.json"));
    let status = marker["status"].as_str();
    assert!(matches!(status, Some("truncated" | "failed")), "{marker}");
    assert!(marker["message"].is_string(), "{marker}");
}

#[test]
fn turned_videos_are_upright() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    crate::common::init();
    let source = "videotestsrc num-buffers=6 ! video/x-raw,width=160,height=120,framerate=25/1";
    for rotation in ROTATIONS {
        let video = folder.join(format!("{}.mp4", rotation.tag));
        rotated::write(source, rotation, &video);
    }
    run(folder, &format!(". {SCRIPTED}")).exits(0);
    for rotation in ROTATIONS {
        let record = record(&folder.join(format!("{}.json", rotation.tag)));
        let head = &record["metadata"];
        assert_eq!(
            (&head["width"], &head["height"]),
            (&160.into(), &120.into()),
            "{}",
            rotation.tag
        );
        assert_eq!(head.get("orientation"), None);
        assert_eq!(head["total_frames"], 6);
    }
}

/// Frame numbers stay: one frame for each interlaced frame.
#[test]
fn interlaced_videos_keep_their_frame_numbers() {
    let Some(clip) = ffmpeg::sample() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (name, options) in [
        (
            "h264.mp4",
            "-vf interlace,format=yuv420p -c:v libx264 -preset ultrafast -x264opts interlaced=1",
        ),
        (
            "mpeg2.mpg",
            "-vf interlace,format=yuv420p -c:v mpeg2video -flags +ilme+ildct -b:v 4M",
        ),
    ] {
        ffmpeg::encode(&clip, 40, options, &folder.join(name));
    }
    run(folder, &format!(". {SCRIPTED}")).exits(0);
    for name in ["h264", "mpeg2"] {
        let record = record(&folder.join(format!("{name}.json")));
        let frames = encoded::decoded_frames(&folder.join(if name == "h264" {
            "h264.mp4"
        } else {
            "mpeg2.mpg"
        }));
        assert_eq!(record["metadata"]["total_frames"], frames, "{name}");
    }
}

#[test]
fn a_part_of_a_video_has_its_times() {
    let folder = clips::videos(&[100]);
    let folder = folder.path();
    fs::write(
        folder.join("parts.csv"),
        "id,uri,start,stop\nmiddle,in/clip0.mp4,1,2\nend,in/clip0.mp4,3,\nstart,in/clip0.mp4,,0.4\n",
    )
    .expect("room");
    run(folder, &format!("parts.csv --out out {SCRIPTED}")).exits(0);
    for (name, first, count) in [
        ("middle", 1_000_000_000_u64, 25),
        ("end", 3_000_000_000, 25),
        ("start", 0, 10),
    ] {
        let record = record(&folder.join(format!("out/{name}.json")));
        let frames = record["frames"].as_array().expect("frames");
        assert_eq!(frames.len(), count, "{name}");
        assert_eq!(frames[0]["pts"], first, "{name}");
        assert_eq!(frames[0]["frame"], 1, "{name}");
        assert_eq!(frames[0]["tracked_objects"][0]["id"], "obj_1", "{name}");
    }
}

/// Also where a part begins while a frame is shown, and in a trimmed file.
#[test]
fn each_frame_is_in_one_part() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let clips = tempfile::tempdir().expect("a folder");
    let folder = clips.path();
    let whole = folder.join("whole.mp4");
    let source = "-f lavfi -i testsrc=size=64x48:rate=25:duration=4 -pix_fmt yuv420p";
    let encoder = "-c:v libx264 -preset veryfast -g 12 -bf 3 -threads 1";
    encoded::ffmpeg(&format!("{source} {encoder}"), &whole);
    for (name, cut) in [("trimmed.mp4", "-ss 1.013"), ("whole.mkv", "")] {
        let cut = format!("{cut} -i {} -c copy", whole.display());
        encoded::ffmpeg(&cut, &folder.join(name));
    }
    for name in ["whole.mp4", "trimmed.mp4", "whole.mkv"] {
        let list = ["all,,", "1,,1.01", "2,1.01,1.8", "3,1.8,"].map(|part| {
            let (id, times) = part.split_once(',').expect("an id");
            format!("{id},{name},{times}\n")
        });
        let list = format!("id,uri,start,stop\n{}", list.concat());
        fs::write(folder.join("parts.csv"), list).expect("room");
        run(folder, &format!("parts.csv --out {name}.out {SCRIPTED}")).exits(0);
        let times = |id: &str| {
            let record = record(&folder.join(format!("{name}.out/{id}.json")));
            let frames = record["frames"].as_array().expect("frames").iter();
            frames.map(|frame| frame["pts"].clone()).collect::<Vec<_>>()
        };
        let all = times("all");
        let decoded = encoded::decoded_frames(&folder.join(name));
        assert_eq!(all.len() as u64, decoded, "{name}");
        assert_eq!(["1", "2", "3"].map(times).concat(), all, "{name}");
    }
}

/// A list has the times of the record, in every container: 0 is the first frame.
#[test]
fn parts_have_the_same_frames_in_every_container() {
    if !encoded::has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let video = "-f lavfi -i testsrc=size=64x48:rate=25:duration=6";
    let x264 = "-c:v libx264 -pix_fmt yuv420p -g 12";
    let sound = "-f lavfi -i sine=duration=6 -c:a aac";
    for (name, options) in [
        ("a.mp4", x264.to_owned()),
        ("b.mkv", format!("{sound} {x264}")),
        ("c.ts", x264.to_owned()),
        // A single key frame.
        ("d.ts", format!("{x264} -g 1000")),
        ("e.mpg", "-c:v mpeg2video -f mpeg".to_owned()),
        ("f.flv", x264.to_owned()),
        ("g.avi", "-c:v mpeg4".to_owned()),
    ] {
        encoded::ffmpeg(&format!("{video} {options}"), &folder.join(name));
        let list =
            format!("id,uri,start,stop\nfirst,{name},,1\nmiddle,{name},2,4\nlast,{name},5,\n");
        fs::write(folder.join("parts.csv"), list).expect("room");
        run(folder, &format!("parts.csv --out {name}.out {SCRIPTED}")).exits(0);
        for (part, first, count) in [("first", 0, 25), ("middle", 50, 50), ("last", 125, 25)] {
            let record = record(&folder.join(format!("{name}.out/{part}.json")));
            let frames = record["frames"].as_array().expect("frames");
            let numbers = frames.iter().map(|frame| {
                let pts = frame["pts"].as_f64();
                (pts.unwrap_or(f64::NAN) / 40e6).round() as u64
            });
            let want: Vec<u64> = (first..first + count).collect();
            assert_eq!(numbers.collect::<Vec<_>>(), want, "{name} {part}");
        }
    }
}
