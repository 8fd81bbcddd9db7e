// SPDX-License-Identifier: MPL-2.0
//! Records version and release date for `plugin_define!`.

fn main() {
    gst_plugin_version_helper::info()
}
