// SPDX-License-Identifier: MPL-2.0
//! Fuzz targets for everything that reads files, packets or options. `FUZZ_TARGET` selects one.
#![no_main]

mod build;
mod eos;
mod evaluate;
mod files;
mod networks;
mod options;
mod packet;
mod passes;
mod records;
mod shared;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

/// Reads the bytes and asserts what must hold of the result.
type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 19] = [
    ("calibration", files::calibration),
    ("container", files::container),
    ("environment", options::environment),
    ("eos_expressions", eos::expressions),
    ("eos_fit", eos::fit),
    ("eos_json", eos::json),
    ("eos_mapping", eos::mapping),
    ("eos_shape", eos::shape),
    ("geometry", files::geometry),
    ("haar", files::haar),
    ("manifest", files::manifest),
    ("onnx", networks::onnx),
    ("options", options::options),
    ("packet", packet::packet),
    ("passes", passes::passes),
    ("replay", records::replay),
    ("script", files::script),
    ("task", networks::task),
    ("tflite", networks::tflite),
];

static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let chosen = TARGETS.iter().find(|(own, _)| *own == name);
    let names = TARGETS.map(|(name, _)| name).join(" ");
    chosen
        .unwrap_or_else(|| panic!("set FUZZ_TARGET to one of: {names}"))
        .1
});

fuzz_target!(|data: &[u8]| CHOSEN(data));
