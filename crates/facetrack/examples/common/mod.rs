// SPDX-License-Identifier: MPL-2.0
//! PNG files, for the examples.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use facetrack::ImageView;
use facetrack::image::ImageError;
use png::{ColorType, Decoder, Transformations};

/// A picture of RGB pixels.
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Picture {
    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut decoder = Decoder::new(BufReader::new(File::open(path)?));
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info()?;
        let mut bytes = vec![0; reader.output_buffer_size().ok_or("it is too large")?];
        let info = reader.next_frame(&mut bytes)?;
        bytes.truncate(info.buffer_size());
        let rgb = |pixel: &[u8]| match info.color_type {
            ColorType::Grayscale | ColorType::GrayscaleAlpha => [pixel[0]; 3],
            _ => [pixel[0], pixel[1], pixel[2]],
        };
        Ok(Self {
            width: info.width as usize,
            height: info.height as usize,
            pixels: bytes
                .chunks_exact(info.color_type.samples())
                .flat_map(rgb)
                .collect(),
        })
    }

    #[allow(dead_code, reason = "not all examples write one")]
    pub fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut encoder =
            png::Encoder::new(File::create(path)?, self.width as u32, self.height as u32);
        encoder.set_color(ColorType::Rgb);
        Ok(encoder.write_header()?.write_image_data(&self.pixels)?)
    }

    pub fn view(&self) -> Result<ImageView<'_>, ImageError> {
        ImageView::rgb(self.width, self.height, &self.pixels)
    }
}
