// SPDX-License-Identifier: MPL-2.0
//! A desktop of its own for programs with windows: an X server without a screen, its windows'
//! pixels, and its keyboard.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, ImageFormat,
    InputFocus, KEY_PRESS_EVENT, KEY_RELEASE_EVENT, MapState, Window as WindowId,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use crate::common::skip_for_want_of;

const SCREEN: &str = "1280x1024x24";

/// Keysyms of keys without a character.
pub const SHIFT: u32 = 0xffe1;
pub const HOME: u32 = 0xff50;
pub const LEFT: u32 = 0xff51;
pub const RIGHT: u32 = 0xff53;
pub const END: u32 = 0xff57;

/// X's name for the time at which something happens anyway.
const NOW: u32 = x11rb::CURRENT_TIME;

/// An X server; it ends with the value.
pub struct Desktop {
    server: Child,
    pub display: String,
    connection: RustConnection,
    root: WindowId,
}

impl Desktop {
    /// One on a display that is free; `None`, said aloud, where Xvfb is not installed.
    pub fn start() -> Option<Self> {
        let server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", SCREEN])
            .args(["-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut server) = server else {
            skip_for_want_of("Xvfb", "xvfb");
            return None;
        };
        let mut number = String::new();
        let output = server.stdout.as_mut().expect("it is piped");
        let told = BufReader::new(output).read_line(&mut number);
        told.expect("Xvfb tells its display");
        let display = format!(":{}", number.trim());
        let (connection, screen) = x11rb::connect(Some(&display)).expect("the server listens");
        let root = connection.setup().roots[screen].root;
        Some(Self {
            server,
            display,
            connection,
            root,
        })
    }

    /// The window that is shown, if there is one.
    pub fn window(&self) -> Option<Window<'_>> {
        let x = &self.connection;
        let tree = x.query_tree(self.root).ok()?.reply().ok()?;
        let is_shown = |id: &WindowId| {
            let attributes = x.get_window_attributes(*id).map(|it| it.reply());
            matches!(attributes, Ok(Ok(it)) if it.map_state == MapState::VIEWABLE)
        };
        let id = tree.children.into_iter().find(is_shown)?;
        Some(Window { desktop: self, id })
    }

    /// All at once, so that nothing comes in between, such as a repetition of a key that is down.
    fn send(&self, inputs: &[Input]) {
        let x = &self.connection;
        let key_event = |event, key| x.xtest_fake_input(event, key, NOW, self.root, 0, 0, 0);
        let requests = inputs.iter().map(|input| match *input {
            Input::Focus(window) => x.set_input_focus(InputFocus::PARENT, window, NOW),
            Input::Down(key) => key_event(KEY_PRESS_EVENT, key),
            Input::Up(key) => key_event(KEY_RELEASE_EVENT, key),
        });
        let requests: Vec<_> = requests.map(|it| it.expect("a request")).collect();
        for request in requests {
            request.check().expect("a window and a keyboard");
        }
    }

    /// The key of a keysym. Those of letters and digits of ASCII, and of the space bar, are their
    /// codes.
    fn key(&self, keysym: impl Into<u32>) -> u8 {
        let keysym = keysym.into();
        let setup = self.connection.setup();
        let (first, last) = (setup.min_keycode, setup.max_keycode);
        let mapping = self
            .connection
            .get_keyboard_mapping(first, last - first + 1);
        let mapping = mapping.expect("a request").reply().expect("a keyboard");
        let per_key = usize::from(mapping.keysyms_per_keycode);
        let mut keys = mapping.keysyms.chunks(per_key);
        let index = keys.position(|keysyms| keysyms.first() == Some(&keysym));
        first + index.expect("the keyboard has it") as u8
    }
}

/// Input of a user at the desktop.
enum Input {
    /// Turns to a window, or to none.
    Focus(WindowId),
    Down(u8),
    Up(u8),
}

impl Drop for Desktop {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A window of another program.
pub struct Window<'a> {
    desktop: &'a Desktop,
    id: WindowId,
}

impl Window<'_> {
    /// Presses the key of a character, or of another keysym, in this window.
    pub fn press(&self, keysym: impl Into<u32>) {
        let key = self.desktop.key(keysym);
        let input = [Input::Focus(self.id), Input::Down(key), Input::Up(key)];
        self.desktop.send(&input);
    }

    /// Presses a key while Shift is down.
    pub fn press_with_shift(&self, keysym: impl Into<u32>) {
        let [shift, key] = [self.desktop.key(SHIFT), self.desktop.key(keysym)];
        self.desktop.send(&[
            Input::Focus(self.id),
            Input::Down(shift),
            Input::Down(key),
            Input::Up(key),
            Input::Up(shift),
        ]);
    }

    /// Presses a key that stays down, and soon repeats itself.
    pub fn hold(&self, letter: char) {
        let key = self.desktop.key(letter);
        self.desktop
            .send(&[Input::Focus(self.id), Input::Down(key)]);
    }

    /// Presses a key while another is down that went down before this window had the keyboard, and
    /// stays down.
    pub fn press_while_held(&self, letter: char, held: char) {
        let [key, held] = [letter, held].map(|letter| self.desktop.key(letter));
        self.desktop.send(&[
            Input::Focus(x11rb::NONE),
            Input::Down(held),
            Input::Focus(self.id),
            Input::Down(key),
            Input::Up(key),
        ]);
    }

    pub fn release(&self, held: char) {
        self.desktop.send(&[Input::Up(self.desktop.key(held))]);
    }

    pub fn resize(&self, width: u32, height: u32) {
        let size = ConfigureWindowAux::new().width(width).height(height);
        let resized = self.desktop.connection.configure_window(self.id, &size);
        resized.expect("a request").check().expect("a window");
    }

    /// Asks the program to close it, as the frame of a window does.
    pub fn close(&self) {
        let x = &self.desktop.connection;
        let [protocols, delete] = ["WM_PROTOCOLS", "WM_DELETE_WINDOW"].map(|name| {
            let atom = x.intern_atom(false, name.as_bytes()).expect("a request");
            atom.reply().expect("an atom").atom
        });
        let event = ClientMessageEvent::new(32, self.id, protocols, [delete, NOW, 0, 0, 0]);
        let sent = x.send_event(false, self.id, EventMask::NO_EVENT, event);
        sent.expect("a request").check().expect("a window");
    }

    pub fn title(&self) -> String {
        let x = &self.desktop.connection;
        let name = x.intern_atom(false, b"_NET_WM_NAME").expect("a request");
        let name = name.reply().expect("an atom").atom;
        let title = x.get_property(false, self.id, name, AtomEnum::ANY, 0, 1024);
        let title = title.expect("a request").reply().expect("a property");
        String::from_utf8(title.value).expect("UTF-8")
    }

    /// The contents of the window; `None` while it is being resized.
    pub fn shot(&self) -> Option<Shot> {
        let x = &self.desktop.connection;
        let size = x.get_geometry(self.id).ok()?.reply().ok()?;
        let (width, height) = (size.width, size.height);
        let image = x.get_image(ImageFormat::Z_PIXMAP, self.id, 0, 0, width, height, !0);
        let data = image.ok()?.reply().ok()?.data;
        Some(Shot {
            width: width.into(),
            height: height.into(),
            data,
        })
    }
}

/// A screenshot.
#[derive(Clone, PartialEq)]
pub struct Shot {
    pub width: usize,
    pub height: usize,
    /// Rows of blue, green, red, nothing.
    data: Vec<u8>,
}

impl Shot {
    /// Red, green and blue at a place; `None` outside.
    pub fn at(&self, [x, y]: [f32; 2]) -> Option<[u8; 3]> {
        let inside = x >= 0.0 && y >= 0.0 && x < self.width as f32 && y < self.height as f32;
        let pixel = inside.then(|| (y as usize * self.width + x as usize) * 4)?;
        let bytes = self.data.get(pixel..pixel + 3)?;
        Some([bytes[2], bytes[1], bytes[0]])
    }

    /// The part of it at the right of a column and below a row.
    pub fn part(&self, column: usize, row: usize) -> Self {
        let rows = self.data.chunks_exact(self.width * 4).skip(row);
        let data = rows.flat_map(|pixels| &pixels[column * 4..]);
        Self {
            width: self.width - column,
            height: self.height - row,
            data: data.copied().collect(),
        }
    }

    /// Red, green and blue of each pixel.
    pub fn pixels(&self) -> impl Iterator<Item = [u8; 3]> {
        let pixels = self.data.chunks_exact(4);
        pixels.map(|bytes| [bytes[2], bytes[1], bytes[0]])
    }

    /// Keeps it for people, where Cargo keeps what tests leave.
    pub fn save(&self, name: &str) -> String {
        let path = format!("{}/{name}.png", env!("CARGO_TARGET_TMPDIR"));
        let file = std::fs::File::create(&path).expect("a file");
        let mut png = png::Encoder::new(file, self.width as u32, self.height as u32);
        png.set_color(png::ColorType::Rgb);
        let colors: Vec<u8> = self.pixels().flatten().collect();
        let mut png = png.write_header().expect("a header");
        png.write_image_data(&colors).expect("pixels");
        path
    }
}
