// SPDX-License-Identifier: MPL-2.0
//! A head's pose, looked for from where it was in the frame before: `estimate_depth` in `tracker.py`.

use super::fit::{Fit, Places};
use super::model;
use super::pnp::{self, Camera, Correspondence, Pose};

/// Greatest error of a fit that means something, px.
pub const MAX_ERROR: f64 = 300.0;

/// Bad fits in a row after which the search starts anew.
const MAX_FAILURES: u32 = 5;

/// Where a head was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Search {
    last: Option<Pose>,
    /// Bad fits in a row.
    failures: u32,
}

impl Search {
    /// The model where `camera` sees it as the landmarks at `places` are; the points of `contour` decide. A bad fit is
    /// returned as well. `None` when there is none at all, as with coordinates that are no numbers.
    pub fn fit<'a>(
        &mut self,
        camera: &'a Camera,
        places: &Places,
        contour: &[usize],
    ) -> Option<Fit<'a>> {
        let points: Vec<_> = contour
            .iter()
            .map(|&i| Correspondence {
                model: model::point(i),
                image: places[i],
            })
            .collect();
        let guess = self.last.take().unwrap_or(Pose::origin());
        let pose = pnp::solve(&points, camera, &guess)?;
        let fit = Fit::new(camera, pose, places, contour.len())?;
        self.remember(pose, fit.error());
        Some(fit)
    }

    fn remember(&mut self, pose: Pose, error: f64) {
        self.failures = if error > MAX_ERROR {
            self.failures + 1
        } else {
            0
        };
        self.last = (self.failures <= MAX_FAILURES).then_some(pose);
    }
}
