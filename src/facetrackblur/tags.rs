// SPDX-License-Identifier: MPL-2.0
//! Removes pictures, places and tables of contents from what a stream says about its video.

use gst::glib;
use gst::prelude::*;

/// Beginning of the names of tags that say where the video was taken.
const PLACE: &str = "geo-location-";

/// The event without tags that may show a face or say where the video was taken: places, and data such
/// as pictures, attachments, and what a demuxer could not read. Streams lose all tags, because the
/// list of tags has them too, and tables of contents are dropped as a whole.
pub(super) fn without_pictures_and_places(event: gst::Event) -> Option<gst::Event> {
    let seqnum = event.seqnum();
    match event.view() {
        gst::EventView::Toc(_) => None,
        gst::EventView::Tag(tags) => {
            let Some(tags) = kept(tags.tag()) else {
                return Some(event);
            };
            Some(gst::event::Tag::builder(tags).seqnum(seqnum).build())
        }
        gst::EventView::StreamStart(start) if start.stream().is_some() => {
            let stream = start.stream().map(|stream| without_tags(&stream));
            let builder = gst::event::StreamStart::builder(start.stream_id())
                .flags(start.stream_flags())
                .stream_if_some(stream)
                .seqnum(seqnum);
            Some(builder.group_id_if_some(start.group_id()).build())
        }
        gst::EventView::StreamCollection(collection) => {
            let streams = collection.stream_collection();
            let copy = gst::StreamCollection::builder(streams.upstream_id().as_deref())
                .streams(streams.iter().map(|stream| without_tags(&stream)))
                .build();
            let builder = gst::event::StreamCollection::builder(&copy);
            Some(builder.seqnum(seqnum).build())
        }
        _ => Some(event),
    }
}

/// The tags that may stay; `None` if all may.
fn kept(tags: &gst::TagListRef) -> Option<gst::TagList> {
    let reveals = |name: &&glib::GStr| {
        name.starts_with(PLACE) || gst::tags::tag_get_type(*name) == gst::Sample::static_type()
    };
    let names = tags.iter_generic().map(|(name, _)| name);
    let removed: Vec<_> = names.filter(reveals).collect();
    if removed.is_empty() {
        return None;
    }
    let mut kept = tags.to_owned();
    let list = kept.make_mut();
    removed.iter().for_each(|name| list.remove_generic(*name));
    Some(kept)
}

fn without_tags(stream: &gst::Stream) -> gst::Stream {
    gst::Stream::new(
        stream.stream_id().as_deref(),
        stream.caps().as_ref(),
        stream.stream_type(),
        stream.stream_flags(),
    )
}
