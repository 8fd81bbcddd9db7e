// SPDX-License-Identifier: MPL-2.0
//! Distinguishes still and animated pictures. Their files have the same types, so the frames
//! decide.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use facetrack_assets::lock::lock;
use gst::prelude::*;

/// Maximum size, in bytes, of the data before the first picture, where an animated PNG or WebP is
/// marked as such. Our choice; profiles of colours come first.
const HEADER: u64 = 1 << 20;

/// Position of the features in a WebP file, and the feature of an animation.
const WEBP_FLAGS: usize = 20;
const WEBP_ANIMATION: u8 = 2;

/// The type of a picture, if the decoder reads one.
pub(crate) fn kind(decoder: &gst::Bin) -> Option<String> {
    let caps = decoder
        .by_name("typefind")?
        .property::<Option<gst::Caps>>("caps")?;
    let name = caps.structure(0)?.name().to_string();
    name.starts_with("image/").then_some(name)
}

/// Returns the reason why a file of this type is not tracked.
pub(crate) fn reason(path: &Path, kind: &str) -> String {
    if is_animated(path) {
        format!(
            "the file is an animated picture ({kind}), which GStreamer cannot play: convert it to a video"
        )
    } else {
        format!("the file is a still picture ({kind}), not a video")
    }
}

/// Returns true if a PNG or WebP file says that it is animated.
pub(crate) fn is_animated(path: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER).read_to_end(&mut bytes));
    read.is_ok() && (is_animated_png(&bytes) || is_animated_webp(&bytes))
}

fn is_animated_png(bytes: &[u8]) -> bool {
    let place = |name: &[u8; 4]| bytes.windows(4).position(|found| found == name);
    let picture = place(b"IDAT").unwrap_or(bytes.len());
    bytes.starts_with(b"\x89PNG") && place(b"acTL").is_some_and(|place| place < picture)
}

fn is_animated_webp(bytes: &[u8]) -> bool {
    let is_extended = bytes.starts_with(b"RIFF") && bytes.get(8..16) == Some(b"WEBPVP8X");
    let flags = bytes.get(WEBP_FLAGS).filter(|_| is_extended);
    flags.is_some_and(|flags| flags & WEBP_ANIMATION != 0)
}

/// The first frames of a stream of pictures.
enum Begun {
    Nothing,
    First(gst::Buffer),
    Moves,
}

/// Keeps the first frame at `pad` back until the second one comes. Then calls `on_second`, and lets
/// the frames pass. Calls `on_single` if there is no second one. A frame of another size is another
/// picture, such as the smaller ones behind a JPEG.
pub(crate) fn wait_for_second(
    pad: &gst::Pad,
    on_second: impl Fn(&gst::Pad) + Send + Sync + 'static,
    on_single: impl Fn() + Send + Sync + 'static,
) {
    let begun = Mutex::new(Begun::Nothing);
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
    pad.add_probe(kinds, move |pad, info| {
        let mut state = lock(&begun);
        match (&*state, info.event().map(|event| event.type_())) {
            (Begun::First(_), Some(gst::EventType::Eos | gst::EventType::Caps)) => {
                on_single();
                // The bindings release it. With `Drop`, GStreamer would, too.
                return gst::PadProbeReturn::Handled;
            }
            (Begun::Moves, _) | (_, Some(_)) => return gst::PadProbeReturn::Ok,
            _ => (),
        }
        if matches!(*state, Begun::Nothing) {
            *state = info.take_buffer().map_or(Begun::Nothing, Begun::First);
            return gst::PadProbeReturn::Handled;
        }
        let first = std::mem::replace(&mut *state, Begun::Moves);
        drop(state);
        on_second(pad);
        if let Begun::First(first) = first {
            // The second frame gets the same answer.
            let _ = pad.push(first);
        }
        gst::PadProbeReturn::Ok
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn animations_are_recognised() {
        let webp = |flags: u8| [&b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0"[..], &[flags]].concat();
        for (bytes, is) in [
            (b"\x89PNG IHDR acTL IDAT".to_vec(), true),
            (b"\x89PNG IHDR IDAT acTL".to_vec(), false),
            (b"\x89PNG IHDR".to_vec(), false),
            (b"GIF89a acTL".to_vec(), false),
            (webp(0x12), true),
            (webp(0x10), false),
            (b"RIFF\0\0\0\0WEBPVP8 ".to_vec(), false),
        ] {
            assert_eq!(
                is_animated_png(&bytes) || is_animated_webp(&bytes),
                is,
                "{bytes:?}"
            );
        }
    }
}
