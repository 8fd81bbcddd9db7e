// SPDX-License-Identifier: MPL-2.0
//! Private readers, for the targets in `fuzz/`.

use ::facetrack::engine::EngineKind;

use crate::options::{
    BlurSettings, Defaults, Environment, FaceTrackSettings, JsonSinkSettings, LoadSettings,
    Options, OverlaySettings, Row, UdpSettings, display,
};

/// Reads `text` as the value of each option, and shows and reads the value again.
pub fn options(text: &str) {
    gst::init().expect("GStreamer");
    values::<FaceTrackSettings>(text);
    values::<JsonSinkSettings>(text);
    values::<LoadSettings>(text);
    values::<BlurSettings>(text);
    values::<OverlaySettings>(text);
    values::<UdpSettings>(text);
}

/// Reads the settings of each engine from an environment with these variables, in the order of the
/// table in the documentation, and returns the warnings.
pub fn environment(values: &[String]) -> Vec<String> {
    gst::init().expect("GStreamer");
    let environment = Environment::of(values);
    let engines = EngineKind::ALL.iter().copied().map(Some).chain([None]);
    let mut warnings = Vec::new();
    for engine in engines {
        let (_, own) = Options::<FaceTrackSettings>::default().resolve(engine, &environment);
        warnings.extend(own);
        let (_, own) = Options::<JsonSinkSettings>::default().resolve(engine, &environment);
        warnings.extend(own);
    }
    warnings.iter().map(ToString::to_string).collect()
}

fn values<S: Defaults>(text: &str) {
    for row in S::ROWS {
        match row.parse(text) {
            Ok(value) => assert_is_kept(row, &value),
            Err(reason) => assert!(!reason.is_empty(), "{}", row.name),
        }
    }
}

/// Asserts that the property has the value that was read, and that its text is read as the same.
fn assert_is_kept<S: Defaults>(row: &Row<S>, value: &gst::glib::Value) {
    let mut settings = S::default();
    row.set_value(&mut settings, value);
    let shown = display(&row.value(&mut settings));
    if shown != "unset" {
        let again = row.parse(&shown).expect(row.name);
        row.set_value(&mut settings, &again);
        assert_eq!(display(&row.value(&mut settings)), shown, "{}", row.name);
    }
}
