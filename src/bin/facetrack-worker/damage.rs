// SPDX-License-Identifier: MPL-2.0
//! Counts damage that decoders only log. Decoders of libav conceal most damage and set no flag on
//! the frames, and errors at the start or the end of a video have no frame that could carry a flag.
//! GStreamer passes libav's messages to its own log.

use std::env;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use facetrack_jobs::Segment;
use gst_base::prelude::*;
use gstfacetrack::trackjsonsink::{DECODE_ERRORS, TrackJsonSink};

/// The debug category of libav's messages.
const LIBAV: &str = "libav";

/// The debug category of the base class of decoders.
const DECODER: &str = "videodecoder";

/// Beginning of its message about a frame that cannot be decoded.
const GIVEN_UP: &str = "error: ";

/// Beginning of libav's message about a concealed part of a frame, which libav does not report as
/// an error.
const CONCEALED: &str = "concealing ";

/// Parts of messages about missing reference frames. They are normal in a video that begins within
/// a group of pictures, and after a seek to one.
const MISSING_REFERENCE: [&str; 5] = [
    "reference picture",
    "ref with POC",
    "co located POCs",
    "mmco: unref short failure",
    "Frame num gap",
];

/// The message about the end mark of a GIF file, which libav reads as a part of the last picture.
const END_OF_GIF: &str = "invalid block label";

/// Messages about damage since the last frame. One video is decoded at a time.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Begins to count messages about damage.
pub(crate) fn listen() {
    // The default handler would print the messages.
    if env::var_os("GST_DEBUG").is_none() {
        gst::log::remove_default_log_function();
    }
    gst::log::add_log_function(|category, level, _, _, _, _, message| {
        let name = category.name();
        if [LIBAV, DECODER].contains(&name)
            && let Some(text) = message.get()
            && is_damage(name, level, &text)
        {
            MESSAGES.fetch_add(1, Ordering::Relaxed);
        }
    });
    gst::log::set_threshold_for_name(LIBAV, gst::DebugLevel::Info);
    gst::log::set_threshold_for_name(DECODER, gst::DebugLevel::Warning);
}

fn is_damage(category: &str, level: gst::DebugLevel, text: &str) -> bool {
    if category == DECODER {
        return text.starts_with(GIVEN_UP);
    }
    let is_error = level == gst::DebugLevel::Error || text.starts_with(CONCEALED);
    let mut harmless = MISSING_REFERENCE.iter().chain([&END_OF_GIF]);
    is_error && !harmless.any(|part| text.contains(part))
}

/// Adds damaged frames to the decoding errors of the record. Decoders also log errors in frames
/// outside of a part, where they are started and stopped.
pub(crate) fn report_to(sink: &TrackJsonSink, segment: Segment) {
    MESSAGES.store(0, Ordering::Relaxed);
    let has_begun = AtomicBool::new(false);
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    sink.sink_pad().add_probe(kinds, move |pad, info| {
        let is_excluded = match info.buffer() {
            Some(_) if !has_begun.swap(true, Ordering::Relaxed) => segment.start.is_some(),
            // The sink counts these itself.
            Some(frame) => frame.flags().contains(gst::BufferFlags::DISCONT),
            None if is_end(info) => segment.stop.is_some(),
            None => return gst::PadProbeReturn::Ok,
        };
        if MESSAGES.swap(0, Ordering::Relaxed) > 0 && !is_excluded {
            let errors = gst::Structure::builder(DECODE_ERRORS).field("count", 1u64);
            pad.send_event(gst::event::CustomDownstreamOob::new(errors.build()));
        }
        gst::PadProbeReturn::Ok
    });
}

fn is_end(info: &gst::PadProbeInfo<'_>) -> bool {
    info.event()
        .is_some_and(|event| event.type_() == gst::EventType::Eos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_concealment_are_damage() {
        use gst::DebugLevel::{Error, Info, Warning};
        assert!(is_damage(DECODER, Warning, "error: Failed to decode frame"));
        assert!(!is_damage(DECODER, Warning, "no frame duration"));
        for (level, text, want) in [
            (Error, "error while decoding MB 12 9, bytestream 33", true),
            (Error, "Reference 4 >= 2", true),
            (
                Info,
                "concealing 220 DC, 220 AC, 220 MV errors in P frame",
                true,
            ),
            (Info, "Reinit context to 640x368, pix_fmt: yuv420p", false),
            (Error, "mmco: unref short failure", false),
            (Error, "invalid block label", false),
            (Error, "Missing reference picture, default is 65562", false),
        ] {
            assert_eq!(is_damage(LIBAV, level, text), want, "{text}");
        }
    }
}
