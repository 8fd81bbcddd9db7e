// SPDX-License-Identifier: MPL-2.0
//! Options of the element `facetrackblur`.

use smart_default::SmartDefault;

use super::field::*;
use super::{Defaults, Row, rows};
use facetrack::redaction::{Mode, Settings, Shape, Unknown};

facetrack::redaction_mode_words!(enum_field, "GstFaceTrackBlurMode");
facetrack::redaction_shape_words!(enum_field, "GstFaceTrackBlurShape");
facetrack::redaction_unknown_words!(enum_field, "GstFaceTrackBlurUnknown");

/// Settings of the element.
#[derive(Debug, Clone, SmartDefault)]
pub(crate) struct BlurSettings {
    /// Without the ids.
    pub redaction: Settings,
    pub keep: Option<String>,
}

impl Defaults for BlurSettings {
    const ELEMENT: &'static str = "facetrackblur";

    fn check(&self) -> Result<(), String> {
        self.redaction().map(|_| ())
    }

    /// In the order of the documentation.
    const ROWS: &'static [Row<Self>] = rows![
        "mode": redaction.mode, playing => "How faces are covered",
        "shape": redaction.shape, playing => "Shape of the covered areas, before the margin",
        "margin": redaction.margin, playing, range(0.0, 2.0, "fraction of the face's size") =>
            "Width of the margin on each side of a face",
        "cells": redaction.cells, playing, range(1.0, 16.0, "") =>
            "Maximum number of cells across the longer side of a face; fewer cells show less",
        "hold": redaction.hold, playing, range(0.0, 3600.0, "s") =>
            "How long a face is covered after the last frame that has it",
        "keep": keep, playing => "Ids of faces that stay visible, separated by commas; unset = none",
        "unknown": redaction.unknown, playing =>
            "Handling of frames that may show other faces than those that are known",
    ];
}

impl BlurSettings {
    /// The redaction with the ids.
    ///
    /// # Errors
    /// Returns an error if `keep` contains anything other than ids.
    pub(crate) fn redaction(&self) -> Result<Settings, String> {
        let ids = self.keep.iter().flat_map(|ids| ids.split(','));
        let ids = ids.map(|id| {
            id.trim().parse().map_err(|_| {
                format!("`keep`: {id:?} is not the id of a face, so no face stays visible: use numbers separated by commas, such as 1,3")
            })
        });
        Ok(Settings {
            keep: ids.collect::<Result<_, _>>()?,
            ..self.redaction.clone()
        })
    }
}
