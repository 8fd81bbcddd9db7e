// SPDX-License-Identifier: MPL-2.0
//! Options of the element `facetrackoverlay`.

use smart_default::SmartDefault;

use super::field::*;
use super::{Defaults, Row, rows};
use facetrack::overlay::{Layers, Rgb, Style};

facetrack::layers_words!(flags_field, "GstFaceTrackOverlayLayers");

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct OverlaySettings {
    /// Style without the colour.
    pub style: Style,
    pub color: Option<String>,
    #[default(true)]
    pub add_borders: bool,
}

impl Defaults for OverlaySettings {
    const ELEMENT: &'static str = "facetrackoverlay";

    fn check(&self) -> Result<(), String> {
        self.style().map(|_| ())
    }

    /// Rows in the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "layers": style.layers, playing => "Layers to draw; 0 = none, and frames pass unchanged",
        "color": color, playing =>
            "Colour of every face as six hexadecimal digits: red, green and blue; unset = a colour per face",
        "line-width": style.line_width, playing,
            range(0.0, 0.1, "fraction of the frame's shorter side") =>
            "Width of lines",
        "text-size": style.text_size, playing,
            range(0.0, 0.1, "fraction of the frame's shorter side") =>
            "Height of text, at least 8 px; smaller if a panel would be wider than the frame",
        "max-blendshapes": style.blendshapes, playing, range(0.0, 100.0, "") =>
            "Maximum number of blendshapes to draw per face, strongest first",
        "add-borders": add_borders, playing =>
            "Value of add-borders of a videoscale between analysis and overlay",
    ];
}

impl OverlaySettings {
    /// The style with the colour.
    ///
    /// # Errors
    /// Returns a description of an invalid colour.
    pub(crate) fn style(&self) -> Result<Style, String> {
        let color = self.color.as_deref().map(str::parse::<Rgb>);
        let color = color
            .transpose()
            .map_err(|reason| format!("`color`: {reason}"))?;
        let mut style = self.style;
        style.color = color;
        Ok(style)
    }
}
