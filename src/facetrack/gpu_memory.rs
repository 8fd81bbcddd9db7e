// SPDX-License-Identifier: MPL-2.0
//! GPU memory of the process, asked of the driver at most once a second.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use facetrack::device::{OwnMemory, Placement};
use facetrack_assets::lock::lock;

/// Age up to which an answer is used again, so that few frames wait for the driver. Our choice.
const MAX_AGE: Duration = Duration::from_secs(1);

/// GPU memory of the process on one device.
#[derive(Debug)]
pub(super) struct GpuMemory {
    own: OwnMemory,
    last: Mutex<Option<(Instant, Option<u64>)>>,
}

impl GpuMemory {
    /// The memory on the GPU of `placement`; `None` on the CPU, and if the driver does not report
    /// it.
    pub(super) fn of(placement: &Placement) -> Option<Self> {
        let own = OwnMemory::of(placement)?;
        let last = Mutex::default();
        Some(Self { own, last })
    }

    /// Memory in use, MiB.
    pub(super) fn mebibytes(&self) -> Option<u64> {
        let mut last = lock(&self.last);
        match *last {
            Some((when, answer)) if when.elapsed() <= MAX_AGE => answer,
            _ => {
                let answer = self.own.mebibytes();
                *last = Some((Instant::now(), answer));
                answer
            }
        }
    }
}
