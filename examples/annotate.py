#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Draws the faces of a video into an H.264 file with the video's sound.

    eval "$(make -s env)"
    examples/annotate.py video.mp4 annotated.mp4
    examples/annotate.py video.mp4 annotated.mp4 --facetrack engine=openseeface --facetrackoverlay layers=boxes+points+gaze
    examples/annotate.py video.mp4 annotated.mp4 --track video.json

With `--track` the faces are those that trackjsonsink has written (with `verbose=true` for more than boxes), and nothing is tracked again.
"""

import argparse
import os
import sys
from pathlib import Path

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstPbutils", "1.0")
    from gi.repository import GLib, Gst, GstPbutils
except (ImportError, ValueError) as error:
    sys.exit(
        f"{error}: GStreamer's bindings for Python are needed. On Debian: sudo apt-get install python3-gi python3-gst-1.0 "
        "gir1.2-gst-plugins-base-1.0, and run /usr/bin/python3"
    )

# 8 bits and 4:2:0 are what every player shows, and halves of odd sizes are none; `qual` keeps the quality at any size.
VIDEO = """
    filesrc name=source ! decodebin name=media
    media. ! videoconvert ! videoflip video-direction=auto ! queue ! {faces} ! facetrackoverlay {overlay} ! queue
        ! videoconvertscale ! video/x-raw,format=I420,width=[2,16384,2],height=[2,16384,2]
        ! x264enc pass=qual quantizer=20 ! mp4mux name=mux ! filesink name=target"""

# x264enc looks some 50 frames ahead. The sound has to wait for it, or nothing would move: so this queue has no limit.
SOUND = """
    media. ! audioconvert ! audioresample ! avenc_aac
        ! queue max-size-buffers=0 max-size-bytes=0 max-size-time=0 ! mux."""

# While GStreamer waits, Python does not hear Ctrl-C.
PATIENCE = 100 * Gst.MSECOND


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Draws the faces of a video into an H.264 file.")
    parser.add_argument("video")
    parser.add_argument("output", help="MP4 file")
    faces = parser.add_mutually_exclusive_group()
    faces.add_argument("--facetrack", default="", metavar="PROPERTIES", help="such as 'engine=eos max-faces=1'")
    faces.add_argument("--track", metavar="JSON", help="file of trackjsonsink to take the faces from")
    parser.add_argument("--facetrackoverlay", default="", metavar="PROPERTIES", help="such as layers=boxes+mesh")
    return parser.parse_args()


def has_sound(video: str) -> bool:
    """Whether there is sound in a file; an error where there is no video."""
    uri = Gst.filename_to_uri(os.path.abspath(video))
    try:
        streams = GstPbutils.Discoverer.new(30 * Gst.SECOND).discover_uri(uri)
    except GLib.Error as error:
        raise ValueError(f"{video}: {error.message}") from error
    if not streams.get_video_streams():
        raise ValueError(f"{video} has no video")
    return bool(streams.get_audio_streams())


def copy_frames(_media: Gst.Bin, _bin: Gst.Bin, element: Gst.Element) -> None:
    """Lets a libav decoder copy its frames out, since GStreamer can abort at widths that are not multiples of 16."""
    if element.find_property("direct-rendering"):
        element.set_property("direct-rendering", False)


def play(pipeline: Gst.Pipeline) -> None:
    """Plays to the end, or raises what the bus says."""
    ends = Gst.MessageType.EOS | Gst.MessageType.ERROR
    bus, message = pipeline.get_bus(), None
    try:
        pipeline.set_state(Gst.State.PLAYING)
        while message is None:
            message = bus.timed_pop_filtered(PATIENCE, ends)
    finally:
        pipeline.set_state(Gst.State.NULL)
    if message.type == Gst.MessageType.ERROR:
        raise message.parse_error().gerror


def annotate(wanted: argparse.Namespace) -> None:
    faces = "trackjsonload name=track" if wanted.track else f"facetrack {wanted.facetrack}"
    line = VIDEO.format(faces=faces, overlay=wanted.facetrackoverlay)
    pipeline = Gst.parse_launch(line + (SOUND if has_sound(wanted.video) else ""))
    # Paths are set here and not in the line, where blanks in them would have to be quoted.
    unfinished = wanted.output + ".partial"
    pipeline.get_by_name("source").set_property("location", wanted.video)
    pipeline.get_by_name("media").connect("deep-element-added", copy_frames)
    pipeline.get_by_name("target").set_property("location", unfinished)
    if wanted.track:
        pipeline.get_by_name("track").set_property("location", wanted.track)
    try:
        play(pipeline)
        os.replace(unfinished, wanted.output)
    finally:
        Path(unfinished).unlink(missing_ok=True)


if __name__ == "__main__":
    Gst.init(None)
    try:
        annotate(arguments())
    except GLib.Error as error:
        sys.exit(error.message)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        # As a shell reports Ctrl-C.
        sys.exit(130)
