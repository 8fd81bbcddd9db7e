// SPDX-License-Identifier: MPL-2.0
//! Engines that change while frames flow, also to ones that cannot be loaded.

use std::sync::OnceLock;

use facetrack::engine::{EngineConfig, EngineKind};
use gst::prelude::*;

use crate::common;
use crate::common::noise::Noise;
use crate::rounds::{self, one_in, pick};
use crate::stream::{self, Stream};

/// Frames until an engine must have been loaded. Loading takes a second at most.
const PATIENCE: u64 = 1_000_000;

/// The names of the engines that are installed and look at pixels.
pub fn installed() -> &'static [&'static str] {
    static INSTALLED: OnceLock<Vec<&str>> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let config = EngineConfig::default();
        let kinds = EngineKind::ALL.into_iter();
        let kinds = kinds.filter(|kind| !kind.entry().is_synthetic);
        let kinds = kinds.filter(|kind| common::engine::engine(*kind, &config).is_some());
        kinds.map(EngineKind::name).collect()
    })
}

/// Sets another engine, or something that is none.
fn switch(noise: &mut Noise, element: &gst::Element) {
    let model = one_in(noise, 4).then_some("/nonexistent/model");
    element.set_property("model", model);
    let engine = match noise.below(5) {
        0 => "no-engine",
        1 => "scripted",
        _ => pick(noise, installed()),
    };
    element.set_property("engine", engine);
}

#[test]
fn no_frame_is_lost_while_engines_change() {
    rounds::run(1, |noise| {
        let mut stream = Stream::new("facetrack engine=scripted script=face");
        let element = stream
            .harness
            .find_element("facetrack")
            .expect("the element");
        let mut frames = 0..PATIENCE;
        let mut next = |stream: &mut Stream| {
            let number = frames.next().expect("the engine is loaded in time");
            stream.pass(stream::clean(number)).1
        };
        for _ in 0..12 {
            switch(noise, &element);
            (0..noise.below(30)).for_each(|_| drop(next(&mut stream)));
            if one_in(noise, 3) {
                element.emit_by_name::<()>("reset", &[]);
            }
        }
        element.set_property("model", None::<&str>);
        element.set_property("engine", "scripted");
        while next(&mut stream).source.engine != "scripted" {}
        stream.assert_no_error();
        stream.assert_works();
    });
}
