// SPDX-License-Identifier: MPL-2.0
//! Typed access to a structure that another program may have written.

use std::sync::Arc;

use gst::glib;
use gst::glib::value::FromValue;
use serde::Deserialize;

use super::MetaError;
use facetrack::geometry::Point;
use facetrack::observation::{Landmark, Observation};
use facetrack::record;

/// Position and size of the analysed picture in a frame: the origin of normalised coordinates, and
/// the pixels for each unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Scale {
    /// Creates the scale of a picture that fills a frame of this size.
    pub(super) fn of(width: u32, height: u32) -> Self {
        let [x, y] = [width, height].map(|side| f64::from(side.max(1)));
        let [left, top] = [0.0; 2];
        Self { left, top, x, y }
    }

    /// A point divided by the size of the frame.
    pub(super) fn normalised(self, point: Point) -> [f32; 2] {
        [over(point.x, self.x), over(point.y, self.y)]
    }

    /// Converts every normalised position to pixels.
    pub(super) fn place(self, face: &mut Observation) {
        face.for_each_point(|x, y, z| {
            *x = (f64::from(*x) * self.x + self.left) as f32;
            *y = (f64::from(*y) * self.y + self.top) as f32;
            *z = (f64::from(*z) * self.x) as f32;
        });
    }
}

/// The fields of a structure, with the position of the analysed picture in the frame for which they
/// are read.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) structure: &'a gst::StructureRef,
    pub(super) scale: Scale,
}

impl<'a> Fields<'a> {
    pub(super) fn get<T: FromValue<'a>>(self, name: &str) -> Result<T, MetaError> {
        self.structure.get(name).map_err(|_| malformed(name))
    }

    /// A length across the frame, px.
    pub(super) fn across(self, name: &str) -> Result<f32, MetaError> {
        Ok((self.get::<f64>(name)? * self.scale.x) as f32)
    }

    pub(super) fn positive(self, name: &str) -> Result<u32, MetaError> {
        let value = self.get(name)?;
        (value > 0).then_some(value).ok_or_else(|| malformed(name))
    }

    /// A name of a value.
    pub(super) fn named<T: for<'b> Deserialize<'b>>(self, name: &str) -> Result<T, MetaError> {
        record::from_name(self.get(name)?).ok_or_else(|| malformed(name))
    }

    pub(super) fn structure(self, name: &str) -> Result<Self, MetaError> {
        let structure = self.get(name)?;
        Ok(Self { structure, ..self })
    }

    /// Groups of `N` floats.
    pub(super) fn floats<const N: usize>(self, name: &str) -> Result<Vec<[f32; N]>, MetaError> {
        let bytes: &glib::Bytes = self.get(name)?;
        let (floats, rest) = bytes.as_chunks::<4>();
        let (groups, single) = floats.as_chunks::<N>();
        if !rest.is_empty() || !single.is_empty() {
            return Err(malformed(name));
        }
        let groups = groups.iter().map(|group| group.map(f32::from_le_bytes));
        Ok(groups.collect())
    }

    pub(super) fn values(self, name: &str) -> Result<Vec<f32>, MetaError> {
        Ok(self.floats::<1>(name)?.into_flattened())
    }

    /// `M` groups of `N` floats.
    pub(super) fn matrix<const N: usize, const M: usize>(
        self,
        name: &str,
    ) -> Result<[[f32; N]; M], MetaError> {
        let groups = self.floats(name)?.try_into();
        groups.map_err(|_| malformed(name))
    }

    /// `N` floats.
    pub(super) fn vector<const N: usize>(self, name: &str) -> Result<[f32; N], MetaError> {
        let [vector] = self.matrix(name)?;
        Ok(vector)
    }

    pub(super) fn points(self, name: &str) -> Result<Vec<Point>, MetaError> {
        let points = self.floats::<2>(name)?.into_iter();
        Ok(points.map(|[x, y]| Point::new(x, y)).collect())
    }

    /// Points with a depth.
    pub(super) fn landmarks<T: FromIterator<Landmark>>(self, name: &str) -> Result<T, MetaError> {
        let points = self.floats::<3>(name)?.into_iter();
        Ok(points.map(|[x, y, z]| Landmark { x, y, z }).collect())
    }

    /// Values and their names, which are separated by commas.
    pub(super) fn named_values(
        self,
        names: &str,
        values: &str,
    ) -> Result<(Arc<[String]>, Vec<f32>), MetaError> {
        let text: &str = self.get(names)?;
        let names: Arc<[String]> = text.split_terminator(',').map(str::to_owned).collect();
        let floats = self.values(values)?;
        if names.len() != floats.len() {
            return Err(malformed(values));
        }
        Ok((names, floats))
    }

    /// The result of `read` for a field; `None` if the structure lacks it.
    pub(super) fn optional<T>(
        self,
        name: &str,
        read: impl FnOnce(Self, &str) -> Result<T, MetaError>,
    ) -> Result<Option<T>, MetaError> {
        let has_field = self.structure.has_field(name);
        has_field.then(|| read(self, name)).transpose()
    }
}

pub(super) fn malformed(name: &str) -> MetaError {
    MetaError::Malformed(name.to_owned())
}

/// Converts floats to the bytes of a field.
pub(super) fn bytes(floats: &[f32]) -> glib::Bytes {
    bytes_of_groups(floats, |float| [*float])
}

/// Converts points to the bytes of a field: x, y of each, normalised.
pub(super) fn bytes_of_points(points: &[Point], scale: Scale) -> glib::Bytes {
    bytes_of_groups(points, |point| scale.normalised(*point))
}

/// Converts points with a depth to the bytes of a field: x, y, z of each, normalised.
pub(super) fn bytes_of_landmarks(points: &[Landmark], scale: Scale) -> glib::Bytes {
    bytes_of_groups(points, |p| {
        [over(p.x, scale.x), over(p.y, scale.y), over(p.z, scale.x)]
    })
}

fn bytes_of_groups<T, const N: usize>(items: &[T], floats: impl Fn(&T) -> [f32; N]) -> glib::Bytes {
    let bytes = items.iter().flat_map(floats).flat_map(f32::to_le_bytes);
    glib::Bytes::from_owned(bytes.collect::<Vec<u8>>())
}

pub(super) fn over(pixels: f32, scale: f64) -> f32 {
    (f64::from(pixels) / scale) as f32
}
