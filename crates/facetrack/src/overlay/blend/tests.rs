// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::geometry::Rect;

fn component(word: Word, shift: u32, depth: u32) -> Component {
    Component {
        plane: 0,
        offset: 0,
        step: 2,
        subsampling: [0, 0],
        word,
        shift,
        depth,
    }
}

fn filled(size: (usize, usize), rects: &[Rect]) -> Mask {
    let mut mask = Mask::default();
    mask.resize(size.0, size.1).unwrap();
    rects.iter().for_each(|rect| mask.fill(*rect));
    mask
}

/// The lanes of a single component.
fn lanes_of(component: &Component, code: u32) -> Lanes {
    Lanes::of(std::iter::once((component, code))).remove(0)
}

#[test]
fn the_ends_of_a_mixture_are_exact() {
    for sample in [0, 1, 16, 254, 255, 1023, 65535] {
        for code in [0, 17, 255, 940, 65535] {
            assert_eq!(mix(sample, code, 0), sample);
            assert_eq!(mix(sample, code, 255), code);
            let half = f64::from(sample) + (f64::from(code) - f64::from(sample)) * 128.0 / 255.0;
            assert!((f64::from(mix(sample, code, 128)) - half).abs() <= 0.5);
        }
    }
}

#[test]
fn every_product_is_divided_exactly() {
    for whole in 0..=65535 {
        let value = whole * 255;
        assert_eq!([0, 127, 254].map(|rest| div_255(value + rest)), [whole; 3]);
    }
}

#[test]
fn a_color_over_nothing_is_all_that_is_seen() {
    for most in [1, 255, 1023, 65535] {
        for weight in 0..=255 {
            assert_eq!(share(weight, most, most), weight, "over an opaque one");
            assert_eq!(share(weight, 0, most), if weight > 0 { 255 } else { 0 });
        }
    }
    // Half over half leaves a quarter of the lower one: a third of what is seen.
    assert_eq!(share(128, 128, 255), 170);
}

#[test]
fn bytes_are_mixed_as_words_are() {
    for sample in 0..=255 {
        for (code, weight) in [(0, 1), (255, 254), (17, 128), (200, 77), (255, 255)] {
            let mixed = mix_bytes(sample, code, weight);
            let want = mix(u32::from(sample), u32::from(code), u32::from(weight));
            assert_eq!(u32::from(mixed), want, "{sample} {code} {weight}");
        }
    }
}

#[test]
fn opacity_is_the_most_that_coverage_can_be() {
    let component = Component {
        step: 1,
        ..component(Word::Byte, 0, 8)
    };
    let coverage: Vec<_> = (0..=255).collect();
    let mut line = [0; 256];
    row(&mut line, &lanes_of(&component, 255), (0, &coverage), 110);
    assert_eq!([line[0], line[255]], [0, 110]);
    assert!(line.is_sorted());
}

#[test]
fn only_the_components_own_bits_change() {
    for (word, shift, depth, before, code, after) in [
        (Word::Byte, 0, 8, [0x12, 0x34], 0xff, [0xff, 0x34]),
        (Word::Le16, 0, 10, [0x12, 0x34], 0x3ff, [0xff, 0x37]),
        (Word::Be16, 0, 10, [0x34, 0x12], 0x3ff, [0x37, 0xff]),
        (Word::Le16, 6, 10, [0x12, 0x34], 0x3ff, [0xd2, 0xff]),
        (Word::Le16, 5, 6, [0xff, 0xff], 0, [0x1f, 0xf8]),
        (Word::Le16, 0, 16, [0, 0], 0x1234, [0x34, 0x12]),
    ] {
        let mut line = before;
        let component = component(word, shift, depth);
        row(&mut line, &lanes_of(&component, code), (0, &[255]), 255);
        assert_eq!(line, after, "{word:?} {shift} {depth}");
    }
}

#[test]
fn samples_start_where_the_component_says() {
    let mut line = [0; 80];
    let component = Component {
        offset: 1,
        step: 4,
        ..component(Word::Byte, 0, 8)
    };
    let coverage: Vec<u8> = (0..17).map(|i| if i == 16 { 255 } else { 0 }).collect();
    row(&mut line, &lanes_of(&component, 9), (2, &coverage), 255);
    let changed: Vec<_> = (0..80).filter(|i| line[*i] != 0).collect();
    assert_eq!((changed, line[73]), (vec![1 + (2 + 16) * 4], 9));
}

#[test]
fn components_side_by_side_are_mixed_together() {
    let [red, green, blue] = [2, 1, 0].map(|offset| Component {
        offset,
        step: 4,
        ..component(Word::Byte, 0, 8)
    });
    let luma = Component {
        plane: 1,
        step: 1,
        ..component(Word::Byte, 0, 8)
    };
    let components = [(&red, 1), (&luma, 4), (&green, 2), (&blue, 3)];
    let lanes = Lanes::of(components.into_iter());
    assert_eq!(
        lanes.iter().map(|l| l.component.plane).collect::<Vec<_>>(),
        [0, 1]
    );
    // The last pixel ends with its last component.
    let mut line = [9; 11];
    row(&mut line, &lanes[0], (1, &[255, 255]), 255);
    assert_eq!(line, [9, 9, 9, 9, 3, 2, 1, 9, 3, 2, 1]);
}

#[test]
fn codes_are_read_from_their_own_bits() {
    for (word, shift, depth) in [
        (Word::Byte, 0, 8),
        (Word::Byte, 2, 4),
        (Word::Le16, 6, 10),
        (Word::Be16, 0, 16),
    ] {
        let bytes = word.bytes();
        let component = Component {
            offset: bytes,
            step: 3 * bytes,
            ..component(word, shift, depth)
        };
        let codes = [0, component.max_code(), 5, 10];
        // Four pixels. The last one ends with its component.
        let mut line = vec![0; 11 * bytes];
        for (pixel, code) in codes.into_iter().enumerate() {
            let lanes = lanes_of(&component, code);
            row(&mut line, &lanes, (pixel, &[255]), 255);
        }
        let read = [0, 1, 2, 3].map(|pixel| component.code(&line, pixel));
        assert_eq!(read, codes, "{word:?} {shift} {depth}");
    }
}

#[test]
fn a_sample_of_several_pixels_is_covered_as_they_are_in_the_mean() {
    // 5×3 pixels: the last column and the last row have no neighbor in their cell.
    let mask = filled(
        (5, 3),
        &[Rect::new(1.0, 0.0, 2.0, 1.0), Rect::new(4.0, 2.0, 1.0, 1.0)],
    );
    let mut reduced = Vec::new();
    assert_eq!(reduced_rows(&mask, [1, 1]), 0..2);
    for (row, subsampling, want) in [
        (0, [1, 1], (0, &[64, 64][..])),
        (1, [1, 1], (2, &[255])),
        (0, [1, 0], (0, &[128, 128])),
        (1, [1, 0], (0, &[])),
        (2, [2, 0], (1, &[255])),
        (0, [2, 2], (0, &[43, 85])),
        (0, [0, 0], (1, &[255, 255])),
    ] {
        let reduced = reduce(&mask, row, subsampling, &mut reduced);
        assert_eq!(reduced, want, "{row} {subsampling:?}");
    }
    assert_eq!(reduced_rows(&filled((4, 4), &[]), [1, 1]), 0..0);
}
