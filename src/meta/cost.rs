// SPDX-License-Identifier: MPL-2.0
//! The cost of a frame's analysis, which differs from run to run and is not part of the report.

use std::time::Duration;

use gst::meta::CustomMeta;

use super::{FaceTrackMeta, nanoseconds};

/// Field: time that the analysis took, ns.
const ANALYSIS_TIME: &str = "analysis-time";

/// Field: GPU memory that the process uses, MiB.
const GPU_MEMORY: &str = "gpu-memory";

/// The cost of a frame's analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Time that it took; `None` if the frame was not analysed.
    pub time: Option<Duration>,
    /// GPU memory that the process uses, MiB; `None` on the CPU, and if the driver does not report
    /// it.
    pub gpu_memory: Option<u64>,
}

impl FaceTrackMeta {
    /// Adds `cost` to the metadata of a buffer. A buffer without metadata stays unchanged.
    pub fn set_cost(buffer: &mut gst::BufferRef, cost: Cost) {
        if let Ok(mut meta) = CustomMeta::from_mut_buffer(buffer, Self::NAME) {
            let record = meta.mut_structure();
            record.set_if_some(ANALYSIS_TIME, cost.time.map(nanoseconds));
            record.set_if_some(GPU_MEMORY, cost.gpu_memory);
        }
    }

    /// The cost of the analysis of a buffer, as far as it is known.
    pub fn cost(buffer: &gst::BufferRef) -> Cost {
        let Ok(meta) = CustomMeta::from_buffer(buffer, Self::NAME) else {
            return Cost::default();
        };
        let field = |name| meta.structure().get::<u64>(name).ok();
        Cost {
            time: field(ANALYSIS_TIME).map(Duration::from_nanos),
            gpu_memory: field(GPU_MEMORY),
        }
    }
}
