// SPDX-License-Identifier: MPL-2.0
//! Tables as CSV: a header, commas, quotes where they are needed. Missing values are empty.

use std::io::{self, Write};

use super::{Cell, Column, Table};

/// A CSV file that is being written.
pub(super) struct CsvTable<W: Write> {
    writer: csv::Writer<W>,
    columns: Vec<Column>,
    text: Vec<u8>,
}

impl<W: Write> CsvTable<W> {
    /// Writes the header. If it is `ragged`, rows may lack the last cells.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn new(file: W, columns: Vec<Column>, ragged: bool) -> io::Result<Self> {
        let mut writer = csv::WriterBuilder::new();
        let mut writer = writer.flexible(ragged).from_writer(file);
        let header = columns.iter().flat_map(names);
        writer.write_record(header).map_err(of_file)?;
        Ok(Self {
            writer,
            columns,
            text: Vec::new(),
        })
    }

    fn field(&mut self, value: impl std::fmt::Display) -> io::Result<()> {
        self.text.clear();
        write!(self.text, "{value}")?;
        self.writer.write_field(&self.text).map_err(of_file)
    }
}

impl<W: Write> Table for CsvTable<W> {
    fn add(&mut self, row: Vec<Cell>) -> io::Result<()> {
        for (index, cell) in row.into_iter().enumerate() {
            let fields = names(&self.columns[index]).len();
            match cell {
                cell if matches!(cell, Cell::Missing) || cell.len() != fields => {
                    (0..fields).try_for_each(|_| self.field(""))?;
                }
                Cell::Integer(value) => self.field(value)?,
                Cell::Double(value) => self.field(value)?,
                Cell::Float(value) => self.field(value)?,
                Cell::Boolean(value) => self.field(value)?,
                Cell::Text(value) => self.writer.write_field(value).map_err(of_file)?,
                Cell::Floats(list) => list.into_iter().try_for_each(|it| self.field(it))?,
                Cell::Texts(list) => list.into_iter().try_for_each(|it| self.field(it))?,
                Cell::Missing => (),
            }
        }
        // Ends the row.
        self.writer.write_record(None::<&[u8]>).map_err(of_file)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The error of the file. The library converts its errors into ones without a cause.
fn of_file(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Names in the header.
fn names(column: &Column) -> &[String] {
    if column.parts.is_empty() {
        std::slice::from_ref(&column.name)
    } else {
        &column.parts
    }
}
