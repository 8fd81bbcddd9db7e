// SPDX-License-Identifier: MPL-2.0
//! Works around faults of GStreamer that would make a video unreadable.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use facetrack_assets::lock::lock;
use gst::glib;
use gst::prelude::*;

/// Number of successive reads behind the end of the file after which a demuxer counts as being in
/// an endless loop. Our choice: one or two are usual.
const MAX_READS_BEHIND_END: u32 = 16;

/// Position of the type of a box in an ISO media file, after its size.
const BOX_TYPE: std::ops::Range<usize> = 4..8;

/// Bytes of the size and the type of a box.
const BOX_HEADER: usize = 8;

/// Works around the faults of elements in a decodebin.
pub(crate) fn work_around(decoder: &gst::Bin) {
    skip_alpha(decoder);
    let bin = decoder.downgrade();
    decoder.connect_element_added(move |_, element| pass_errors_on(element, &bin));
    decoder.connect_deep_element_added(|_, _, element| {
        let factory = element.factory().map(|factory| factory.name());
        match factory.as_deref() {
            Some(name) if name.starts_with("avdec_") => keep_times(element),
            Some(name) if name.starts_with("avdemux_") => leave_endless_loop(element),
            _ => (),
        }
    });
}

/// Decodes only the colours of VP8 and VP9: the decoders of GStreamer 1.20 and later that add the
/// alpha fail if a file has the tag for alpha and no alpha. Faces are found without it.
fn skip_alpha(decoder: &gst::Bin) {
    decoder.connect("autoplug-select", false, |arguments| {
        let factory = arguments[3].get::<gst::ElementFactory>().ok()?;
        let choice = if factory.name().ends_with("alphadecodebin") {
            "skip"
        } else {
            "try"
        };
        let choices = glib::Type::from_name("GstAutoplugSelectResult")?;
        glib::EnumClass::with_type(choices)?.to_value_by_nick(choice)
    });
}

/// Posts the errors of an element also in the name of its decodebin. decodebin drops errors that
/// come from the streaming thread of a demuxer before it has registered the demuxer, and then the
/// pipeline waits forever. Errors in the thread that adds the element stay with decodebin, which
/// tries another element.
fn pass_errors_on(element: &gst::Element, decoder: &glib::WeakRef<gst::Bin>) {
    let Some(to_decoder) = element.bus() else {
        return;
    };
    let decoder = decoder.clone();
    let adding = thread::current().id();
    let bus = gst::Bus::new();
    bus.set_sync_handler(move |_, message| {
        let is_streaming = thread::current().id() != adding;
        let is_lost = message.type_() == gst::MessageType::Error && is_streaming;
        let outer = decoder.upgrade().filter(|_| is_lost);
        if let Some(bus) = outer.and_then(|decoder| decoder.bus()) {
            // The pipeline takes the first one.
            let _ = bus.post(message.clone());
        }
        let _ = to_decoder.post(message.clone());
        gst::BusSyncReply::Drop
    });
    element.set_bus(Some(&bus));
}

/// Pictures that a decoder has taken.
#[derive(Default)]
struct Taken {
    /// Time and duration of the last picture.
    last: (Option<gst::ClockTime>, Option<gst::ClockTime>),
    /// Number of pictures that it has not yielded yet.
    pending: u64,
}

/// Gives decoded pictures the times of the encoded ones if they all have the time of the first one.
/// In GStreamer 1.22, this happens without direct rendering with decoders that draw each picture
/// over the last one, such as for GIF, Cinepak and QuickTime Animation. These decoders yield a
/// picture before they take the next one.
fn keep_times(decoder: &gst::Element) {
    let pads = decoder.static_pad("sink").zip(decoder.static_pad("src"));
    let Some((input, output)) = pads else { return };
    let taken = Arc::new(Mutex::new(Taken::default()));
    let taking = taken.clone();
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_FLUSH;
    input.add_probe(kinds, move |_, info| {
        let mut taken = lock(&taking);
        if let Some(buffer) = info.buffer() {
            // avidemux gives pictures that depend on others only the time of decoding, which is the same.
            taken.last = (buffer.pts().or(buffer.dts()), buffer.duration());
            taken.pending += 1;
        } else {
            *taken = Taken::default();
        }
        gst::PadProbeReturn::Ok
    });
    let before = Mutex::new(None);
    output.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let mut taken = lock(&taken);
        let is_last = taken.pending == 1;
        taken.pending = taken.pending.saturating_sub(1);
        if let Some(buffer) = info.buffer_mut()
            && lock(&before).replace(buffer.pts()) == Some(buffer.pts())
            && is_last
        {
            let buffer = buffer.make_mut();
            buffer.set_pts(taken.last.0);
            buffer.set_duration(taken.last.1);
        }
        gst::PadProbeReturn::Ok
    });
}

/// Ends a stream whose demuxer reads behind the end of the file forever, as the demuxers of libav
/// do before GStreamer 1.26.
fn leave_endless_loop(demuxer: &gst::Element) {
    let Some(pad) = demuxer.static_pad("sink") else {
        return;
    };
    let reads = AtomicU32::new(0);
    let kinds = gst::PadProbeType::BLOCK | gst::PadProbeType::PULL;
    pad.add_probe(kinds, move |pad, info| {
        let end = pad.peer_query_duration::<gst::format::Bytes>();
        let is_behind = end.is_some_and(|end| info.offset >= *end);
        if !is_behind {
            reads.store(0, Ordering::Relaxed);
        } else if reads.fetch_add(1, Ordering::Relaxed) == MAX_READS_BEHIND_END
            && let Some(source) = pad.peer()
        {
            // Reading fails, which ends the stream.
            let _ = source.unlink(pad);
        }
        gst::PadProbeReturn::Pass
    });
}

/// Hides the duration of an MP4 or MOV file from qtdemux, which leaves out tracks that are shorter
/// than a fifth of it. `pad` is a pad at which qtdemux reads the file.
pub(crate) fn hide_movie_duration(pad: &gst::Pad) {
    let kinds = gst::PadProbeType::PULL | gst::PadProbeType::BUFFER;
    pad.add_probe(kinds, |_, info| {
        let is_header = info.buffer().is_some_and(is_movie_header);
        if let Some(buffer) = info.buffer_mut().filter(|_| is_header)
            && let Ok(mut bytes) = buffer.make_mut().map_writable()
        {
            clear_duration(&mut bytes);
        }
        gst::PadProbeReturn::Ok
    });
}

fn is_movie_header(buffer: &gst::Buffer) -> bool {
    let bytes = buffer.map_readable();
    bytes.is_ok_and(|bytes| bytes.get(BOX_TYPE) == Some(b"moov"))
}

/// Sets the duration in a box `moov` to 0, which stands for an unknown one.
fn clear_duration(moov: &mut [u8]) {
    let mut rest = &mut moov[BOX_HEADER..];
    while let Some(&[a, b, c, d]) = rest.first_chunk::<4>() {
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        if size < BOX_HEADER || size > rest.len() {
            return;
        }
        let (child, next) = rest.split_at_mut(size);
        if child[BOX_TYPE] == *b"mvhd" {
            let is_long = child.get(BOX_HEADER) == Some(&1);
            // After version and flags, there are two times of the same size, and the scale.
            let duration = if is_long { 32..40 } else { 24..28 };
            child
                .get_mut(duration)
                .into_iter()
                .for_each(|it| it.fill(0));
            return;
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_duration_of_the_movie_is_cleared() {
        for (version, length, range) in [(0, 108, 24..28), (1, 120, 32..40)] {
            let mut header = vec![7; length];
            header[..4].copy_from_slice(&(length as u32).to_be_bytes());
            header[4..8].copy_from_slice(b"mvhd");
            header[8] = version;
            let other = [0, 0, 0, 8, b'f', b'r', b'e', b'e'];
            let mut moov = [&[0, 0, 0, 0], &b"moov"[..], &other, &header].concat();
            let mut want = moov.clone();
            want[16..][range].fill(0);
            clear_duration(&mut moov);
            assert_eq!(moov, want);
        }
        for size in [0_u32, 7, 200] {
            let mut broken = [&[0; 4], &b"moov"[..], &size.to_be_bytes(), b"mvhd"].concat();
            let before = broken.clone();
            clear_duration(&mut broken);
            assert_eq!(broken, before);
        }
    }
}
