// SPDX-License-Identifier: MPL-2.0
//! Sizes and positions of the windows that are searched:
//! `CascadeClassifierImpl::detectMultiScaleNoGrouping`, `FeatureEvaluator::updateScaleData` and
//! `CascadeClassifierInvoker` in OpenCV's `cascadedetect.cpp`.

use super::Search;

/// One size of the frame, searched for faces as large as the cascade's window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// Ratio of the frame's size to this one's.
    pub scale: f32,
    /// Width and height of the reduced frame, px.
    pub size: [usize; 2],
    /// Distance of neighbouring windows, px.
    pub step: usize,
    /// Number of columns at which windows may start.
    pub columns: usize,
    /// Number of rows at which windows may start.
    pub rows: usize,
}

/// From this scale on, windows are one pixel apart: `ystep` in `updateScaleData`.
const FULL_SEARCH_SCALE: f32 = 2.0;

/// Width of the stripes that OpenCV distributes to threads, px: `nstripes` in
/// `detectMultiScaleNoGrouping`.
const STRIPE: usize = 32;

/// Levels on which `search` searches a frame of `frame` pixels for windows of `window` pixels,
/// finest first; none if the frame is smaller than a window.
pub(super) fn levels(frame: [usize; 2], window: [usize; 2], search: &Search) -> Vec<Level> {
    let scales = scales(frame, window, search);
    let Some(first) = scales.first() else {
        return Vec::new();
    };
    let [width, _] = working_size(reduced(frame, *first), window);
    let stripes = width.div_ceil(STRIPE);
    let level = |scale: &f32| {
        let size = reduced(frame, *scale);
        let [columns, rows] = working_size(size, window);
        let step = if *scale >= FULL_SEARCH_SCALE { 1 } else { 2 };
        Level {
            scale: *scale,
            size,
            step,
            columns,
            rows: rows.min(stripes * stripe_height(rows, step, stripes)),
        }
    };
    scales.iter().map(level).collect()
}

/// Scales at which windows are within the bounds. If there is none, OpenCV searches at the scale
/// whose windows are nearest to the minimum size.
fn scales(frame: [usize; 2], window: [usize; 2], search: &Search) -> Vec<f32> {
    let fitting: Vec<f32> = std::iter::successors(Some(1.0), |f| Some(f * search.scale_factor))
        .take_while(|factor: &f64| {
            std::iter::zip(frame, window)
                .all(|(frame, window)| (window as f64 * factor).round_ties_even() <= frame as f64)
        })
        .map(|factor| factor as f32)
        .collect();
    let least = search.min_size;
    let scaled = |scale: f32| window.map(|side| scaled(side, scale));
    let within: Vec<f32> = fitting
        .iter()
        .copied()
        .take_while(|scale| {
            let most = search.max_size.map_or(frame, |side| [side; 2]);
            std::iter::zip(scaled(*scale), most).all(|(side, most)| side <= most)
        })
        .filter(|scale| scaled(*scale).iter().all(|side| *side >= least))
        .collect();
    if !within.is_empty() {
        return within;
    }
    let distance = |scale: &f32| -> usize {
        let squares = scaled(*scale).map(|side| side.abs_diff(least).pow(2));
        squares.iter().sum()
    };
    Vec::from_iter(fitting.into_iter().min_by_key(distance))
}

/// Converts a length on a level to the frame: OpenCV's `cvRound` of a product in single precision.
pub(super) fn scaled(length: usize, scale: f32) -> usize {
    (length as f32 * scale).round_ties_even() as usize
}

fn reduced(frame: [usize; 2], scale: f32) -> [usize; 2] {
    frame.map(|side| (side as f32 / scale).round_ties_even() as usize)
}

/// Number of window positions along each axis: `ScaleData::getWorkingSize`.
fn working_size(size: [usize; 2], window: [usize; 2]) -> [usize; 2] {
    [0, 1].map(|axis| (size[axis] + 1).saturating_sub(window[axis]))
}

/// Rows of windows that a thread of OpenCV searches. The division rounds down, so the last row may
/// be skipped.
fn stripe_height(rows: usize, step: usize, stripes: usize) -> usize {
    (rows / step).div_ceil(stripes.max(1)).max(1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(frame: [usize; 2], search: Search) -> Vec<usize> {
        let levels = levels(frame, [24, 24], &search);
        levels.iter().map(|l| scaled(24, l.scale)).collect()
    }

    #[test]
    fn windows_keep_to_the_bounds() {
        let search = Search {
            min_size: 30,
            max_size: Some(50),
            scale_factor: 1.25,
            ..Search::default()
        };
        assert_eq!(windows([100, 100], search), [30, 38, 47]);
        assert_eq!(windows([100, 40], search), [30, 38]);
        assert!(windows([23, 100], search).is_empty());
        let no_limits = Search {
            min_size: 0,
            max_size: None,
            ..search
        };
        assert_eq!(windows([60, 38], no_limits), [24, 30, 38]);
    }

    #[test]
    fn without_a_window_within_the_bounds_the_nearest_is_searched() {
        let search = |min_size, max_size| Search {
            min_size,
            max_size,
            scale_factor: 1.25,
            ..Search::default()
        };
        assert_eq!(windows([100, 100], search(45, Some(45))), [47]);
        assert_eq!(windows([100, 40], search(90, None)), [38]);
    }

    #[test]
    fn small_scales_are_searched_at_every_other_pixel() {
        let steps: Vec<_> = levels([200, 200], [24, 24], &Search::default())
            .iter()
            .map(|level| (level.scale >= 2.0, level.step))
            .collect();
        assert!(steps.contains(&(true, 1)) && steps.contains(&(false, 2)));
        assert!(steps.iter().all(|(full, step)| *full == (*step == 1)));
    }
}
