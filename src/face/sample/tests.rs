// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::face::geometry::{Point, Size};

/// A region that shows a `width`×`height` image one to one.
fn whole(width: usize, height: usize) -> Crop {
    Crop {
        roi: RotatedRect {
            center: Point::new(width as f32 / 2.0, height as f32 / 2.0),
            size: Size::new(width as f32, height as f32),
            rotation: 0.0,
        },
        width,
        height,
        range: ValueRange::BYTE,
        border: Border::Replicate,
        layout: Layout::Interleaved,
    }
}

fn sampled(crop: &Crop, image: &ImageView) -> Vec<f32> {
    let mut tensor = vec![f32::NAN; crop.len()];
    crop.sample(image, &mut tensor).expect("a good region");
    tensor
}

#[test]
fn one_to_one_changes_nothing() {
    for (width, height) in [(1, 1), (3, 5), (1, 7), (9, 1), (131, 3)] {
        let data: Vec<u8> = (0..width * height * 3).map(|i| (i * 37) as u8).collect();
        let image = ImageView::rgb(width, height, &data).expect("enough bytes");
        let want: Vec<f32> = data.iter().map(|v| f32::from(*v)).collect();
        assert_eq!(
            sampled(&whole(width, height), &image),
            want,
            "{width}×{height}"
        );
    }
}
