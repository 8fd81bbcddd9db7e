// SPDX-License-Identifier: MPL-2.0
//! The networks of a pack, ready to run: the half of the engine that looks at pixels.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use super::gpu_fallback::ResizableDetector;
use super::network::FaceNetwork;
use super::opened::Opened;
use super::package::unusable;
use super::scrfd::Detector;
use super::{Module, measures, provider, regions};
use crate::engine::{
    EngineConfig, EngineError, EngineInfo, Finder, Found, Frame, Result, Thresholds,
};
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::{ModelError, ModelFile, Runtimes};
use crate::observation::Observation;
use crate::profile;

/// Side of the image used for warming up, px: the side of an aligned face.
const FACE: usize = 112;

/// The networks of a pack, ready to run.
pub(super) struct Networks {
    /// Finds faces.
    detector: Detector,
    /// Measure each face.
    measures: Vec<FaceNetwork>,
    /// The files, in reading order.
    files: Vec<ModelFile>,
    runtimes: Runtimes,
}

impl Networks {
    /// Runs the networks `opened` from `folder` in `runtimes` once, with a detector's input of
    /// `det_size` px: at most one of each task, a detector among them.
    ///
    /// # Errors
    /// Returns an error if a network does not run or has other tensors, if the detector is missing,
    /// or if a requested network is missing.
    pub(super) fn new(
        opened: Vec<Opened>,
        runtimes: Runtimes,
        folder: &Path,
        config: &EngineConfig,
        det_size: usize,
    ) -> Result<Self> {
        let files = opened.iter().map(|opened| opened.file.clone()).collect();
        let is_detector = |opened: &Opened| opened.module == Module::Detection;
        let (detectors, others): (Vec<_>, Vec<_>) = opened.into_iter().partition(is_detector);
        let Some(detector) = detectors.into_iter().next() else {
            return Err(unusable(folder, "it has no detector").into());
        };
        let networks = ready(detector, others, config, det_size);
        let (detector, measures) = networks.map_err(|error| of_pack(folder, error))?;
        let networks = Self {
            detector,
            measures,
            files,
            runtimes,
        };
        if config.insightface.embedding {
            networks.check_embedding(folder)?;
        }
        Ok(networks)
    }

    fn check_embedding(&self, folder: &Path) -> Result<()> {
        let reason = if self.values(Module::Recognition).is_none() {
            "it has no recognition network"
        } else if self.detector.key_points() == 0 {
            "its detector finds no key points, which align faces"
        } else {
            return Ok(());
        };
        let error = unusable(folder, reason).to_string();
        Err(EngineError::config("embedding", error))
    }

    /// Describes an engine with these networks.
    pub(super) fn info(&self) -> EngineInfo {
        EngineInfo {
            key_points: self.detector.key_points(),
            models: self.files.clone(),
            runtimes: self.runtimes.clone(),
            ..super::info(|module| self.values(module))
        }
    }

    /// Number of values that the network of `module` yields for a face; `None` without one.
    fn values(&self, module: Module) -> Option<usize> {
        let mut networks = self.measures.iter();
        let network = networks.find(|network| network.module == module);
        network.map(|network| network.values)
    }
}

impl Finder for Networks {
    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found> {
        let Found { faces, search } =
            profile::time_detection(|| self.detector.detect(&frame.image, thresholds.detection))?;
        let mut faces: Vec<_> = faces.into_iter().map(Observation::from).collect();
        measures::measure(&mut self.measures, &frame.image, &mut faces)?;
        Ok(Found { faces, search })
    }
}

impl ResizableDetector for Networks {
    fn models(&self) -> &[ModelFile] {
        &self.files
    }

    fn runtimes(&self) -> Runtimes {
        self.runtimes.clone()
    }

    fn det_size(&self) -> usize {
        self.detector.side()
    }

    /// Sets the side, which is a multiple of 32.
    fn set_det_size(&mut self, side: usize) {
        self.detector.side = side;
    }

    /// Runs on a black frame of the detector's size, and measures a face as if the frame showed
    /// one.
    fn warm_up(&mut self) -> Result<()> {
        let side = self.det_size().max(FACE);
        let pixels = vec![0; side * side * 3];
        let image = ImageView::rgb(side, side, &pixels)
            .map_err(|error| EngineError::Frame(error.to_string()))?;
        self.detector.detect(&image, 1.0)?;
        let bbox = Rect::new(0.0, 0.0, FACE as f32, FACE as f32);
        let mut faces = [Observation {
            key_points: regions::aligned_points(FACE).to_vec(),
            ..Observation::from_bbox(bbox)
        }];
        Ok(measures::measure(&mut self.measures, &image, &mut faces)?)
    }
}

/// Runs each network once: one after the other, or at the same time.
fn ready(
    detector: Opened,
    others: Vec<Opened>,
    config: &EngineConfig,
    det_size: usize,
) -> Result<(Detector, Vec<FaceNetwork>), ModelError> {
    let batch = provider::batch(&config.placement);
    let detector = || Detector::new(detector, config, det_size);
    let others = others.into_iter();
    if !provider::are_tried_at_once(&config.placement) {
        let others = others.map(|opened| FaceNetwork::new(opened, batch));
        return Ok((detector()?, others.collect::<Result<_, _>>()?));
    }
    thread::scope(|scope| {
        let threads = others.map(|opened| scope.spawn(move || FaceNetwork::new(opened, batch)));
        let threads: Vec<_> = threads.collect();
        let detector = detector();
        let others = threads.into_iter().map(|thread| thread.join());
        let others = others.map(|joined| joined.unwrap_or_else(|panic| resume_unwind(panic)));
        // All threads end before an error is returned.
        let others: Vec<_> = others.collect();
        Ok((detector?, others.into_iter().collect::<Result<_, _>>()?))
    })
}

/// Converts the error of a network with other tensors: the whole pack has to be replaced.
fn of_pack(folder: &Path, error: ModelError) -> ModelError {
    match error {
        ModelError::Tensors {
            path,
            expected,
            actual,
        } => {
            let path = path.display();
            let reason = format!("{path} has other tensors than {expected}: {actual}");
            unusable(folder, &reason)
        }
        error => error,
    }
}
