// SPDX-License-Identifier: MPL-2.0
//! Queries to the elements upstream about the video.

use std::path::Path;

use gst::prelude::*;

use super::CAT;
use super::following::Following;
use crate::shown;
use facetrack::record::completeness::{Ending, Promise};
use facetrack::record::container::{self, Extent};
use facetrack_assets::file;

/// Returns true if the source is live: its frames are lost if the pipeline is too slow.
pub(super) fn is_live(pad: &gst::Pad) -> bool {
    let mut query = gst::query::Latency::new();
    pad.peer_query(&mut query) && query.result().0
}

/// The promised extent of the video. A live video has none.
pub(super) fn promise(pad: &gst::Pad, following: &Following) -> Promise {
    if following.is_live {
        return Promise::default();
    }
    let path = shown::uri(pad).as_deref().and_then(shown::path);
    Promise {
        end: following.promised_end(pad.peer_query_duration()),
        frames: following.shown.stated_frames(),
        period: following.shown.stated_period(),
        extent: path.map_or(Extent::Unknown, |path| extent(&path)),
    }
}

/// Cause of the end of the stream at `pad`. The end of a stream has passed all pads; if one of them has
/// not seen it, a program has sent it to a pad after that one, to end only this branch.
pub(super) fn ending(pad: &gst::Pad) -> Ending {
    let sources = std::iter::successors(pad.peer(), |source| only_input(source)?.peer());
    // Elements that are pulled from send no events.
    let mut pushing = sources.take_while(|source| source.mode() == gst::PadMode::Push);
    if pushing.any(|source| source.sticky_event::<gst::event::Eos>(0).is_none()) {
        Ending::Program
    } else {
        Ending::Stream
    }
}

/// The sink pad of the element of `source`; `None` if it has none, or several.
fn only_input(source: &gst::Pad) -> Option<gst::Pad> {
    match source.parent_element()?.sink_pads().as_slice() {
        [input] => Some(input.clone()),
        _ => None,
    }
}

fn extent(path: &Path) -> Extent {
    let read = || container::extent(&mut file::open(path)?);
    read().unwrap_or_else(|error| {
        let path = path.display();
        gst::info!(CAT, "{path}: its length is not checked: {error}");
        Extent::Unknown
    })
}
