// SPDX-License-Identifier: MPL-2.0
//! Reads the tag `image-orientation`, and checks if an element upstream applies it.

use gst::prelude::*;
use gst::tags::ImageOrientation;
use gst_video::VideoOrientationMethod;

/// Property of elements that rotate frames.
const DIRECTION: &str = "video-direction";

/// The rotation or mirroring that a tag requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Value of the tag.
    pub tag: String,
    method: VideoOrientationMethod,
}

impl Turn {
    fn of(tags: &gst::TagListRef) -> Option<Self> {
        Some(Self {
            tag: tags.get::<ImageOrientation>()?.get().to_owned(),
            method: VideoOrientationMethod::from_tag(tags)?,
        })
    }

    /// Returns true if the frames at a sink pad still have to be rotated. The tag is not
    /// sufficient: videoflip of GStreamer 1.22 rotates frames without changing it.
    pub(crate) fn is_due_at(&self, pad: &gst::Pad) -> bool {
        self.method != VideoOrientationMethod::Identity && !self.is_done_before(pad)
    }

    /// Returns true if an element upstream of `pad` rotates the frames.
    fn is_done_before(&self, pad: &gst::Pad) -> bool {
        let Some(source) = pad.peer() else {
            return false;
        };
        let element = source.parent_element();
        let method = element.and_then(|element| direction(&element));
        method.is_some_and(|it| it == VideoOrientationMethod::Auto || it == self.method)
            || sinks_before(&source)
                .iter()
                .any(|pad| self.is_done_before(pad))
    }
}

/// The sink pads that feed a source pad, inside an element or through the ghost pad of a bin.
fn sinks_before(source: &gst::Pad) -> Vec<gst::Pad> {
    match source.downcast_ref::<gst::ProxyPad>() {
        Some(proxy) => proxy.internal().into_iter().map(Cast::upcast).collect(),
        None => {
            let element = source.parent_element();
            element.map(|it| it.sink_pads()).unwrap_or_default()
        }
    }
}

/// The rotation that an element applies; `None` if it applies none.
fn direction(element: &gst::Element) -> Option<VideoOrientationMethod> {
    element.find_property(DIRECTION)?;
    element.property_value(DIRECTION).get().ok()
}

/// The orientation of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orientation {
    stream: Option<Turn>,
    container: Option<Turn>,
}

impl Orientation {
    /// Reads a list of tags. Returns the orientation if it has changed. The tag of the stream has
    /// priority over the tag of the container.
    pub(crate) fn update(&mut self, tags: &gst::TagListRef) -> Option<Turn> {
        let turn = Turn::of(tags)?;
        let before = self.get().cloned();
        match tags.scope() {
            gst::TagScope::Stream => self.stream = Some(turn),
            _ => self.container = Some(turn),
        }
        self.get()
            .filter(|turn| Some(*turn) != before.as_ref())
            .cloned()
    }

    /// The rotation that frames at a sink pad still need for display, and the one that was applied
    /// to them, as in the tag.
    pub(crate) fn turns_at(&self, pad: &gst::Pad) -> [Option<String>; 2] {
        let Some(turn) = self.get() else {
            return [None, None];
        };
        let tag = (turn.method != VideoOrientationMethod::Identity).then(|| turn.tag.clone());
        if turn.is_due_at(pad) {
            [tag, None]
        } else {
            [None, tag]
        }
    }

    /// The rotation that the tags require.
    pub(crate) fn get(&self) -> Option<&Turn> {
        self.stream.as_ref().or(self.container.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(scope: gst::TagScope, orientation: &str) -> gst::TagList {
        gst::init().expect("GStreamer starts");
        let mut tags = gst::TagList::new();
        let list = tags.get_mut().expect("the only reference");
        list.set_scope(scope);
        list.add::<ImageOrientation>(&orientation, gst::TagMergeMode::Replace);
        tags
    }

    #[test]
    fn an_orientation_is_returned_once_and_the_stream_has_priority() {
        use gst::TagScope::{Global, Stream};
        let mut orientation = Orientation::default();
        for (scope, tag, want) in [
            (Global, "rotate-90", Some("rotate-90")),
            (Global, "rotate-90", None),
            (Stream, "rotate-90", None),
            (Stream, "flip-rotate-270", Some("flip-rotate-270")),
            (Global, "rotate-180", None),
            (Stream, "upside-down", None),
            (Stream, "rotate-0", Some("rotate-0")),
            (Stream, "rotate-90", Some("rotate-90")),
        ] {
            let changed = orientation.update(&tags(scope, tag));
            let changed = changed.map(|turn| turn.tag);
            assert_eq!(changed.as_deref(), want, "{scope:?} {tag}");
        }
        assert_eq!(orientation.update(&gst::TagList::new()), None);
    }

    #[test]
    fn an_element_upstream_of_the_pad_rotates_the_frames() {
        let turn = Turn::of(&tags(gst::TagScope::Stream, "rotate-90")).expect("a turn");
        let upright = Turn::of(&tags(gst::TagScope::Stream, "rotate-0")).expect("a turn");
        for (elements, is_due) in [
            ("identity", true),
            ("videoflip", true),
            ("videoflip video-direction=auto", false),
            ("videoflip video-direction=auto ! identity", false),
            ("videoflip video-direction=auto ! queue", false),
            ("videoflip video-direction=90r ! tee ! queue", false),
            ("videoflip video-direction=90l", true),
            ("videoflip video-direction=horiz ! videoconvert", true),
            (
                "( videoflip video-direction=auto ! identity ) ! queue",
                false,
            ),
            ("queue ! ( videoflip video-direction=180 ! identity )", true),
        ] {
            let line = format!("videotestsrc ! {elements} ! fakesink name=end");
            let pipeline = gst::parse::launch(&line).expect("a pipeline");
            let bin = pipeline.downcast::<gst::Bin>().expect("a pipeline");
            let end = bin.by_name("end").expect("the sink");
            let pad = end.static_pad("sink").expect("its pad");
            assert_eq!(turn.is_due_at(&pad), is_due, "{elements}");
            assert!(!upright.is_due_at(&pad), "{elements}");
        }
    }
}
