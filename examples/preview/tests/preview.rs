// SPDX-License-Identifier: MPL-2.0
//! The preview as users see it: its window on an X server without a screen, its keys pressed there,
//! and its pixels held to what the metadata says.

#[path = "../../../tests/common/mod.rs"]
mod common;
mod desktop;
#[path = "../../../tests/documents/docs.rs"]
mod docs;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::rotated::{self, ROTATIONS};
use crate::common::tool::{Running, Tool};
use desktop::{Desktop, END, HOME, LEFT, RIGHT, Shot, Window};
use docs::Files;
use facetrack::overlay::Rgb;
use facetrack::report::FrameReport;
use gst::ClockTime;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

/// The program.
const PREVIEW: &str = env!("CARGO_BIN_EXE_facetrack-preview");

/// After this time something counts as not happening, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(900);

/// Time to wait for a line of the program before its window is checked again.
const LOOK: Duration = Duration::from_millis(50);

/// Maximum difference of a channel from the drawn colour, because a tenth of the video shows
/// through, and more of it at edges.
const TOLERANCE: u8 = 64;

/// Distance from a line or a point at which its drawing has no effect, px.
const CLEAR: f32 = 8.0;

/// By this time a key that is down has repeated itself often: the server begins after 660 ms.
const REPEATED: Duration = Duration::from_secs(2);

/// Maximum time from the return of a camera to its next frame: 2 s, and what other programs on the
/// machine may add.
const BACK: Duration = Duration::from_secs(5);

/// Time between the pictures of a camera.
const FRAME: Duration = Duration::from_millis(40);

/// Left and upper edge of the channels in a window of the first size, px. The heading above has the
/// number of the face.
const PANEL: [usize; 2] = [983, 20];

/// Width and height of the part for the picture.
const PICTURE: [f32; 2] = [983.0, 615.0];

/// Time for the search of a record of seconds.
const SEARCHED: Duration = Duration::from_secs(1);

/// Time at which the video pauses first, s.
const PAUSE: &str = "1.5";

/// The program in its window.
struct Preview<'a> {
    running: Running,
    desktop: &'a Desktop,
}

impl<'a> Preview<'a> {
    fn start(tool: Tool, desktop: &'a Desktop, arguments: &[&str]) -> Self {
        let mut tool = tool
            .env("DISPLAY", &desktop.display)
            .env_remove("WAYLAND_DISPLAY");
        for argument in arguments {
            tool = tool.arg(argument);
        }
        let running = tool.start();
        Self { running, desktop }
    }

    /// Waits for the next output of the program that contains `words`.
    #[track_caller]
    fn wait_for(&mut self, words: &str) -> String {
        let line = self.running.line_with(words, PATIENCE);
        line.unwrap_or_else(|said| panic!("{words:?} is not said:\n{said}"))
    }

    #[track_caller]
    fn window(&self) -> Window<'a> {
        self.desktop.window().expect("a window is shown")
    }

    /// Waits for the engine at the start, and for the window.
    #[track_caller]
    fn wait_for_engine(&mut self, engine: &str) {
        self.wait_for(&format!("{engine} on cpu"));
        let start = Instant::now();
        while self.desktop.window().is_none() {
            assert!(start.elapsed() < PATIENCE, "there is no window");
            self.listen();
        }
    }

    /// Gives it time to go on.
    #[track_caller]
    fn listen(&mut self) {
        if let Err(said) = self.running.listen(LOOK) {
            panic!("the preview ended:\n{said}");
        }
    }

    fn press(&self, keys: &str) {
        keys.chars().for_each(|key| self.window().press(key));
    }

    /// A screenshot on which all is as `wanted`, and stays so: one that was taken while the program
    /// drew is of two pictures.
    #[track_caller]
    fn shot_with(&mut self, name: &str, wanted: impl Fn(&Shot) -> bool) -> Shot {
        let start = Instant::now();
        let mut last = None;
        loop {
            let shot = self.desktop.window().and_then(|window| window.shot());
            match &shot {
                Some(shot) if last.as_ref() == Some(shot) && wanted(shot) => return shot.clone(),
                _ if start.elapsed() < PATIENCE => self.listen(),
                Some(shot) => panic!("{name} are not as they should be: see {}", shot.save(name)),
                None => panic!("{name} are in no window"),
            }
            last = shot;
        }
    }

    /// Pauses, and looks for the landmarks of MediaPipe's only face, which are all that is drawn.
    #[track_caller]
    fn assert_landmarks_are_drawn(&mut self) {
        self.pause_with("mediapipe");
        let with = self.shot_with("landmarks", |_| true);
        self.press("4");
        self.shot_with("pictures without landmarks", |without| {
            let mut colors = Rgb::PALETTE.into_iter();
            colors.any(|color| count_nearer(&with, without, color) > LANDMARKS)
        });
    }

    /// Pauses when a picture of this engine is shown. Returns its time in the video.
    #[track_caller]
    fn pause_with(&mut self, engine: &str) -> ClockTime {
        self.press(" ");
        loop {
            let line = self.wait_for("paused at ");
            if line.contains(engine) {
                assert!(line.ends_with(" faces: 1"), "{line}");
                return time(&line);
            }
            // The last of the engine before.
            self.window().press(RIGHT);
        }
    }
}

/// The time in a line such as `paused at 0:00:01.500000000: mediapipe, faces: 1`.
fn time(line: &str) -> ClockTime {
    let time = line.trim_start_matches("paused at ").split(": ").next();
    let time = time.expect("a time");
    let (hours, rest) = time.split_once(':').expect("hours");
    assert_eq!(hours, "0");
    let (minutes, seconds) = rest.split_once(':').expect("minutes");
    assert_eq!(minutes, "00");
    let (seconds, fraction) = seconds.split_once('.').expect("seconds");
    let nanos = |text: &str| text.parse::<u64>().expect("a number");
    ClockTime::from_nseconds(nanos(seconds) * 1_000_000_000 + nanos(fraction))
}

/// Measurements of an engine in each frame of a clip, with the frame's time.
fn track(files: &Files, engine: &str) -> Vec<(ClockTime, FrameReport)> {
    common::init();
    let elements = format!("decodebin ! facetrack engine={engine}");
    let (pipeline, out) = common::player::open(&files.clip, &elements);
    let frames = std::iter::from_fn(|| out.pull_sample().ok()).map(|sample| {
        let buffer = sample.buffer().expect("a frame");
        let segment = sample.segment().expect("a segment");
        let segment = segment.downcast_ref::<ClockTime>().expect("in time");
        let time = segment.to_stream_time(buffer.pts()).expect("inside");
        (time, FaceTrackMeta::from_buffer(buffer).expect("meta"))
    });
    let frames = frames.collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    frames
}

fn report_at(reports: &[(ClockTime, FrameReport)], time: ClockTime) -> &FrameReport {
    let report = reports.iter().find(|(its, _)| *its == time);
    &report.expect("a frame of that time").1
}

/// Positions in a window of parts of the only face of a report: its landmarks, its key points, and
/// points on the four sides of its box.
struct Places {
    landmarks: Vec<[f32; 2]>,
    key_points: Vec<[f32; 2]>,
    sides: Vec<[f32; 2]>,
}

impl Places {
    /// A window of this size. The picture keeps its aspect ratio and is centred.
    fn new(report: &FrameReport, width: f32, height: f32) -> Self {
        let face = &report.faces[0].face;
        let frame = [report.width as f32, report.height as f32];
        let scale = (width / frame[0]).min(height / frame[1]);
        let border = [width - frame[0] * scale, height - frame[1] * scale].map(|it| it / 2.0);
        let place = |x: f32, y: f32| [border[0].floor() + x * scale, border[1].floor() + y * scale];
        let landmarks = face.landmarks.iter().flat_map(|it| &it.points);
        let bbox = &face.bbox;
        let sides = (2..9).map(|step| step as f32 / 10.0).flat_map(|share| {
            let (x, y) = (bbox.x + share * bbox.width, bbox.y + share * bbox.height);
            [
                [x, bbox.y],
                [x, bbox.bottom()],
                [bbox.x, y],
                [bbox.right(), y],
            ]
        });
        Self {
            landmarks: landmarks.map(|it| place(it.x, it.y)).collect(),
            key_points: face.key_points.iter().map(|it| place(it.x, it.y)).collect(),
            sides: sides.map(|[x, y]| place(x, y)).collect(),
        }
    }

    fn in_shot(report: &FrameReport, shot: &Shot) -> Self {
        Self::new(report, shot.width as f32, shot.height as f32)
    }

    /// The landmarks on which nothing of the box of other places, nor of their key points, lies.
    fn landmarks_off(&self, others: &Self) -> Vec<[f32; 2]> {
        let lines = others.sides.iter();
        let xs = lines.clone().map(|side| side[0]);
        let ys = lines.map(|side| side[1]);
        let (xs, ys): (Vec<_>, Vec<_>) = (xs.collect(), ys.collect());
        let range = |values: &[f32]| {
            let least = values.iter().copied().fold(f32::INFINITY, f32::min);
            let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            [least, most]
        };
        let (left_right, top_bottom) = (range(&xs), range(&ys));
        let is_near =
            |value: f32, lines: [f32; 2]| lines.iter().any(|it| (it - value).abs() < CLEAR);
        let is_clear = |place: &&[f32; 2]| {
            let dots = others.key_points.iter();
            let mut distances = dots.map(|dot| (dot[0] - place[0]).hypot(dot[1] - place[1]));
            !is_near(place[0], left_right)
                && !is_near(place[1], top_bottom)
                && distances.all(|distance| distance > CLEAR)
        };
        self.landmarks.iter().filter(is_clear).copied().collect()
    }
}

fn is_close(pixel: Option<[u8; 3]>, color: Rgb) -> bool {
    pixel.is_some_and(|pixel| {
        let pairs = pixel.into_iter().zip(color.0);
        pairs
            .into_iter()
            .all(|(is, wanted)| is.abs_diff(wanted) <= TOLERANCE)
    })
}

/// Percentage of the places that show a colour.
fn share(shot: &Shot, places: &[[f32; 2]], color: Rgb) -> usize {
    let shown = places
        .iter()
        .filter(|place| is_close(shot.at(**place), color));
    100 * shown.count() / places.len()
}

/// Number of pixels that are nearer to a colour by a third than in another shot: faces that are
/// held or predicted are drawn faintly.
fn count_nearer(shot: &Shot, other: &Shot, color: Rgb) -> usize {
    let distance = |pixel: [u8; 3]| {
        let pairs = pixel.into_iter().zip(color.0);
        let squares = pairs.map(|(is, wanted)| f32::from(is.abs_diff(wanted)).powi(2));
        squares.sum::<f32>().sqrt()
    };
    let pairs = shot.pixels().zip(other.pixels());
    pairs
        .filter(|(pixel, other)| distance(*pixel) * 3.0 < distance(*other) * 2.0)
        .count()
}

/// The colour of a face that all the places have.
fn face_color(shot: &Shot, places: &[[f32; 2]]) -> Option<Rgb> {
    let mut colors = Rgb::PALETTE.into_iter();
    colors.find(|color| share(shot, places, *color) == 100)
}

/// Percentage of the places that differ in another shot.
fn changes(shot: &Shot, other: &Shot, places: &[[f32; 2]]) -> usize {
    let changed = places
        .iter()
        .filter(|place| shot.at(**place) != other.at(**place));
    100 * changed.count() / places.len()
}

const WHITE: Rgb = Rgb([255; 3]);

/// Number of landmarks of a face in MediaPipe.
const LANDMARKS: usize = 478;

#[test]
fn faces_are_where_the_metadata_says_and_keys_change_what_is_seen() {
    let Some(files) = Files::find() else {
        return;
    };
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let (meshes, boxes) = (track(&files, "mediapipe"), track(&files, "opencv-yunet"));
    let tool = files.given_to(Tool::new(PREVIEW));
    let cascade = tool
        .models_dir()
        .join("haarcascade_frontalface_default.xml");
    std::fs::remove_file(cascade).expect("a link");
    let arguments = [
        "--layers=boxes+points+mesh+key-points",
        "--freeze-at",
        PAUSE,
        &files.clip.to_string_lossy(),
    ];
    let mut preview = Preview::start(tool, &desktop, &arguments);

    let report = report_at(&meshes, time(&preview.wait_for("paused at ")));
    let title = preview.window().title();
    assert_eq!(
        title,
        format!("facetrack-preview: {}", files.clip.display())
    );
    // Only the picture.
    preview.press("s");
    let all = preview.shot_with("landmarks", |shot| {
        let places = Places::in_shot(report, shot);
        face_color(shot, &places.landmarks).is_some() && face_color(shot, &places.sides).is_some()
    });
    let places = Places::in_shot(report, &all);
    assert_eq!(places.landmarks.len(), LANDMARKS);
    let color = face_color(&all, &places.landmarks).expect("a color");

    // The same frame with other layers.
    let inner = places.landmarks_off(&places);
    assert!(inner.len() > 400, "{}", inner.len());
    // A key that was down before the window had the keyboard is not for it.
    preview.window().press_while_held('4', '5');
    let mesh = preview.shot_with("points", |shot| changes(shot, &all, &inner) > 90);
    preview.window().release('5');
    // One that repeats itself changes a layer once.
    preview.window().hold('5');
    let without = preview.shot_with("meshes", |shot| {
        changes(shot, &mesh, &inner) > 90 && share(shot, &inner, color) == 0
    });
    let held = Instant::now();
    while held.elapsed() < REPEATED {
        preview.listen();
        let shot = preview.window().shot().expect("it keeps its size");
        assert_eq!(share(&shot, &inner, color), 0, "the mesh comes again");
    }
    preview.window().release('5');
    assert_eq!(share(&without, &places.sides, color), 100, "the box stays");
    preview.press("45");
    preview.shot_with("layers", |shot| changes(shot, &all, &inner) == 0);

    // The same frame in a window of another shape.
    preview.window().resize(1000, 1000);
    let square = preview.shot_with("resized landmarks", |shot| {
        let places = Places::in_shot(report, shot);
        (shot.width, shot.height) == (1000, 1000)
            && face_color(shot, &places.landmarks) == Some(color)
    });
    for y in [0.0, 200.0, 800.0, 999.0] {
        assert_eq!(square.at([500.0, y]), Some([0; 3]), "black above and below");
    }

    preview.window().resize(1280, 720);

    // Another engine while it plays.
    preview.press("ee ");
    preview.wait_for("opencv-yunet on cpu");
    let time = preview.pause_with("opencv-yunet");
    let report = report_at(&boxes, time);
    let places = Places::in_shot(report, &all);
    assert_eq!(places.key_points.len(), 5);
    let five = preview.shot_with("key points", |shot| {
        share(shot, &places.key_points, WHITE) == 100 && face_color(shot, &places.sides).is_some()
    });
    let landmarks = Places::in_shot(report_at(&meshes, time), &all).landmarks_off(&places);
    assert!(landmarks.len() > 300, "{}", landmarks.len());
    preview.press("1k");
    preview.shot_with("key points, box and nothing of the mesh", |shot| {
        let gone = |places: &[_]| changes(shot, &five, places) == 100;
        gone(&places.key_points) && gone(&places.sides) && changes(shot, &five, &landmarks) == 0
    });
    assert_eq!(preview.window().title(), title, "it stays the same");

    // An engine whose model is missing leaves the one at work.
    preview.window().press_with_shift('e');
    preview.press(" ");
    let reason = preview.wait_for("the engine was not changed");
    assert!(
        reason.contains("haarcascade_frontalface_default.xml"),
        "{reason}"
    );
    preview.pause_with("opencv-yunet");

    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

#[test]
fn a_rotated_video_is_shown_upright() {
    let Some(files) = Files::find() else {
        return;
    };
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let meshes = track(&files, "mediapipe");
    let folder = tempfile::tempdir().expect("a folder");
    let clip = folder.path().join("clip.mp4");
    let source = format!("filesrc location={} ! decodebin", files.clip.display());
    rotated::write(&source, ROTATIONS[0], &clip);
    let clip = clip.to_string_lossy();
    let arguments = ["--layers=points", "--freeze-at", PAUSE, &*clip];
    let tool = files.given_to(Tool::new(PREVIEW));
    let mut preview = Preview::start(tool, &desktop, &arguments);

    let report = report_at(&meshes, time(&preview.wait_for("paused at ")));
    // Only the picture.
    preview.press("s");
    preview.shot_with("landmarks of an upright face", |shot| {
        let places = Places::in_shot(report, shot);
        shot.width > shot.height && face_color(shot, &places.landmarks).is_some()
    });
}

#[test]
fn what_can_not_be_shown_is_said() {
    let Some(files) = Files::find() else {
        return;
    };
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let clip = files.clip.to_string_lossy();
    for (arguments, reason) in [
        (&["/nowhere.mp4"][..], "/nowhere.mp4: Resource not found"),
        (&["--engine=dlib", &clip], "dlib"),
        (&["--layers=hats", &clip], "layers can't be hats"),
        (&["rtsp://127.0.0.1:9/none"], "rtsp://127.0.0.1:9/none: "),
    ] {
        let tool = files.given_to(Tool::new(PREVIEW));
        let mut preview = Preview::start(tool, &desktop, arguments);
        preview.wait_for(reason);
        assert!(!preview.running.ends(PATIENCE), "{arguments:?}");
    }
}

/// The window of a program that was started from a menu, which has no terminal.
#[test]
fn an_error_is_shown_in_a_window_until_it_is_closed() {
    let Some(desktop) = Desktop::start() else {
        return;
    };
    // Without the models.
    let mut preview = Preview::start(Tool::new(PREVIEW), &desktop, &["--desktop", "clip.mp4"]);
    preview.wait_for("Run `facetrack fetch`");
    preview.shot_with("words of the error", |shot| {
        let white = shot
            .pixels()
            .filter(|pixel| pixel.iter().all(|it| *it > 200));
        shot.width == 960 && white.count() > 500
    });
    preview.window().close();
    assert!(!preview.running.ends(PATIENCE));
}

#[test]
fn times_that_no_video_has_are_refused() {
    for time in ["inf", "nan", "1e30", "-1", "noon"] {
        let tool = Tool::new(PREVIEW);
        let finished = tool.args(&format!("--freeze-at={time}")).run();
        assert!(!finished.success, "{time}");
        let text = finished.text;
        assert!(text.contains("it takes a number of seconds"), "{text}");
    }
}

/// Without the name of a source, the sample clip is shown repeatedly, like a file.
#[test]
fn the_sample_clip_takes_the_place_of_a_camera() {
    let Some(files) = Files::find() else {
        return;
    };
    if has_camera() {
        eprintln!("SKIPPED: this machine has a camera");
        return;
    }
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let tool = files.given_to(Tool::new(PREVIEW));
    let samples = tool.models_dir().with_file_name("samples");
    symlink(files.clip.parent().expect("a folder"), samples).expect("a link to the clip");
    let mut preview = Preview::start(tool, &desktop, &["--layers=points"]);
    preview.wait_for("samples/single_face.mp4");
    preview.wait_for_engine("mediapipe");
    preview.assert_landmarks_are_drawn();
    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

fn has_camera() -> bool {
    common::init();
    let monitor = gst::DeviceMonitor::new();
    monitor.add_filter(Some("Video/Source"), None);
    let is_started = monitor.start().is_ok();
    let has_camera = !monitor.devices().is_empty();
    if is_started {
        monitor.stop();
    }
    has_camera
}

#[test]
fn a_camera_in_the_network_is_tracked() {
    let Some(files) = Files::find() else {
        return;
    };
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let Some((_camera, address)) = docs::rtsp_camera(&files.clip) else {
        return;
    };
    let tool = files.given_to(Tool::new(PREVIEW));
    let mut preview = Preview::start(tool, &desktop, &["--layers=points", &address]);
    preview.wait_for_engine("mediapipe");
    // No matter how often: the camera is not asked each time.
    preview.press("    ");
    preview.assert_landmarks_are_drawn();
    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

/// No address says that what comes from it is live.
#[test]
fn what_comes_when_it_comes_is_shown_at_once() {
    common::init();
    let Some(desktop) = Desktop::start() else {
        return;
    };
    for (element, package) in [
        ("x264enc", "gstreamer1.0-plugins-ugly"),
        ("mpegtsmux", "gstreamer1.0-plugins-bad"),
        ("avdec_h264", "gstreamer1.0-libav"),
    ] {
        if gst::ElementFactory::find(element).is_none() {
            common::skip_for_want_of(element, package);
            return;
        }
    }
    // One that is free, and below those that systems give to who asks for any.
    let mut ports = 20_000 + (std::process::id() % 10_000) as u16..32_768;
    let port = ports.find(|port| UdpSocket::bind(("127.0.0.1", *port)).is_ok());
    let port = port.expect("a free port");
    let sender = Tool::new("gst-launch-1.0").args(&format!(
        "-q videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=25/1 \
         ! x264enc tune=zerolatency key-int-max=5 ! mpegtsmux ! udpsink host=127.0.0.1 port={port}"
    ));
    let _sender = sender.start();
    let address = format!("udp://127.0.0.1:{port}");
    let arguments = ["--engine=scripted", &address];
    let mut preview = Preview::start(Tool::new(PREVIEW), &desktop, &arguments);
    preview.wait_for_engine("scripted");
    preview.window().press(HOME);
    preview.wait_for("a live video has no other frames");
    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

/// `make` hands a source on as it was typed.
#[test]
fn sources_may_have_any_name() {
    let root = common::file("").display().to_string();
    for source in ["my clip.mp4", "Kate's clip.mp4", "rtsp://cam/x?a=1&b=0"] {
        let make = Tool::new("make").arg("--directory").arg(&root);
        let make = make.args("--dry-run preview");
        let make = make.arg(&format!("SOURCE={source}")).run();
        let arguments = make.text.split("--package facetrack-preview -- ").nth(1);
        let arguments = arguments.expect("it is run").lines().next();
        let script = format!("printf '<%s>' {}", arguments.expect("a line"));
        let shell = Tool::new("sh").arg("-c").arg(&script).run();
        assert_eq!(shell.text, format!("<{source}>"));
    }
}

#[test]
fn without_a_desktop_there_is_no_window() {
    let tool = Tool::new(PREVIEW);
    let tool = tool.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    let finished = tool.args("/nowhere.mp4").run();
    assert!(!finished.success);
    assert_eq!(
        finished.text.trim(),
        "facetrack-preview: there is no display for the window. Start it in a desktop session, or set DISPLAY or \
         WAYLAND_DISPLAY"
    );
    // A display that does not exist.
    let tool = Tool::new(PREVIEW).env("DISPLAY", ":9999");
    let finished = tool.env_remove("WAYLAND_DISPLAY").run();
    assert!(!finished.success);
    assert_eq!(
        finished.text.trim(),
        "facetrack-preview: the display of the window does not answer (DISPLAY=:9999). Start it in a desktop session"
    );
}

#[test]
fn keys_start_and_stop_the_outputs() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    receiver
        .set_read_timeout(Some(PATIENCE))
        .expect("a timeout");
    let port = receiver.local_addr().expect("bound").port();
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("face.json");
    let arguments = [
        "--send",
        &format!("protocol=ifacialmocap port={port}"),
        "--save",
        &record.to_string_lossy(),
        &files.clip.to_string_lossy(),
    ];
    let mut preview = Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &arguments);
    preview.wait_for_engine("mediapipe");

    preview.press("u");
    preview.wait_for(&format!("sending to ifacialmocap at 127.0.0.1:{port}"));
    let mut packet = [0; 4096];
    let length = receiver.recv(&mut packet).expect("a packet");
    let text = String::from_utf8_lossy(&packet[..length]).into_owned();
    assert!(
        text.contains("jawOpen-") && text.contains("=head#"),
        "{text}"
    );
    preview.press("u");
    preview.wait_for("no longer sending");

    for name in ["face.json", "face-2.json"] {
        preview.press("r");
        preview.wait_for("recording ");
        // Until it has a frame: a face with all measurements takes more than this.
        let partial = folder.path().join(format!("{name}.partial"));
        while std::fs::metadata(&partial).map_or(0, |found| found.len()) < 5000 {
            preview.listen();
        }
        preview.press("r");
        preview.wait_for("recorded ");
        let text = std::fs::read(folder.path().join(name)).expect("a record");
        let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        assert!(
            json["frames"]
                .as_array()
                .is_some_and(|frames| !frames.is_empty()),
            "{name}"
        );
    }
}

/// Presses a key until the record at a path contains a face with words, and finishes it. Returns it.
fn recorded(preview: &mut Preview<'_>, path: &Path, words: &str) -> serde_json::Value {
    let mut partial = path.to_owned().into_os_string();
    partial.push(".partial");
    let has_words = |text: String| text.contains(words);
    while !std::fs::read_to_string(&partial).is_ok_and(has_words) {
        preview.listen();
    }
    preview.press("r");
    preview.wait_for("recorded ");
    let text = std::fs::read(path).expect("a record");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn the_neutral_face_is_kept_for_the_session() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("face.json");
    let arguments = [
        "--save",
        &record.to_string_lossy(),
        &files.clip.to_string_lossy(),
    ];
    let mut preview = Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &arguments);
    preview.wait_for_engine("mediapipe");
    preview.press("r");
    preview.wait_for("recording ");
    preview.press("l");
    let json = recorded(&mut preview, &record, "blendshapes_corrected");
    let first = json["metadata"]["corrected_from"].as_u64();
    assert!(first.is_some_and(|first| first > 1), "{first:?}");

    // An engine without blendshapes in between.
    preview.press("ee");
    preview.wait_for("opencv-yunet on cpu");
    preview.window().press_with_shift('e');
    preview.window().press_with_shift('e');
    preview.wait_for("mediapipe on cpu");
    preview.press("r");
    preview.wait_for("recording ");
    let again = folder.path().join("face-2.json");
    let json = recorded(&mut preview, &again, "blendshapes_corrected");
    assert_eq!(json["metadata"]["corrected_from"], 1);
}

#[test]
fn gains_are_set_by_an_option_and_by_keys() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("face.json");
    let arguments = [
        "--gain=jawOpen=0,mouthSmileLeft=2",
        "--save",
        &record.to_string_lossy(),
        &files.clip.to_string_lossy(),
    ];
    let mut preview = Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &arguments);
    preview.wait_for_engine("mediapipe");
    preview.press("r");
    preview.wait_for("recording ");
    let json = recorded(&mut preview, &record, "blendshapes_corrected");
    let face = &json["frames"][0]["tracked_objects"][0];
    let [before, after] = ["blendshapes_raw", "blendshapes"].map(|key| &face[key]);
    assert_eq!(after["jawOpen"], 0.0);
    assert!(before["jawOpen"].as_f64() > Some(0.0), "{before}");
    let [before, after] = [before, after].map(|it| it["mouthSmileLeft"].as_f64());
    let want = (2.0 * before.expect("a value")).min(1.0);
    assert!((after.expect("a value") - want).abs() < 1e-3, "{after:?}");
    for (key, gain) in [
        ('=', "0.1"),
        ('=', "0.2"),
        ('-', "0.1"),
        ('-', "0.0"),
        ('-', "0.0"),
    ] {
        preview.press(&key.to_string());
        let line = preview.wait_for("gain of ");
        assert_eq!(line, format!("gain of jawOpen: {gain}"));
    }
}

/// A face that is missing for some frames.
const SCRIPT: &str = "face dx=0.004 to=20; face dx=0.004 from=26; landmarks";

/// The first of these frames, from 1.
const MISSING: u64 = 21;

/// Records a scripted face over a video, so that nothing but the record has its landmarks.
fn write_record(clip: &Path, record: &Path) {
    common::init();
    let elements = format!(
        "filesrc location={} ! decodebin ! videoconvert ! facetrack engine=scripted script=\"{SCRIPT}\" \
         ! trackjsonsink verbose=true location={}",
        clip.display(),
        record.display()
    );
    common::play_to_end(&gst::parse::launch(&elements).expect("a good description"));
}

#[test]
fn a_record_is_shown_frame_by_frame() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("clip.json");
    write_record(&files.clip, &record);
    let arguments = [
        "--layers=points",
        "--freeze-at",
        PAUSE,
        "--record",
        &record.to_string_lossy(),
        &files.clip.to_string_lossy(),
    ];
    let mut preview = Preview::start(Tool::new(PREVIEW), &desktop, &arguments);
    let number = |line: String| {
        assert!(line.ends_with(": 1") && line.contains("scripted"), "{line}");
        let number = line
            .split("frame ")
            .nth(1)
            .and_then(|text| text.split(',').next());
        let number = number.and_then(|text| text.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("{line}"))
    };
    let first = number(preview.wait_for("paused at "));
    let frames =
        common::player::track(&files.clip, &format!("engine=scripted script=\"{SCRIPT}\""));
    // Only the picture.
    preview.press("s");
    for (key, want) in [
        (LEFT, first - 1),
        (LEFT, first - 2),
        (LEFT, first - 3),
        (RIGHT, first - 2),
        (RIGHT, first - 1),
        (LEFT, first - 2),
        (HOME, 1),
        (END, frames.len() as u64),
        (LEFT, frames.len() as u64 - 1),
    ] {
        preview.window().press(key);
        assert_eq!(number(preview.wait_for("paused at ")), want, "{key:#x}");
        let report = &frames[want as usize - 1];
        preview.shot_with("landmarks", |shot| {
            face_color(shot, &Places::in_shot(report, shot).landmarks).is_some()
        });
    }
    preview.window().press_with_shift(LEFT);
    let want = frames.len() as u64 - 11;
    assert_eq!(number(preview.wait_for("paused at ")), want);
    let line = loop {
        // It has no effect before the record was searched.
        preview.press("p");
        let words = format!("frame {MISSING}: ");
        if let Ok(line) = preview.running.line_with(&words, SEARCHED) {
            break line;
        }
    };
    assert!(line.contains("missing"), "{line}");
    let line = preview.wait_for("paused at ");
    assert!(
        line.ends_with(&format!("frame {MISSING}, scripted, faces: 0")),
        "{line}"
    );
    // Keys of the analysis do nothing.
    preview.press("elmq");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

#[test]
fn records_that_cannot_be_shown_are_refused() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let clip = files.clip.to_string_lossy();
    let none = files.clip.with_extension("json");
    let none = none.to_string_lossy();
    for (arguments, reason) in [
        (&["--record", &*none, &*clip][..], "No such file"),
        (
            &["--record", &*clip, &*clip],
            "The file was not written by trackjsonsink",
        ),
        (&["--record", &*none], "required arguments"),
        (
            &["--record", &*none, "--gain=jawOpen=2", &*clip],
            "cannot be used with",
        ),
        (&["--gain=jaw=2", &*clip], "\"jaw\" is not a blendshape"),
    ] {
        let mut preview = Preview::start(Tool::new(PREVIEW), &desktop, arguments);
        preview.wait_for(reason);
        assert!(!preview.running.ends(PATIENCE), "{arguments:?}");
    }
}

/// Starts the RTSP server again at an address where it was before.
fn rtsp_camera_at(clip: &Path, address: &str) -> Running {
    let port = address
        .rsplit(':')
        .next()
        .and_then(|it| it.split('/').next());
    let script = common::file("tests/rtsp_server.py");
    let server = Tool::new(common::python::PYTHON).arg(&script.to_string_lossy());
    let server = server
        .arg(&clip.to_string_lossy())
        .arg(port.expect("a port"));
    let mut server = server.start();
    let said = server.line_with(address, PATIENCE);
    said.unwrap_or_else(|said| panic!("the server does not start:\n{said}"));
    server
}

/// A camera that shows a picture over HTTP, as phones and small cameras do, until it is dropped.
struct HttpCamera {
    address: SocketAddr,
    is_away: Arc<AtomicBool>,
    clients: Option<JoinHandle<()>>,
}

impl HttpCamera {
    fn start(clip: &Path, address: &str) -> Self {
        let picture = first_picture(clip);
        let listener = TcpListener::bind(address).expect("a port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("it does not block");
        let is_away = Arc::new(AtomicBool::new(false));
        let ends = is_away.clone();
        let clients = thread::spawn(move || {
            while !ends.load(Ordering::Acquire) {
                match listener.accept() {
                    Ok((client, _)) => show(client, &picture, &ends),
                    Err(_) => thread::sleep(FRAME),
                }
            }
        });
        Self {
            address,
            is_away,
            clients: Some(clients),
        }
    }
}

impl Drop for HttpCamera {
    fn drop(&mut self) {
        self.is_away.store(true, Ordering::Release);
        let _ = self.clients.take().map(JoinHandle::join);
    }
}

/// Sends a picture to a client again and again, as long as it listens.
fn show(mut client: TcpStream, picture: &[u8], ends: &AtomicBool) {
    let head = "HTTP/1.0 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=next\r\n\r\n";
    let part = format!(
        "--next\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\n\r\n",
        picture.len()
    );
    let part = [part.as_bytes(), picture, b"\r\n"].concat();
    let mut sent = client.set_nonblocking(false);
    sent = sent.and_then(|()| client.set_write_timeout(Some(PATIENCE)));
    sent = sent.and_then(|()| client.write_all(head.as_bytes()));
    while sent.is_ok() && !ends.load(Ordering::Acquire) {
        sent = client.write_all(&part);
        thread::sleep(FRAME);
    }
}

/// The first picture of a clip as JPEG.
fn first_picture(clip: &Path) -> Vec<u8> {
    common::init();
    let pipeline = gst::parse::launch(&format!(
        "filesrc location=\"{}\" ! decodebin ! videoconvert ! jpegenc ! appsink name=out",
        clip.display()
    ));
    let pipeline = pipeline.expect("a pipeline").downcast::<gst::Pipeline>();
    let pipeline = pipeline.expect("of several elements");
    let out = pipeline.by_name("out").expect("the sink");
    let out = out.downcast::<gst_app::AppSink>().expect("an appsink");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let sample = out.pull_sample().expect("a picture");
    pipeline.set_state(gst::State::Null).expect("it stops");
    let map = sample.buffer().expect("a picture").map_readable();
    map.expect("bytes").to_vec()
}

#[test]
fn a_camera_over_http_that_was_away_is_shown_again() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let camera = HttpCamera::start(&files.clip, "127.0.0.1:0");
    let address = camera.address;
    let url = format!("http://{address}/video");
    let mut preview = Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &[&url]);
    preview.wait_for_engine("mediapipe");
    drop(camera);
    preview.wait_for("waiting for the camera…: ");
    let _camera = HttpCamera::start(&files.clip, &address.to_string());
    let returned = Instant::now();
    preview.wait_for("the camera is back");
    let time = returned.elapsed();
    eprintln!("back after {time:?}");
    assert!(time < BACK, "{time:?}");
    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read(path).expect("a file");
    serde_json::from_slice(&text).expect("JSON")
}

#[test]
fn a_camera_that_was_away_is_shown_again_with_the_same_neutral_face_and_gains() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let Some((camera, address)) = docs::rtsp_camera(&files.clip) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [record, profile] = ["face.json", "me.json"].map(|name| folder.path().join(name));
    let arguments = [
        "--gain=mouthSmileLeft=0.5",
        "--profile",
        &profile.to_string_lossy(),
        "--save",
        &record.to_string_lossy(),
        &address,
    ];
    let mut preview = Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &arguments);
    preview.wait_for_engine("mediapipe");
    preview.press("l");
    preview.wait_for("the neutral face is learned");
    let title = preview.window().title();
    // It is noticed in a pause as well.
    preview.press(" ");
    drop(camera);
    preview.wait_for("waiting for the camera…: ");
    assert_eq!(preview.window().title(), title, "the window stays");
    preview.press(" ");

    let _camera = rtsp_camera_at(&files.clip, &address);
    let returned = Instant::now();
    preview.wait_for("the camera is back");
    let time = returned.elapsed();
    eprintln!("back after {time:?}");
    assert!(time < BACK, "{time:?}");

    preview.press("r");
    preview.wait_for("recording ");
    let recorded = recorded(&mut preview, &record, "blendshapes_corrected");
    assert_eq!(recorded["metadata"]["corrected_from"], 1);
    let rest = json(&profile);
    let rest = rest["neutral"]["mediapipe"]
        .as_object()
        .expect("rest values");
    assert_eq!(rest.len(), 51);
    let face = &recorded["frames"][0]["tracked_objects"][0];
    for (name, rest) in rest {
        let value = |key: &str| face[key][name].as_f64().expect("a value");
        let rest = rest.as_f64().expect("a number");
        let gain = if name == "mouthSmileLeft" { 0.5 } else { 1.0 };
        let want = ((value("blendshapes_raw") - rest) / (1.0 - rest)).max(0.0) * gain;
        let got = value("blendshapes");
        assert!((got - want).abs() < 1e-3, "{name}: {got}, not {want}");
    }
    preview.press("q");
    assert!(preview.running.ends(PATIENCE), "it ends well");
}

#[test]
fn a_profile_keeps_the_neutral_face_and_the_gains() {
    let (Some(files), Some(desktop)) = (Files::find(), Desktop::start()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let [record, profile] = ["face.json", "me.json"].map(|name| folder.path().join(name));
    let (record_name, clip) = (record.to_string_lossy(), files.clip.to_string_lossy());
    let profile_name = profile.to_string_lossy();
    let arguments = ["--profile", &*profile_name, "--save", &*record_name, &*clip];
    let start = || Preview::start(files.given_to(Tool::new(PREVIEW)), &desktop, &arguments);

    let mut first = start();
    first.wait_for_engine("mediapipe");
    assert!(!profile.exists(), "there is nothing to keep");
    first.press("l");
    first.wait_for("the neutral face is learned");
    // The program that was killed loses only what comes later.
    let learned = json(&profile);
    assert_eq!(learned["facetrack_profile"], 1);
    first.press("=");
    first.wait_for("gain of jawOpen: 1.1");
    // As Ctrl-C in a terminal.
    assert_eq!(first.running.interrupt(PATIENCE), Some(0));
    let kept = json(&profile);
    assert_eq!(kept["neutral"], learned["neutral"]);
    assert_eq!(kept["gains"], serde_json::json!({"jawOpen": 1.1}));

    let mut second = start();
    second.wait_for_engine("mediapipe");
    second.press("r");
    second.wait_for("recording ");
    let recorded = recorded(&mut second, &record, "blendshapes_corrected");
    assert_eq!(recorded["metadata"]["corrected_from"], 1);
    second.press("=");
    second.wait_for("gain of jawOpen: 1.2");
    second.press("q");
    assert!(second.running.ends(PATIENCE), "it ends well");
    let again = json(&profile);
    assert_eq!(again["neutral"], learned["neutral"]);
    assert_eq!(again["gains"], serde_json::json!({"jawOpen": 1.2}));
}

#[test]
fn a_file_that_is_no_profile_is_refused() {
    let Some(desktop) = Desktop::start() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("face.json");
    std::fs::write(&file, "{\"frames\": []}").expect("written");
    let file = file.to_string_lossy();
    let mut preview = Preview::start(
        Tool::new(PREVIEW),
        &desktop,
        &["--profile", &file, "clip.mp4"],
    );
    let line = preview.wait_for("face.json");
    assert!(
        line.contains("is not a profile of facetrack-preview"),
        "{line}"
    );
    assert!(line.contains("Name another file"), "{line}");
    assert!(!preview.running.ends(PATIENCE));
}

/// The text has one size for every video, and nothing of it is over the picture.
#[test]
fn text_is_beside_the_picture_and_the_same_for_every_video() {
    let Some(desktop) = Desktop::start() else {
        return;
    };
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let mut panels = Vec::new();
    for (width, height) in [(640, 360), (1920, 1080), (3840, 2160), (1080, 1920)] {
        let clip = folder.path().join(format!("{height}.mov"));
        let elements = format!(
            "videotestsrc num-buffers=3 pattern=red ! video/x-raw,width={width},height={height} ! jpegenc ! qtmux \
             ! filesink location={}",
            clip.display()
        );
        common::play_to_end(&gst::parse::launch(&elements).expect("a good description"));
        let clip = clip.to_string_lossy();
        let arguments = ["--engine=scripted", "--layers=0", "--freeze-at=0", &*clip];
        let mut preview = Preview::start(Tool::new(PREVIEW), &desktop, &arguments);
        preview.wait_for("paused at ");
        let shot = preview.shot_with("channels", |shot| count_red(shot) > 0);
        let channels = shot.part(PANEL[0], PANEL[1]);
        preview.window().press_with_shift('/');
        let keys = preview.shot_with("keys", |keys| keys.part(PANEL[0], PANEL[1]) != channels);
        // The whole picture is seen, in its middle as at its edges.
        let sides = [width, height].map(|side| side as f32);
        let scale = (PICTURE[0] / sides[0]).min(PICTURE[1] / sides[1]);
        let whole = (sides[0] * scale).round() * (sides[1] * scale).round();
        for shot in [&shot, &keys] {
            let share = count_red(shot) as f32 / whole;
            assert!((share - 1.0).abs() < 0.01, "{width}: {share}");
        }
        panels.push([channels, keys.part(PANEL[0], PANEL[1])]);
        preview.press("q");
        assert!(preview.running.ends(PATIENCE), "it ends well");
    }
    assert!(panels.iter().all(|panel| *panel == panels[0]));
}

/// Number of the pixels of a red video.
fn count_red(shot: &Shot) -> usize {
    let is_red = |[red, green, blue]: &[u8; 3]| *red > 180 && *green < 90 && *blue < 90;
    shot.pixels().filter(is_red).count()
}

/// `make preview` builds it next to `facetrack`.
#[test]
fn a_shell_finds_the_program_after_make_env() {
    let tool = common::tool::built("facetrack");
    let line = format!(
        "eval \"$('{}' env)\" && command -v facetrack-preview",
        tool.display()
    );
    let found = Tool::new("sh").arg("-c").arg(&line).run();
    assert!(found.success, "{}", found.text);
    assert_eq!(Path::new(found.text.trim()), Path::new(PREVIEW));
}
