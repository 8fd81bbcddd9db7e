// SPDX-License-Identifier: MPL-2.0
//! Determines from the messages of a pipeline how its video ended.

use facetrack_jobs::{Cause, Outcome, Status};
use gst::glib;
use gst::prelude::*;

/// The element that reads the file.
const READER: &str = "filesrc";

/// Its errors about the file and its disk.
const UNREADABLE: [gst::ResourceError; 3] = [
    gst::ResourceError::NotFound,
    gst::ResourceError::OpenRead,
    gst::ResourceError::Read,
];

/// The outcome of a finished record, from the message `trackjsonsink-done`.
pub(crate) fn of_record(done: &gst::StructureRef) -> Outcome {
    let count = |name| done.get::<u64>(name).unwrap_or(0);
    let is_complete = done.get("complete") == Ok(true);
    Outcome {
        status: if is_complete {
            Status::Complete
        } else {
            Status::Truncated
        },
        expected_frames: done.get("expected-frames").ok(),
        frames: count("frames"),
        gap_frames: count("gap-frames"),
        error_frames: count("corrupted-frames"),
        decode_errors: count("decode-errors"),
        faces: count("faces"),
        message: done.get("incomplete-reason").ok(),
        ..Outcome::default()
    }
}

/// The outcome of an error. `missing` names a decoder that is not installed.
pub(crate) fn of_error(error: &gst::message::Error, missing: Option<String>) -> Outcome {
    let element = error.src().and_then(|it| it.downcast_ref::<gst::Element>());
    // The number at the end of the element's name is removed, because it differs from video to
    // video.
    let source = element.and_then(|element| Some(element.factory()?.name()));
    let cause = error.error();
    let text = match (missing, source.as_deref()) {
        (Some(missing), _) => {
            format!("{missing} is not installed. Install the package of this GStreamer element")
        }
        (None, Some(source)) => format!("{source}: {}", cause.message()),
        (None, None) => cause.message().to_owned(),
    };
    let mut outcome = Outcome::without_record(status(&cause), text);
    if cause.matches(gst::ResourceError::NoSpaceLeft) {
        outcome.cause = Some(Cause::OutOfSpace);
    } else if cause.matches(gst::ResourceError::Busy) {
        outcome.cause = Some(Cause::Busy);
    } else if source.as_deref() == Some(READER) && UNREADABLE.iter().any(|it| cause.matches(*it)) {
        outcome.cause = Some(Cause::Unreadable);
    }
    outcome
}

fn status(error: &glib::Error) -> Status {
    let is_no_video = [gst::StreamError::WrongType, gst::StreamError::TypeNotFound];
    if is_no_video.iter().any(|kind| error.matches(*kind)) {
        Status::Unsupported
    } else {
        Status::Failed
    }
}

/// The name of a missing decoder, if the message is about one.
pub(crate) fn missing_plugin(message: &gst::StructureRef) -> Option<String> {
    message.has_name("missing-plugin").then_some(())?;
    message.get("name").ok()
}
