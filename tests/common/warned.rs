// SPDX-License-Identifier: MPL-2.0
//! The warnings that a pipeline posts.

use gst::prelude::*;

/// The warnings of a pipeline that plays to its end.
#[track_caller]
pub fn warnings_of(line: &str) -> Vec<String> {
    super::init();
    let pipeline = gst::parse::launch(line).expect("a pipeline");
    let bus = pipeline.bus().expect("a bus");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let mut warnings = Vec::new();
    for message in bus.iter_timed(gst::ClockTime::from_seconds(60)) {
        match message.view() {
            gst::MessageView::Warning(warning) => {
                warnings.push(warning.error().message().to_owned());
            }
            gst::MessageView::Error(error) => panic!("{line}: {}", error.error()),
            gst::MessageView::Eos(_) => {
                pipeline.set_state(gst::State::Null).expect("it stops");
                return warnings;
            }
            _ => (),
        }
    }
    panic!("{line} does not end");
}
