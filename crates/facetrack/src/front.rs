// SPDX-License-Identifier: MPL-2.0
//! The tracker: the crate's entrance, with a default for every setting.

use std::time::Duration;

use facetrack_assets::locate::SearchPaths;

use crate::analyzer::{Analyzer, Tuning};
use crate::engine::{Engine, EngineConfig, EngineError, EngineKind, Frame, RunningMode, load};
use crate::image::ImageView;
use crate::report::{FrameReport, ReportSource};
use crate::tracker::TrackerConfig;

/// Finds faces in pictures or in the frames of a video, follows them, and measures them.
///
/// Tracks the faces of one stream. Use a tracker for each stream and each thread; networks are
/// loaded only once per process.
pub struct Tracker {
    analyzer: Analyzer,
}

/// An engine for a [`Tracker`]: one of this crate by its kind, or one of your own.
pub enum EngineSource {
    /// An engine of this crate, which is loaded by [`TrackerBuilder::build`].
    Kind(EngineKind),
    /// An engine that exists already.
    Engine(Engine),
}

/// The settings of a [`Tracker`].
#[must_use = "a builder does nothing until it builds a tracker"]
pub struct TrackerBuilder {
    engine: EngineSource,
    config: EngineConfig,
    tuning: Option<Tuning>,
    following: TrackerConfig,
}

impl Tracker {
    /// Begins with the default settings of an engine.
    pub fn builder(engine: impl Into<EngineSource>) -> TrackerBuilder {
        TrackerBuilder {
            engine: engine.into(),
            config: EngineConfig::default(),
            tuning: None,
            following: TrackerConfig::default(),
        }
    }

    /// Finds and measures the faces in the next frame. `time` is its time since the start of the
    /// stream, and increases from frame to frame. Before each of several unrelated pictures, call
    /// [`Self::restart`]; each then has the time zero.
    ///
    /// # Errors
    /// Returns an error if a network fails. The tracker can go on with the next frame.
    pub fn track(
        &mut self,
        image: &ImageView<'_>,
        time: Duration,
    ) -> Result<FrameReport, EngineError> {
        let image = image.clone();
        self.analyzer.analyze(&Frame { image, time })
    }

    /// Begins another stream, or another picture: forgets all faces, and ids begin at 1 again.
    pub fn restart(&mut self) {
        self.analyzer.restart();
    }

    /// Returns the steps of the tracker, to search frames in parallel, to repeat faces in frames
    /// that are not analysed, or to change settings between frames.
    pub fn analyzer(&mut self) -> &mut Analyzer {
        &mut self.analyzer
    }
}

impl TrackerBuilder {
    /// Searches these places for models.
    pub fn paths(mut self, paths: SearchPaths) -> Self {
        self.config.paths = paths;
        self
    }

    /// Finds at most `count` faces.
    pub fn max_faces(mut self, count: usize) -> Self {
        self.config.max_faces = Some(count);
        self
    }

    /// Expects frames of a video, which is the default, or pictures of different things.
    pub fn running_mode(mut self, mode: RunningMode) -> Self {
        self.config.running_mode = mode;
        self
    }

    /// Replaces all settings that the engine is loaded with.
    pub fn config(mut self, config: EngineConfig) -> Self {
        self.config = config;
        self
    }

    /// Replaces the settings that may change between frames: by default [`Tuning::of`] the engine.
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(tuning);
        self
    }

    /// Replaces the settings of the assignment of ids.
    pub fn following(mut self, following: TrackerConfig) -> Self {
        self.following = following;
        self
    }

    /// Loads the engine. Nothing is downloaded.
    ///
    /// # Errors
    /// Returns an error if a model is missing or damaged, or a setting cannot be used.
    pub fn build(self) -> Result<Tracker, EngineError> {
        let config = &self.config;
        let (engine, default) = match self.engine {
            EngineSource::Kind(kind) => (load(kind, config)?, Tuning::of(kind, config)),
            EngineSource::Engine(engine) => (engine, Tuning::default()),
        };
        let mut source = ReportSource::of(&engine.info);
        source.place(&config.placement, &engine.info.runtimes, "the default");
        let tuning = self.tuning.unwrap_or(default);
        let analyzer = Analyzer::new(engine, self.following, tuning, source);
        Ok(Tracker { analyzer })
    }
}

impl From<EngineKind> for EngineSource {
    fn from(kind: EngineKind) -> Self {
        Self::Kind(kind)
    }
}

impl From<Engine> for EngineSource {
    fn from(engine: Engine) -> Self {
        Self::Engine(engine)
    }
}
