// SPDX-License-Identifier: MPL-2.0
//! Copies a video into a small one that browsers play, with the frames of its record.

use std::error::Error;
use std::path::Path;

use facetrack_jobs::PROXY_MARK;
use gst::prelude::*;
use gstfacetrack::shown;

use crate::{branch, faults, playback, streams};

/// Elements from raw frames to standard output. Every 15th frame is a key frame, so that a browser
/// steps fast. Standard output is a file, so that the muxer can write an index.
const ENCODER: &str = "videoconvert ! videoscale add-borders=false \
    ! video/x-raw,width=[2,640],height=[2,640],pixel-aspect-ratio=1/1 \
    ! vp8enc deadline=1 cpu-used=8 threads=2 target-bitrate=1500000 keyframe-max-dist=15 \
    ! webmmux name=muxer ! fdsink sync=false";

/// Writes the copy of `video` to standard output, which is a file.
///
/// # Errors
/// Returns an error if the video cannot be played, or the copy cannot be written.
pub(crate) fn write(video: &Path) -> Result<(), Box<dyn Error>> {
    if copy(video, |_| ())? || copy(video, faults::hide_movie_duration)? {
        Ok(())
    } else {
        Err("the file has no video".into())
    }
}

/// Writes the copy, unless no video is found. `prepare` gets the pad that yields the file. Returns
/// true if there were frames.
fn copy(video: &Path, prepare: fn(&gst::Pad)) -> Result<bool, Box<dyn Error>> {
    let pipeline = gst::Pipeline::new();
    let (file, decoder) = (playback::make("filesrc")?, playback::make("decodebin")?);
    file.set_property("location", video);
    let encoder = gst::parse::bin_from_description(ENCODER, true)?;
    let muxer = encoder.by_name("muxer").ok_or("there is no muxer")?;
    muxer.set_property("writing-app", PROXY_MARK);
    pipeline.add_many([&file, &decoder, encoder.upcast_ref()])?;
    file.link(&decoder)?;
    file.static_pad("src").iter().for_each(prepare);
    branch::restrict(&decoder, 0);
    let input = encoder.static_pad("sink").ok_or("the encoder has no pad")?;
    set_times(&input, branch::video_clock(shown::movie(video)));
    let (bin, encoded) = (pipeline.downgrade(), input.clone());
    decoder.connect_no_more_pads(move |decoder| {
        let Some(pipeline) = bin.upgrade() else {
            return;
        };
        match streams::video(decoder) {
            Some(pad) => {
                let connect = branch::connector(&pipeline, input.clone(), |pipeline, reason| {
                    let error = gst::message::Error::builder(gst::StreamError::Failed, &reason);
                    post(pipeline, error.src(pipeline).build());
                });
                branch::with_first_frame(&pad, connect);
            }
            // Nothing will reach the encoder and end there.
            None => post(
                &pipeline,
                gst::message::Eos::builder().src(&pipeline).build(),
            ),
        }
    });
    let played = play(&pipeline);
    let has_frames = encoded.current_caps().is_some();
    pipeline.set_state(gst::State::Null)?;
    Ok(played.map(|()| has_frames)?)
}

/// Gives frames their times in a record, where the first one is at 0. Frames that do not count there
/// are left out.
fn set_times(pad: &gst::Pad, clock: branch::Clock) {
    pad.add_probe(branch::FRAMES, move |pad, info| {
        let time = clock(pad, info);
        match &mut info.data {
            Some(gst::PadProbeData::Event(event)) if event.type_() == gst::EventType::Segment => {
                let segment = gst::FormattedSegment::<gst::ClockTime>::new();
                *event = gst::event::Segment::new(&segment);
            }
            Some(gst::PadProbeData::Buffer(buffer)) => match time {
                Some(time) => buffer
                    .make_mut()
                    .set_pts(gst::ClockTime::from_nseconds(time)),
                None => return gst::PadProbeReturn::Drop,
            },
            _ => (),
        }
        gst::PadProbeReturn::Ok
    });
}

fn post(pipeline: &gst::Pipeline, message: gst::Message) {
    // The bus is flushed when the pipeline stops.
    let _ = pipeline.post_message(message);
}

/// Plays to the end.
fn play(pipeline: &gst::Pipeline) -> Result<(), String> {
    let bus = pipeline.bus().ok_or("the pipeline has no bus")?;
    // An error message has the reason why the pipeline does not start.
    let _ = pipeline.set_state(gst::State::Playing);
    for message in bus.iter_timed(gst::ClockTime::NONE) {
        match message.view() {
            gst::MessageView::Eos(_) => break,
            gst::MessageView::Error(error) => return Err(error.error().to_string()),
            _ => (),
        }
    }
    Ok(())
}
