// SPDX-License-Identifier: MPL-2.0
//! Records that are read back.

use std::io::{self, Cursor, Write};
use std::sync::{Arc, Mutex};

use facetrack::record::{End, Export, Fields, FrameRecord, Metadata, Record};
use facetrack::replay::Replay;
use facetrack::report::FrameReport;

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
    assert_eq!(self::written(&again), written, "it changes when it is read");
}

/// Time and report of each frame, up to the first one with an error; `None` if `data` is not a record.
fn reports(data: &[u8]) -> Option<Vec<(Option<u64>, FrameReport)>> {
    let replay = Replay::open(Cursor::new(data));
    let mut replay = told(replay, &["line", "empty", "reduced", "schema", "metadata"])?;
    let frames: Vec<_> = replay.frames().collect();
    assert!(frames.windows(2).all(|pair| pair[0].0 < pair[1].0));
    let reports = frames.into_iter().enumerate().map(|(place, (_, pts))| {
        let report = replay.report(place, SIZE);
        Some((pts, told(report, &["line"])??))
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
            faces: &report.faces,
            size: Some((report.width, report.height)),
        };
        record.frame(&frame).expect("memory can be written");
    }
    record.close(End::Complete).expect("memory can be written");
    let written = disk.0.lock().expect("no panic");
    written.clone()
}
