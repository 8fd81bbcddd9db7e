// SPDX-License-Identifier: MPL-2.0
//! Typed access to a structure that somebody else may have written.

use std::sync::Arc;

use gst::glib;

use super::MetaError;
use facetrack::geometry::Point;
use facetrack::observation::Landmark;

/// Where the analysed picture lies in a frame: where the origin of normalised coordinates is, and the pixels for each unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Scale {
    /// The picture fills a frame of this size.
    pub(super) fn of(width: u32, height: u32) -> Self {
        Self {
            left: 0.0,
            top: 0.0,
            x: f64::from(width.max(1)),
            y: f64::from(height.max(1)),
        }
    }

    /// The point at normalised coordinates, px.
    pub(super) fn point(self, x: f32, y: f32) -> Point {
        Point::new(
            (f64::from(x) * self.x + self.left) as f32,
            (f64::from(y) * self.y + self.top) as f32,
        )
    }

    /// The depth at a normalised one, px.
    fn depth(self, z: f32) -> f32 {
        (f64::from(z) * self.x) as f32
    }
}

/// The fields of a structure.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a gst::StructureRef);

impl<'a> Fields<'a> {
    pub(super) fn uint(self, name: &str) -> Result<u32, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    pub(super) fn uint64(self, name: &str) -> Result<u64, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    pub(super) fn positive(self, name: &str) -> Result<u32, MetaError> {
        match self.uint(name)? {
            0 => Err(malformed(name)),
            value => Ok(value),
        }
    }

    pub(super) fn double(self, name: &str) -> Result<f64, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    pub(super) fn fraction(self, name: &str) -> Result<gst::Fraction, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    pub(super) fn boolean(self, name: &str) -> Result<bool, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    pub(super) fn text(self, name: &str) -> Result<&'a str, MetaError> {
        self.0.get(name).map_err(|_| malformed(name))
    }

    /// A word that `from_name` knows.
    pub(super) fn named<T>(
        self,
        name: &str,
        from_name: fn(&str) -> Option<T>,
    ) -> Result<T, MetaError> {
        from_name(self.text(name)?).ok_or_else(|| malformed(name))
    }

    pub(super) fn structure(self, name: &str) -> Result<Fields<'a>, MetaError> {
        self.0.get(name).map(Fields).map_err(|_| malformed(name))
    }

    /// Groups of `N` floats.
    pub(super) fn floats<const N: usize>(self, name: &str) -> Result<Vec<[f32; N]>, MetaError> {
        let bytes: &glib::Bytes = self.0.get(name).map_err(|_| malformed(name))?;
        let (floats, rest) = bytes.as_chunks::<4>();
        let (groups, single) = floats.as_chunks::<N>();
        if !rest.is_empty() || !single.is_empty() {
            return Err(malformed(name));
        }
        Ok(groups
            .iter()
            .map(|group| group.map(f32::from_le_bytes))
            .collect())
    }

    /// Floats.
    pub(super) fn values(self, name: &str) -> Result<Vec<f32>, MetaError> {
        Ok(self.floats::<1>(name)?.into_flattened())
    }

    /// `N` floats.
    pub(super) fn vector<const N: usize>(self, name: &str) -> Result<[f32; N], MetaError> {
        match self.floats::<N>(name)?[..] {
            [vector] => Ok(vector),
            _ => Err(malformed(name)),
        }
    }

    /// Points, px.
    pub(super) fn points(self, name: &str, scale: Scale) -> Result<Vec<Point>, MetaError> {
        let points = self.floats::<2>(name)?.into_iter();
        Ok(points.map(|[x, y]| scale.point(x, y)).collect())
    }

    /// Points with a depth, px.
    pub(super) fn landmarks(
        self,
        name: &str,
        scale: Scale,
    ) -> Result<impl Iterator<Item = Landmark>, MetaError> {
        let points = self.floats::<3>(name)?.into_iter();
        Ok(points.map(move |[x, y, z]| {
            let Point { x, y } = scale.point(x, y);
            let z = scale.depth(z);
            Landmark { x, y, z }
        }))
    }

    /// What `read` makes of a field; `None` where there is no such field.
    pub(super) fn optional<T>(
        self,
        name: &str,
        read: impl FnOnce(Self, &str) -> Result<T, MetaError>,
    ) -> Result<Option<T>, MetaError> {
        if !self.0.has_field(name) {
            return Ok(None);
        }
        read(self, name).map(Some)
    }
}

pub(super) fn malformed(name: &str) -> MetaError {
    MetaError::Malformed(name.to_owned())
}

/// Floats as a field holds them.
pub(super) fn bytes_from_floats(floats: impl IntoIterator<Item = f32>) -> glib::Bytes {
    let bytes: Vec<u8> = floats.into_iter().flat_map(f32::to_le_bytes).collect();
    glib::Bytes::from_owned(bytes)
}

/// Points as a field holds them: x, y of each, normalised.
pub(super) fn bytes_from_points(points: &[Point], scale: Scale) -> glib::Bytes {
    bytes_from_floats(
        points
            .iter()
            .flat_map(|p| [over(p.x, scale.x), over(p.y, scale.y)]),
    )
}

/// Points with a depth as a field holds them: x, y, z of each, normalised.
pub(super) fn bytes_from_landmarks(points: &[Landmark], scale: Scale) -> glib::Bytes {
    bytes_from_floats(
        points
            .iter()
            .flat_map(|p| [over(p.x, scale.x), over(p.y, scale.y), over(p.z, scale.x)]),
    )
}

/// Names that a field holds, separated by commas.
pub(super) fn names_from(text: &str) -> Arc<[String]> {
    text.split_terminator(',').map(str::to_owned).collect()
}

pub(super) fn over(pixels: f32, scale: f64) -> f32 {
    (f64::from(pixels) / scale) as f32
}
