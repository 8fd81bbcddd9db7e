// SPDX-License-Identifier: MPL-2.0
//! Means of the numbers of faces.

use crate::table::{Cell, Column};

pub(super) use crate::faces::{Face, Frame};

/// Groups of columns that are smoothed and interpolated, with the beginnings of their names.
pub(super) const GROUPS: [(&str, &[&str]); 4] = [
    ("boxes", &["centroid_", "bbox_", "box"]),
    ("pose", &["pose."]),
    (
        "blendshapes",
        &[
            "blendshapes.",
            "blendshapes_raw.",
            "features.",
            "eye_openness",
        ],
    ),
    ("landmarks", &["landmarks", "key_points", "gaze."]),
];

/// End of the names of scores, which are left as they are.
const SCORE: &str = "confidence";

/// Angles in degrees.
const ANGLES: [&str; 3] = ["pose.yaw", "pose.pitch", "pose.roll"];

/// Describes how numbers of several frames are combined in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blend {
    /// Index in [`GROUPS`].
    pub group: usize,
    is_angle: bool,
}

impl Blend {
    /// `None` for a column that is left as it is.
    pub(super) fn of(column: &Column) -> Option<Self> {
        let name = column.name.as_str();
        let is_in = |(_, names): &(&str, &[&str])| names.iter().any(|it| name.starts_with(it));
        let group = GROUPS.iter().position(is_in)?;
        (!name.ends_with(SCORE)).then_some(Self {
            group,
            is_angle: ANGLES.contains(&name),
        })
    }

    /// The way from a number to another one; for angles the shorter way around.
    pub(super) fn difference(self, from: f64, to: f64) -> f64 {
        let difference = to - from;
        if self.is_angle {
            difference - 360.0 * (difference / 360.0).round()
        } else {
            difference
        }
    }

    /// The cell with its numbers changed by `change`; angles are from −180° to 180°.
    pub(super) fn changed(self, cell: &Cell, mut change: impl FnMut(usize, f64) -> f64) -> Cell {
        let mut change = |index, number| {
            let changed = number + change(index, number);
            self.difference(0.0, changed)
        };
        match cell {
            Cell::Integer(number) => Cell::Integer(change(0, *number as f64).round() as i64),
            Cell::Double(number) => Cell::Double(change(0, *number)),
            Cell::Floats(list) => {
                let numbers = list.iter().enumerate();
                let numbers = numbers.map(|(index, it)| change(index, f64::from(*it)) as f32);
                Cell::Floats(numbers.collect())
            }
            other => other.clone(),
        }
    }
}

/// The number at this place of a cell.
pub(super) fn number(cell: &Cell, index: usize) -> Option<f64> {
    match cell {
        Cell::Integer(number) => Some(*number as f64),
        Cell::Double(number) => Some(*number),
        Cell::Floats(list) => list.get(index).copied().map(f64::from),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::faces;

    /// Places of the cells of faces in tests.
    pub(crate) const YAW: usize = 0;
    pub(crate) const CHANNEL: usize = 1;

    /// A yaw and a blendshape, which is missing if it is NaN.
    pub(crate) fn cells(yaw: f64, channel: f64) -> Vec<Cell> {
        let channel = if channel.is_nan() {
            Cell::Missing
        } else {
            Cell::Double(channel)
        };
        vec![Cell::Double(yaw), channel]
    }

    pub(crate) fn blends() -> Vec<Option<Blend>> {
        let columns = ["pose.yaw", "blendshapes.jawOpen"].map(|name| faces::column(name).unwrap());
        columns.iter().map(Blend::of).collect()
    }

    pub(crate) fn value(face: &Face, place: usize) -> f64 {
        number(&face.cells[place], 0).unwrap_or(f64::NAN)
    }

    #[test]
    fn only_numbers_that_change_over_time_are_blended() {
        for (name, group) in [
            ("bbox_xmin", Some(0)),
            ("box", Some(0)),
            ("pose.matrix", Some(1)),
            ("blendshapes_raw.jawOpen", Some(2)),
            ("landmarks_106", Some(3)),
            ("gaze.left.x", Some(3)),
            ("gaze.left.confidence", None),
            ("landmark_confidence", None),
            ("blendshapes_corrected", None),
            ("age", None),
            ("id", None),
        ] {
            let blend = Blend::of(&faces::column(name).unwrap());
            assert_eq!(blend.map(|it| it.group), group, "{name}");
        }
    }
}
