// SPDX-License-Identifier: MPL-2.0
//! A row per face and frame, with the columns that the record has values for.

use super::frame::Frame;
use super::{Form, Layout, Target};
use crate::faces::frame_columns;
use crate::table::{Cell, Column, FileFormat};

pub(super) const CSV: Form = form(FileFormat::Csv);

pub(super) const PARQUET: Form = form(FileFormat::Parquet);

const fn form(file: FileFormat) -> Form {
    Form {
        has_one_face: false,
        takes_landmarks: true,
        needs_landmarks: |_| false,
        target: Target::Table(file, |contents| {
            Ok(Box::new(Tidy(contents.columns.clone())))
        }),
    }
}

/// The columns of a face.
struct Tidy(Vec<Column>);

impl Layout for Tidy {
    fn columns(&self) -> Vec<Column> {
        frame_columns().into_iter().chain(self.0.clone()).collect()
    }

    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String> {
        let faces = frame.faces.iter().map(|face| {
            let cells = frame.cells().into_iter();
            cells.chain(face.cells.iter().cloned()).collect()
        });
        Ok(faces.collect())
    }
}
