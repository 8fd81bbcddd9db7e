// SPDX-License-Identifier: MPL-2.0
//! Tables in files: Parquet and CSV.

mod csv;
mod parquet;

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use facetrack_assets::file;
use facetrack_assets::replacement::Replacement;

pub(crate) use self::parquet::read_rows;

use self::csv::CsvTable;
use self::parquet::ParquetTable;
use crate::error::StoreError;
use crate::output;

/// Number of leading columns that identify a table of this command. Our choice: later columns depend
/// on the record.
const LEADING: usize = 3;

/// A format of tables in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Parquet,
    Csv,
    /// CSV whose rows may lack the last cells.
    RaggedCsv,
}

impl FileFormat {
    /// Suffix of file names.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Csv | Self::RaggedCsv => "csv",
        }
    }

    /// Checks that a file to replace begins with the first of these columns.
    ///
    /// # Errors
    /// Returns a message with the file and the remedy.
    pub(crate) fn check(self, path: &Path, columns: &[Column]) -> Result<(), String> {
        let names = columns
            .iter()
            .take(LEADING)
            .map(|column| column.name.as_str());
        let names: Vec<_> = names.collect();
        if self != Self::Parquet {
            return check_start(path, names.join(",").as_bytes(), "table of this format");
        }
        if may_replace(path, |file| parquet::begins_with(file, &names)) {
            return Ok(());
        }
        Err(refusal(path, "Parquet file with these columns"))
    }

    /// Begins a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn begin<'a>(
        self,
        file: impl Write + Send + 'a,
        columns: Vec<Column>,
    ) -> io::Result<Box<dyn Table + 'a>> {
        Ok(match self {
            Self::Parquet => Box::new(ParquetTable::new(file, columns)?),
            _ => Box::new(CsvTable::new(file, columns, self == Self::RaggedCsv)?),
        })
    }
}

/// Adds a row to a table.
pub(crate) type Add<'a> = dyn FnMut(Vec<Cell>) -> Result<(), StoreError> + 'a;

/// Writes a file with the rows that `fill` adds, and returns how many it has.
///
/// # Errors
/// Returns an error if the file cannot be written, or `fill` fails.
pub(crate) fn write(
    path: &Path,
    format: FileFormat,
    columns: Vec<Column>,
    fill: impl FnOnce(&mut Add<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<u64, Box<dyn Error>> {
    let replacement = Replacement::begin(path).map_err(StoreError::at(path))?;
    let file = replacement.file().map_err(StoreError::at(path))?;
    let table = format.begin(BufWriter::new(file), columns);
    let mut table = table.map_err(StoreError::at(path))?;
    let mut count = 0;
    fill(&mut |row| {
        count += 1;
        table.add(row).map_err(StoreError::at(path))
    })?;
    table.finish().map_err(StoreError::at(path))?;
    replacement.finish().map_err(StoreError::at(path))?;
    Ok(count)
}

/// Prints how many things a file has.
///
/// # Errors
/// Returns an error if the text cannot be printed.
pub(crate) fn print_count(count: u64, thing: &str, path: &Path) -> Result<(), StoreError> {
    let count = output::counted(count, thing);
    output::print_line(format_args!("{count} in {}", path.display()))
}

/// Writes a file with this text.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), StoreError> {
    let write = || {
        let replacement = Replacement::begin(path)?;
        replacement.file()?.write_all(text.as_bytes())?;
        replacement.finish().map(drop)
    };
    write().map_err(StoreError::at(path))
}

/// Checks that a file to replace is empty, or begins with `start` as an earlier `kind` does.
///
/// # Errors
/// Returns a message with the file and the remedy.
pub(crate) fn check_start(path: &Path, start: &[u8], kind: &str) -> Result<(), String> {
    let has_start = |mut file: File| {
        let mut found = vec![0; start.len()];
        file.read_exact(&mut found).is_ok() && found == start
    };
    if may_replace(path, has_start) {
        return Ok(());
    }
    Err(refusal(path, kind))
}

/// Returns true if no file with any content is at the path, or one that `is_own`.
pub(crate) fn may_replace(path: &Path, is_own: impl FnOnce(File) -> bool) -> bool {
    let has_content = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0);
    !has_content || file::open(path).is_ok_and(is_own)
}

fn refusal(path: &Path, kind: &str) -> String {
    let path = path.display();
    format!("{path}: it exists, and is no {kind}. Name another file")
}

/// Type of the values of a column. Each may be missing in any row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signed 64-bit integers.
    Integer,
    /// 64-bit floating-point numbers.
    Double,
    /// 32-bit floating-point numbers.
    Float,
    Boolean,
    /// UTF-8 text.
    Text,
    /// A list of 32-bit numbers.
    Floats,
    /// A list of texts.
    Texts,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    pub kind: Kind,
    /// Names of the values of a list: a list has a column for each in CSV.
    pub parts: Vec<String>,
}

impl Column {
    /// A column of `kind`.
    pub(crate) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            parts: Vec::new(),
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Missing,
    Integer(i64),
    Double(f64),
    Float(f32),
    Boolean(bool),
    Text(String),
    Floats(Vec<f32>),
    Texts(Vec<String>),
}

impl Cell {
    /// Returns the number of values in the cell.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Floats(list) => list.len(),
            Self::Texts(list) => list.len(),
            _ => 1,
        }
    }
}

/// A table that is being written.
trait Table {
    /// Adds a row with a cell for each column; a CSV file may lack the last ones.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn add(&mut self, row: Vec<Cell>) -> io::Result<()>;

    /// Writes the rest.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}
