// SPDX-License-Identifier: MPL-2.0
//! An engine that reports faces from a script: for tests, documentation and applications that need
//! faces without a network.
//!
//! A script is a list of clauses separated by semicolons, each a verb and `key=value` pairs;
//! lengths are fractions of the frame, frames count from 1 at the load of the engine:
//!
//! - `face x=0.5 y=0.5 size=0.3 dx=0 dy=0 from=1 to=…`: a square face with its centre at `x`, `y`
//!   in frame 1, `size` of the frame's height a side, that moves by `dx`, `dy` a frame, turns back
//!   at the frame's edges, and is seen in the frames `from` to `to`;
//! - `landmarks`: faces carry landmarks, blendshapes and a pose;
//! - `learns`: the engine counts the frames that it sees, and that count is its calibration;
//! - `slow ms=N`: the search of a frame takes N milliseconds, as with a network.
//!
//! With the feature `test-faults`, which released builds do not have, more clauses make the engine
//! fail.

#[cfg(feature = "test-faults")]
mod faults;

use std::f32::consts::TAU;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use std::{mem, thread};

use nalgebra::{Matrix3, Vector3};
use smart_default::SmartDefault;

use super::{
    Completer, Context, Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, Finder, Found,
    Frame, FrameOutline, Notice, Result, RunningMode, Setting, Thresholds,
};
use crate::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use crate::geometry::{Point, Rect};
use crate::observation::{
    Fields, HeadPose, Landmark, LandmarkScheme, Landmarks, Observation, Origin,
};
#[cfg(feature = "test-faults")]
use faults::Faults;

/// The engine `scripted`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::RunningMode,
        Setting::Calibration,
        Setting::Landmarks,
        Setting::Script,
    ],
    is_synthetic: true,
    ..EngineEntry::new(
        "scripted",
        |config| Ok(Script::of(config)?.info(config.running_mode)),
        load,
    )
};

/// The default script.
const DEFAULT_SCRIPT: &str = "face x=0.3 dx=0.005";

/// The score of every face.
const CONFIDENCE: f32 = 0.9;

/// Clauses of builds with the feature `test-faults`.
const FAULTS: [&str; 5] = ["fail", "panic", "die", "reduce", "fall-back"];

/// Number of frames for `jawOpen` to go from 0 to 1 and back.
const JAW_PERIOD: u64 = 50;

/// A parsed script.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Script {
    faces: Vec<ScriptedFace>,
    /// True if faces carry landmarks, blendshapes and a pose.
    detailed: bool,
    learns: bool,
    slow: Duration,
    #[cfg(feature = "test-faults")]
    faults: Faults,
}

#[derive(Debug, Clone, PartialEq, SmartDefault)]
struct ScriptedFace {
    #[default(0.5)]
    x: f32,
    #[default(0.5)]
    y: f32,
    #[default(0.3)]
    size: f32,
    dx: f32,
    dy: f32,
    #[default(1)]
    from: u64,
    #[default(u64::MAX)]
    to: u64,
}

impl ScriptedFace {
    /// The box in frame `number`, as it is displayed. Scripts are written in stored pixels.
    fn bbox(&self, number: u64, frame: &FrameOutline) -> Rect {
        let steps = number.saturating_sub(1) as f32;
        let [width, height] = frame.stored_size.map(|side| side as f32);
        let side = self.size * height;
        let x = bounce(self.x + self.dx * steps) * width;
        let y = bounce(self.y + self.dy * steps) * height;
        let scale = frame.column_scale as f32;
        let (left, top) = ((x - side / 2.0) / scale, y - side / 2.0);
        Rect::new(left, top, side / scale, side)
    }
}

/// A position that turns back at 0 and 1.
fn bounce(position: f32) -> f32 {
    let phase = position.rem_euclid(2.0);
    phase.min(2.0 - phase)
}

impl Script {
    /// The script of `config`, or the default one.
    ///
    /// # Errors
    /// Returns [`EngineError::Config`] for an invalid script.
    pub fn of(config: &EngineConfig) -> Result<Self, EngineError> {
        let text = config.script.as_deref().unwrap_or(DEFAULT_SCRIPT);
        let mut script = Self::default();
        text.split(';')
            .filter(|clause| !clause.trim().is_empty())
            .try_for_each(|clause| script.read_clause(clause))
            .map_err(|reason| EngineError::config("script", format!("{text:?}: {reason}")))?;
        Ok(script)
    }

    /// Describes an engine with this script.
    pub fn info(&self, running_mode: RunningMode) -> EngineInfo {
        let channels = MEDIAPIPE_CHANNELS.iter().filter(|_| self.detailed);
        EngineInfo {
            landmarks: self.detailed.then_some(LandmarkScheme::MediaPipe478),
            blendshapes: channels.map(|name| (*name).to_owned()).collect(),
            measures: Fields::of([(Fields::POSE, self.detailed)]),
            temporal: running_mode == RunningMode::Video,
            ..EngineInfo::named(ENTRY.name)
        }
    }

    fn read_clause(&mut self, clause: &str) -> Result<(), String> {
        let mut words = clause.split_whitespace();
        let verb = words.next().unwrap_or_default();
        let pairs = words
            .map(|word| {
                word.split_once('=')
                    .ok_or_else(|| format!("{word:?} is not key=value"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        match verb {
            "face" => self.faces.push(read_face(&pairs)?),
            "landmarks" => self.detailed = true,
            "learns" => self.learns = true,
            "slow" => self.slow = Duration::from_millis(read_only("ms", verb, &pairs)?),
            _ if !FAULTS.contains(&verb) => {
                return Err(format!(
                    "unknown clause {verb:?}, expected one of: face, landmarks, learns, slow"
                ));
            }
            #[cfg(feature = "test-faults")]
            _ => self.faults.read(verb, &pairs)?,
            #[cfg(not(feature = "test-faults"))]
            _ => return Err(format!("{verb:?} needs a build with test-faults")),
        }
        Ok(())
    }
}

fn read_face(pairs: &[(&str, &str)]) -> Result<ScriptedFace, String> {
    let mut face = ScriptedFace::default();
    for (key, value) in pairs {
        match *key {
            "x" => face.x = read(key, value)?,
            "y" => face.y = read(key, value)?,
            "size" => face.size = read(key, value)?,
            "dx" => face.dx = read(key, value)?,
            "dy" => face.dy = read(key, value)?,
            "from" => face.from = read(key, value)?,
            "to" => face.to = read(key, value)?,
            _ => {
                return Err(format!(
                    "unknown key {key:?} of face, expected one of: x, y, size, dx, dy, from, to"
                ));
            }
        }
    }
    Ok(face)
}

/// The value of the only key that `verb` takes.
fn read_only(key: &str, verb: &str, pairs: &[(&str, &str)]) -> Result<u64, String> {
    match pairs {
        [(name, value)] if *name == key => read(key, value),
        _ => Err(format!("{verb} takes {key}=<number>")),
    }
}

fn read<T: FromStr>(key: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{value:?} is not a value of {key}"))
}

/// Content of the calibration.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Learned {
    frames: u64,
}

/// The half of the engine that follows the script.
#[derive(Debug)]
struct Scripted {
    script: Script,
    channels: Arc<[String]>,
    running_mode: RunningMode,
    max_faces: usize,
    /// Number of the last frame; 0 before the first.
    number: u64,
    origin: Origin,
    notices: Vec<Notice>,
}

/// The half of the engine that completes faces and counts the frames that showed them.
#[derive(Debug)]
struct Counter {
    /// State of the clause `learns`; `None` without it.
    learned: Option<Learned>,
}

/// The engine that follows the script of `config`.
///
/// # Errors
/// Returns [`EngineError::Config`] when the script can't be read.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let script = Script::of(config)?;
    let counter = Counter {
        learned: script.learns.then(Learned::default),
    };
    let info = script.info(config.running_mode);
    let finder = Scripted {
        channels: info.blendshapes.clone(),
        running_mode: config.running_mode,
        #[cfg(feature = "test-faults")]
        notices: script.faults.notices(0).collect(),
        #[cfg(not(feature = "test-faults"))]
        notices: Vec::new(),
        script,
        max_faces: config.max_faces.unwrap_or(usize::MAX),
        number: 0,
        origin: Origin::Detected,
    };
    Ok(Engine::new(info, finder, counter))
}

impl Scripted {
    fn observe(&self, bbox: Rect) -> Observation {
        let is_detailed = self.script.detailed;
        Observation {
            confidence: Some(CONFIDENCE),
            origin: self.origin,
            landmarks: is_detailed.then(|| mask(bbox)),
            blendshapes: is_detailed.then(|| self.expression()),
            ..Observation::from_bbox(bbox)
        }
    }

    /// Returns blendshapes that are 0 except for `jawOpen`, which rises and falls.
    fn expression(&self) -> Blendshapes {
        let phase = (self.number % JAW_PERIOD) as f32 / JAW_PERIOD as f32;
        let jaw_open = (1.0 - libm::cosf(phase * TAU)) / 2.0;
        let value = |name: &String| if name == "jawOpen" { jaw_open } else { 0.0 };
        let values = self.channels.iter().map(value).collect();
        Blendshapes::new(self.channels.clone(), values)
    }
}

impl Finder for Scripted {
    fn find(&mut self, frame: &Frame<'_>, _thresholds: &Thresholds) -> Result<Found> {
        self.number += 1;
        thread::sleep(self.script.slow);
        #[cfg(feature = "test-faults")]
        self.script.faults.apply(self.number, &mut self.notices)?;
        let faces = self.script.faces.iter();
        let faces = faces
            .filter(|face| (face.from..=face.to).contains(&self.number))
            .map(|face| self.observe(face.bbox(self.number, &frame.outline())))
            .collect();
        if self.running_mode == RunningMode::Video {
            self.origin = Origin::Tracked;
        }
        Ok(Found::first(faces, self.max_faces))
    }

    fn reset(&mut self) {
        self.origin = Origin::Detected;
    }

    fn restart(&mut self) {
        self.number = 0;
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }
}

impl Completer for Counter {
    fn begin_frame(&mut self, _faces: &[Observation]) {
        if let Some(learned) = &mut self.learned {
            learned.frames += 1;
        }
    }

    fn complete(&mut self, face: &mut Observation, _context: &Context) -> Result<(), EngineError> {
        if let Some(landmarks) = &face.landmarks {
            face.bbox = landmarks.extent();
            // Half a metre in front of the camera, looking at it.
            face.pose = HeadPose::new(&Matrix3::identity(), &Vector3::new(0.0, 0.0, -50.0));
        }
        Ok(())
    }

    fn calibration(&self) -> Option<String> {
        let learned = self.learned.as_ref()?;
        serde_json::to_string(learned).ok()
    }

    fn set_calibration(&mut self, calibration: &str) -> Result<(), EngineError> {
        let refused = |reason| EngineError::config("calibration", reason);
        let learned = serde_json::from_str(calibration);
        let learned = learned.map_err(|error| refused(error.to_string()))?;
        let kept = self.learned.as_mut();
        *kept.ok_or_else(|| refused("the script does not learn".to_owned()))? = learned;
        Ok(())
    }

    fn reset_calibration(&mut self) {
        self.learned = self.learned.take().map(|_| Learned::default());
    }
}

/// Returns points along the ellipse inside `bbox`, as many as the scheme has.
fn mask(bbox: Rect) -> Landmarks {
    let Point { x, y } = bbox.center();
    let count = LandmarkScheme::MediaPipe478.count();
    let points = (0..count)
        .map(|index| {
            let (sin, cos) = libm::sincosf(index as f32 / count as f32 * TAU);
            Landmark {
                x: x + cos * bbox.width / 2.0,
                y: y + sin * bbox.height / 2.0,
                z: 0.0,
            }
        })
        .collect();
    Landmarks::new(LandmarkScheme::MediaPipe478, points)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ImageView;
    use std::time::Duration;

    fn engine(script: &str) -> Engine {
        load(&EngineConfig {
            script: Some(script.to_owned()),
            ..EngineConfig::default()
        })
        .expect("a good script")
    }

    fn see(engine: &mut Engine) -> Result<Vec<Observation>, EngineError> {
        let pixels = [0; 100 * 50 * 3];
        let image = ImageView::rgb(100, 50, &pixels).expect("100×50");
        let time = Duration::ZERO;
        let frame = Frame { image, time };
        let found = engine.finder.find(&frame, &Thresholds::DEFAULT);
        found.map(|found| found.faces)
    }

    #[test]
    fn faces_move_come_and_go() {
        let mut engine = engine("face x=0.5 y=0.5 size=0.4 dx=0.1; face from=2 to=2");
        let counts: Vec<_> = (0..3).map(|_| see(&mut engine).unwrap()).collect();
        assert_eq!(counts.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(counts[0][0].bbox, Rect::new(40.0, 15.0, 20.0, 20.0));
        assert!((counts[2][0].bbox.x - 60.0).abs() < 1e-4);
        assert_eq!(counts[0][0].origin, Origin::Detected);
        assert_eq!(counts[1][0].origin, Origin::Tracked);
    }

    #[test]
    fn faces_turn_back_at_the_edges() {
        for (position, want) in [(0.5, 0.5), (1.25, 0.75), (2.0, 0.0), (-0.25, 0.25)] {
            assert!((bounce(position) - want).abs() < 1e-6, "{position}");
        }
    }

    #[test]
    fn it_fails_at_the_given_frame() {
        let mut engine = engine("fail at=2");
        assert!(see(&mut engine).unwrap().is_empty());
        assert!(see(&mut engine).is_err());
        assert!(see(&mut engine).is_ok());
    }

    #[test]
    fn bad_scripts_say_what_is_wrong() {
        for (script, want) in [
            ("nose", "unknown clause \"nose\""),
            ("face z=1", "unknown key \"z\""),
            ("face x=left", "\"left\" is not a value of x"),
            ("face x", "not key=value"),
            ("fail", "fail takes at=<number>"),
            ("slow at=1", "slow takes ms=<number>"),
        ] {
            let config = EngineConfig {
                script: Some(script.to_owned()),
                ..EngineConfig::default()
            };
            let error = load(&config).err().unwrap().to_string();
            assert!(error.contains(want), "{error}");
        }
    }

    #[test]
    fn detailed_faces_carry_what_the_info_says() {
        let mut engine = engine("face; landmarks");
        let mut face = see(&mut engine).unwrap().remove(0);
        let context = Context {
            id: 1,
            frame_size: (100, 50),
            time: Duration::ZERO,
            wanted: crate::engine::Wanted::Everything,
        };
        engine.completer.complete(&mut face, &context).unwrap();
        let info = engine.info;
        assert_eq!(info.landmarks, face.landmarks.as_ref().map(|l| l.scheme));
        assert_eq!(face.landmarks.unwrap().points.len(), 478);
        assert_eq!(face.blendshapes.unwrap().names(), &info.blendshapes);
        assert!(face.pose.is_some() && info.measures == Fields::POSE);
    }
}
