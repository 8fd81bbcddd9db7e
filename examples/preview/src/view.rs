// SPDX-License-Identifier: MPL-2.0
//! The window: the picture, and text next to it.

use std::error::Error;
use std::rc::Rc;

use winit::dpi::LogicalSize;
use winit::event_loop::ActiveEventLoop;
use winit::platform::x11::WindowAttributesExtX11;
use winit::window::Window;

use crate::controls::keys;
use crate::layout::Layout;
use crate::panel::{Channel, Panel, Row};
use crate::pixels::Light;
use crate::screen::Screen;
use crate::text::Letters;

/// Identifies the program to a desktop, which shows its entry and its icon.
const APPLICATION: &str = "invalid.gst_plugin_facetrack.preview";

/// Name of the program.
pub const PROGRAM: &str = "facetrack-preview";

/// Size of the window at the start, which fits on a laptop's screen.
pub const FIRST_SIZE: [u32; 2] = [1280, 720];

/// What is next to the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Channels,
    Keys,
    /// Only the picture is shown.
    Nothing,
}

/// The text next to the picture.
pub struct Text<'a> {
    /// Heading of the channels.
    pub title: String,
    pub channels: Vec<Channel>,
    /// Index of the selected channel.
    pub selected: usize,
    pub state: Vec<Row>,
    pub message: &'a str,
    pub light: Light,
}

pub struct View {
    window: Rc<Window>,
    screen: Screen,
    letters: Letters,
    pub side: Side,
    pub picture: Option<gst::Sample>,
    /// Numbers of the last displayed frame, and of the last frame reported in a pause.
    pub shown: Option<u64>,
    pub told: Option<u64>,
}

impl View {
    /// Opens the window for a source.
    ///
    /// # Errors
    /// Returns an error if there is no window.
    pub fn open(events: &ActiveEventLoop, source: &str) -> Result<Self, Box<dyn Error>> {
        let [width, height] = FIRST_SIZE;
        let attributes = Window::default_attributes()
            .with_title(format!("{PROGRAM}: {source}"))
            .with_inner_size(LogicalSize::new(width, height));
        // Wayland has the same name.
        let attributes = WindowAttributesExtX11::with_name(attributes, APPLICATION, PROGRAM);
        let window = Rc::new(events.create_window(attributes)?);
        Ok(Self {
            screen: Screen::new(events.owned_display_handle(), window.clone())?,
            letters: Letters::new(window.scale_factor()),
            window,
            side: Side::Channels,
            picture: None,
            shown: None,
            told: None,
        })
    }

    /// Takes over the size of text of the screen.
    pub fn rescale(&mut self) {
        self.letters = Letters::new(self.window.scale_factor());
    }

    /// The parts of the window.
    pub fn layout(&self) -> Layout {
        let size = self.window.inner_size().into();
        match self.side {
            Side::Nothing => Layout::bare(size),
            Side::Channels | Side::Keys => Layout::new(size, &self.letters),
        }
    }

    pub fn request_redraw(&self) {
        self.window.request_redraw();
    }

    /// Shows the picture and the text.
    ///
    /// # Errors
    /// Returns an error if nothing can be drawn.
    pub fn show(&mut self, text: &Text<'_>) -> Result<(), Box<dyn Error>> {
        let layout = self.layout();
        let (letters, picture) = (&mut self.letters, &self.picture);
        let size = self.window.inner_size().into();
        self.screen.show(size, |pixels| {
            if let Some(picture) = picture {
                pixels.copy(picture, layout.picture, text.light)?;
            }
            if let Some(area) = layout.panel {
                let mut panel = Panel::new(pixels, letters, area);
                match self.side {
                    Side::Keys => panel.draw_keys(keys()),
                    _ => panel.draw_channels(&text.title, &text.channels, text.selected),
                }
            }
            if let Some(area) = layout.state {
                let mut panel = Panel::new(pixels, letters, area);
                panel.draw_state(&text.state, text.message);
            }
            Ok(())
        })
    }
}
