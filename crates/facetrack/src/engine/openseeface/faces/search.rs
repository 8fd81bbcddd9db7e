// SPDX-License-Identifier: MPL-2.0
//! Finds a head's pose, starting with the pose in the previous frame: `estimate_depth` in
//! `tracker.py`.

use super::fit::{Fit, Places};
use super::model;
use super::pnp::{self, Camera, Correspondence, Pose};

/// Maximum error of a good fit, px.
pub(super) const MAX_ERROR: f64 = 300.0;

/// Number of consecutive bad fits after which the search starts again.
const MAX_FAILURES: u32 = 5;

/// State of the search for one head.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Search {
    last: Option<Pose>,
    /// Number of consecutive bad fits.
    failures: u32,
}

impl Search {
    /// The search in a single picture. At the original's starting point the equations are singular.
    /// It takes the motion of several frames to reach the face from there, and a face that never
    /// moves may never be found.
    pub(super) fn in_picture() -> Self {
        Self {
            last: Some(Pose::facing()),
            failures: 0,
        }
    }

    /// Fits the model to the landmarks at `places`, using the points of `contour`. A bad fit is
    /// returned as well. `None` if there is no fit, for example if coordinates are not finite.
    pub(super) fn fit<'a>(
        &mut self,
        camera: &'a Camera,
        places: &Places,
        contour: &[usize],
    ) -> Option<Fit<'a>> {
        let points = contour.iter().map(|&i| (model::point(i), places[i]));
        let points: Vec<Correspondence> = points.collect();
        let guess = self.last.take().unwrap_or_default();
        let pose = pnp::solve(&points, camera, &guess)?;
        let fit = Fit::new(camera, pose, places, contour.len())?;
        self.remember(pose, fit.error);
        Some(fit)
    }

    fn remember(&mut self, pose: Pose, error: f64) {
        let is_bad = error > MAX_ERROR;
        self.failures = if is_bad { self.failures + 1 } else { 0 };
        self.last = (self.failures <= MAX_FAILURES).then_some(pose);
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, assert_near};
    use super::*;

    #[test]
    fn heads_are_found_where_the_original_finds_them() {
        for sequence in Golden::read().sequences {
            let camera = Camera::new(sequence.size());
            let mut search = Search::default();
            for (index, frame) in sequence.frames.iter().enumerate() {
                let name = format!("{}: frame {index}", sequence.name);
                let fit = search
                    .fit(&camera, &frame.places(), &model::CONTOUR)
                    .unwrap();
                let pose = fit.pose;
                let turns = pose.rotation.cast::<f64>();
                assert_near(&name, turns.as_slice(), frame.rotation.map(f64::from), 2e-3);
                assert_near(&name, [fit.error / frame.error], [1.0], 1e-3);
            }
        }
    }
}
