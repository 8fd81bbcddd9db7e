// SPDX-License-Identifier: MPL-2.0
//! The contents of a window.

use std::error::Error;
use std::num::NonZeroU32;
use std::rc::Rc;

use softbuffer::{Context, Surface};
use winit::event_loop::OwnedDisplayHandle;
use winit::window::Window;

use crate::pixels::Pixels;

pub struct Screen {
    surface: Surface<OwnedDisplayHandle, Rc<Window>>,
}

impl Screen {
    pub fn new(display: OwnedDisplayHandle, window: Rc<Window>) -> Result<Self, Box<dyn Error>> {
        let context = Context::new(display)?;
        let surface = Surface::new(&context, window)?;
        Ok(Self { surface })
    }

    /// Shows what is drawn on black pixels of a window of this size.
    pub fn show(
        &mut self,
        size: [u32; 2],
        draw: impl FnOnce(&mut Pixels<'_>) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let [Some(width), Some(height)] = size.map(NonZeroU32::new) else {
            return Ok(());
        };
        self.surface.resize(width, height)?;
        self.surface.window().pre_present_notify();
        let mut window = self.surface.buffer_mut()?;
        window.fill(0);
        draw(&mut Pixels::new(&mut window, size))?;
        window.present()?;
        Ok(())
    }
}
