// SPDX-License-Identifier: MPL-2.0
//! Tables as CSV: a header, commas, quotes where they are needed. Missing values are empty.

use std::io::{self, Write};

use super::{Cell, Column, Table};

/// A CSV file that is being written.
pub struct CsvTable<W: Write> {
    writer: csv::Writer<W>,
    columns: Vec<Column>,
    text: Vec<u8>,
}

impl<W: Write> CsvTable<W> {
    /// Writes the header with `writer`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(mut writer: csv::Writer<W>, columns: Vec<Column>) -> io::Result<Self> {
        writer.write_record(columns.iter().flat_map(names))?;
        Ok(Self {
            writer,
            columns,
            text: Vec::new(),
        })
    }

    fn field(&mut self, value: impl std::fmt::Display) -> io::Result<()> {
        self.text.clear();
        write!(self.text, "{value}")?;
        Ok(self.writer.write_field(&self.text)?)
    }
}

impl<W: Write> Table for CsvTable<W> {
    fn add(&mut self, row: Vec<Cell>) -> io::Result<()> {
        for (index, cell) in row.into_iter().enumerate() {
            match cell {
                Cell::Missing => {
                    for _ in 0..names(&self.columns[index]).len() {
                        self.field("")?;
                    }
                }
                Cell::Integer(value) => self.field(value)?,
                Cell::Double(value) => self.field(value)?,
                Cell::Float(value) => self.field(value)?,
                Cell::Boolean(value) => self.field(value)?,
                Cell::Text(value) => self.writer.write_field(value)?,
                Cell::Floats(list) => list.into_iter().try_for_each(|it| self.field(it))?,
            }
        }
        // Ends the row.
        Ok(self.writer.write_record(None::<&[u8]>)?)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.writer.flush()
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
