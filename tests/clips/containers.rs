// SPDX-License-Identifier: MPL-2.0
//! Records of files as they are: with odd, variable and missing timestamps, cut off and damaged.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::encoded::{decoded_frames, ffmpeg, has_ffmpeg};
use gst::prelude::*;
use serde_json::Value as Json;

/// 2 s of 25 frames per second, and the encoder of most clips.
const VIDEO: &str = "-f lavfi -i testsrc=size=64x48:rate=25:duration=2";
const SOUND: &str = "-f lavfi -i sine=duration=2";
const X264: &str = "-pix_fmt yuv420p -c:v libx264 -preset veryfast -g 12 -threads 1";

/// Clips with odd times: the file's name, what comes before the encoder, and what comes after it.
const ODD: [(&str, &str, &str); 23] = [
    ("b-frames.mp4", "VIDEO", "X264"),
    (
        "variable.mp4",
        "VIDEO -vf select=not(mod(n\\,3))+lt(n\\,15) -vsync vfr",
        "X264",
    ),
    (
        "variable.mkv",
        "VIDEO -vf select=not(mod(n\\,3))+lt(n\\,15) -vsync vfr",
        "X264",
    ),
    (
        "variable.ts",
        "VIDEO -vf select=not(mod(n\\,3))+lt(n\\,15) -vsync vfr",
        "X264",
    ),
    // Shifted by up to 24 ms.
    (
        "jitter.mkv",
        "VIDEO",
        "X264 -bf 0 -bsf:v setts=ts=N*40+mod(N*7\\,5)*6",
    ),
    (
        "late-start.mkv",
        "VIDEO SOUND",
        "X264 -c:a aac -output_ts_offset 10",
    ),
    ("no-times.h264", "VIDEO", "X264"),
    ("no-times.avi", "VIDEO", "X264"),
    ("sound.avi", "VIDEO SOUND", "-c:v mpeg4 -c:a libmp3lame"),
    (
        "jump.ts",
        "VIDEO -vf setpts=PTS+gte(N\\,25)*20/TB -vsync vfr",
        "X264",
    ),
    (
        "repeated.mkv",
        "VIDEO",
        "-c:v mjpeg -pix_fmt yuvj420p -bsf:v setts=ts=floor(N/2)*80",
    ),
    (
        "film.mkv",
        "-f lavfi -i testsrc=size=64x48:rate=24000/1001:duration=2",
        "X264",
    ),
    (
        "ntsc.mkv",
        "-f lavfi -i testsrc=size=64x48:rate=30000/1001:duration=2",
        "X264",
    ),
    (
        "uneven-step.mp4",
        "VIDEO -vf setpts=PTS+gte(N\\,25)/25/TB -vsync vfr",
        "X264",
    ),
    (
        "wrong-rate.mkv",
        "VIDEO",
        "X264 -bsf:v setts=pts=PTS*4:dts=DTS*4",
    ),
    (
        "still.mp4",
        "VIDEO -f lavfi -i sine=duration=12 -vf setpts=PTS+gte(N\\,25)*10/TB -vsync vfr",
        "X264 -c:a aac",
    ),
    (
        "still.mkv",
        "VIDEO -f lavfi -i sine=duration=12 -vf setpts=PTS+gte(N\\,25)*10/TB -vsync vfr",
        "X264 -c:a aac",
    ),
    (
        "hidden-frames.webm",
        "VIDEO SOUND",
        "-c:v libvpx -b:v 100k -auto-alt-ref 1 -lag-in-frames 10 -c:a libvorbis",
    ),
    (
        "later-than-sound.mp4",
        "SOUND -itsoffset 0.5 VIDEO -map 1 -map 0",
        "X264 -c:a aac",
    ),
    (
        "fragments.mp4",
        "VIDEO",
        "X264 -movflags frag_keyframe+empty_moov",
    ),
    ("flash.flv", "VIDEO SOUND", "X264 -c:a aac"),
    ("two-frames.mp4", "VIDEO -frames:v 2", "X264"),
    (
        "two-rates.mp4",
        "VIDEO -vf settb=1/1000,setpts=if(lt(N\\,25)\\,N/30\\,25/30+(N-25)/24)/TB -vsync vfr",
        "X264 -enc_time_base 1/1000",
    ),
];

/// Ordinary clips, with and without sound, and with sound that is longer.
const ORDINARY: [(&str, &str, &str); 14] = [
    ("a.mp4", "VIDEO", "X264"),
    ("b.mp4", "VIDEO SOUND", "X264 -c:a aac"),
    ("c.mp4", "VIDEO SOUND", "X264 -c:a aac -movflags +faststart"),
    (
        "d.mp4",
        "VIDEO -f lavfi -i sine=duration=4",
        "X264 -c:a aac",
    ),
    (
        "e.mov",
        "VIDEO -f lavfi -i sine=duration=4",
        "X264 -c:a aac",
    ),
    ("f.mkv", "VIDEO", "X264"),
    ("g.mkv", "VIDEO SOUND", "X264 -c:a aac"),
    (
        "h.mkv",
        "VIDEO -f lavfi -i sine=duration=4",
        "X264 -c:a aac",
    ),
    ("i.webm", "VIDEO", "-c:v libvpx -b:v 100k"),
    (
        "j.webm",
        "VIDEO -f lavfi -i sine=duration=4",
        "-c:v libvpx -b:v 100k -c:a libvorbis",
    ),
    ("k.ts", "VIDEO", "X264"),
    ("l.ts", "VIDEO -f lavfi -i sine=duration=4", "X264 -c:a aac"),
    ("m.avi", "VIDEO", "-c:v mpeg4"),
    (
        "n.avi",
        "VIDEO -f lavfi -i sine=duration=4",
        "-c:v mpeg4 -c:a libmp3lame",
    ),
];

/// Clips that are cut off. In the first one, the index comes before the frames.
const CUT: [(&str, &str, &str); 6] = [
    (
        "cut.mp4",
        "VIDEO SOUND",
        "X264 -c:a aac -movflags +faststart",
    ),
    ("index-last.mp4", "VIDEO SOUND", "X264 -c:a aac"),
    ("cut.mkv", "VIDEO SOUND", "X264 -c:a aac"),
    (
        "cut.webm",
        "VIDEO SOUND",
        "-c:v libvpx -b:v 100k -c:a libvorbis",
    ),
    ("cut.ts", "VIDEO SOUND", "X264 -c:a aac"),
    ("cut.avi", "VIDEO SOUND", "-c:v mpeg4 -c:a libmp3lame"),
];

/// Places at which each of them is cut.
const PLACES: usize = 20;

/// Silence on the bus after which a pipeline has stalled.
const STALLED: gst::ClockTime = gst::ClockTime::from_seconds(2);

/// Stalls in a row that fail a test.
const ATTEMPTS: usize = 12;

/// Bytes of a packet of a transport stream. It has no end mark, so one that is cut between two
/// packets is whole.
const TS_PACKET: usize = 188;

/// A clip of a table in `folder`.
fn make(folder: &Path, (name, source, encoder): (&str, &str, &str)) -> PathBuf {
    let path = folder.join(name);
    let arguments = format!("{source} {encoder}")
        .replace("VIDEO", VIDEO)
        .replace("SOUND", SOUND)
        .replace("X264", X264);
    ffmpeg(&arguments, &path);
    path
}

/// Result of recording a file.
struct Played {
    record: Option<Json>,
    error: Option<String>,
    warnings: Vec<String>,
    /// Frames that reached the sink.
    frames: u64,
}

impl Played {
    fn head(&self) -> &Json {
        let record = self.record.as_ref();
        &record.unwrap_or_else(|| panic!("{:?}", self.error))["metadata"]
    }

    fn recorded(&self) -> u64 {
        let frames = self.record.as_ref().map(|record| &record["frames"]);
        let frames = frames.and_then(Json::as_array).map_or(0, Vec::len);
        frames as u64
    }

    fn warning(&self, part: &str) -> bool {
        self.warnings.iter().any(|warning| warning.contains(part))
    }
}

/// Records a file with the first pipeline in the README.
fn play(clip: &Path) -> Played {
    try_to_play(clip).unwrap_or_else(|| panic!("{} never begins", clip.display()))
}

/// Plays a clip like [`play`]; `None` if the pipeline never begins.
fn try_to_play(clip: &Path) -> Option<Played> {
    (0..ATTEMPTS).find_map(|_| attempt(clip))
}

/// Makes one attempt; `None` if the pipeline does not begin. decodebin drops an error that a
/// demuxer posts while it is added, which happens with files that end in their header.
fn attempt(clip: &Path) -> Option<Played> {
    common::init();
    let location = clip.with_extension("json");
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={} ! decodebin ! facetrack engine=scripted ! trackjsonsink name=sink overwrite=true location={}",
        clip.display(),
        location.display()
    ));
    let pipeline = pipeline.expect("a pipeline").downcast::<gst::Bin>();
    let pipeline = pipeline.expect("a pipeline");
    let sink = pipeline.by_name("sink").expect("the sink");
    let frames = Arc::new(AtomicU64::new(0));
    let counted = frames.clone();
    let pad = sink.static_pad("sink").expect("a pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        gst::PadProbeReturn::Ok
    });
    let mut played = Played {
        record: None,
        error: None,
        warnings: Vec::new(),
        frames: 0,
    };
    pipeline.set_state(gst::State::Playing).ok();
    let bus = pipeline.bus().expect("a bus");
    loop {
        let Some(message) = bus.timed_pop(STALLED) else {
            assert_eq!(frames.load(Ordering::Relaxed), 0, "it stalls");
            pipeline.set_state(gst::State::Null).expect("it stops");
            assert!(!location.exists());
            return None;
        };
        match message.view() {
            gst::MessageView::Eos(_) => break,
            // With a cut AVI file, decodebin sometimes does not pass on the end of its other
            // streams.
            gst::MessageView::Element(done)
                if done
                    .structure()
                    .is_some_and(|s| s.has_name("trackjsonsink-done")) =>
            {
                break;
            }
            gst::MessageView::Error(error) => {
                played.error = Some(error.error().to_string());
                break;
            }
            gst::MessageView::Warning(warning) => {
                let debug = warning.debug().unwrap_or_default();
                let text = format!("{} {debug}", warning.error());
                played.warnings.push(text);
            }
            _ => (),
        }
    }
    pipeline.set_state(gst::State::Null).expect("it stops");
    played.frames = frames.load(Ordering::Relaxed);
    let text = fs::read_to_string(&location).ok();
    played.record = text.map(|text| serde_json::from_str(&text).expect("JSON"));
    let _ = fs::remove_file(&location);
    Some(played)
}

/// Frame N is the Nth decoded frame, as every reader of the file counts.
#[test]
fn every_decoded_frame_has_its_number() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for clip in ODD {
        let name = clip.0;
        let path = make(folder.path(), clip);
        let played = play(&path);
        assert_eq!(played.recorded(), played.frames, "{name}");
        assert_eq!(played.recorded(), decoded_frames(&path), "{name}");
        let head = played.head();
        assert_eq!(head["complete"], true, "{name}: {head}");
        assert!(head["fps"].as_f64().is_some_and(|fps| fps > 0.0), "{name}");
        assert_eq!(head["padded_frames"], 0, "{name}");
    }
}

#[test]
fn the_rate_is_that_of_the_frames() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (name, fps, is_variable) in [
        ("b-frames.mp4", 25.0, false),
        ("variable.mp4", 26.0 / 1.92, true),
        ("variable.mkv", 26.0 / 1.92, true),
        ("film.mkv", 24_000.0 / 1001.0, false),
        ("ntsc.mkv", 30_000.0 / 1001.0, false),
        ("wrong-rate.mkv", 6.25, false),
        // The mean rate, which qtdemux states, is right to within half a frame.
        ("uneven-step.mp4", 49.0 / 2.0, false),
        ("two-rates.mp4", 49.0 / (25.0 / 30.0 + 1.0), true),
        ("two-frames.mp4", 25.0, false),
    ] {
        let clip = ODD.iter().find(|clip| clip.0 == name).expect("a clip");
        let played = play(&make(folder.path(), *clip));
        let head = played.head();
        let measured = head["fps"].as_f64().expect("a number");
        assert!((measured / fps - 1.0).abs() < 0.005, "{name}: {measured}");
        assert_eq!(head.get("variable_rate").is_some(), is_variable, "{name}");
    }
    let still = ODD.iter().find(|clip| clip.0 == "still.mp4");
    let played = play(&make(folder.path(), *still.expect("a clip")));
    // Versions of ffmpeg do not agree on the last frame. A picture stands still for 10 s.
    let intervals = played.frames as f64 - 1.0;
    let fps = intervals / (intervals / 25.0 + 10.0);
    let measured = played.head()["fps"].as_f64().expect("a number");
    assert!((measured / fps - 1.0).abs() < 0.005, "{measured}");
}

#[test]
fn the_first_frame_of_a_file_is_at_0() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for name in [
        "b-frames.mp4",
        "variable.ts",
        "no-times.avi",
        "late-start.mkv",
        "later-than-sound.mp4",
        "flash.flv",
    ] {
        let clip = ODD.iter().find(|clip| clip.0 == name).expect("a clip");
        let played = play(&make(folder.path(), *clip));
        let record = played.record.expect("a record");
        assert_eq!(record["frames"][0]["pts"], 0, "{name}");
        assert_eq!(record["frames"][1]["frame"], 2, "{name}");
    }
}

#[test]
fn ordinary_files_are_complete() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for clip in ORDINARY {
        let played = play(&make(folder.path(), clip));
        let head = played.head();
        assert_eq!(head["complete"], true, "{}: {head}", clip.0);
        assert!(played.warnings.is_empty(), "{:?}", played.warnings);
        assert_eq!(played.recorded(), 50, "{}", clip.0);
    }
}

/// The file is cut off like an interrupted download.
#[test]
fn a_file_that_is_cut_off_says_so() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for clip in CUT {
        let path = make(folder.path(), clip);
        let whole = fs::read(&path).expect("a clip");
        let all = decoded_frames(&path);
        assert_eq!(play(&path).recorded(), all, "{}", clip.0);
        for place in 1..=PLACES {
            let mut length = whole.len() * place / (PLACES + 1);
            if clip.0.ends_with(".ts") && length.is_multiple_of(TS_PACKET) {
                length += 1;
            }
            fs::write(&path, &whole[..length]).expect("room");
            // With GStreamer 1.26, decodebin drops the error nearly always.
            let Some(played) = try_to_play(&path) else {
                continue;
            };
            let told = played.record.as_ref().is_some_and(|record| {
                record["metadata"]["complete"] == false && played.warning("cut off")
            });
            assert!(
                played.error.is_some() || told || played.recorded() == all,
                "{} cut at {length} of {}: {} of {all} frames, {:?}",
                clip.0,
                whole.len(),
                played.recorded(),
                played.warnings
            );
            assert!(
                played.error.is_none() || played.record.is_none(),
                "{}",
                clip.0
            );
        }
    }
}

/// Zeros in the middle, as a bad disk leaves them: what can't be decoded is told.
#[test]
fn a_damaged_file_says_so() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for clip in [CUT[0], CUT[3]] {
        let path = make(folder.path(), clip);
        let mut bytes = fs::read(&path).expect("a clip");
        let middle = bytes.len() / 2;
        bytes[middle..middle + 3000].fill(0);
        fs::write(&path, bytes).expect("room");
        let played = play(&path);
        let head = played.head();
        // From GStreamer 1.26 on, the decoder announces what it lost.
        let padded = head["padded_frames"].as_u64().expect("a number");
        assert_eq!(played.recorded(), played.frames + padded, "{}", clip.0);
        let lacks = played.frames < 50;
        assert!(!lacks || head["complete"] == false, "{}: {head}", clip.0);
        assert!(lacks, "{}: nothing was damaged", clip.0);
    }
}

/// The orientation is in the file as phones write it.
#[test]
fn the_orientation_of_a_file_is_recorded() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let upright = make(folder.path(), ORDINARY[0]);
    assert_eq!(play(&upright).head().get("orientation"), None);
    let turned = folder.path().join("turned.mp4");
    let mut bytes = fs::read(&upright).expect("a clip");
    turn(&mut bytes);
    fs::write(&turned, bytes).expect("room");
    assert_eq!(play(&turned).head()["orientation"], "rotate-90");
}

/// Replaces the matrix of the first track of an MP4 file, which follows the one of the whole file.
fn turn(bytes: &mut [u8]) {
    const ONE: i32 = 1 << 16;
    let matrix = |rotation: [i32; 4]| {
        let [a, b, c, d] = rotation;
        [a, b, 0, c, d, 0, 0, 0, 1 << 30]
            .map(i32::to_be_bytes)
            .concat()
    };
    let upright = matrix([ONE, 0, 0, ONE]);
    let places = bytes.windows(upright.len()).enumerate();
    let mut places = places.filter(|(_, found)| *found == upright);
    let (place, _) = places.nth(1).expect("a track");
    bytes[place..][..upright.len()].copy_from_slice(&matrix([0, ONE, -ONE, 0]));
}

/// Two runs write the same bytes.
#[test]
fn two_records_of_a_file_are_the_same() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for clip in [ODD[2], CUT[3], ODD[9]] {
        let path = make(folder.path(), clip);
        let records = [(); 2].map(|()| play(&path).record.expect("a record"));
        assert_eq!(records[0].to_string(), records[1].to_string());
    }
}
