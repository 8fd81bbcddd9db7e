# SPDX-License-Identifier: MPL-2.0
"""A camera with a microphone that speaks RTSP, sound first: prints its address, and shows a clip's first frame to who
asks, for as long as they look.

Usage: rtsp_server.py <video file> [<port>]
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

PATH = "/live"

# Delay of pictures relative to sound. The one that comes first determines the stream that a client is told about first.
DELAY = 200 * Gst.MSECOND


def configure(_, media):
    media.get_element().get_by_name("pay1").get_static_pad("sink").set_offset(DELAY)
    pad = media.get_element().get_by_name("still").get_static_pad("src")
    pad.add_probe(Gst.PadProbeType.QUERY_UPSTREAM, hide_duration)


# A camera does not end when the clip does.
def hide_duration(_, info):
    is_duration = info.get_query().type == Gst.QueryType.DURATION
    return Gst.PadProbeReturn.DROP if is_duration else Gst.PadProbeReturn.OK


def main():
    Gst.init(None)
    camera = GstRtspServer.RTSPMediaFactory()
    camera.set_launch(
        "( audiotestsrc ! audio/x-raw,rate=8000 ! alawenc ! rtppcmapay name=pay0 "
        f'filesrc location="{sys.argv[1]}" ! qtdemux name=clip clip.video_0 ! queue ! decodebin ! videoconvert '
        "! imagefreeze name=still ! video/x-raw,framerate=25/1 ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=25 "
        "! rtph264pay name=pay1 )"
    )
    camera.connect("media-configure", configure)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    # Any port that is free, unless one is named.
    server.set_service(sys.argv[2] if len(sys.argv) > 2 else "0")
    server.get_mount_points().add_factory(PATH, camera)
    server.attach(None)
    print(f"rtsp://127.0.0.1:{server.get_bound_port()}{PATH}", flush=True)
    GLib.MainLoop().run()


main()
