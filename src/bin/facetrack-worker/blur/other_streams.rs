// SPDX-License-Identifier: MPL-2.0
//! Copies sound and subtitles as they are.

use gst::glib;
use gst::prelude::*;

use super::headers;
use crate::playback::make;

/// Sound that is copied, by the type of the stream and its version, and the parser that prepares it for a
/// muxer, where one is needed. Other types are refused, because their headers may have texts.
const SOUNDS: [(&str, Option<i32>, Option<&str>); 18] = [
    ("audio/mpeg", Some(1), Some("mpegaudioparse")),
    ("audio/mpeg", Some(2), Some("aacparse")),
    ("audio/mpeg", Some(4), Some("aacparse")),
    ("audio/x-ac3", None, Some("ac3parse")),
    ("audio/x-eac3", None, Some("ac3parse")),
    ("audio/x-dts", None, Some("dcaparse")),
    ("audio/x-flac", None, Some("flacparse")),
    ("audio/x-vorbis", None, None),
    ("audio/x-opus", None, Some("opusparse")),
    ("audio/x-raw", None, None),
    ("audio/x-alaw", None, None),
    ("audio/x-mulaw", None, None),
    ("audio/x-adpcm", None, None),
    ("audio/x-alac", None, None),
    ("audio/x-tta", None, None),
    ("audio/x-wma", None, None),
    ("audio/AMR", None, None),
    ("audio/AMR-WB", None, None),
];

/// Sound whose headers have texts and pictures, which are removed.
const WITH_TEXTS: [&str; 2] = ["audio/x-flac", "audio/x-vorbis"];

/// Remedies if a container cannot hold a stream.
const OTHER_CONTAINER: &str = "Give the output the suffix .mkv";
const OTHER_CODEC: &str =
    "Convert the sound first: ffmpeg -i IN -map 0:v -map 0:a -c copy -c:a aac CONVERTED.mkv";

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
    if name != TEXT {
        let parser = parser(&caps).ok_or_else(|| {
            format!("{name} is not copied, because its headers may have texts and pictures. {OTHER_CODEC}")
        })?;
        if let Some(parser) = parser {
            elements.push(make(parser)?);
            caps = parsed(&caps);
        }
    }
    pipeline.add_many(&elements).map_err(failed)?;
    gst::Element::link_many(&elements).map_err(failed)?;
    let ends = elements.first().zip(elements.last());
    let ends = ends.and_then(|(first, last)| first.static_pad("sink").zip(last.static_pad("src")));
    let (input, output) = ends.ok_or("a queue has no pads")?;
    // A parser sends the texts of headers as tags, and a list of tracks as chapters.
    keep_only_languages(&output);
    if WITH_TEXTS.contains(&name.as_str()) {
        headers::remove_texts(&output);
    }
    if is_cut(&name, muxer) {
        return Err(format!(
            "in this container, some players leave out the beginning of {name}. {OTHER_CONTAINER}"
        ));
    }
    let free = muxer.compatible_pad(&output, Some(&caps));
    let free = free.ok_or_else(|| {
        let remedy = if is_matroska(muxer) {
            OTHER_CODEC
        } else {
            OTHER_CONTAINER
        };
        format!("the container cannot hold {name}. {remedy}")
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
    name == "audio/x-opus" && !is_matroska(muxer)
}

fn is_matroska(muxer: &gst::Element) -> bool {
    let factory = muxer.factory().map(|factory| factory.name());
    factory.as_deref() == Some("matroskamux")
}

/// The parser of encoded sound, if it needs one; `None` if the sound is not copied.
fn parser(caps: &gst::CapsRef) -> Option<Option<&'static str>> {
    let stream = caps.structure(0)?;
    let version = stream.get("mpegversion").ok();
    let mut sounds = SOUNDS.iter();
    let found = sounds
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
    let mut rest = markup;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = match after.split_once('>') {
            Some((tag, after)) if is_tag(tag) => after,
            _ => {
                text.push('<');
                after
            }
        };
    }
    text.push_str(rest);
    let entities = ENTITIES.iter();
    entities.fold(text, |text, (entity, letter)| text.replace(entity, letter))
}

/// Returns true for what is between angle brackets in markup.
fn is_tag(text: &str) -> bool {
    let name = text.strip_prefix('/').unwrap_or(text);
    name.starts_with(|it: char| it.is_ascii_alphabetic()) && !name.contains('<')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_removed() {
        for (markup, want) in [
            (
                "<i>Bob &amp; <b>Al</b></i>: 1 &lt; 2 &amp;lt;\n",
                "Bob & Al: 1 < 2 &lt;\n",
            ),
            ("a < b and <i>x</i> ok 1 < 2", "a < b and x ok 1 < 2"),
            ("<font color=\"red\">I <3 you</font>", "I <3 you"),
        ] {
            assert_eq!(without_markup(markup), want);
        }
    }
}
