// SPDX-License-Identifier: MPL-2.0
//! The tag `image-orientation`, and whether an element has applied it.

use gst::prelude::*;
use gst::tags::ImageOrientation;
use gst_video::VideoOrientationMethod;

/// The property of elements that turn frames.
const DIRECTION: &str = "video-direction";

/// The turn or mirroring that a tag asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The tag's value.
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

    /// Whether frames at a sink pad are still to be turned. The tag alone does not show it: videoflip of GStreamer 1.22 turns
    /// frames and leaves the tag as it was.
    pub fn is_due_at(&self, pad: &gst::Pad) -> bool {
        self.method != VideoOrientationMethod::Identity && !self.is_done_before(pad)
    }

    /// Whether an element before `pad` does it.
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

/// The sink pads whose frames come out of a source pad, in the element or through the wall of the bin.
fn sinks_before(source: &gst::Pad) -> Vec<gst::Pad> {
    match source.downcast_ref::<gst::ProxyPad>() {
        Some(proxy) => proxy.internal().into_iter().map(Cast::upcast).collect(),
        None => {
            let element = source.parent_element();
            element.map(|it| it.sink_pads()).unwrap_or_default()
        }
    }
}

/// How an element turns frames; `None` for one that can't.
fn direction(element: &gst::Element) -> Option<VideoOrientationMethod> {
    element.find_property(DIRECTION)?;
    element.property_value(DIRECTION).get().ok()
}

/// The orientation of a stream.
#[derive(Debug, Default)]
pub(crate) struct Orientation {
    stream: Option<Turn>,
    container: Option<Turn>,
}

impl Orientation {
    /// Follows a list of tags. Returns the orientation if that is another one than before. The stream's own tag counts more
    /// than its container's.
    pub fn follow(&mut self, tags: &gst::TagListRef) -> Option<Turn> {
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

    /// The turn that the tags ask for.
    pub fn get(&self) -> Option<&Turn> {
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
    fn an_orientation_is_news_once_and_the_streams_own_counts_more() {
        use gst::TagScope::{Global, Stream};
        let mut orientation = Orientation::default();
        for (scope, tag, news) in [
            (Global, "rotate-90", Some("rotate-90")),
            (Global, "rotate-90", None),
            (Stream, "rotate-90", None),
            (Stream, "flip-rotate-270", Some("flip-rotate-270")),
            (Global, "rotate-180", None),
            (Stream, "upside-down", None),
            (Stream, "rotate-0", Some("rotate-0")),
            (Stream, "rotate-90", Some("rotate-90")),
        ] {
            let told = orientation.follow(&tags(scope, tag));
            let told = told.map(|turn| turn.tag);
            assert_eq!(told.as_deref(), news, "{scope:?} {tag}");
        }
        assert_eq!(orientation.follow(&gst::TagList::new()), None);
    }

    #[test]
    fn an_element_before_the_pad_turns_the_frames() {
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
