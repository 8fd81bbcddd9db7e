// SPDX-License-Identifier: MPL-2.0
//! OpenCV's cascade classifier.
//!
//! The engine finds what `CascadeClassifier::detectMultiScale` of OpenCV 4.12 finds in the same grey
//! pixels, box for box.

pub mod cascade;
pub(crate) mod detector;
mod group;
mod integral;
mod levels;
mod program;
mod resize;
mod scan;
pub(crate) mod xml;

use smart_default::SmartDefault;

use crate::engine::last_search::{Input, LastSearch};
use crate::engine::{
    Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, Found, Frame, Setting, Thresholds,
};
use crate::geometry::Rect;
use crate::memory::{self, OutOfMemory};
use crate::model::{ModelError, file, format_error};
use crate::observation::Observation;
use crate::profile;
use crate::sample::luma;
use detector::Detector;
use group::Detection;
use resize::Resizer;

/// File name of the published cascade that is used by default.
const CASCADE: &str = "haarcascade_frontalface_default.xml";

/// Folder that a collection of models keeps it in.
const FAMILY: &str = "haar";

/// Name of the file format, for messages.
const FORMAT: &str = "OpenCV cascade";

/// Confidence of each face: a cascade computes no score.
const CONFIDENCE: f32 = 1.0;

/// Maximum side of a frame, px: enough for GStreamer's frames, and small enough for 32-bit offsets
/// and single precision.
const MAX_SIDE: usize = 65_535;

/// The engine `opencv-haar`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[Setting::OpenCvHaar, Setting::Models, Setting::Model],
    ..EngineEntry::new("opencv-haar", |_| Ok(describe()), load)
};

/// The arguments of OpenCV's `detectMultiScale`. As there, if no size of the cascade's window is
/// within the bounds, the size nearest to the minimum is searched. The defaults come from the older
/// pipeline of `docs/run.md`.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct Search {
    /// Ratio of two neighbouring sizes, at least 1.001.
    #[default(1.1)]
    pub scale_factor: f64,
    /// Minimum number of overlapping detections that make a face; 0 = every detection is a face.
    #[default(5)]
    pub min_neighbors: usize,
    /// Minimum width and height of a face, px.
    #[default(30)]
    pub min_size: usize,
    /// Maximum width and height of a face, px; `None` for no limit.
    pub max_size: Option<usize>,
}

impl Search {
    /// Minimum ratio of two neighbouring sizes. With it, a 4K frame is searched in 4500 sizes.
    const LEAST_SCALE_FACTOR: f64 = 1.001;

    fn check(&self) -> Result<(), EngineError> {
        let least = Self::LEAST_SCALE_FACTOR;
        if !self.scale_factor.is_finite() || self.scale_factor < least {
            let factor = self.scale_factor;
            let reason = format!("{factor} is less than {least}");
            return Err(EngineError::config("scale_factor", reason));
        }
        if let Some(most) = self.max_size.filter(|most| *most < self.min_size) {
            let least = self.min_size;
            let reason = format!("{most} px is less than the minimum size, {least} px");
            return Err(EngineError::config("max_size", reason));
        }
        Ok(())
    }
}

/// The engine.
struct Haar {
    detector: Detector,
    max_faces: usize,
    gray: Gray,
    last: LastSearch<Gray, Vec<Detection>>,
    resizer: Resizer,
}

/// A grey image.
#[derive(Debug, Clone, PartialEq, Default)]
struct Gray {
    size: [usize; 2],
    levels: Vec<u8>,
}

impl Input for Gray {
    fn bytes(&self) -> usize {
        self.levels.len()
    }
}

/// Describes the engine before it is loaded, without models.
pub fn describe() -> EngineInfo {
    EngineInfo::named(ENTRY.name)
}

/// Loads the cascade that `config` names, or the published one.
///
/// # Errors
/// Returns an error if the cascade is missing, damaged or of another kind, or [`Search`] holds
/// values that can't be used.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    config.opencv_haar.check()?;
    let path = config.paths.model(CASCADE, FAMILY, config.model.as_deref());
    let path = path.map_err(ModelError::from)?;
    let (bytes, file) = file::read(&path, FORMAT)?;
    let cascade = xml::read(&bytes).map_err(|reason| format_error(&path, FORMAT, reason))?;
    let info = EngineInfo {
        models: vec![file],
        ..describe()
    };
    let mut haar = Haar {
        detector: Detector::new(cascade, config.opencv_haar),
        max_faces: config.max_faces.unwrap_or(usize::MAX),
        gray: Gray::default(),
        last: LastSearch::default(),
        resizer: Resizer::default(),
    };
    let finder = move |frame: &Frame<'_>, _: &Thresholds| haar.find(frame);
    Ok(Engine::new(info, finder, ()))
}

impl Haar {
    /// Faces are in OpenCV's order, from small to large. If there are more than `max_faces`, the
    /// largest are returned, largest first.
    fn find(&mut self, frame: &Frame<'_>) -> Result<Found, EngineError> {
        let size = [frame.image.width(), frame.image.height()];
        if size.iter().any(|side| *side > MAX_SIDE) {
            let [width, height] = size;
            let reason = format!(
                "{width}×{height} pixels; the maximum for a cascade is {MAX_SIDE} per side"
            );
            return Err(EngineError::Frame(reason));
        }
        let is_line = frame.image.stored_size().contains(&1);
        if is_line || !self.detector.prepare(size).map_err(ModelError::from)? {
            return Ok(Found::all(Vec::new()));
        }
        luma(&frame.image, &mut self.gray.levels).map_err(ModelError::from)?;
        let stretched = self.stretch(frame.image.stored_size(), size);
        stretched.map_err(ModelError::from)?;
        self.gray.size = size;
        let mut faces = profile::time_detection(|| self.search())?;
        if faces.len() > self.max_faces {
            faces.sort_by_key(|face| {
                std::cmp::Reverse(i64::from(face.width) * i64::from(face.height))
            });
        }
        let faces = faces.into_iter().map(observation).collect();
        Ok(Found::first(faces, self.max_faces))
    }

    /// The detections in the grey image.
    fn search(&mut self) -> Result<Vec<Detection>, EngineError> {
        let detector = &mut self.detector;
        let search = |gray: &mut Gray| Ok(detector.detect(&gray.levels));
        let found = self.last.output(&mut self.gray, |gray| gray, search);
        found.cloned()
    }

    /// Scales the grey image to the displayed size of the frame.
    fn stretch(&mut self, stored: [usize; 2], displayed: [usize; 2]) -> Result<(), OutOfMemory> {
        if stored == displayed {
            return Ok(());
        }
        let [width, height] = displayed;
        self.resizer.begin(stored, displayed);
        let purpose = format_args!("the brightness of {width}×{height} pixels");
        let mut image = memory::zeros(width * height, purpose)?;
        for (index, row) in image.chunks_exact_mut(width).enumerate() {
            self.resizer.row(&self.gray.levels, index, row);
        }
        self.gray.levels = image;
        Ok(())
    }
}

fn observation(face: Detection) -> Observation {
    let [x, y, width, height] = [face.x, face.y, face.width, face.height].map(|side| side as f32);
    Observation {
        confidence: Some(CONFIDENCE),
        ..Observation::from_bbox(Rect::new(x, y, width, height))
    }
}
