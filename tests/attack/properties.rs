// SPDX-License-Identifier: MPL-2.0
//! Properties that many threads set and read while frames flow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use facetrack::engine::EngineKind;
use gst::glib;
use gst::prelude::*;

use crate::common::noise::Noise;
use crate::rounds::{self, pick};
use crate::stream::{PATIENCE, Pipeline, Record};

const FRAMES: u64 = 1_500;

const THREADS: u64 = 4;

/// Texts for any property. Some are a name or a path for one of them.
const TEXTS: [&str; 16] = [
    "",
    "-",
    "x",
    "\u{1f600}\u{202e}",
    "/nonexistent/file",
    "/dev/null",
    "127.0.0.1",
    "mouth",
    "face; landmarks",
    "face x=2 dx=-1",
    "nose",
    "cuda:7",
    "landmark_2d_106,pose",
    "#ff0000",
    "0",
    "jawOpen,_neutral,,jawOpen",
];

/// A random value of a property.
fn value(noise: &mut Noise, spec: &glib::ParamSpec) -> Option<glib::Value> {
    let kind = spec.value_type();
    let edge = noise.below(3);
    macro_rules! number {
        ($spec:ty, $number:ty) => {
            if let Some(spec) = spec.downcast_ref::<$spec>() {
                let small = noise.below(100) as $number;
                let within = small.clamp(spec.minimum(), spec.maximum());
                return Some([spec.minimum(), spec.maximum(), within][edge].to_value());
            }
        };
    }
    number!(glib::ParamSpecInt, i32);
    number!(glib::ParamSpecUInt, u32);
    number!(glib::ParamSpecInt64, i64);
    number!(glib::ParamSpecUInt64, u64);
    number!(glib::ParamSpecFloat, f32);
    number!(glib::ParamSpecDouble, f64);
    if kind == glib::Type::BOOL {
        return Some((edge == 0).to_value());
    }
    if kind == glib::Type::STRING {
        let engine = EngineKind::ALL[noise.below(EngineKind::ALL.len())].name();
        let text = if edge == 0 {
            engine
        } else {
            pick(noise, &TEXTS)
        };
        return Some(text.to_value());
    }
    if let Some(class) = glib::EnumClass::with_type(kind) {
        let values = class.values();
        return class.to_value(values[noise.below(values.len())].value());
    }
    let class = glib::FlagsClass::with_type(kind)?;
    let values = class.values();
    class.to_value(values[noise.below(values.len())].value())
}

/// Properties with the name of a file that is written.
const WRITTEN: [&str; 2] = ["calibration-file", "neutral-file"];

/// Sets a property of an element's own class, or reads one.
fn change(noise: &mut Noise, element: &gst::Element) {
    let specs: Vec<_> = element.list_properties().iter().cloned().collect();
    let own: Vec<_> = specs
        .iter()
        .filter(|it| it.owner_type() == element.type_() && !WRITTEN.contains(&it.name()))
        .collect();
    let spec = *pick(noise, &own);
    if !spec.flags().contains(glib::ParamFlags::WRITABLE) {
        element.property_value(spec.name());
    } else if let Some(value) = value(noise, spec) {
        element.set_property_from_value(spec.name(), &value);
    }
    if element.type_().name() == "GstFaceTrack" && rounds::one_in(noise, 20) {
        let signal = pick(noise, &["reset", "reset-calibration", "set-neutral"]);
        element.emit_by_name::<()>(signal, &[]);
    }
}

#[test]
fn any_thread_may_change_properties_at_any_time() {
    rounds::run(2, |noise| {
        let (record, replayed) = (Record::new(), Record::new());
        let source = format!(
            "videotestsrc num-buffers={FRAMES} ! video/x-raw,format=I420,width=64,height=48,framerate=25/1"
        );
        let first = format!("{source} ! facetrack engine=scripted ! {}", record.sink());
        Pipeline::new(&first).play().expect("it is recorded");
        let pipeline = Pipeline::new(&format!(
            "{source} ! facetrack engine=scripted ! trackjsonload location={} ! facetrackoverlay \
             ! tee name=t ! queue ! {} t. ! queue ! trackudpsink host=127.0.0.1 sync=false",
            record.path().display(),
            replayed.sink()
        ));
        let elements: Vec<_> = pipeline
            .pipeline
            .iterate_elements()
            .into_iter()
            .flatten()
            .collect();
        let ours: Vec<_> = elements.iter().filter(|it| is_ours(it)).collect();
        assert_eq!(ours.len(), 5);
        // The properties of the first frame have to be good ones.
        let playing = pipeline.pipeline.set_state(gst::State::Playing);
        playing.expect("it plays");
        pipeline.pipeline.state(PATIENCE).0.expect("it plays");
        let is_over = AtomicBool::new(false);
        let seeds: Vec<_> = (0..THREADS).map(|_| noise.below(1 << 30) as u64).collect();
        thread::scope(|scope| {
            for seed in seeds {
                let (ours, is_over) = (&ours, &is_over);
                scope.spawn(move || {
                    let mut noise = Noise::new(seed);
                    while !is_over.load(Ordering::SeqCst) {
                        let element = *pick(&mut noise, ours);
                        change(&mut noise, element);
                    }
                });
            }
            let end = pipeline.end();
            is_over.store(true, Ordering::SeqCst);
            end.expect("frames flow to the end");
        });
        assert_eq!(replayed.assert_numbered().0, FRAMES);
    });
}

fn is_ours(element: &gst::Element) -> bool {
    let factory = element.factory().expect("a factory");
    factory.name().contains("facetrack") || factory.name().starts_with("track")
}
