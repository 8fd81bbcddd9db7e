// SPDX-License-Identifier: MPL-2.0
//! Every frame has other caps: format, size, rate, pixel aspect ratio, interlacing, colours.

use gst_video::VideoInfo;

use crate::common::noise::Noise;
use crate::rounds::{self, pick};
use crate::stream::{self, Record, Stream};
use crate::switches::installed;

const FRAMES: u64 = 40;

/// Frames that each engine looks at.
const LOOKED_AT: u64 = 16;

const SIDES: [i32; 12] = [1, 2, 3, 5, 8, 16, 17, 33, 64, 97, 160, 321];

const RATES: [&str; 8] = [
    "0/1",
    "1/1",
    "25/1",
    "240/1",
    "30000/1001",
    "1/1000",
    "2147483647/1",
    "1/2147483647",
];

const RATIOS: [&str; 8] = [
    "1/1",
    "12/11",
    "64/45",
    "1/2",
    "4/1",
    "1/10000",
    "2147483647/1",
    "1/2147483647",
];

const EXTRAS: [&str; 8] = [
    "",
    "",
    ",interlace-mode=interleaved",
    ",interlace-mode=mixed,field-order=bottom-field-first",
    ",colorimetry=bt2020",
    ",colorimetry=1:4:0:0,chroma-site=jpeg",
    ",multiview-mode=side-by-side",
    ",views=2",
];

/// The formats that an element takes.
pub fn formats(element: &str) -> Vec<String> {
    rounds::init();
    let factory = gst::ElementFactory::find(element).expect("the element");
    let templates = factory.static_pad_templates();
    let sink = templates
        .into_iter()
        .find(|it| it.direction() == gst::PadDirection::Sink);
    let caps = sink.expect("a sink").caps();
    let formats = caps
        .structure(0)
        .and_then(|it| it.get::<gst::List>("format").ok());
    let formats = formats.expect("a list of formats");
    formats.iter().map(|it| it.get().expect("a name")).collect()
}

/// Random caps, and their description.
pub fn random_caps(noise: &mut Noise, formats: &[String]) -> (gst::Caps, VideoInfo) {
    let [width, height] = [pick(noise, &SIDES), pick(noise, &SIDES)];
    let (format, rate, ratio) = (
        pick(noise, formats),
        pick(noise, &RATES),
        pick(noise, &RATIOS),
    );
    let extra = pick(noise, &EXTRAS);
    let caps = stream::caps(&format!(
        "video/x-raw,format={format},width={width},height={height},framerate={rate},\
         pixel-aspect-ratio={ratio}{extra}"
    ));
    let info = VideoInfo::from_caps(&caps).unwrap_or_else(|error| panic!("{caps}: {error}"));
    (caps, info)
}

/// A frame of these caps with random bytes.
pub fn frame(noise: &mut Noise, info: &VideoInfo, number: u64) -> gst::Buffer {
    let mut bytes = vec![noise.below(256) as u8; info.size()];
    for byte in bytes.iter_mut().step_by(7) {
        *byte = noise.below(256) as u8;
    }
    stream::at(gst::Buffer::from_mut_slice(bytes), number)
}

#[test]
fn every_element_takes_other_caps_with_every_frame() {
    let formats = formats("facetrackoverlay");
    rounds::run(12, |noise| {
        let record = Record::new();
        let mut stream = Stream::new(&format!(
            "facetrack engine=scripted script=\"face dx=0.03 dy=0.02; landmarks\" smoothing=one-euro \
             predict=true ! facetrackoverlay layers=1023 ! tee name=t ! {} async=false \
             t. ! trackudpsink host=127.0.0.1 sync=false async=false t. ! identity",
            record.sink()
        ));
        for number in 0..FRAMES {
            let (caps, info) = random_caps(noise, &formats);
            stream.set_caps(&caps);
            let (buffer, _) = stream.pass(frame(noise, &info, number));
            stream::assert_placed(&buffer, &caps);
        }
        assert!(stream.harness.push_event(gst::event::Eos::new()));
        stream.assert_no_error();
        assert_eq!(record.assert_numbered().0, FRAMES);
        stream.assert_works();
    });
}

#[test]
fn every_engine_reads_other_caps_with_every_frame() {
    let formats = formats("facetrack");
    rounds::run(1, |noise| {
        for engine in installed() {
            let mut stream = Stream::new(&format!("facetrack engine={engine}"));
            for number in 0..LOOKED_AT {
                let (caps, info) = random_caps(noise, &formats);
                stream.set_caps(&caps);
                stream.pass(frame(noise, &info, number));
            }
            stream.assert_no_error();
            stream.assert_works();
        }
    });
}
