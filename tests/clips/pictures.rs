// SPDX-License-Identifier: MPL-2.0
//! Frame N of a record is the Nth frame that ffmpeg reads, picture by picture, also in files that
//! were cut without being encoded again.

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::encoded::{ffmpeg, has_ffmpeg};
use gst::prelude::*;
use gst_video::prelude::*;
use serde_json::Value as Json;

/// Size of a frame of the clips in I420.
const FRAME: usize = 64 * 48 * 3 / 2;

const X264: &str = "-pix_fmt yuv420p -c:v libx264 -preset veryfast -g 12 -threads 1";

/// Files that others are cut from: the name, the source and the encoder.
const WHOLE: [(&str, &str, &str); 9] = [
    ("a.mp4", "VIDEO", "X264 -bf 0"),
    ("b.mp4", "VIDEO SOUND", "X264 -bf 3 -c:a aac"),
    ("ntsc.mp4", "NTSC", "X264 -bf 2"),
    ("slow.mp4", "SLOW", "X264 -bf 2 -g 4"),
    ("open.mp4", "VIDEO", "X264 -bf 3 -x264-params open-gop=1"),
    ("open-gop.ts", "VIDEO", "X264 -bf 3 -x264-params open-gop=1"),
    ("b.ts", "VIDEO SOUND", "X264 -bf 3 -c:a aac"),
    ("b.mkv", "VIDEO SOUND", "X264 -bf 3 -c:a aac"),
    (
        "vp9.webm",
        "VIDEO",
        "-c:v libvpx-vp9 -cpu-used 8 -deadline realtime -b:v 200k -g 12",
    ),
];

/// Files that are cut from these: the name, the file, what comes before it and what comes after it.
const TRIMMED: [(&str, &str, &str, &str); 17] = [
    ("on-a-frame.mp4", "a.mp4", "-ss 1", ""),
    ("between.mp4", "a.mp4", "-ss 1.013", ""),
    ("b-frames.mp4", "b.mp4", "-ss 0.5", ""),
    ("both-ends.mp4", "b.mp4", "-ss 1.01", "-t 1.2"),
    (
        "index-first.mp4",
        "b.mp4",
        "-ss 1.01",
        "-movflags +faststart",
    ),
    ("apple.mov", "b.mp4", "-ss 1.01", "-t 2"),
    ("ntsc-cut.mp4", "ntsc.mp4", "-ss 1.013", ""),
    ("ntsc-close.mp4", "ntsc.mp4", "-ss 0.5", ""),
    ("slow-cut.mp4", "slow.mp4", "-ss 2.5", ""),
    (
        "fragments.mp4",
        "b.mp4",
        "-ss 1.01",
        "-movflags frag_keyframe+empty_moov",
    ),
    ("no-edits.mp4", "a.mp4", "-ss 1.01", "-use_editlist 0"),
    ("vp9-cut.mp4", "vp9.webm", "-ss 1.01", ""),
    ("open.mkv", "open.mp4", "-ss 1.01", ""),
    ("open.ts", "open-gop.ts", "-ss 1.01", ""),
    ("cut.ts", "b.ts", "-ss 1.01", ""),
    ("cut.mkv", "b.mkv", "-ss 1.01", ""),
    ("raw.h264", "b.mp4", "", ""),
];

/// Makes a file of [`WHOLE`].
fn make(folder: &Path, (name, source, encoder): (&str, &str, &str)) {
    let pattern = "-f lavfi -i testsrc2=size=64x48";
    let arguments = format!("{source} {encoder}")
        .replace("VIDEO", &format!("{pattern}:rate=25:duration=4"))
        .replace("NTSC", &format!("{pattern}:rate=30000/1001:duration=4"))
        .replace("SLOW", &format!("{pattern}:rate=1:duration=12"))
        .replace("SOUND", "-f lavfi -i sine=duration=4")
        .replace("X264", X264);
    ffmpeg(&arguments, &folder.join(name));
}

/// Makes a file of [`TRIMMED`].
fn trim(folder: &Path, (name, from, before, after): (&str, &str, &str, &str)) {
    let from = folder.join(from);
    let arguments = format!("{before} -i {} -c copy {after}", from.display());
    ffmpeg(&arguments, &folder.join(name));
}

/// The folder with all files; `None` without ffmpeg.
fn clips() -> Option<tempfile::TempDir> {
    if !has_ffmpeg() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    WHOLE.iter().for_each(|clip| make(folder.path(), *clip));
    TRIMMED.iter().for_each(|clip| trim(folder.path(), *clip));
    Some(folder)
}

/// The pictures that ffmpeg reads.
fn pictures(clip: &Path) -> Vec<Vec<u8>> {
    let raw = clip.with_extension("yuv");
    let arguments = "-map 0:v:0 -vsync passthrough -pix_fmt yuv420p -f rawvideo";
    ffmpeg(&format!("-i {} {arguments}", clip.display()), &raw);
    let bytes = fs::read(&raw).expect("pictures");
    bytes.chunks(FRAME).map(<[u8]>::to_vec).collect()
}

/// The planes of a frame without padding.
fn packed(pad: &gst::Pad, buffer: &gst::BufferRef) -> Vec<u8> {
    let caps = pad.current_caps().expect("caps");
    let info = gst_video::VideoInfo::from_caps(&caps).expect("raw video");
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info);
    let frame = frame.expect("readable");
    let mut picture = Vec::with_capacity(FRAME);
    for plane in 0..3 {
        let rows = frame.plane_data(plane).expect("a plane");
        let stride = frame.plane_stride()[plane as usize] as usize;
        let (width, height) = (frame.comp_width(plane), frame.comp_height(plane));
        for row in rows.chunks(stride).take(height as usize) {
            picture.extend_from_slice(&row[..width as usize]);
        }
    }
    picture
}

/// A record, and the pictures that came to the sink.
fn record(clip: &Path, elements: &str) -> (Json, Vec<Vec<u8>>) {
    common::init();
    let location = clip.with_extension("json");
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={} ! decodebin ! videoconvert ! video/x-raw,format=I420 ! {elements} ! trackjsonsink name=sink overwrite=true location={}",
        clip.display(),
        location.display()
    ));
    let pipeline = pipeline.expect("a pipeline");
    let sink = pipeline.downcast_ref::<gst::Bin>().expect("a bin");
    let sink = sink.by_name("sink").expect("the sink");
    let pad = sink.static_pad("sink").expect("a pad");
    let came: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let pictures = came.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let picture = packed(pad, info.buffer().expect("a buffer"));
        pictures.lock().expect("no panic").push(picture);
        gst::PadProbeReturn::Ok
    });
    common::play_to_end(&pipeline);
    let text = fs::read_to_string(location).expect("a record");
    let came = std::mem::take(&mut *came.lock().expect("no panic"));
    (serde_json::from_str(&text).expect("JSON"), came)
}

fn frames(record: &Json) -> &[Json] {
    record["frames"].as_array().expect("frames")
}

/// Checks a record of a file. What is not counted came first.
fn compare(clip: &Path) -> Json {
    let name = clip.display();
    let want = pictures(clip);
    let (record, came) = record(clip, "facetrack engine=scripted");
    let (count, head) = (frames(&record).len(), &record["metadata"]);
    let counted = &came[came.len() - count..];
    if head["complete"] == true {
        assert_eq!(count, want.len(), "{name}: {head}");
        assert!(counted == want, "{name}: other pictures");
    } else {
        assert_eq!(head["expected_frames"], want.len(), "{name}: {head}");
        assert!(counted == &want[..count], "{name}: other pictures");
    }
    let expected = head.get("expected_frames").and_then(Json::as_u64);
    assert!(expected.is_none_or(|it| it == want.len() as u64), "{name}");
    record
}

#[test]
fn frames_of_trimmed_files_are_those_of_ffmpeg() {
    let Some(folder) = clips() else { return };
    for (name, ..) in WHOLE {
        let record = compare(&folder.path().join(name));
        assert_eq!(record["metadata"]["complete"], true, "{name}");
    }
    for (name, ..) in TRIMMED {
        compare(&folder.path().join(name));
    }
    let shown = |name: &str| record(&folder.path().join(name), "facetrack engine=scripted");
    let (record, came) = shown("between.mp4");
    assert_eq!(came.len(), frames(&record).len() + 1, "nothing was cut");
    assert_eq!(record["metadata"]["expected_frames"], 74);
}

/// Replaces the only edit list of `clip`, whose index comes last. Edits are durations in ms and
/// start times in ticks of the track.
fn set_edits(clip: &Path, edits: &[(u32, u32)]) {
    let mut bytes = fs::read(clip).expect("a clip");
    let find = |bytes: &[u8], name: &[u8; 4]| {
        let place = bytes.windows(4).position(|it| it == name);
        place.expect("a box") - 4
    };
    let list = find(&bytes, b"elst");
    let size = |bytes: &[u8], at: usize| {
        u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
    };
    let (old, new) = (size(&bytes, list), 16 + 12 * edits.len() as u32);
    for name in [b"moov", b"trak", b"edts", b"elst"] {
        let at = find(&bytes, name);
        let size = size(&bytes, at) + new - old;
        bytes[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    let mut entries = (edits.len() as u32).to_be_bytes().to_vec();
    for (duration, start) in edits {
        for value in [*duration, *start, 1 << 16] {
            entries.extend_from_slice(&value.to_be_bytes());
        }
    }
    bytes.splice(list + 12..list + old as usize, entries);
    fs::write(clip, bytes).expect("room");
}

#[test]
fn frames_of_several_edits_are_those_of_ffmpeg() {
    if !has_ffmpeg() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    make(folder.path(), WHOLE[0]);
    let clip = folder.path().join("a.mp4");
    // 512 ticks are a frame. Both edits begin within one.
    set_edits(&clip, &[(1000, 7000), (1500, 30_000)]);
    let want = pictures(&clip);
    let (record, mut came) = record(&clip, "facetrack engine=scripted");
    // The rests of frames before the edits; there are 25 frames in a second.
    came.remove(26);
    came.remove(0);
    let (count, head) = (frames(&record).len(), &record["metadata"]);
    assert_eq!(count, came.len(), "{head}");
    assert!(came == want[..count], "other pictures");
    // GStreamer 1.22 leaves out the last ones.
    assert_eq!(head["expected_frames"], want.len(), "{head}");
    assert_eq!(head["complete"], count == want.len(), "{head}");
}

/// A record of a trimmed file replays on it, and frame by frame on a re-muxed copy.
#[test]
fn records_of_trimmed_files_are_replayed() {
    let Some(folder) = clips() else { return };
    let clip = folder.path().join("between.mp4");
    let copy = folder.path().join("copy.mov");
    ffmpeg(&format!("-i {} -c copy", clip.display()), &copy);
    let moving = "facetrack engine=scripted script=\"face x=0.2 dx=0.02\"";
    let (original, _) = record(&clip, moving);
    let kept = folder.path().join("kept.json");
    fs::copy(clip.with_extension("json"), &kept).expect("room");
    let places = |record: &Json| {
        let faces = frames(record)
            .iter()
            .map(|frame| &frame["tracked_objects"][0]);
        faces
            .map(|face| face["bbox_xmin"].clone())
            .collect::<Vec<_>>()
    };
    for (clip, matching) in [(&clip, "auto"), (&clip, "frame"), (&copy, "frame")] {
        let load = format!("trackjsonload location={} match={matching}", kept.display());
        let (again, _) = record(clip, &load);
        let name = clip.display();
        assert_eq!(places(&again), places(&original), "{name} {matching}");
    }
}
