// SPDX-License-Identifier: MPL-2.0
//! Selects the video among the decoded streams.

use gst::prelude::*;

use crate::branch;

/// Rank of a stream, lowest first: a picture, such as a cover, is the last choice. The marks of the
/// container and the length of the stream decide between the others.
type Rank = (bool, bool, bool, Option<gst::ClockTime>);

/// Returns the stream of video to track, once all streams of the decoder are known. Of several
/// streams with the same rank, it is the first one.
pub(crate) fn video(decoder: &gst::Element) -> Option<gst::Pad> {
    let pads = decoder.src_pads().into_iter().filter(branch::has_video);
    pads.rev().max_by_key(|pad| rank(decoder, pad))
}

fn rank(decoder: &gst::Element, pad: &gst::Pad) -> Rank {
    let source = demuxed(decoder, pad).unwrap_or_else(|| pad.clone());
    let start = source.sticky_event::<gst::event::StreamStart>(0);
    let flags = start.map_or(gst::StreamFlags::empty(), |start| start.stream_flags());
    (
        !is_picture(&source),
        flags.contains(gst::StreamFlags::SELECT),
        !flags.contains(gst::StreamFlags::UNSELECT),
        source.query_duration(),
    )
}

/// The pad of the demuxer that a stream of the decoder comes from.
fn demuxed(decoder: &gst::Element, pad: &gst::Pad) -> Option<gst::Pad> {
    let id = pad.stream_id()?;
    let elements = decoder.downcast_ref::<gst::Bin>()?.iterate_recurse();
    let demuxers = elements.into_iter().flatten().filter(is_demuxer);
    let mut pads = demuxers.flat_map(|demuxer| demuxer.src_pads());
    pads.find(|pad| pad.stream_id().as_ref() == Some(&id))
}

fn is_demuxer(element: &gst::Element) -> bool {
    let factory = element.factory();
    factory.is_some_and(|it| it.has_type(gst::ElementFactoryType::DEMUXER))
}

/// Returns true if each frame is a picture by itself, such as a JPEG.
fn is_picture(pad: &gst::Pad) -> bool {
    let caps = pad.current_caps();
    let stream = caps.as_ref().and_then(|caps| caps.structure(0));
    stream.is_some_and(|stream| stream.name().starts_with("image/"))
}
