// SPDX-License-Identifier: MPL-2.0
//! Records version and release date for `plugin_define!`.

use std::path::Path;

fn main() {
    gst_plugin_version_helper::info();
    // Without these lines, a change of any file in the folder causes a rebuild.
    let sources = ["build.rs", "Cargo.toml", ".git/logs/HEAD"];
    for source in sources.iter().filter(|source| Path::new(source).exists()) {
        println!("cargo:rerun-if-changed={source}");
    }
}
