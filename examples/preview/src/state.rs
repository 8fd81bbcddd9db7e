// SPDX-License-Identifier: MPL-2.0
//! The state of the program as text for the window.

use facetrack::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use gstfacetrack::meta::FaceTrackMeta;

use crate::panel::{Channel, Row, Tone};
use crate::pixels::Light;
use crate::tracking::Analysis;
use crate::view::Text;
use crate::window::Preview;

/// The state after a live source was lost.
pub const WAITING: &str = "waiting for the camera…";

/// The text next to the picture.
pub fn text(preview: &Preview) -> Text<'_> {
    let face = face(preview);
    let title = face.as_ref().map(|(id, _)| format!("Face {id}"));
    Text {
        title: title.unwrap_or_else(|| "No face".to_owned()),
        channels: channels(preview, face.as_ref().and_then(|(_, it)| it.as_ref())),
        // The first channel of MediaPipe is not a blendshape.
        selected: preview.faders.selected() - 1,
        state: vec![
            activity(preview),
            analysis(preview),
            output("Record", preview.outputs.record()),
            output("Send", preview.outputs.receiver()),
        ],
        message: preview.notice.text(),
        light: if preview.is_lost {
            Light::Half
        } else {
            Light::Full
        },
    }
}

/// The face with the least id in the newest frame: it is the one that has been there longest.
fn face(preview: &Preview) -> Option<(u32, Option<Blendshapes>)> {
    let frame = preview.drawing.frame().filter(|_| !preview.is_lost)?;
    let report = FaceTrackMeta::from_buffer(frame.sample.buffer()?)?;
    let face = report.faces.into_iter().min_by_key(|face| face.id)?;
    Some((face.id, face.face.blendshapes))
}

fn channels(preview: &Preview, blendshapes: Option<&Blendshapes>) -> Vec<Channel> {
    let channel = |name: &&'static str| Channel {
        name,
        value: blendshapes.and_then(|it| it.get(name)),
        rest: preview.profile.rest(&preview.engine, name),
        gain: preview.faders.gains.get(name),
    };
    MEDIAPIPE_CHANNELS.iter().skip(1).map(channel).collect()
}

fn activity(preview: &Preview) -> Row {
    let (text, tone) = match (preview.is_lost, preview.tracking.is_paused()) {
        (true, _) => (WAITING, Tone::Alert),
        (false, true) => ("paused", Tone::Alert),
        (false, false) => ("playing", Tone::Normal),
    };
    let is_mirrored = preview
        .tracking
        .analysis()
        .is_some_and(Analysis::is_mirrored);
    let mirrored = if is_mirrored { ", mirrored" } else { "" };
    ("State", format!("{text}{mirrored}"), tone)
}

/// The engine with its speed, or the record whose faces are shown.
fn analysis(preview: &Preview) -> Row {
    if let Some(record) = &preview.record {
        return ("Faces", record.path.display().to_string(), Tone::Normal);
    }
    let analysis = preview.tracking.analysis();
    let device = analysis.map(Analysis::device).unwrap_or_default();
    let mut text = format!("{} on {device}", preview.engine);
    if let Some(figures) = preview.figures {
        let delay = if preview.tracking.stage.is_live() {
            "old"
        } else {
            "late"
        };
        let age = figures.age.as_millis();
        text += &format!(", {:.1} fps, {age} ms {delay}", figures.fps);
    }
    if let Some(cost) = analysis.and_then(Analysis::cost) {
        text += &format!(", {:.1} ms tracking", cost.as_secs_f64() * 1e3);
    }
    ("Engine", text, Tone::Normal)
}

fn output(name: &'static str, target: Option<String>) -> Row {
    match target {
        Some(target) => (name, target, Tone::Alert),
        None => (name, "off".to_owned(), Tone::Dim),
    }
}
