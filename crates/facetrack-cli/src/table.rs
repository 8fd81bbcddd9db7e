// SPDX-License-Identifier: MPL-2.0
//! Tables in files: Parquet and CSV.

mod csv;
mod parquet;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use facetrack_assets::file;

pub use self::csv::CsvTable;
pub use self::parquet::{ParquetTable, read_rows};

/// The first bytes of a Parquet file.
pub const PARQUET: &[u8] = b"PAR1";

/// Only a file that begins with `start`, as an earlier `kind` does, is replaced, or an empty one.
///
/// # Errors
/// Names the file and what to do.
pub fn check_start(path: &Path, start: &[u8], kind: &str) -> Result<(), String> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let mut found = vec![0; start.len()];
    let read = file::open(path).and_then(|mut file| file.read_exact(&mut found));
    if read.is_ok() && found == start {
        return Ok(());
    }
    Err(format!(
        "{}: it exists, and is no {kind}. Name another file",
        path.display()
    ))
}

/// Type of the values of a column. Each may be missing in any row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// 64 bits, signed.
    Integer,
    /// 64 bits.
    Double,
    /// 32 bits.
    Float,
    Boolean,
    /// UTF-8.
    Text,
    /// A list of 32-bit numbers.
    Floats,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub kind: Kind,
    /// Names of the values of a list: a list has a column for each in CSV.
    pub parts: Vec<String>,
}

impl Column {
    /// A column of `kind`.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            parts: Vec::new(),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Missing,
    Integer(i64),
    Double(f64),
    Float(f32),
    Boolean(bool),
    Text(String),
    Floats(Vec<f32>),
}

impl Cell {
    /// How many values it has.
    fn len(&self) -> usize {
        if let Self::Floats(list) = self {
            list.len()
        } else {
            1
        }
    }
}

/// A table that is being written.
pub trait Table {
    /// Adds a row with a cell for each column; a CSV file may lack the last ones.
    ///
    /// # Errors
    /// The file cannot be written.
    fn add(&mut self, row: Vec<Cell>) -> io::Result<()>;

    /// Writes the rest.
    ///
    /// # Errors
    /// The file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
