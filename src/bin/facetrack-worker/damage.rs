// SPDX-License-Identifier: MPL-2.0
//! Damage that the decoders of libav find. They conceal most of it, set no flag on the frames, and
//! only log it. GStreamer passes their messages to its own log.

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};

use gst_base::prelude::*;
use gstfacetrack::trackjsonsink::{DECODE_ERRORS, TrackJsonSink};

/// The debug category of the messages.
const CATEGORY: &str = "libav";

/// Beginning of libav's message about a concealed part of a frame, which is no error for it.
const CONCEALED: &str = "concealing ";

/// Parts of messages about reference frames that are not there. They are normal in a video that
/// begins within a group of pictures, and after a seek to one.
const MISSING_REFERENCE: [&str; 5] = [
    "reference picture",
    "ref with POC",
    "co located POCs",
    "mmco: unref short failure",
    "Frame num gap",
];

/// Messages about damage since the last frame. One video is decoded at a time.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Begins to count messages about damage.
pub fn listen() {
    // It would print the messages.
    if env::var_os("GST_DEBUG").is_none() {
        gst::log::remove_default_log_function();
    }
    gst::log::add_log_function(|category, level, _, _, _, _, message| {
        if category.name() == CATEGORY && message.get().is_some_and(|text| is_damage(level, &text))
        {
            MESSAGES.fetch_add(1, Ordering::Relaxed);
        }
    });
    gst::log::set_threshold_for_name(CATEGORY, gst::DebugLevel::Info);
}

fn is_damage(level: gst::DebugLevel, text: &str) -> bool {
    let is_error = level == gst::DebugLevel::Error || text.starts_with(CONCEALED);
    is_error && !MISSING_REFERENCE.iter().any(|part| text.contains(part))
}

/// Adds the frames in which damage is found to the decoding errors of the record.
pub fn report_to(sink: &TrackJsonSink) {
    MESSAGES.store(0, Ordering::Relaxed);
    let kinds = gst::PadProbeType::BUFFER
        | gst::PadProbeType::EVENT_DOWNSTREAM
        | gst::PadProbeType::EVENT_FLUSH;
    sink.sink_pad().add_probe(kinds, |pad, info| {
        let event = info.event().map(|event| event.type_());
        let is_end = event == Some(gst::EventType::Eos);
        if event == Some(gst::EventType::FlushStop) {
            // These frames are not recorded.
            MESSAGES.store(0, Ordering::Relaxed);
        } else if (is_end || info.buffer().is_some()) && MESSAGES.swap(0, Ordering::Relaxed) > 0 {
            let errors = gst::Structure::builder(DECODE_ERRORS).field("count", 1u64);
            pad.send_event(gst::event::CustomDownstreamOob::new(errors.build()));
        }
        gst::PadProbeReturn::Ok
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_concealment_are_damage() {
        use gst::DebugLevel::{Error, Info};
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
            (Error, "Missing reference picture, default is 65562", false),
        ] {
            assert_eq!(is_damage(level, text), want, "{text}");
        }
    }
}
