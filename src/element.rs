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

/// Has an error name the caps that a pad's template does not let through. They are refused before the element sees them, and
/// "not negotiated" upstream helps nobody.
pub(crate) fn tell_of_refused_caps(pad: &gst::Pad) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, |pad, info| {
        if let Some(gst::EventView::Caps(event)) = info.event().map(|event| event.view()) {
            tell_of(pad, event.caps());
        }
        gst::PadProbeReturn::Ok
    });
}

fn tell_of(pad: &gst::Pad, caps: &gst::CapsRef) {
    if pad.pad_template_caps().can_intersect(caps) {
        return;
    }
    let elsewhere = caps
        .features(0)
        .is_some_and(|features| !features.contains("memory:SystemMemory"));
    let remedy = match elsewhere {
        true => "what brings frames into system memory, such as gldownload,",
        false => "videoconvert",
    };
    if let Some(element) = pad.parent_element() {
        gst::element_error!(
            element,
            gst::StreamError::Format,
            ("{caps} can't be used: put {remedy} before the element")
        );
    }
}
