// SPDX-License-Identifier: MPL-2.0
//! `facetrack blur`: copies with their sound, and the report on them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::clips;
use crate::common::encoded::{ffmpeg, has_ffmpeg};
use crate::program::{Run, command, command_with_worker, files};

/// The face of a test: a box that the picture shows as a bright rectangle.
const SCRIPT: &str = "script=face x=0.3 y=0.5 size=0.4";

/// A worker that ends when it is to track a video.
const DIES: &str = "while read -r line; do case $line in *'{\"track\"'*) exit 1;; esac; echo \"$line\"; done | \"$WORKER\"";

/// A worker in whose place a person writes a file while it copies a video.
const BUSY: &str = "while read -r line; do case $line in *'{\"blur\"'*) echo 'my notes' >out.mp4;; esac; echo \"$line\"; done | \"$WORKER\"";

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
    let output = Command::new("ffprobe")
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
        (
            "a.mp4",
            "-c:v libx264 -bf 3 -c:a aac -metadata:s:v title=52.5",
        ),
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
            "-vf crop=319:179 -c:v libx264 -pix_fmt yuv444p -c:a flac -metadata:s:v ARTIST=52.5",
        ),
        ("h.mp4", "-c:v libx264 -c:a aac -metadata:s:v rotate=90"),
        ("i.ts", "-c:v libx264 -c:a aac"),
        (
            "j.ogv",
            "-c:v libtheora -c:a libvorbis -metadata:s:a GEO=+52.5+013.4",
        ),
        (
            "k.mkv",
            "-c:v libx264 -c:a flac -metadata:s:a GEO=+52.5+013.4",
        ),
        (
            "l.ogv",
            "-c:v libtheora -c:a flac -metadata:s:a ARTIST=52.5",
        ),
    ] {
        video(&input.join(name), options);
    }
    let text = blur(folder.path(), &format!("in out {NOTHING}")).exits(0);
    assert!(text.contains("no face found in 12 videos"), "{text}");
    for (name, sound) in [
        ("a.mp4", "aac"),
        ("b.mov", "pcm_s16le"),
        ("c.mkv", "opus"),
        ("d.mkv", "mp2"),
        ("e.mkv", "mp3"),
        ("f.mkv", "ac3"),
        ("g.mkv", "flac"),
        ("h.mp4", "aac"),
        ("i.mkv", "aac"),
        ("j.mkv", "vorbis"),
        ("k.mkv", "flac"),
        ("l.mkv", "flac"),
    ] {
        let copy = folder.path().join("out").join(name);
        let content = fs::read(&copy).expect("a copy");
        assert!(!content.windows(4).any(|it| it == b"52.5"), "{name}");
        let found = probed(&copy);
        assert!(found.contains("codec_name=h264"), "{name}: {found}");
        assert!(
            found.contains(&format!("codec_name={sound}")),
            "{name}: {found}"
        );
    }
    let report = report(&folder.path().join("out.records"));
    for video in report["videos"].as_array().expect("videos") {
        assert_eq!(video["failure"], Json::Null, "{video}");
        assert!(video["frames"].as_u64() >= Some(49), "{video}");
        assert_eq!(video["covered_faces"], 1, "{video}");
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
    let text = blur(folder.path(), &format!("clip.mp4 out.mp4 {NOTHING}")).exits(0);
    assert!(text.contains("left out: another video"), "{text}");
    // With markup, which only Matroska may have.
    let inputs = inputs.replace("-f lavfi -i sine=880 ", "");
    let options = "-map 0 -map 1 -map 2 -t 2 -c:v libx264 -c:a aac -c:s";
    ffmpeg(&format!("{inputs} {options} srt"), &at("srt.mkv"));
    ffmpeg(&format!("{inputs} {options} ass"), &at("ass.mkv"));
    for (name, copy, codec) in [
        ("srt.mkv", "srt.mp4", "mov_text"),
        ("ass.mkv", "ass-copy.mkv", "subrip"),
    ] {
        blur(folder.path(), &format!("{name} {copy} {NOTHING}")).exits(0);
        let found = probed(&at(copy));
        let found = found.contains(&format!("codec_name={codec}|nb_read_packets=1"));
        assert!(found, "{copy}: {}", probed(&at(copy)));
    }
}

/// Times of the packets of sound, s.
fn sound_times(path: &Path) -> Vec<f64> {
    let shown = "-v error -select_streams a -show_entries packet=pts_time -of csv=p=0";
    let output = Command::new("ffprobe")
        .args(shown.split(' '))
        .arg(path)
        .output();
    let text = String::from_utf8_lossy(&output.expect("ffprobe").stdout).into_owned();
    let times = text.lines().map(|it| it.trim_matches(','));
    times
        .filter(|it| !it.is_empty())
        .map(|it| it.parse().expect("a time"))
        .collect()
}

#[test]
fn sound_keeps_its_times_and_headers_with_texts_are_refused() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let gap = "-filter:a aselect=lt(t\\,0.5)+gt(t\\,1.2) -c:v libx264";
    for (name, delay, options) in [
        (
            "vorbis.webm",
            "0.4",
            "-c:v libvpx -deadline realtime -c:a libvorbis",
        ),
        ("vorbis.mkv", "0", &*format!("{gap} -c:a libvorbis")),
        ("flac.mkv", "0", &*format!("{gap} -c:a flac")),
        ("opus.mkv", "0", &*format!("{gap} -c:a libopus")),
    ] {
        let inputs =
            format!("-f lavfi -i testsrc=s=320x180:r=25 -itsoffset {delay} -f lavfi -i sine");
        ffmpeg(&format!("{inputs} -t 2 {options}"), &at(name));
        let copy = format!("{name}-copy.mkv");
        blur(folder.path(), &format!("{name} {copy} {NOTHING}")).exits(0);
        let [times, copied] = [name, &*copy].map(|name| sound_times(&at(name)));
        assert!(!times.is_empty(), "{name}");
        assert_eq!(times.len(), copied.len(), "{name}");
        let mut pairs = std::iter::zip(&times, &copied);
        assert!(
            pairs.all(|(a, b)| (a - b).abs() < 0.002),
            "{name}: {times:?} {copied:?}"
        );
    }
    video(&at("speex.mkv"), "-c:v libx264 -ar 16000 -c:a libspeex");
    let text = blur(folder.path(), &format!("speex.mkv out.mkv {NOTHING}")).exits(1);
    assert!(text.contains("may have texts and pictures"), "{text}");
}

/// The end of the sound is behind the end of the video in the file.
#[test]
fn a_trimmed_video_keeps_its_sound() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [whole, trimmed] = ["whole.mp4", "trimmed.mp4"].map(|name| folder.path().join(name));
    video(&whole, "-c:v libx264 -g 100 -c:a libmp3lame");
    let trim = format!("-ss 0.8 -i {} -c copy", whole.display());
    ffmpeg(&trim, &trimmed);
    blur(folder.path(), &format!("trimmed.mp4 out.mp4 {NOTHING}")).exits(0);
    let output = Command::new("ffprobe")
        .args("-v error -select_streams a -show_entries stream=duration -of csv=p=0".split(' '))
        .arg(folder.path().join("out.mp4"))
        .output();
    let text = String::from_utf8_lossy(&output.expect("ffprobe").stdout).into_owned();
    let seconds: f64 = text.trim().parse().expect("a duration");
    assert!((1.1..1.3).contains(&seconds), "{seconds}");
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
    // The covered faces are still recognised.
    let weak = "--engine mediapipe --cover cells=16 --cover mode=blur --cover margin=0 --check-engine opencv-yunet";
    let text = command(folder.path(), "blur", &format!("clip.mp4 weak.mp4 {weak}")).exits(1);
    assert!(text.contains("FACE ON COVER: "), "{text}");
}

/// Neither a check nor a record of an earlier command counts.
#[test]
fn what_fails_is_not_replaced_by_an_earlier_result() {
    let folder = clips::videos(&[5]);
    let line = format!("in/clip0.mp4 out.mp4 {NOTHING}");
    let dying = |line: &str| {
        let run = command_with_worker(DIES, folder.path(), "blur", line);
        run.arg("--engine").arg("scripted").arg("--set").arg(SCRIPT)
    };
    blur(folder.path(), &line).exits(0);
    // The copy is another one, and its check fails.
    let text = dying(&format!("{line} --cover mode=fill")).exits(1);
    assert!(text.contains("the copy is not checked"), "{text}");
    let failure = &report(&folder.path().join("out.mp4.records"))["videos"][0]["failure"];
    assert!(failure.is_string(), "{failure}");
    blur(folder.path(), &line).exits(0);
    // The video is another one.
    clips::video(&folder.path().join("in/clip0.mp4"), 7);
    let text = blur(folder.path(), &format!("{line} --check-only")).exits(1);
    assert!(
        text.contains("it has changed since it was tracked"),
        "{text}"
    );
    let text = dying(&line).exits(1);
    assert!(text.contains("out.mp4: failed"), "{text}");
    let text = blur(folder.path(), &line).exits(0);
    assert!(text.contains("covered in 7 frames"), "{text}");
}

#[test]
fn a_copy_ends_at_once_when_it_is_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    clips::video(&folder.path().join("clip.mp4"), 3000);
    let mut running = blur(folder.path(), &format!("clip.mp4 out.mp4 {NOTHING}")).start();
    let output = BufReader::new(running.stdout.take().expect("a pipe"));
    let begun = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "Covering faces");
    assert!(begun);
    let interrupted = Instant::now();
    let killed = Command::new("kill")
        .arg("-INT")
        .arg(running.id().to_string())
        .status();
    assert!(killed.expect("kill").success());
    assert_eq!(running.wait().expect("it ends").code(), Some(75));
    assert!(interrupted.elapsed() < Duration::from_secs(4));
    let left = fs::read_dir(folder.path()).expect("a folder");
    let left = left.filter(|it| {
        it.as_ref()
            .is_ok_and(|it| it.file_name() != "out.mp4.records")
    });
    assert_eq!(left.count(), 1, "only the video");
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
    // Copies of videos of a list, which would replace one of them, or be in their folder.
    fs::create_dir(at("out")).expect("a folder");
    fs::copy(at("clip.mp4"), at("out/b.mp4")).expect("room");
    std::os::unix::fs::symlink(at("in"), at("link")).expect("a link");
    let row = |id: &str, path: &str| serde_json::json!({"id": id, "uri": path}).to_string();
    let rows = [row("b", "clip.mp4"), row("c", "out/b.mp4")].join("\n");
    fs::write(at("list.jsonl"), rows).expect("room");
    fs::create_dir(at("mine.records")).expect("a folder");
    fs::write(at("mine.records/report.json"), "my notes").expect("room");
    for (line, part) in [
        ("list.jsonl out --force", "is in the folder for the copies"),
        ("in link/new", "Name a folder outside"),
        ("in mine", "`facetrack blur` has not written it"),
        ("- out", "Write it to a file"),
    ] {
        let before = files(folder.path());
        let text = blur(folder.path(), &format!("{line} {NOTHING}")).exits(1);
        assert!(text.contains(part), "{line}: {text}");
        assert_eq!(files(folder.path()), before, "{line}");
    }
    // Nor with a mark that is not of the command.
    fs::write(at("mine.records/about.txt"), "").expect("room");
    let text = blur(folder.path(), &format!("in mine {NOTHING}")).exits(1);
    assert!(text.contains("has not written it"), "{text}");
    assert_eq!(fs::read(at("mine.records/about.txt")).expect("a file"), b"");
    // A file that comes while the copy is made.
    let run = command_with_worker(
        BUSY,
        folder.path(),
        "blur",
        &format!("clip.mp4 out.mp4 {NOTHING}"),
    );
    let run = run.arg("--engine").arg("scripted").arg("--set").arg(SCRIPT);
    let text = run.exits(1);
    assert!(
        text.contains("it was changed while the copy was made"),
        "{text}"
    );
    assert_eq!(
        fs::read_to_string(at("out.mp4")).expect("notes"),
        "my notes\n"
    );
    fs::remove_file(at("out.mp4")).expect("our own");
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
