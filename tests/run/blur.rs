// SPDX-License-Identifier: MPL-2.0
//! `facetrack blur`: copies with their sound, and the report on them.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::clips;
use crate::common::encoded::{ffmpeg, has_ffmpeg};
use crate::program::{Run, command, files};

/// The face of a test: a box that the picture shows as a bright rectangle.
const SCRIPT: &str = "script=face x=0.3 y=0.5 size=0.4";

/// `facetrack blur` of what the arguments name, with scripted faces and a check that finds none.
fn blur(folder: &Path, line: &str) -> Run {
    let run = command(folder, "blur", line);
    run.arg("--engine").arg("scripted").arg("--set").arg(SCRIPT)
}

/// The check finds no face.
const NOTHING: &str = "--check-engine opencv-haar";

/// A video of two seconds with sound, a title, a place and a cover picture.
fn video(path: &Path, options: &str) {
    let inputs = "-f lavfi -i testsrc=s=320x180:r=25 -f lavfi -i sine";
    let tags = "-metadata title=hello -metadata location=+52.5+013.4/";
    ffmpeg(&format!("{inputs} -t 2 {tags} {options}"), path);
}

fn report(records: &Path) -> Json {
    let text = fs::read(records.join("report.json")).expect("a report");
    serde_json::from_slice(&text).expect("JSON")
}

/// Codecs and numbers of packets of the streams, and the tags, as ffprobe prints them.
fn probed(path: &Path) -> String {
    let shown = "stream=codec_name,nb_read_packets:stream_tags=language:format_tags";
    let output = std::process::Command::new("ffprobe")
        .args([
            "-v",
            "error",
            "-count_packets",
            "-of",
            "compact",
            "-show_entries",
            shown,
        ])
        .arg(path)
        .output();
    String::from_utf8_lossy(&output.expect("ffprobe").stdout).into_owned()
}

#[test]
fn copies_have_all_frames_and_the_sound() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in");
    fs::create_dir(&input).expect("a folder");
    // Times of B-frames, uneven times, odd sizes, sound that MP4 cannot hold, an edit list, a rotation.
    for (name, options) in [
        ("a.mp4", "-c:v libx264 -bf 3 -c:a aac"),
        ("b.mov", "-c:v libx264 -c:a pcm_s16le"),
        ("c.webm", "-c:v libvpx -deadline realtime -c:a libopus"),
        ("d.ts", "-c:v mpeg2video -c:a mp2"),
        ("e.avi", "-c:v mpeg4 -c:a libmp3lame"),
        (
            "f.mkv",
            "-vf setpts=PTS+mod(N\\,3)*0.3/25/TB -fps_mode passthrough -c:v libx264 -bf 2 -c:a ac3",
        ),
        (
            "g.mkv",
            "-vf crop=319:179 -c:v libx264 -pix_fmt yuv444p -c:a flac",
        ),
        ("h.mp4", "-c:v libx264 -c:a aac -metadata:s:v rotate=90"),
    ] {
        video(&input.join(name), options);
    }
    let text = blur(folder.path(), &format!("in out {NOTHING}")).exits(0);
    assert!(text.contains("no face found in 8 videos"), "{text}");
    for (name, sound) in [
        ("a.mp4", "aac"),
        ("b.mov", "pcm_s16le"),
        ("c.mkv", "opus"),
        ("d.mkv", "mp2"),
        ("e.mkv", "mp3"),
        ("f.mkv", "ac3"),
        ("g.mkv", "flac"),
        ("h.mp4", "aac"),
    ] {
        let found = probed(&folder.path().join("out").join(name));
        assert!(found.contains("codec_name=h264"), "{name}: {found}");
        assert!(
            found.contains(&format!("codec_name={sound}")),
            "{name}: {found}"
        );
        assert!(!found.contains("52.5"), "{name}: {found}");
    }
    let report = report(&folder.path().join("out.records"));
    for video in report["videos"].as_array().expect("videos") {
        assert_eq!(video["failure"], Json::Null, "{video}");
        assert!(video["frames"].as_u64() >= Some(49), "{video}");
        assert_eq!(video["faces"], 1, "{video}");
    }
    let before = files(folder.path());
    let times = |name: &str| {
        fs::metadata(folder.path().join(name))
            .expect("a file")
            .modified()
    };
    let copied = times("out/a.mp4").expect("a time");
    blur(folder.path(), &format!("in out {NOTHING}")).exits(0);
    assert_eq!(
        times("out/a.mp4").expect("a time"),
        copied,
        "nothing is copied again"
    );
    assert_eq!(files(folder.path()), before);
}

#[test]
fn subtitles_and_all_sounds_are_kept_and_another_video_is_named() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("s.srt"), "1\n00:00:00,200 --> 00:00:01,500\nhello\n").expect("room");
    let inputs = format!(
        "-f lavfi -i testsrc=s=320x180:r=25 -f lavfi -i sine -f lavfi -i sine=880 -i {} \
         -f lavfi -i testsrc2=s=160x90:r=25",
        at("s.srt").display()
    );
    let options = "-map 0 -map 1 -map 2 -map 3 -map 4 -t 2 -c:v libx264 -c:a aac -c:s mov_text \
        -metadata:s:a:0 language=eng -metadata:s:a:1 language=deu";
    ffmpeg(&format!("{inputs} {options}"), &at("clip.mp4"));
    let text = blur(folder.path(), &format!("clip.mp4 out.mp4 {NOTHING}")).exits(0);
    assert!(text.contains("left out: another video"), "{text}");
    let found = probed(&at("out.mp4"));
    for (part, count) in [
        ("codec_name=h264", 1),
        ("codec_name=aac", 2),
        ("codec_name=mov_text", 1),
        ("language=eng", 1),
        ("language=deu", 1),
    ] {
        assert_eq!(found.matches(part).count(), count, "{part}: {found}");
    }
}

#[test]
fn a_face_that_is_left_is_reported() {
    let videos = clips::recorded();
    let Some(clip) = videos.first() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(clip, folder.path().join("clip.mp4")).expect("room");
    // The wrong place is covered.
    let text = command(
        folder.path(),
        "blur",
        "clip.mp4 out.mp4 --check-engine opencv-yunet",
    )
    .arg("--engine")
    .arg("scripted")
    .arg("--set")
    .arg("script=face x=0.02 y=0.98 size=0.02")
    .exits(1);
    assert!(text.contains("FACE LEFT: 00:00.000 to "), "{text}");
    let left = &report(&folder.path().join("out.mp4.records"))["videos"][0]["left"];
    assert_eq!(left[0]["from"], 0.0, "{left}");
    let text = command(folder.path(), "blur", "clip.mp4 out.mp4").exits(0);
    assert!(text.contains("no face found in 1 video"), "{text}");
    command(folder.path(), "blur", "clip.mp4 out.mp4 --check-only").exits(0);
}

#[test]
fn nothing_but_an_own_copy_is_replaced() {
    let folder = clips::videos(&[5, 6]);
    let at = |name: &str| folder.path().join(name);
    fs::rename(at("in/clip1.mp4"), at("clip.mp4")).expect("a name");
    fs::write(at("notes.mp4"), "my notes").expect("room");
    for (line, code, part) in [
        (
            "clip.mp4 notes.mp4",
            1,
            "has not written it. Move it away, or add --force",
        ),
        ("clip.mp4 clip.mp4", 1, "it is the video itself"),
        (
            "clip.mp4 out.avi",
            1,
            "Name a file with the suffix .mp4, .mov or .mkv",
        ),
        ("in in/out", 1, "Name a folder outside"),
        ("in notes.mp4", 1, "Name a folder for the copies"),
        ("clip.mp4 in", 1, "it is a folder. Name the video to write"),
        (
            "clip.mp4 out.mp4 --cover mode=none",
            1,
            "`mode=none`: not one of",
        ),
        ("clip.mp4 out.mp4 --cover speed=1", 1, "no property `speed`"),
        (
            "clip.mp4 out.mp4 --check-only",
            1,
            "Run without --check-only",
        ),
    ] {
        let before = fs::read(at("clip.mp4")).expect("a video");
        let text = blur(folder.path(), &format!("{line} {NOTHING}")).exits(code);
        assert!(text.contains(part), "{line}: {text}");
        assert_eq!(fs::read(at("notes.mp4")).expect("notes"), b"my notes");
        assert_eq!(fs::read(at("clip.mp4")).expect("a video"), before);
    }
    // A copy that was changed is not ours any more.
    blur(folder.path(), &format!("clip.mp4 out.mp4 {NOTHING}")).exits(0);
    fs::write(at("out.mp4"), "my notes").expect("room");
    blur(folder.path(), &format!("clip.mp4 out.mp4 {NOTHING}")).exits(1);
    assert_eq!(fs::read(at("out.mp4")).expect("notes"), b"my notes");
    blur(
        folder.path(),
        &format!("clip.mp4 out.mp4 --force {NOTHING}"),
    )
    .exits(0);
}
