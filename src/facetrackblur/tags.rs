// SPDX-License-Identifier: MPL-2.0
//! The tags of a stream whose faces are covered.

use gst::glib;
use gst::prelude::*;

/// Beginning of the names of tags that say where the video was taken.
const PLACE: &str = "geo-location-";

/// The event; if it has tags, without those that may show a face or say where the video was taken:
/// places, and data such as pictures, attachments, and what a demuxer could not read.
pub(super) fn without_pictures_and_places(event: gst::Event) -> gst::Event {
    let gst::EventView::Tag(tags) = event.view() else {
        return event;
    };
    let mut kept = tags.tag_owned();
    let reveals = |name: &&glib::GStr| {
        name.starts_with(PLACE) || gst::tags::tag_get_type(*name) == gst::Sample::static_type()
    };
    let names = kept.iter_generic().map(|(name, _)| name);
    let removed: Vec<_> = names.filter(reveals).map(ToOwned::to_owned).collect();
    if removed.is_empty() {
        return event;
    }
    let list = kept.make_mut();
    removed.iter().for_each(|name| list.remove_generic(name));
    gst::event::Tag::builder(kept)
        .seqnum(event.seqnum())
        .build()
}
