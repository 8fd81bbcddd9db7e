// SPDX-License-Identifier: MPL-2.0
//! Saves the search of an input that equals the last one.
//!
//! Cameras and streams repeat pictures, and a detector finds the same in the same input. An input
//! that differs costs next to nothing: the comparison ends at the first difference, and inputs are
//! swapped, not copied.

use std::mem;

use ndarray::ArrayD;

use crate::memory;

/// The last input of a detector, if there was memory to keep it, and its output.
pub(crate) struct LastSearch<I, O>(Option<(Option<I>, O)>);

/// An input that can be kept.
pub(crate) trait Input: PartialEq + Clone {
    /// Size of its values in memory.
    fn bytes(&self) -> usize;
}

impl Input for ArrayD<f32> {
    fn bytes(&self) -> usize {
        self.len() * size_of::<f32>()
    }
}

impl<I, O> Default for LastSearch<I, O> {
    fn default() -> Self {
        Self(None)
    }
}

impl<I: Input, O> LastSearch<I, O> {
    /// Returns the output for the `input` of `detector`: the last output if the input equals the last
    /// input, otherwise the output of `search`. After a search, the detector has an earlier input,
    /// which may be overwritten.
    ///
    /// # Errors
    /// Returns the errors of `search`. The next input is searched.
    pub(crate) fn output<D, E>(
        &mut self,
        detector: &mut D,
        input: impl Fn(&mut D) -> &mut I,
        search: impl FnOnce(&mut D) -> Result<O, E>,
    ) -> Result<&O, E> {
        let last = match self.0.take() {
            Some((Some(last), output)) if last == *input(detector) => (Some(last), output),
            other => {
                let output = search(detector)?;
                let searched = input(detector);
                let earlier = other.and_then(|(earlier, _)| earlier);
                (kept(searched, earlier), output)
            }
        };
        Ok(&self.0.insert(last).1)
    }
}

/// The input that was searched, which is replaced by an earlier one. `None` if there is too little
/// memory to keep a copy: then the next input is searched in any case.
fn kept<I: Input>(searched: &mut I, earlier: Option<I>) -> Option<I> {
    if let Some(mut earlier) = earlier {
        mem::swap(&mut earlier, searched);
        return Some(earlier);
    }
    let checked = memory::check(searched.bytes(), "a second input of a detector");
    checked.ok().map(|()| searched.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Input for Vec<u8> {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    #[test]
    fn an_input_that_equals_the_last_one_is_not_searched() {
        let mut last = LastSearch::default();
        let mut searches = 0;
        let mut found = |shown: &[u8]| {
            let mut input = shown.to_vec();
            let search = |input: &mut Vec<u8>| {
                searches += 1;
                if input.is_empty() {
                    return Err("nothing to search");
                }
                Ok(input.iter().sum::<u8>())
            };
            let output = last.output(&mut input, |input| input, search).copied();
            (output, searches)
        };
        assert_eq!(found(&[1, 2]), (Ok(3), 1));
        assert_eq!(found(&[1, 2]), (Ok(3), 1));
        assert_eq!(found(&[1, 2, 0]), (Ok(3), 2), "of another length");
        assert_eq!(found(&[1, 3, 0]), (Ok(4), 3));
        assert_eq!(found(&[1, 2, 0]), (Ok(3), 4), "of the one before");
        assert_eq!(found(&[1, 2, 0]), (Ok(3), 4));
        assert_eq!(found(&[]), (Err("nothing to search"), 5));
        assert_eq!(found(&[1, 2, 0]), (Ok(3), 6), "after a failure");
    }

    #[test]
    fn inputs_are_swapped_and_not_copied() {
        let mut last = LastSearch::default();
        let mut input = vec![0];
        let mut places = Vec::new();
        for value in 1..5 {
            input[0] = value;
            let searched = last.output(&mut input, |input| input, |input| Ok::<_, ()>(input[0]));
            assert_eq!(searched, Ok(&value));
            places.push(input.as_ptr());
        }
        assert_eq!(places[0], places[2]);
        assert_eq!(places[1], places[3]);
    }
}
