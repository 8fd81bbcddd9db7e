// SPDX-License-Identifier: MPL-2.0
//! The engine opencv-haar for another program: frames in, boxes and milliseconds out.
//!
//! `benches/against_opencv_haar.py` talks to it. A frame is a line of width, height, scale factor, least neighbours, least
//! and greatest size, followed by its bytes, BGR. The answer is a line of JSON.

use std::io::{self, BufRead, Read, Write};
use std::time::{Duration, Instant};

use gstfacetrack::face::engine::opencv::haar::Search;
use gstfacetrack::face::engine::{Engine, EngineConfig, EngineKind, Frame, load};
use gstfacetrack::face::image::{Colorimetry, ImageView, PixelFormat, Plane};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = std::env::args().skip(1).find(|arg| arg != "--bench");
    let mut input = io::stdin().lock();
    let mut engine: Option<(Search, Box<dyn Engine>)> = None;
    let (mut line, mut pixels) = (String::new(), Vec::new());
    while input.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [width, height, scale_factor, neighbors, least, most] = words[..] else {
            return Err(format!("not 6 numbers: {line}").into());
        };
        let (width, height): (usize, usize) = (width.parse()?, height.parse()?);
        let search = Search {
            scale_factor: scale_factor.parse()?,
            min_neighbors: neighbors.parse()?,
            min_size: least.parse()?,
            max_size: Some(most.parse()?).filter(|most| *most > 0),
        };
        line.clear();
        pixels.resize(width * height * 3, 0);
        input.read_exact(&mut pixels)?;
        let plane = Plane {
            data: &pixels,
            stride: width * 3,
        };
        let colorimetry = Colorimetry::default();
        let image = ImageView::new(PixelFormat::Bgr, width, height, colorimetry, &[plane])?;
        let mut current = match engine.take().filter(|(of, _)| *of == search) {
            Some((_, engine)) => engine,
            None => load(
                EngineKind::OpenCvHaar,
                &EngineConfig {
                    model: model.clone().map(Into::into),
                    haar: search,
                    ..EngineConfig::default()
                },
            )?,
        };
        let time = Duration::ZERO;
        let start = Instant::now();
        let faces = current.process(&Frame { image, time })?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        engine = Some((search, current));
        let boxes: Vec<[f32; 4]> = faces
            .iter()
            .map(|face| face.bbox)
            .map(|b| [b.x, b.y, b.width, b.height])
            .collect();
        println!("{}", serde_json::json!({ "ms": ms, "boxes": boxes }));
        io::stdout().flush()?;
    }
    Ok(())
}
