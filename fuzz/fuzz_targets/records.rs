// SPDX-License-Identifier: MPL-2.0
//! Records that are read back.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use facetrack::fuzzing;
use facetrack::record::{End, Export, Fields, FrameRecord, Metadata, Record};
use facetrack::report::{FrameReport, FrameStatus};

use crate::shared::{told, within};

/// Size of frames whose record does not have it.
const SIZE: (u32, u32) = (64, 48);

/// A file in memory.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Vec<u8>>>);

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn replay(data: &[u8]) {
    let limit = (16 << 20) + 256 * data.len();
    let Some(reports) = within(limit, || reports(data)) else {
        return;
    };
    let written = written(&reports);
    let again = self::reports(&written).expect("a record was written");
    let again = self::written(&again);
    let [again, written] = [&again, &written].map(|text| String::from_utf8_lossy(text));
    assert_eq!(again, written, "it changes when it is read");
}

/// Time and report of each frame, up to the first one with an error; `None` if `data` is not a record.
fn reports(data: &[u8]) -> Option<Vec<(Option<u64>, FrameReport)>> {
    let frames = fuzzing::replay(data, SIZE);
    let frames = told(frames, &["line", "empty", "reduced", "schema", "metadata"])?;
    assert!(frames.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let reports = frames.into_iter().map(|(_, pts, report)| {
        let report = told(report, &["line"])??;
        // Only the head knows that there was an engine, and this one has no name for it.
        let is_analysed = !matches!(report.status, FrameStatus::Skipped | FrameStatus::Gap);
        (is_analysed || !report.source.engine.is_empty()).then_some((pts, report))
    });
    Some(reports.map_while(|report| report).collect())
}

/// A record of the reports, with all that they say.
fn written(reports: &[(Option<u64>, FrameReport)]) -> Vec<u8> {
    let disk = Disk::default();
    let export = Export {
        fields: Fields::all(),
        ..Export::default()
    };
    let metadata = Metadata {
        source: reports.first().map(|(_, report)| report.source.clone()),
        ..Metadata::default()
    };
    let mut record = Record::jsonl(disk.clone(), export, metadata);
    for (pts, report) in reports {
        let frame = FrameRecord {
            pts: *pts,
            status: report.status,
            cut: report.cut,
            repeated: report.repeated,
            search: report.search,
            faces: &report.faces,
            size: Some((report.width, report.height)),
            engine: Some(&report.source.engine),
        };
        record.frame(&frame).expect("memory can be written");
    }
    record.close(End::Complete).expect("memory can be written");
    let written = disk.0.lock().expect("no panic");
    written.clone()
}
