// SPDX-License-Identifier: MPL-2.0
//! Code that the elements of the plugin share.

use gst::prelude::*;
use gst::subclass::ElementMetadata;

use crate::video;

/// Author of the elements.
const AUTHOR: &str = "The gst-plugin-facetrack contributors";

/// The debug category of an element.
pub(crate) fn category(name: &str, title: &str) -> gst::DebugCategory {
    gst::DebugCategory::new(name, gst::DebugColorFlags::empty(), Some(title))
}

/// The metadata of an element class, which is never freed.
pub(crate) fn metadata(
    title: &str,
    klass: &str,
    purpose: &str,
) -> Option<&'static ElementMetadata> {
    let metadata = ElementMetadata::new(title, klass, purpose, AUTHOR);
    Some(Box::leak(Box::new(metadata)))
}

/// Posts an element message with `structure`.
pub(crate) fn post(element: &gst::Element, structure: gst::Structure) {
    let message = gst::message::Element::builder(structure).src(element);
    // Posting fails only if the element has no bus.
    let _ = element.post_message(message.build());
}

/// Raw video in any memory, for elements that read only metadata.
pub(crate) fn any_video() -> gst::Caps {
    gst::Caps::builder("video/x-raw").any_features().build()
}

/// The sink pad of a class of sinks, which is never freed.
pub(crate) fn sink_templates(caps: &gst::Caps) -> &'static [gst::PadTemplate] {
    Vec::leak(vec![template("sink", gst::PadDirection::Sink, caps)])
}

/// The two pads of a class of filters that do not change the format. It is never freed.
pub(crate) fn filter_templates(caps: &gst::Caps) -> &'static [gst::PadTemplate] {
    Vec::leak(vec![
        template("sink", gst::PadDirection::Sink, caps),
        template("src", gst::PadDirection::Src, caps),
    ])
}

fn template(name: &str, direction: gst::PadDirection, caps: &gst::Caps) -> gst::PadTemplate {
    gst::PadTemplate::new(name, direction, gst::PadPresence::Always, caps)
        .expect("fixed names and caps make a template")
}

/// Formats of compressed video and pictures.
const COMPRESSED_VIDEO: &str = "\
    video/x-h263; video/x-flash-video; video/x-vp6; video/x-divx; video/x-xvid; \
    video/x-msmpeg; video/x-rle; image/gif; video/x-h264; video/x-h265; video/x-h266; \
    video/x-vp8; video/x-vp9; video/x-av1; video/x-theora; video/x-prores; video/x-dnxhd; \
    video/x-dv; video/x-ffv; video/x-huffyuv; video/x-wmv; video/x-bayer; video/mpeg; \
    image/jpeg; image/png; image/webp; image/tiff; image/x-jpc";

/// Caps that cannot be used but may be offered: frames outside system memory, and compressed video.
fn foreign_video() -> gst::Caps {
    let mut caps = any_video();
    caps.merge(COMPRESSED_VIDEO.parse().expect("fixed caps are valid"));
    caps
}

/// Answers a CAPS query on a pad of a started element that has no peer yet with everything that
/// might be linked to it, including caps that will be refused. A failed link to a pad that appears
/// late, as pads of `decodebin` do, is not reported. So the link is allowed, and the element posts
/// an error that names the caps and the remedy. Once the pad is linked, the answer lists the caps
/// that are accepted. The ghost pad of a bin is linked from the start, so late links to it are not
/// covered.
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
/// element sees them, and the error "not negotiated" of an element upstream does not give the
/// reason.
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
    let (name, remedy) = (element.name(), remedy(caps));
    gst::element_error!(
        element,
        gst::StreamError::Format,
        ("{name} cannot use {caps}: put {remedy} before it")
    );
}

/// Returns the element that converts `caps` to raw video in system memory.
fn remedy(caps: &gst::CapsRef) -> &'static str {
    let is_raw = caps.structure(0).is_none_or(|s| s.name() == "video/x-raw");
    if !is_raw {
        return "a decoder, such as decodebin,";
    }
    let has = |is_meant: fn(&str) -> bool| {
        let features = caps.features(0);
        features.is_some_and(|features| features.iter().any(|feature| is_meant(feature)))
    };
    if has(|feature| feature.starts_with("memory:") && feature != "memory:SystemMemory") {
        return "an element that downloads frames to system memory, such as gldownload, cudadownload \
                or vapostproc,";
    }
    if has(|feature| feature == "format:Interlaced") {
        return "deinterlace";
    }
    let (width, height) = video::size(caps);
    if width.max(height) > video::MAX_SIDE as u32 {
        "videoscale"
    } else {
        "videoconvert"
    }
}
