// SPDX-License-Identifier: MPL-2.0
//! Binary archives of the library cereal: little-endian, without names, types or padding. eos
//! stores matrices, vectors and strings in them.

/// Reads an archive from its start. `what` names the value in error messages. Nothing is copied or
/// allocated, and every size is checked against the remaining bytes.
pub(super) struct Archive<'a> {
    rest: &'a [u8],
}

/// A matrix of `f32` in column-major order: `eigen_cerealisation.hpp`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    values: &'a [[u8; 4]],
}

impl<'a> Archive<'a> {
    /// Creates an archive with these bytes.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Ends reading.
    ///
    /// # Errors
    /// Returns an error if bytes remain.
    pub(super) fn end(self) -> Result<(), String> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(format!("{} bytes follow its end", self.rest.len()))
        }
    }

    /// Reads an `int`.
    pub(super) fn i32(&mut self, what: &str) -> Result<i32, String> {
        self.array(what).map(i32::from_le_bytes)
    }

    /// Reads a `bool`.
    pub(super) fn flag(&mut self, what: &str) -> Result<bool, String> {
        match self.array(what)? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(format!("{what} is {other}, neither 0 nor 1")),
        }
    }

    /// Reads the length of a `std::vector`, a `std::string` or a map, whose items have at least
    /// `item_bytes` bytes.
    pub(super) fn count(&mut self, item_bytes: usize, what: &str) -> Result<usize, String> {
        let count = u64::from_le_bytes(self.array(what)?);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= self.rest.len() / item_bytes)
            .ok_or_else(|| self.lacks(u128::from(count) * item_bytes as u128, what))
    }

    /// Reads a `std::string`.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a str, String> {
        let count = self.count(1, what)?;
        let bytes = self.bytes(count, what)?;
        str::from_utf8(bytes).map_err(|_| format!("{what} is not UTF-8 text"))
    }

    /// Reads a `std::vector` of items of `SIZE` bytes; `SIZE` is not 0.
    pub(super) fn items<const SIZE: usize>(
        &mut self,
        what: &str,
    ) -> Result<&'a [[u8; SIZE]], String> {
        let count = self.count(SIZE, what)?;
        Ok(self.bytes(count * SIZE, what)?.as_chunks().0)
    }

    /// Reads an `Eigen::MatrixXf` or `Eigen::VectorXf`.
    pub(super) fn matrix(&mut self, what: &str) -> Result<Matrix<'a>, String> {
        let mut side = || {
            let side = self.i32(what)?;
            u32::try_from(side).map_err(|_| format!("a side of {what} is {side}"))
        };
        let (rows, columns) = (side()?, side()?);
        let size = 4 * u128::from(rows) * u128::from(columns);
        let available = usize::try_from(size).map_err(|_| self.lacks(size, what))?;
        Ok(Matrix {
            rows: rows as usize,
            columns: columns as usize,
            values: self.bytes(available, what)?.as_chunks().0,
        })
    }

    fn array<const SIZE: usize>(&mut self, what: &str) -> Result<[u8; SIZE], String> {
        let Some((head, rest)) = self.rest.split_first_chunk() else {
            return Err(self.lacks(SIZE as u128, what));
        };
        self.rest = rest;
        Ok(*head)
    }

    fn bytes(&mut self, count: usize, what: &str) -> Result<&'a [u8], String> {
        let Some((head, rest)) = self.rest.split_at_checked(count) else {
            return Err(self.lacks(count as u128, what));
        };
        self.rest = rest;
        Ok(head)
    }

    fn lacks(&self, wanted: u128, what: &str) -> String {
        let left = self.rest.len();
        format!("{what} would take {wanted} bytes, and {left} are left")
    }
}

impl Matrix<'_> {
    /// Returns the values in column-major order.
    ///
    /// # Errors
    /// Returns an error if a value is not finite.
    pub(super) fn values(&self, what: &str) -> Result<Vec<f32>, String> {
        let values = self.values.iter().copied().map(f32::from_le_bytes);
        let values: Vec<f32> = values.collect();
        match values.iter().find(|value| !value.is_finite()) {
            None => Ok(values),
            Some(value) => Err(format!("a value of {what} is {value}")),
        }
    }

    /// The points of a matrix with a single column of their x, y and z.
    ///
    /// # Errors
    /// Returns an error if the matrix has another shape, or a value is not finite.
    pub(super) fn points(&self, what: &str) -> Result<Vec<[f32; 3]>, String> {
        let (rows, columns) = (self.rows, self.columns);
        if rows % 3 != 0 || columns != 1 {
            return Err(format!("{what} is {rows}×{columns}, not 3·vertices×1"));
        }
        let values = self.values(what)?;
        Ok(values.as_chunks().0.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of `read` for an archive of `parts`.
    fn error(parts: &[&[u8]], read: impl Fn(&mut Archive) -> Result<(), String>) -> String {
        read(&mut Archive::new(&parts.concat())).expect_err("it is broken")
    }

    #[test]
    fn what_was_written_is_read() {
        let parts: [&[u8]; 7] = [
            &7_i32.to_le_bytes(),
            &[1],
            &3_u64.to_le_bytes(),
            b"joy",
            &2_i32.to_le_bytes(),
            &1_i32.to_le_bytes(),
            &[1.5_f32.to_le_bytes(), (-2.0_f32).to_le_bytes()].concat(),
        ];
        let bytes = parts.concat();
        let mut archive = Archive::new(&bytes);
        assert_eq!(archive.i32("number"), Ok(7));
        assert_eq!(archive.flag("flag"), Ok(true));
        assert_eq!(archive.string("name"), Ok("joy"));
        let matrix = archive.matrix("matrix").unwrap();
        assert_eq!((matrix.rows, matrix.columns), (2, 1));
        assert_eq!(matrix.values("matrix"), Ok(vec![1.5, -2.0]));
        assert_eq!(archive.end(), Ok(()));
    }

    #[test]
    fn sizes_are_held_against_the_bytes_that_are_there() {
        let side = |side: i32| side.to_le_bytes();
        for (rows, columns, reason) in [
            (-1, 1, "a side of it is -1"),
            (1, i32::MIN, "a side of it is -2147483648"),
            (2, 1, "would take 8 bytes, and 4 are left"),
            (i32::MAX, i32::MAX, "would take 18446744056529682436 bytes"),
        ] {
            let error = error(&[&side(rows), &side(columns), &[0; 4]], |a| {
                a.matrix("it").map(drop)
            });
            assert!(error.contains(reason), "{rows}×{columns}: {error}");
        }
        for count in [5, 1 << 32, u64::MAX] {
            let parts: [&[u8]; 2] = [&count.to_le_bytes(), b"four"];
            assert!(error(&parts, |a| a.string("it").map(drop)).contains("4 are left"));
            assert!(error(&parts, |a| a.items::<16>("it").map(drop)).contains("4 are left"));
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        assert_eq!(
            error(&[&[2]], |a| a.flag("it").map(drop)),
            "it is 2, neither 0 nor 1"
        );
        let latin: [&[u8]; 2] = [&1_u64.to_le_bytes(), b"\xe9"];
        assert_eq!(
            error(&latin, |a| a.string("it").map(drop)),
            "it is not UTF-8 text"
        );
        let end = Archive::new(b"rest").end();
        assert_eq!(end, Err("4 bytes follow its end".to_owned()));
        for value in [f32::NAN, f32::INFINITY] {
            let one = 1_i32.to_le_bytes();
            let parts: [&[u8]; 3] = [&one, &one, &value.to_le_bytes()];
            let error = error(&parts, |a| a.matrix("it")?.values("it").map(drop));
            assert!(error.starts_with("a value of it is"), "{error}");
        }
        let shape: [&[u8]; 3] = [&2_i32.to_le_bytes(), &1_i32.to_le_bytes(), &[0; 8]];
        let error = error(&shape, |a| a.matrix("it")?.points("it").map(drop));
        assert_eq!(error, "it is 2×1, not 3·vertices×1");
    }
}
