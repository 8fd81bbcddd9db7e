// SPDX-License-Identifier: MPL-2.0
//! Private readers, for the targets in `fuzz/`.

use crate::engine::mediapipe::geometry::FaceGeometry;
use crate::engine::opencv::haar::detector::Detector;
use crate::engine::opencv::haar::{Search, xml};
use crate::engine::openseeface::faces::calibration;
use crate::observation::{HeadPose, Landmarks};

pub use crate::model::graph::outline::OnnxOutline;
pub use crate::model::graph::{Attribute, Graph, Node, Reason, Value, passes};

/// Reads a calibration of OpenSeeFace, and writes it again.
pub fn calibration(text: &str) -> Result<String, String> {
    let faces = calibration::read(text).map_err(|error| error.to_string())?;
    Ok(calibration::write(faces.iter()))
}

/// Reads MediaPipe's canonical face, and fits it to `landmarks` in a frame of this size.
pub fn head_pose(
    metadata: &[u8],
    landmarks: &Landmarks,
    frame_size: (usize, usize),
) -> Result<Option<HeadPose>, String> {
    let geometry = FaceGeometry::from_metadata(metadata)?;
    Ok(geometry.pose(landmarks, frame_size))
}

/// Reads a cascade, and finds faces in a gray frame of this width and height: their left and top
/// edges, widths and heights.
pub fn cascade(xml: &[u8], luma: &[u8], frame: [usize; 2]) -> Result<Vec<[i32; 4]>, String> {
    let mut detector = Detector::new(xml::read(xml)?, Search::default());
    if !detector.prepare(frame) {
        return Ok(Vec::new());
    }
    let faces = detector.detect(luma).into_iter();
    Ok(faces.map(|f| [f.x, f.y, f.width, f.height]).collect())
}
