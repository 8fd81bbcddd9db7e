// SPDX-License-Identifier: MPL-2.0
//! A curve in a terminal.

use std::fmt::Write;

/// Text cells for the curve.
const COLUMNS: usize = 72;
const ROWS: usize = 8;

/// A cell filled from below in eighths.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws `samples`, values of 0…1 at even steps, over `seconds`; a hole where nothing was measured.
///
/// The vertical axis ends at the next tenth above the largest value, so that small movements show.
pub(crate) fn curve(samples: &[Option<f32>], seconds: f64) -> String {
    let columns = binned(samples);
    let top = ceiling(&columns);
    let mut out = String::new();
    for row in (0..ROWS).rev() {
        let label = match row {
            _ if row == ROWS - 1 => format!("{top:.1}"),
            0 => "0.0".to_owned(),
            _ => String::new(),
        };
        let cells: String = columns.iter().map(|&value| cell(value, top, row)).collect();
        let _ = writeln!(out, "  {label:>4} ┤{}", cells.trim_end());
    }
    let _ = writeln!(out, "       └{}", "─".repeat(columns.len()));
    let end = format!("{seconds:.1} s");
    let width = columns.len().saturating_sub(3);
    let _ = writeln!(out, "        0 s{end:>width$}");
    out
}

/// The mean of each column's samples.
fn binned(samples: &[Option<f32>]) -> Vec<Option<f32>> {
    let columns = COLUMNS.min(samples.len());
    (0..columns)
        .map(|column| {
            let start = column * samples.len() / columns;
            let end = (column + 1) * samples.len() / columns;
            mean(&samples[start..end])
        })
        .collect()
}

fn mean(samples: &[Option<f32>]) -> Option<f32> {
    let measured: Vec<f32> = samples.iter().copied().flatten().collect();
    (!measured.is_empty()).then(|| measured.iter().sum::<f32>() / measured.len() as f32)
}

fn ceiling(columns: &[Option<f32>]) -> f32 {
    let largest = columns.iter().copied().flatten().fold(0.0, f32::max);
    ((largest * 10.0).ceil() / 10.0).clamp(0.1, 1.0)
}

/// The part of a column's bar that falls into a row; a measured 0 still shows as the thinnest line.
fn cell(value: Option<f32>, top: f32, row: usize) -> char {
    let Some(value) = value else {
        return ' ';
    };
    let full = BLOCKS.len() - 1;
    let eighths = (value / top * (ROWS * full) as f32).round().max(1.0) as usize;
    BLOCKS[eighths.saturating_sub(row * full).min(full)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ramp_rises_over_every_row() {
        let samples: Vec<_> = (0..=100).map(|i| Some(i as f32 / 100.0)).collect();
        let drawn = curve(&samples, 4.0);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines.len(), ROWS + 2);
        assert!(lines[0].starts_with("   1.0 ┤") && lines[0].ends_with('█'));
        assert!(lines[ROWS - 1].starts_with("   0.0 ┤▁"));
        assert!(lines[ROWS + 1].ends_with("4.0 s"));
    }

    #[test]
    fn holes_stay_empty_and_zero_does_not() {
        let drawn = curve(&[Some(0.0), None, Some(0.05)], 0.1);
        let bottom = drawn.lines().nth(ROWS - 1).unwrap();
        assert_eq!(bottom, "   0.0 ┤▁ █");
        assert!(drawn.starts_with("   0.1 ┤"));
    }

    #[test]
    fn nothing_measured_draws_an_empty_frame() {
        assert_eq!(curve(&[], 0.0).lines().count(), ROWS + 2);
        assert_eq!(curve(&[None; 10], 1.0).lines().count(), ROWS + 2);
    }

    #[test]
    fn values_outside_the_range_do_not_break_it() {
        let drawn = curve(&[Some(7.0), Some(-1.0), Some(f32::NAN)], 1.0);
        assert!(drawn.lines().next().unwrap().contains('█'));
    }
}
