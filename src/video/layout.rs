// SPDX-License-Identifier: MPL-2.0
//! GStreamer's format descriptions as layouts of the domain.

use gst_video::{VideoFormat, VideoFormatInfo};

use facetrack::image::{ColorModel, Component, Layout, Word};

/// Formats that GStreamer 1.22 describes differently from how it reads them: words of v216 are
/// little-endian, VYUY has the second chroma first, BGR15 and BGR16 have blue in the upper bits.
const MISDESCRIBED: [VideoFormat; 4] = [
    VideoFormat::V216,
    VideoFormat::Vyuy,
    VideoFormat::Bgr15,
    VideoFormat::Bgr16,
];

/// The positions of a format's samples; `None` if GStreamer's description does not include them.
pub(crate) fn layout(format: VideoFormat) -> Option<Layout> {
    let info = VideoFormatInfo::from_format(format);
    let model = match (info.is_rgb(), info.is_yuv(), info.is_gray()) {
        (true, _, _) => ColorModel::Rgb,
        (_, true, _) => ColorModel::Yuv,
        (_, _, true) => ColorModel::Gray,
        _ => return None,
    };
    if info.is_complex() || info.is_tiled() || info.has_palette() || MISDESCRIBED.contains(&format)
    {
        return None;
    }
    let word = word(&info)?;
    let components = (0..info.n_components() as usize).map(|index| {
        let offset = info.poffset()[index] as usize;
        Component {
            plane: info.plane()[index] as usize,
            // GStreamer puts the second word of P010 and similar formats at byte 1.
            offset: match word {
                Word::Byte => offset,
                Word::Le16 | Word::Be16 => offset.next_multiple_of(2),
            },
            step: usize::try_from(info.pixel_stride()[index]).unwrap_or(0),
            subsampling: [info.w_sub()[index], info.h_sub()[index]],
            word,
            shift: info.shift()[index],
            depth: info.depth()[index],
        }
    });
    let components: Vec<_> = components.collect();
    let apart = (1..components.len()).all(|index| {
        components[..index]
            .iter()
            .all(|c| are_apart(c, &components[index]))
    });
    let sound = components.iter().all(Component::is_sound);
    (apart && sound).then_some(Layout { model, components })
}

/// The word of the format's samples; `None` for words of more than two bytes.
fn word(info: &VideoFormatInfo) -> Option<Word> {
    let bits = info.shift().iter().zip(info.depth()).map(|(a, b)| a + b);
    match (bits.max()?, info.is_le()) {
        (0..=8, _) => Some(Word::Byte),
        (9..=16, true) => Some(Word::Le16),
        (9..=16, false) => Some(Word::Be16),
        _ => None,
    }
}

/// Returns true if two components have no bit in common; the descriptions of some formats do not
/// include the positions of their components.
fn are_apart(a: &Component, b: &Component) -> bool {
    (a.plane, a.offset) != (b.plane, b.offset)
        || a.shift >= b.shift + b.depth
        || b.shift >= a.shift + a.depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_word_of_a_pair_comes_after_the_first() {
        gst::init().expect("GStreamer");
        let layout = layout(VideoFormat::P01010le).expect("a layout");
        let offsets: Vec<_> = layout.components.iter().map(|c| c.offset).collect();
        assert_eq!(offsets, [0, 0, 2]);
    }
}
