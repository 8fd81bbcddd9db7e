// SPDX-License-Identifier: MPL-2.0
//! The face detector: BlazeFace short range, with an input of 128×128 px and 896 anchors.

use std::path::Path;

use super::anchors;
use crate::engine::network::{Contract, LastRun, Network};
use crate::geometry::{Affine, Point, Rect, RotatedRect};
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::nms::{self, Detection, sigmoid};
use crate::sample::{Border, CHANNELS, Crop, ValueRange};

/// Side of the input, px.
const SIDE: usize = 128;

/// Numbers for an anchor: centre x, y, width, height, then the key points' x, y, all in input
/// pixels and the positions relative to the anchor: `ConfigureTensorsToDetectionsCalculator` in
/// `face_detector_graph.cc`.
const BOX_VALUES: usize = 16;

/// Index of the first key point's value among them.
const KEY_POINT_OFFSET: usize = 4;

/// Scores are clipped to ± this before the sigmoid: `score_clipping_thresh`, ibidem.
const SCORE_CLIP: f32 = 100.0;

/// IoU above which detections are one face: default of `min_suppression_threshold` in
/// `face_detector_graph_options.proto`, which the Face Landmarker does not change (the Face
/// Detector sets 0.3).
const MAX_IOU: f32 = 0.5;

/// Finds faces in whole images.
pub(super) struct Detector {
    network: Network,
    last: LastRun,
    anchors: Vec<Point>,
}

impl Detector {
    /// The detector that runs `model`, which was read from `path`.
    ///
    /// # Errors
    /// Returns an error if the model has other tensors or does not run.
    pub(super) fn new(model: Box<dyn Model>, path: &Path) -> Result<Self, ModelError> {
        let contract = Contract {
            name: "face detector",
            input: vec![1, CHANNELS, SIDE, SIDE],
            outputs: vec![anchors::COUNT * BOX_VALUES, anchors::COUNT],
        };
        Ok(Self {
            network: Network::checked(model, path, contract)?,
            last: LastRun::default(),
            anchors: anchors::centers(),
        })
    }

    /// Faces with a score of at least `min_score`, in image pixels, best first.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn detect(
        &mut self,
        image: &ImageView<'_>,
        min_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        let roi = letterbox(image);
        let crop = Crop::planar(roi, [SIDE; 2], ValueRange::SIGNED, Border::Black);
        if self.network.show(&crop, image).is_err() {
            return Ok(Vec::new());
        }
        let network = &mut self.network;
        let outputs = self.last.output(network, Network::tensor, Network::run)?;
        let detections = decode(outputs.get(0), outputs.get(1), &self.anchors, min_score);
        let image_from_unit = roi.outer_from_unit();
        Ok(nms::weighted(detections, MAX_IOU)
            .into_iter()
            .map(|detection| project(detection, &image_from_unit))
            .collect())
    }
}

/// The square around the whole image: `keep_aspect_ratio` in `face_detector_graph.cc`.
fn letterbox(image: &ImageView<'_>) -> RotatedRect {
    let (width, height) = (image.width() as f32, image.height() as f32);
    RotatedRect::square(Point::new(width / 2.0, height / 2.0), width.max(height))
}

/// Detections with a score of at least `min_score`, in units of the input's sides.
fn decode(boxes: &[f32], logits: &[f32], anchors: &[Point], min_score: f32) -> Vec<Detection> {
    boxes
        .chunks_exact(BOX_VALUES)
        .zip(logits)
        .zip(anchors)
        .filter_map(|((values, logit), anchor)| {
            let score = sigmoid(logit.clamp(-SCORE_CLIP, SCORE_CLIP));
            (score >= min_score).then(|| decode_box(values, score, *anchor))
        })
        .collect()
}

fn decode_box(values: &[f32], score: f32, anchor: Point) -> Detection {
    let side = SIDE as f32;
    let point = |xy: &[f32]| Point::new(xy[0] / side + anchor.x, xy[1] / side + anchor.y);
    let center = point(&values[..2]);
    let (width, height) = (values[2] / side, values[3] / side);
    Detection {
        bbox: Rect::around(center, width, height),
        score,
        key_points: values[KEY_POINT_OFFSET..]
            .chunks_exact(2)
            .map(point)
            .collect(),
    }
}

fn project(mut detection: Detection, image_from_unit: &Affine) -> Detection {
    let bbox = detection.bbox;
    let corner = image_from_unit.apply(Point::new(bbox.x, bbox.y));
    let opposite = image_from_unit.apply(Point::new(bbox.right(), bbox.bottom()));
    let extent = (opposite.x - corner.x, opposite.y - corner.y);
    detection.bbox = Rect::new(corner.x, corner.y, extent.0, extent.1);
    for point in &mut detection.key_points {
        *point = image_from_unit.apply(*point);
    }
    detection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_decoded_around_their_anchors() {
        let anchors = [Point::new(0.25, 0.5), Point::new(0.5, 0.5)];
        let mut boxes = [0.0; 2 * BOX_VALUES];
        boxes[..6].copy_from_slice(&[12.8, -6.4, 64.0, 32.0, -12.8, 25.6]);
        let got = decode(&boxes, &[0.0, -1.0], &anchors, 0.5);
        assert_eq!(got.len(), 1, "a score of just the threshold is enough");
        let Detection {
            bbox,
            score,
            key_points,
        } = &got[0];
        assert_eq!(*score, 0.5);
        assert!(
            bbox.iou(&Rect::new(0.1, 0.325, 0.5, 0.25)) > 0.9999,
            "{bbox:?}"
        );
        assert_eq!(key_points.len(), 6);
        assert!(key_points[0].distance(Point::new(0.15, 0.7)) < 1e-6);
        assert_eq!(key_points[5], anchors[0]);
    }

    #[test]
    fn scores_that_are_no_numbers_are_no_faces() {
        let anchors = [Point::new(0.5, 0.5); 3];
        let boxes = [f32::NAN; 3 * BOX_VALUES];
        let logits = [f32::NAN, f32::NEG_INFINITY, f32::INFINITY];
        let got = decode(&boxes, &logits, &anchors, 0.1);
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].score, 1.0);
        assert!(nms::weighted(got, MAX_IOU).is_empty());
    }

    #[test]
    fn the_letterbox_keeps_the_middle() {
        let pixels = [0; 40 * 20 * 3];
        let wide = ImageView::rgb(40, 20, &pixels).unwrap();
        let image_from_unit = letterbox(&wide).outer_from_unit();
        for (unit, image) in [
            ((0.0, 0.0), (0.0, -10.0)),
            ((0.5, 0.5), (20.0, 10.0)),
            ((1.0, 0.75), (40.0, 20.0)),
        ] {
            let got = image_from_unit.apply(Point::new(unit.0, unit.1));
            assert!(got.distance(Point::new(image.0, image.1)) < 1e-4);
        }
    }
}
