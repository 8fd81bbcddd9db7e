// SPDX-License-Identifier: MPL-2.0
//! What the plugin's elements have in common.

use gst::prelude::*;

/// Who wrote them.
pub(crate) const AUTHOR: &str = "The gst-plugin-facetrack contributors";

/// Raw video wherever it is: for elements that read metadata alone.
pub(crate) fn any_video() -> gst::Caps {
    gst::Caps::builder("video/x-raw").any_features().build()
}

/// The sink pad of a sink.
pub(crate) fn sink_templates(caps: &gst::Caps) -> Vec<gst::PadTemplate> {
    vec![template("sink", gst::PadDirection::Sink, caps)]
}

/// The two pads of a filter that leaves frames in their format.
pub(crate) fn filter_templates(caps: &gst::Caps) -> Vec<gst::PadTemplate> {
    vec![
        template("sink", gst::PadDirection::Sink, caps),
        template("src", gst::PadDirection::Src, caps),
    ]
}

fn template(name: &str, direction: gst::PadDirection, caps: &gst::Caps) -> gst::PadTemplate {
    gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
        .expect("fixed names and caps make a template")
}

/// Caps that cannot be used but may be offered: frames outside system memory, and compressed video.
fn foreign_video() -> gst::Caps {
    const COMPRESSED: [&str; 20] = [
        "video/x-h264",
        "video/x-h265",
        "video/x-h266",
        "video/x-vp8",
        "video/x-vp9",
        "video/x-av1",
        "video/x-theora",
        "video/x-prores",
        "video/x-dnxhd",
        "video/x-dv",
        "video/x-ffv",
        "video/x-huffyuv",
        "video/x-wmv",
        "video/x-bayer",
        "video/mpeg",
        "image/jpeg",
        "image/png",
        "image/webp",
        "image/tiff",
        "image/x-jpc",
    ];
    let compressed = COMPRESSED
        .iter()
        .map(|name| gst::Structure::new_empty(*name));
    let mut caps = any_video();
    caps.merge(compressed.collect());
    caps
}

/// Answers a CAPS query on a pad of a started element that has no peer yet with everything that
/// might be linked to it, caps that will be refused among them. A pad that appears late, as those of
/// `decodebin` do, is linked by nobody who reports a failure: so it can be linked, and what does not
/// fit is an error of this element, which names the caps and the remedy. Once the pad is linked, its
/// peer learns which caps are accepted.
pub(crate) fn answer_before_late_link(pad: &gst::Pad, query: &mut gst::QueryRef) -> bool {
    let is_started = pad
        .parent_element()
        .is_some_and(|element| element.current_state() >= gst::State::Paused);
    if !is_started || pad.is_linked() {
        return false;
    }
    let gst::QueryViewMut::Caps(query) = query.view_mut() else {
        return false;
    };
    let mut caps = pad.pad_template_caps();
    caps.merge(foreign_video());
    let caps = match query.filter() {
        Some(filter) => filter.intersect_with_mode(&caps, gst::CapsIntersectMode::First),
        None => caps,
    };
    query.set_result(&caps);
    true
}

/// Posts an error that names caps which the pad's template rejects. They are refused before the
/// element sees them, and the "not negotiated" of an element upstream does not say why.
pub(crate) fn report_refused_caps(pad: &gst::Pad) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, |pad, info| {
        if let Some(gst::EventView::Caps(event)) = info.event().map(|event| event.view())
            && !pad.pad_template_caps().can_intersect(event.caps())
        {
            report_refusal(pad, event.caps());
        }
        gst::PadProbeReturn::Ok
    });
}

fn report_refusal(pad: &gst::Pad, caps: &gst::CapsRef) {
    let Some(element) = pad.parent_element() else {
        return;
    };
    let remedy = remedy(caps);
    gst::element_error!(
        element,
        gst::StreamError::Format,
        (
            "{} cannot read {caps}: put {remedy} before it",
            element.name()
        )
    );
}

/// What makes raw video in system memory of `caps`.
fn remedy(caps: &gst::CapsRef) -> &'static str {
    let is_raw = caps.structure(0).is_none_or(|s| s.name() == "video/x-raw");
    if !is_raw {
        return "a decoder, such as decodebin,";
    }
    let features = caps.features(0);
    let in_system_memory = features.is_none_or(|features| features.contains("memory:SystemMemory"));
    if in_system_memory {
        "videoconvert and videoscale"
    } else {
        "an element that downloads frames to system memory, such as gldownload, cudadownload or \
         vapostproc,"
    }
}
