// SPDX-License-Identifier: MPL-2.0
//! Copies sound and subtitles as they are.

use gst::glib;
use gst::prelude::*;

use crate::playback::make;

/// Elements that prepare encoded sound for a muxer, by the type of the stream and its version. The headers
/// of Vorbis and FLAC can have texts and pictures, so these elements replace them.
const PARSERS: [(&str, Option<i32>, &str); 9] = [
    ("audio/mpeg", Some(1), "mpegaudioparse"),
    ("audio/mpeg", Some(2), "aacparse"),
    ("audio/mpeg", Some(4), "aacparse"),
    ("audio/x-ac3", None, "ac3parse"),
    ("audio/x-eac3", None, "ac3parse"),
    ("audio/x-dts", None, "dcaparse"),
    ("audio/x-flac", None, "flacparse ! flacdec ! flacenc"),
    ("audio/x-vorbis", None, "vorbistag"),
    ("audio/x-opus", None, "opusparse"),
];

/// Bytes of other streams that wait for the encoder. Our choice: hours of sound.
const WAITING: u32 = 256 << 20;

/// Fields of encoded sound that a parser does not change.
const LASTING: [&str; 4] = ["mpegversion", "layer", "rate", "channels"];

/// Subtitles.
const TEXT: &str = "text/x-raw";

/// Characters of markup, and the letters that they stand for.
const ENTITIES: [(&str, &str); 6] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&amp;", "&"),
];

/// Links a stream other than the video to the muxer. Returns false if it is not copied: another video,
/// or data of unknown content, which may show a face or say where it was.
///
/// # Errors
/// Returns an error if the container cannot hold the sound or the subtitles.
pub(super) fn copy(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
    muxer: &gst::Element,
) -> Result<bool, String> {
    let mut caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    let name = caps.structure(0).map_or("", |it| it.name().as_str());
    let name = name.to_owned();
    if !name.starts_with("audio/") && name != TEXT {
        return Ok(false);
    }
    keep_only_languages(pad);
    let mut check = gst::PadLinkCheck::DEFAULT;
    if has_markup(&caps) {
        remove_markup(pad);
        caps = plain_text();
        // The pad itself still has markup.
        check = gst::PadLinkCheck::HIERARCHY;
    }
    let queue = make("queue")?;
    queue.set_property("max-size-bytes", WAITING);
    queue.set_property("max-size-buffers", 0u32);
    queue.set_property("max-size-time", 0u64);
    let mut elements = vec![queue];
    let failed = |error: glib::BoolError| error.to_string();
    if let Some(parser) = parser(&caps) {
        let parser = gst::parse::bin_from_description(parser, true);
        let parser = parser.map_err(|error| error.to_string())?;
        // Texts in the headers are not kept.
        let setters = parser.iterate_all_by_interface(gst::TagSetter::static_type());
        for setter in setters.into_iter().flatten() {
            let setter = setter.dynamic_cast_ref::<gst::TagSetter>();
            setter.inspect(|it| it.set_tag_merge_mode(gst::TagMergeMode::KeepAll));
        }
        elements.push(parser.upcast());
        caps = parsed(&caps);
    }
    pipeline.add_many(&elements).map_err(failed)?;
    gst::Element::link_many(&elements).map_err(failed)?;
    let ends = elements.first().zip(elements.last());
    let ends = ends.and_then(|(first, last)| first.static_pad("sink").zip(last.static_pad("src")));
    let (input, output) = ends.ok_or("a queue has no pads")?;
    if is_cut(&name, muxer) {
        return Err(format!(
            "in this container, some players leave out the beginning of {name}. Give the output the suffix .mkv"
        ));
    }
    let free = muxer.compatible_pad(&output, Some(&caps));
    let free = free.ok_or_else(|| {
        format!("the container cannot hold {name}. Give the output the suffix .mkv")
    })?;
    output.link(&free).map_err(|error| error.to_string())?;
    for element in &elements {
        element.sync_state_with_parent().map_err(failed)?;
    }
    let linked = pad.link_full(&input, check);
    linked.map_err(|error| error.to_string())?;
    Ok(true)
}

/// Returns true if a muxer writes a stream whose beginning some players leave out: mp4mux and qtmux of
/// GStreamer 1.22 do with Opus.
fn is_cut(name: &str, muxer: &gst::Element) -> bool {
    let factory = muxer.factory().map(|factory| factory.name());
    name == "audio/x-opus" && factory.as_deref() != Some("matroskamux")
}

/// The description of the elements that prepare encoded sound for a muxer, if it needs some.
fn parser(caps: &gst::CapsRef) -> Option<&'static str> {
    let stream = caps.structure(0)?;
    let version = stream.get("mpegversion").ok();
    let mut parsers = PARSERS.iter();
    let found = parsers
        .find(|(name, of, _)| stream.has_name(name) && of.is_none_or(|of| Some(of) == version));
    found.map(|(.., parser)| *parser)
}

/// Removes all tags of a stream but its language, and its table of contents. A demuxer sends the tags of
/// the file with each stream, also pictures and places.
fn keep_only_languages(pad: &gst::Pad) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, |_, info| {
        let Some(event) = info.event() else {
            return gst::PadProbeReturn::Ok;
        };
        let tags = match event.view() {
            gst::EventView::Toc(_) => None,
            gst::EventView::Tag(event) => Some(event.tag()),
            _ => return gst::PadProbeReturn::Ok,
        };
        let mut kept = gst::TagList::new();
        if let Some(language) = tags.and_then(|tags| tags.get::<gst::tags::LanguageCode>())
            && let Some(kept) = kept.get_mut()
        {
            kept.add::<gst::tags::LanguageCode>(&language.get(), gst::TagMergeMode::Append);
        }
        let event = gst::event::Tag::builder(kept).seqnum(event.seqnum());
        info.data = Some(gst::PadProbeData::Event(event.build()));
        gst::PadProbeReturn::Ok
    });
}

/// The type of a stream in a message.
pub(super) fn kind(pad: &gst::Pad) -> String {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    let name = caps.structure(0).map(|it| it.name().to_string());
    match name.as_deref() {
        Some("video/x-raw") => "another video of the file".to_owned(),
        Some(name) => format!("a stream of {name}"),
        None => "a stream of unknown data".to_owned(),
    }
}

/// The caps that encoded sound can have after its parser.
fn parsed(caps: &gst::CapsRef) -> gst::Caps {
    let mut parsed = caps.to_owned();
    for stream in parsed.make_mut().iter_mut() {
        let fields: Vec<_> = stream.fields().map(|it| it.to_string()).collect();
        let changing = fields
            .into_iter()
            .filter(|it| !LASTING.contains(&it.as_str()));
        stream.remove_fields(changing);
    }
    parsed
}

fn plain_text() -> gst::Caps {
    gst::Caps::builder(TEXT).field("format", "utf8").build()
}

fn has_markup(caps: &gst::CapsRef) -> bool {
    let stream = caps.structure(0);
    stream.is_some_and(|it| it.get("format") == Ok("pango-markup"))
}

/// Turns subtitles with markup, which no muxer takes, into plain text.
fn remove_markup(pad: &gst::Pad) {
    let probed = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(probed, |_, info| {
        match &mut info.data {
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::Caps => {
                *event = gst::event::Caps::new(&plain_text());
            }
            Some(gst::PadProbeData::Buffer(buffer)) => {
                let text = buffer.map_readable().ok();
                let text = text.map(|it| without_markup(&String::from_utf8_lossy(&it)));
                let mut plain = gst::Buffer::from_slice(text.unwrap_or_default().into_bytes());
                let copied = gst::BUFFER_COPY_METADATA;
                // Flags and times can be copied to any buffer.
                let _ = plain.get_mut().map(|it| buffer.copy_into(it, copied, ..));
                *buffer = plain;
            }
            _ => (),
        }
        gst::PadProbeReturn::Ok
    });
}

fn without_markup(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in markup.chars() {
        match letter {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if !is_tag => text.push(letter),
            _ => (),
        }
    }
    let entities = ENTITIES.iter();
    entities.fold(text, |text, (entity, letter)| text.replace(entity, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_removed() {
        let text = without_markup("<i>Bob &amp; <b>Al</b></i>: 1 &lt; 2 &amp;lt;\n");
        assert_eq!(text, "Bob & Al: 1 < 2 &lt;\n");
    }
}
