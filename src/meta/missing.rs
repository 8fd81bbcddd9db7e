// SPDX-License-Identifier: MPL-2.0
//! Detects streams without metadata, about which elements that read metadata warn.

use gst::prelude::*;

/// Number of frames without metadata at a stream's start after which an element posts a warning.
const PATIENCE: u64 = 60;

/// Query that an element answers if it attaches metadata.
const SOURCE_QUERY: &str = "facetrack-meta-source";

/// Counts the frames of a stream until one has metadata.
#[derive(Debug, Default)]
pub(crate) struct MissingMetaCounter {
    frames: u64,
    is_settled: bool,
}

impl MissingMetaCounter {
    /// Counts a frame. Returns true once, when too many frames had no metadata.
    pub(crate) fn count(&mut self, has_metadata: bool) -> bool {
        if self.is_settled {
            return false;
        }
        self.frames += 1;
        self.is_settled = has_metadata || self.frames == PATIENCE;
        self.is_settled && !has_metadata
    }

    /// Handles the end of the stream. Returns true if it had frames, none of them with metadata,
    /// and [`MissingMetaCounter::count`] has not reported this.
    pub(crate) fn end(&mut self) -> bool {
        !std::mem::replace(&mut self.is_settled, true) && self.frames > 0
    }
}

/// The problem and its remedy. Asks the elements after the pad `source` if they attach metadata,
/// which would be too late. The caller must hold no lock.
pub(crate) fn remedy(source: Option<&gst::Pad>) -> &'static str {
    let query = || gst::query::Custom::new(gst::Structure::new_empty(SOURCE_QUERY));
    if source.is_some_and(|pad| pad.peer_query(&mut query())) {
        "the frames have no metadata of facetrack, which comes later in the pipeline: put facetrack before this element"
    } else {
        "the frames have no metadata of facetrack: put facetrack or trackjsonload before this element, and no element \
             that drops metadata between them"
    }
}

/// Returns true if a query asks for an element that attaches metadata.
pub(crate) fn asks_for_source(query: &gst::QueryRef) -> bool {
    query.type_() == gst::QueryType::Custom
        && query
            .structure()
            .is_some_and(|structure| structure.name() == SOURCE_QUERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how often a stream of these frames is reported while it plays, and whether it is
    /// reported at its end.
    fn remarks(frames: impl Iterator<Item = bool>) -> (usize, bool) {
        let mut missing_meta = MissingMetaCounter::default();
        let remarks = frames.filter(|frame| missing_meta.count(*frame)).count();
        (remarks, missing_meta.end())
    }

    #[test]
    fn a_stream_is_remarked_on_once_unless_it_has_metadata_in_time() {
        let patience = PATIENCE as usize;
        let without = |count| std::iter::repeat_n(false, count);
        assert_eq!(remarks(without(0)), (0, false));
        assert_eq!(remarks(without(1)), (0, true));
        assert_eq!(remarks(without(patience - 1)), (0, true));
        assert_eq!(remarks(without(1000)), (1, false));
        let late = without(patience - 1).chain([true]).chain(without(1000));
        assert_eq!(remarks(late), (0, false));
    }
}
