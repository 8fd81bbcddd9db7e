// SPDX-License-Identifier: MPL-2.0
//! The options of the element `facetrackoverlay`.

use super::{Access, OptionSpec};
use crate::overlay::{Layers, Rgb};

/// Every option of `facetrackoverlay`, in the order in which they are shown.
pub const FACETRACKOVERLAY: &[OptionSpec] = &[
    OptionSpec::flags(
        "layers",
        Layers::CHOICES,
        "boxes+labels+contours+key-points+pose+gaze+blendshapes+info",
        "What is drawn; 0 = nothing, frames pass untouched",
    )
    .access(Access::Playing),
    OptionSpec::checked_text(
        "color",
        None,
        |text| text.parse::<Rgb>().map(|_| ()),
        "Color of every face as six hexadecimal digits, red, green and blue; unset = one of seven for each face, told apart whatever colors one sees",
    )
    .access(Access::Playing),
    OptionSpec::float("line-width", (0.0, 0.1, 0.0025), "Width of lines")
        .unit("of the frame's shorter side")
        .access(Access::Playing),
    OptionSpec::float(
        "text-size",
        (0.0, 0.1, 0.022),
        "Height of text, at least 8 px; less where a panel would be wider than the frame",
    )
    .unit("of the frame's shorter side")
    .access(Access::Playing),
    OptionSpec::int(
        "max-blendshapes",
        (0, 100, 8),
        "Greatest number of blendshapes that are drawn of a face; the strongest are",
    )
    .access(Access::Playing),
    OptionSpec::bool(
        "add-borders",
        true,
        "How a videoscale between analysis and drawing is set, which no metadata tells: it keeps the picture's shape, with borders where the frame has another, or stretches the picture",
    )
    .access(Access::Playing),
];
