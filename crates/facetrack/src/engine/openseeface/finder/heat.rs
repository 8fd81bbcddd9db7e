// SPDX-License-Identifier: MPL-2.0
//! Heat maps and their offsets.

/// Minimum distance of a value from 0 and 1 before its logit is taken: `logit` in `tracker.py`.
const MARGIN: f32 = 1e-7;

/// The hottest cell of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Peak {
    /// Index of the cell.
    pub cell: usize,
    /// Value of the cell.
    pub value: f32,
}

/// The first of the hottest cells; `None` for an empty map, or if a value is not finite.
pub(super) fn peak(map: &[f32]) -> Option<Peak> {
    if !map.iter().all(|value| value.is_finite()) {
        return None;
    }
    let value = map.iter().copied().reduce(f32::max)?;
    let cell = map.iter().position(|other| *other == value)?;
    Some(Peak { cell, value })
}

/// Converts an element of an offset map to an offset relative to the network's input: `logit_arr`.
/// NaN stays NaN.
pub(super) fn offset(value: f32, factor: f32) -> f32 {
    let value = value.clamp(MARGIN, 1.0 - MARGIN);
    libm::logf(value / (1.0 - value)) / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_hottest_cells_is_the_peak() {
        let with = |length: usize, cells: &[(usize, f32)]| {
            let mut map = vec![-1.0; length];
            for (cell, value) in cells {
                map[*cell] = *value;
            }
            peak(&map).map(|peak| (peak.cell, peak.value))
        };
        for (length, cells, want) in [
            (0, &[][..], None),
            (1, &[], Some((0, -1.0))),
            (784, &[(700, 0.5)], Some((700, 0.5))),
            (784, &[(17, 0.5), (700, 0.5), (3, 0.25)], Some((17, 0.5))),
            (49, &[(48, 1.5), (0, 1.25)], Some((48, 1.5))),
            (49, &[(48, f32::NAN), (0, 1.25)], None),
            (49, &[(1, f32::INFINITY)], None),
            (49, &[(1, f32::NEG_INFINITY)], None),
        ] {
            assert_eq!(with(length, cells), want, "{length} {cells:?}");
        }
    }

    #[test]
    fn offsets_are_logits() {
        // 16.118095 is the logit of 1 − 1e-7; f32 has 1 − 1.19e-7 for it.
        for (value, want) in [
            (0.5, 0.0),
            (0.75, 3f32.ln()),
            (0.25, -(3f32.ln())),
            (1.0, 15.942385),
            (7.0, 15.942385),
            (0.0, -16.118095),
            (f32::NEG_INFINITY, -16.118095),
        ] {
            for factor in [1.0, 16.0] {
                let got = offset(value, factor);
                assert!(
                    (got - want / factor).abs() < 1e-5,
                    "{value} {factor}: {got}"
                );
            }
        }
        assert!(offset(f32::NAN, 16.0).is_nan());
    }
}
