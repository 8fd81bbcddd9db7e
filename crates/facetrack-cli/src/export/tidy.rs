// SPDX-License-Identifier: MPL-2.0
//! A row per face and frame, with the columns that were chosen.

use super::frame::Frame;
use super::{Form, Layout, Target};
use crate::faces::frame_columns;
use crate::table::{Cell, Column, FileFormat};

pub(super) const CSV: Form = form(FileFormat::Csv);

pub(super) const PARQUET: Form = form(FileFormat::Parquet);

const fn form(file: FileFormat) -> Form {
    Form {
        has_one_face: false,
        takes_columns: true,
        needs_landmarks: |_| false,
        target: Target::Table(file, |video, contents| {
            Ok(Box::new(Tidy {
                video: video.to_owned(),
                columns: contents.columns.clone(),
            }))
        }),
    }
}

/// A row per face and frame of a video.
struct Tidy {
    video: String,
    /// The columns of a face.
    columns: Vec<Column>,
}

impl Layout for Tidy {
    fn columns(&self) -> Vec<Column> {
        let columns = self.columns.iter().cloned();
        frame_columns().into_iter().chain(columns).collect()
    }

    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String> {
        Ok(frame.rows(&self.video).collect())
    }
}
