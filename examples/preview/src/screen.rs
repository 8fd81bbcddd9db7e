// SPDX-License-Identifier: MPL-2.0
//! Conversion of the pixels of a picture to pixels of a window.

use std::error::Error;
use std::num::NonZeroU32;
use std::rc::Rc;

use gst_video::VideoFrameExt;
use softbuffer::{Context, Surface};
use winit::dpi::PhysicalSize;
use winit::event_loop::OwnedDisplayHandle;
use winit::window::Window;

/// Pixels of a window have an unused byte, which must be 0 for softbuffer.
const COLORS: u32 = 0x00ff_ffff;

/// Bytes of a pixel of BGRx.
const PIXEL: usize = 4;

/// The contents of a window.
pub struct Screen {
    surface: Surface<OwnedDisplayHandle, Rc<Window>>,
}

impl Screen {
    pub fn new(display: OwnedDisplayHandle, window: Rc<Window>) -> Result<Self, Box<dyn Error>> {
        let context = Context::new(display)?;
        let surface = Surface::new(&context, window)?;
        Ok(Self { surface })
    }

    /// Shows a BGRx picture in the middle of a window of this size, with black around it; only
    /// black without a picture.
    pub fn show(
        &mut self,
        picture: Option<&gst::Sample>,
        size: PhysicalSize<u32>,
    ) -> Result<(), Box<dyn Error>> {
        let [Some(width), Some(height)] = [size.width, size.height].map(NonZeroU32::new) else {
            return Ok(());
        };
        self.surface.resize(width, height)?;
        self.surface.window().pre_present_notify();
        let mut window = self.surface.buffer_mut()?;
        window.fill(0);
        if let Some(picture) = picture {
            blit(picture, &mut window, [size.width, size.height])?;
        }
        window.present()?;
        Ok(())
    }
}

/// Copies a picture to the middle of a window. If it does not fit, for instance while the window is
/// made smaller, its middle is copied.
fn blit(picture: &gst::Sample, window: &mut [u32], size: [u32; 2]) -> Result<(), Box<dyn Error>> {
    let caps = picture.caps().ok_or("a picture without caps")?;
    let info = gst_video::VideoInfo::from_caps(caps)?;
    let buffer = picture.buffer().ok_or("a picture without pixels")?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
    let (columns, rows) = (
        overlap(frame.width(), size[0]),
        overlap(frame.height(), size[1]),
    );
    let stride = frame.plane_stride()[0] as usize;
    let pixels = frame.plane_data(0)?;
    for row in 0..rows.count {
        let from = &pixels[(rows.from + row) * stride + columns.from * PIXEL..];
        let to = &mut window[(rows.to + row) * size[0] as usize + columns.to..];
        let pairs = from.chunks_exact(PIXEL).zip(to).take(columns.count);
        for (pixel, to) in pairs {
            *to = u32::from_le_bytes([pixel[0], pixel[1], pixel[2], pixel[3]]) & COLORS;
        }
    }
    Ok(())
}

/// The overlap of a picture and a window along one side, if both are centered.
struct Overlap {
    from: usize,
    to: usize,
    count: usize,
}

fn overlap(picture: u32, window: u32) -> Overlap {
    let middle = |outer: u32, inner: u32| (outer.saturating_sub(inner) / 2) as usize;
    Overlap {
        from: middle(picture, window),
        to: middle(window, picture),
        count: picture.min(window) as usize,
    }
}
