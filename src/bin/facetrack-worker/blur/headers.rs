// SPDX-License-Identifier: MPL-2.0
//! Headers of encoded sound without their texts and pictures, which may say where a video was taken or
//! show a face.

use gst::prelude::*;

/// The field of caps with the headers of a stream.
const HEADERS: &str = "streamheader";

/// A comment header of Vorbis without comments: type, name, lengths of vendor and list, framing bit.
/// Source: Vorbis I specification, 5.2.1.
const VORBIS_COMMENTS: &[u8] = b"\x03vorbis\0\0\0\0\0\0\0\0\x01";

/// An empty comment block of FLAC, as the last metadata block: type 4, size, lengths of vendor and list.
/// Source: RFC 9639, 8.6.
const FLAC_COMMENTS: &[u8] = b"\x84\0\0\x08\0\0\0\0\0\0\0\0";

/// In the first header of FLAC, the number of further ones, and the flag of the last block. Source: RFC
/// 9639, 10.1.
const FLAC_COUNT: std::ops::Range<usize> = 7..9;
const FLAC_LAST: usize = 13;
const IS_LAST: u8 = 0x80;

/// Removes comments and pictures from the headers of Vorbis and FLAC that pass a pad, also from the
/// headers that are sent before the sound.
pub(super) fn remove_texts(pad: &gst::Pad) {
    let probed = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(probed, |_, info| match &mut info.data {
        Some(gst::PadProbeData::Event(event)) => {
            if let gst::EventView::Caps(caps) = event.view() {
                *event = gst::event::Caps::new(&without_texts(caps.caps()));
            }
            gst::PadProbeReturn::Ok
        }
        // The muxer writes the headers in the caps.
        Some(gst::PadProbeData::Buffer(buffer)) if is_header(buffer) => gst::PadProbeReturn::Drop,
        _ => gst::PadProbeReturn::Ok,
    });
}

fn is_header(buffer: &gst::BufferRef) -> bool {
    let is_vorbis = || {
        let bytes = buffer.map_readable().ok();
        bytes.is_some_and(|it| {
            it.first().is_some_and(|it| it & 1 == 1) && it[1..].starts_with(b"vorbis")
        })
    };
    buffer.flags().contains(gst::BufferFlags::HEADER) || is_vorbis()
}

/// The caps with empty comments. Those without headers stay as they are.
fn without_texts(caps: &gst::CapsRef) -> gst::Caps {
    let mut caps = caps.to_owned();
    for stream in caps.make_mut().iter_mut() {
        let Ok(headers) = stream.get::<gst::Array>(HEADERS) else {
            continue;
        };
        let headers = headers.iter().filter_map(|it| it.get::<gst::Buffer>().ok());
        let mut headers: Vec<_> = headers.collect();
        if stream.has_name("audio/x-vorbis") {
            for header in headers.iter_mut().filter(|it| has_comments(it)) {
                *header = gst::Buffer::from_slice(VORBIS_COMMENTS);
            }
        } else if stream.has_name("audio/x-flac") {
            headers.truncate(1);
            headers = headers.iter().filter_map(first_of_flac).collect();
            headers.push(gst::Buffer::from_slice(FLAC_COMMENTS));
        }
        let headers = headers.iter().map(|it| it.to_send_value());
        stream.set(HEADERS, gst::Array::from_values(headers));
    }
    caps
}

/// Returns true for the header of Vorbis with comments.
fn has_comments(header: &gst::BufferRef) -> bool {
    let bytes = header.map_readable().ok();
    bytes.is_some_and(|it| it.starts_with(b"\x03vorbis"))
}

/// The header of FLAC with the properties of the sound, which one other follows.
fn first_of_flac(header: &gst::Buffer) -> Option<gst::Buffer> {
    let mut bytes = header.map_readable().ok()?.to_vec();
    bytes.get_mut(FLAC_COUNT)?.copy_from_slice(&[0, 1]);
    *bytes.get_mut(FLAC_LAST)? &= !IS_LAST;
    Some(gst::Buffer::from_slice(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_pictures_are_removed() {
        gst::init().expect("GStreamer");
        let first = b"\x7fFLAC\x01\0\0\x02fLaC\x80\0\0\x22etc";
        for (name, headers, want) in [
            (
                "audio/x-vorbis",
                [&b"\x01vorbis"[..], b"\x03vorbisPLACE", b"\x05vorbis"],
                vec![&b"\x01vorbis"[..], VORBIS_COMMENTS, b"\x05vorbis"],
            ),
            (
                "audio/x-flac",
                [&first[..], b"\x04PLACE", b"\x86PICTURE"],
                vec![&b"\x7fFLAC\x01\0\0\x01fLaC\0\0\0\x22etc"[..], FLAC_COMMENTS],
            ),
        ] {
            let buffers = headers.map(|it| gst::Buffer::from_slice(it).to_send_value());
            let caps = gst::Caps::builder(name).field(HEADERS, gst::Array::from_values(buffers));
            let caps = without_texts(&caps.build());
            let left = caps
                .structure(0)
                .expect("a stream")
                .get::<gst::Array>(HEADERS);
            let left = left.expect("headers");
            let left: Vec<_> = left.iter().map(|it| it.get::<gst::Buffer>()).collect();
            let left = left.into_iter().map(|it| it.expect("a header"));
            let left: Vec<_> = left
                .map(|it| it.map_readable().expect("bytes").to_vec())
                .collect();
            assert_eq!(left, want, "{name}");
        }
    }
}
