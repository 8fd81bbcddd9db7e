// SPDX-License-Identifier: MPL-2.0
//! The parts of the window: the picture, the channels or keys on its right, and the state below it.

use crate::pixels::Area;
use crate::text::Letters;

/// Width of the panel on the right, in letters.
pub const COLUMNS: usize = 42;

/// Lines of the state: its four rows, and three of a message.
pub const LINES: u32 = 7;

/// Distance of text from the edges of its part, in letters.
const MARGIN: f32 = 1.0;

/// The parts of a window. They do not depend on the video, so that nothing jumps when another one
/// is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub picture: Area,
    /// `None` in a window that is too narrow.
    pub panel: Option<Area>,
    /// `None` in a window that is too low.
    pub state: Option<Area>,
}

impl Layout {
    /// The parts of a window of this size.
    pub fn new([width, height]: [u32; 2], letters: &Letters) -> Self {
        let margin = margin(letters);
        let right = letters.width(COLUMNS) + 2 * margin;
        let below = LINES * letters.height + 2 * margin;
        // The picture is the largest part.
        let right = if width >= 2 * right { right } else { 0 };
        let below = if height >= 3 * below { below } else { 0 };
        let picture = Area {
            left: 0,
            top: 0,
            width: width - right,
            height: height - below,
        };
        let panel = Area {
            left: picture.width,
            top: 0,
            width: right,
            height,
        };
        let state = Area {
            left: 0,
            top: picture.height,
            width: picture.width,
            height: below,
        };
        Self {
            picture,
            panel: (right > 0).then_some(panel),
            state: (below > 0).then_some(state),
        }
    }

    /// Only the picture.
    pub fn bare([width, height]: [u32; 2]) -> Self {
        let picture = Area {
            left: 0,
            top: 0,
            width,
            height,
        };
        Self {
            picture,
            panel: None,
            state: None,
        }
    }
}

/// Distance of text from the edges of its part, px.
pub fn margin(letters: &Letters) -> u32 {
    (letters.advance * MARGIN).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_lies_over_another_and_together_they_fill_the_window() {
        for scale in [1.0, 1.5, 2.0] {
            let letters = Letters::new(scale);
            for width in (1..4000).step_by(37) {
                for height in (1..2200).step_by(41) {
                    let layout = Layout::new([width, height], &letters);
                    let parts = [Some(layout.picture), layout.panel, layout.state];
                    let parts: Vec<_> = parts.into_iter().flatten().collect();
                    let sum: u32 = parts.iter().map(|it| it.width * it.height).sum();
                    assert_eq!(sum, width * height, "{layout:?}");
                    for (index, a) in parts.iter().enumerate() {
                        assert!(parts[index + 1..].iter().all(|b| is_apart(a, b)));
                    }
                    assert!(layout.picture.width * 2 >= width, "{layout:?}");
                    assert!(layout.picture.height * 3 >= height * 2, "{layout:?}");
                }
            }
        }
    }

    fn is_apart(a: &Area, b: &Area) -> bool {
        a.left + a.width <= b.left
            || b.left + b.width <= a.left
            || a.top + a.height <= b.top
            || b.top + b.height <= a.top
    }

    #[test]
    fn a_window_of_common_size_has_all_parts() {
        let letters = Letters::new(1.0);
        for size in [[1280, 720], [640, 360], [1920, 1080]] {
            let layout = Layout::new(size, &letters);
            assert!(layout.panel.is_some() && layout.state.is_some(), "{size:?}");
        }
        assert_eq!(Layout::new([200, 100], &letters), Layout::bare([200, 100]));
    }
}
