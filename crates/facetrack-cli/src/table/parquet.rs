// SPDX-License-Identifier: MPL-2.0
//! Tables as Parquet, with the types that Arrow has for [`Kind`]. Every value is optional.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type,
};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};

use super::{Cell, Column, Kind, Table};

/// Values of a row group. Our choice: 4 MB of numbers.
const GROUP: usize = 1 << 20;

/// A Parquet file that is being written.
pub(super) struct ParquetTable<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    /// Rows of the next group.
    rows: Vec<Vec<Cell>>,
    /// Number of values in these rows.
    values: usize,
}

impl<W: Write + Send> ParquetTable<W> {
    /// A table with these columns.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn new(output: W, columns: Vec<Column>) -> io::Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let schema = schema(&columns)?;
        Ok(Self {
            writer: SerializedFileWriter::new(output, schema, Arc::new(properties))?,
            columns,
            rows: Vec::new(),
            values: 0,
        })
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            let cells = self.rows.iter().map(|row| &row[index]);
            if let Some(mut writer) = group.next_column()? {
                write_column(&mut writer, column.kind, cells)?;
                writer.close()?;
            }
        }
        group.close()?;
        self.rows.clear();
        self.values = 0;
        Ok(())
    }
}

impl<W: Write + Send> Table for ParquetTable<W> {
    fn add(&mut self, row: Vec<Cell>) -> io::Result<()> {
        self.values += row.iter().map(Cell::len).sum::<usize>();
        self.rows.push(row);
        if self.values >= GROUP {
            self.write_group()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(())
    }
}

fn schema(columns: &[Column]) -> Result<TypePtr> {
    let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?)));
    let fields = fields.collect::<Result<_>>()?;
    let schema = Type::group_type_builder("schema").with_fields(fields);
    Ok(Arc::new(schema.build()?))
}

fn field(column: &Column) -> Result<Type> {
    let name = &column.name;
    match column.kind {
        Kind::Integer => optional(name, Physical::INT64, None),
        Kind::Double => optional(name, Physical::DOUBLE, None),
        Kind::Float => optional(name, Physical::FLOAT, None),
        Kind::Boolean => optional(name, Physical::BOOLEAN, None),
        Kind::Text => optional(name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Floats => list(name, Physical::FLOAT, None),
        Kind::Texts => list(name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
    }
}

fn optional(name: &str, physical: Physical, logical: Option<LogicalType>) -> Result<Type> {
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// A list in the three levels that the format's specification demands.
fn list(name: &str, physical: Physical, logical: Option<LogicalType>) -> Result<Type> {
    let element = optional("element", physical, logical)?;
    let items = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(Some(LogicalType::List))
        .with_fields(vec![Arc::new(items)])
        .build()
}

fn write_column<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    cells: impl Iterator<Item = &'a Cell>,
) -> Result<()> {
    macro_rules! values {
        ($cell:ident) => {
            |cell| {
                if let Cell::$cell(value) = cell {
                    Some(*value)
                } else {
                    None
                }
            }
        };
    }
    match kind {
        Kind::Integer => write::<Int64Type>(writer, cells, values!(Integer)),
        Kind::Double => write::<DoubleType>(writer, cells, values!(Double)),
        Kind::Float => write::<FloatType>(writer, cells, values!(Float)),
        Kind::Boolean => write::<BoolType>(writer, cells, values!(Boolean)),
        Kind::Text => write::<ByteArrayType>(writer, cells, text),
        Kind::Floats => write_lists::<FloatType>(writer, cells, |cell| match cell {
            Cell::Floats(list) => Some(list.clone()),
            _ => None,
        }),
        Kind::Texts => write_lists::<ByteArrayType>(writer, cells, |cell| match cell {
            Cell::Texts(list) => Some(list.iter().map(|it| it.as_str().into()).collect()),
            _ => None,
        }),
    }
}

fn text(cell: &Cell) -> Option<ByteArray> {
    if let Cell::Text(text) = cell {
        Some(text.as_str().into())
    } else {
        None
    }
}

/// Writes the values that there are. The definition level of a value is 1, of a missing one 0.
fn write<'a, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    value: fn(&Cell) -> Option<T::T>,
) -> Result<()> {
    let (mut values, mut definitions) = (Vec::new(), Vec::new());
    for value in cells.map(value) {
        definitions.push(i16::from(value.is_some()));
        values.extend(value);
    }
    let column = writer.typed::<T>();
    column.write_batch(&values, Some(&definitions), None)?;
    Ok(())
}

/// Writes lists. The definition level of a missing list is 0, of an empty one 1, of a value 3. The
/// repetition level of the first value of a list is 0, of the others 1.
fn write_lists<'a, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Cell>,
    list: fn(&Cell) -> Option<Vec<T::T>>,
) -> Result<()> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    for list in cells.map(list) {
        let is_present = list.is_some();
        let list = list.unwrap_or_default();
        if list.is_empty() {
            definitions.push(i16::from(is_present));
            repetitions.push(0);
            continue;
        }
        definitions.extend(list.iter().map(|_| 3));
        repetitions.push(0);
        repetitions.extend(list.iter().skip(1).map(|_| 1));
        values.extend(list);
    }
    let column = writer.typed::<T>();
    column.write_batch(&values, Some(&definitions), Some(&repetitions))?;
    Ok(())
}

/// Returns true if the file is a Parquet file that begins with these columns.
pub(super) fn begins_with(file: File, names: &[&str]) -> bool {
    SerializedFileReader::new(file).is_ok_and(|reader| {
        let fields = reader.metadata().file_metadata().schema().get_fields();
        let fields = fields.iter().map(|field| field.name());
        fields.take(names.len()).eq(names.iter().copied())
    })
}

/// Calls `work` with each row of the Parquet file, which has a cell for each of these columns. If
/// the file does not have a column, or has it with another type, its cells are missing.
///
/// # Errors
/// Returns an error if the file cannot be read, or `work` fails.
pub(crate) fn read_rows(
    file: File,
    columns: &[(&str, Kind)],
    mut work: impl FnMut(Vec<Cell>) -> io::Result<()>,
) -> io::Result<()> {
    let reader = SerializedFileReader::new(file)?;
    let places = columns.iter().enumerate();
    let places: HashMap<_, _> = places.map(|(place, (name, _))| (*name, place)).collect();
    for row in reader.get_row_iter(None)? {
        let mut cells = vec![Cell::Missing; columns.len()];
        for (name, field) in row?.get_column_iter() {
            if let Some(place) = places.get(name.as_str()) {
                cells[*place] = cell(field, columns[*place].1);
            }
        }
        work(cells)?;
    }
    Ok(())
}

fn cell(field: &Field, kind: Kind) -> Cell {
    match (kind, field) {
        (Kind::Integer, Field::Long(value)) => Cell::Integer(*value),
        (Kind::Double, Field::Double(value)) => Cell::Double(*value),
        (Kind::Text, Field::Str(value)) => Cell::Text(value.clone()),
        _ => Cell::Missing,
    }
}
