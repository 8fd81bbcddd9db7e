// SPDX-License-Identifier: MPL-2.0
//! The event loop of the display.

use std::env;

use winit::event_loop::EventLoop;

use crate::pipelines::Event;

/// Variables that name a display.
const VARIABLES: [&str; 3] = ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"];

/// Connects to the display.
///
/// # Errors
/// Returns a sentence if there is none.
pub fn connect() -> Result<EventLoop<Event>, String> {
    let set = VARIABLES.iter().filter_map(|name| {
        let value = env::var(name).ok().filter(|value| !value.is_empty())?;
        Some(format!("{name}={value}"))
    });
    let set: Vec<_> = set.collect();
    if set.is_empty() {
        return Err(
            "there is no display for the window. Start it in a desktop session, or set DISPLAY or WAYLAND_DISPLAY"
                .to_owned(),
        );
    }
    EventLoop::with_user_event().build().map_err(|_| {
        format!(
            "the display of the window does not answer ({}). Start it in a desktop session",
            set.join(", ")
        )
    })
}
