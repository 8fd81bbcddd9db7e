// SPDX-License-Identifier: MPL-2.0
//! Drawing into the pixels of a window.

use std::error::Error;

use gst_video::VideoFrameExt;

/// Pixels of a window have an unused byte, which must be 0 for softbuffer.
const COLORS: u32 = 0x00ff_ffff;

/// The bits of half of each colour.
const HALF: u32 = 0x007f_7f7f;

/// Bytes of a pixel of BGRx.
const PIXEL: usize = 4;

/// A rectangle of a window, px.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Area {
    pub fn size(self) -> [u32; 2] {
        [self.width, self.height]
    }
}

/// How a picture is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    Full,
    /// Darker, since it is not the present picture.
    Half,
}

/// The pixels of a window: 0, red, green, blue.
pub struct Pixels<'a> {
    data: &'a mut [u32],
    size: [u32; 2],
}

impl<'a> Pixels<'a> {
    /// The rows of a window of this size.
    pub fn new(data: &'a mut [u32], size: [u32; 2]) -> Self {
        Self { data, size }
    }

    /// Fills a rectangle, as far as it is inside.
    pub fn fill(&mut self, area: Area, color: u32) {
        let [width, height] = self.size;
        let (left, right) = (area.left.min(width), (area.left + area.width).min(width));
        for row in area.top..(area.top + area.height).min(height) {
            let start = (row * width) as usize;
            self.data[start + left as usize..start + right as usize].fill(color);
        }
    }

    /// Mixes a share of a colour into a pixel, if it is inside.
    pub fn blend(&mut self, [x, y]: [i32; 2], color: u32, share: f32) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x >= self.size[0] || y >= self.size[1] {
            return;
        }
        let pixel = &mut self.data[(y * self.size[0] + x) as usize];
        let mixed = std::iter::zip(pixel.to_be_bytes(), color.to_be_bytes());
        let mixed = mixed.map(|(old, new)| {
            let (old, new) = (f32::from(old), f32::from(new));
            (old + (new - old) * share).round() as u8
        });
        *pixel = mixed.fold(0, |pixel, byte| pixel << 8 | u32::from(byte));
    }

    /// Copies a BGRx picture to the middle of an area. If it does not fit, for instance while the
    /// window is made smaller, its middle is copied.
    ///
    /// # Errors
    /// Returns an error if it is no picture.
    pub fn copy(
        &mut self,
        picture: &gst::Sample,
        area: Area,
        light: Light,
    ) -> Result<(), Box<dyn Error>> {
        let caps = picture.caps().ok_or("a picture without caps")?;
        let info = gst_video::VideoInfo::from_caps(caps)?;
        let buffer = picture.buffer().ok_or("a picture without pixels")?;
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
        let columns = overlap(frame.width(), area.width);
        let rows = overlap(frame.height(), area.height);
        let stride = frame.plane_stride()[0] as usize;
        let pixels = frame.plane_data(0)?;
        let (left, top) = (area.left as usize, area.top as usize);
        for row in 0..rows.count {
            let from = &pixels[(rows.from + row) * stride + columns.from * PIXEL..];
            let start = (top + rows.to + row) * self.size[0] as usize + left + columns.to;
            let to = &mut self.data[start..start + columns.count];
            for (pixel, to) in from.chunks_exact(PIXEL).zip(to) {
                let pixel = u32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[3]]);
                *to = match light {
                    Light::Full => pixel & COLORS,
                    Light::Half => pixel >> 1 & HALF,
                };
            }
        }
        Ok(())
    }
}

/// The overlap of a picture and an area along one side, if both are centered.
struct Overlap {
    from: usize,
    to: usize,
    count: usize,
}

fn overlap(picture: u32, area: u32) -> Overlap {
    let middle = |outer: u32, inner: u32| (outer.saturating_sub(inner) / 2) as usize;
    Overlap {
        from: middle(picture, area),
        to: middle(area, picture),
        count: picture.min(area) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside_is_left_out() {
        let mut data = [0; 6];
        let mut pixels = Pixels::new(&mut data, [3, 2]);
        let area = |left, top, width, height| Area {
            left,
            top,
            width,
            height,
        };
        pixels.fill(area(2, 1, 9, 9), 0x010203);
        pixels.fill(area(5, 5, 1, 1), 0xffffff);
        for place in [[-1, 0], [0, -1], [3, 0], [0, 2]] {
            pixels.blend(place, 0xffffff, 1.0);
        }
        pixels.blend([1, 0], 0xff8000, 0.5);
        assert_eq!(data, [0, 0x804000, 0, 0, 0, 0x010203]);
    }
}
