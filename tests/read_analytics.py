# SPDX-License-Identifier: MPL-2.0
"""Prints a line for each face of a launch line's frames, as tests/elements/analytics.rs expects it, with only
GStreamer's own bindings.

It takes the way of DL Streamer's gstgva: from a detection by relations to what belongs to it, and by its id to its region.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstAnalytics", "1.0")
gi.require_version("GstVideo", "1.0")
from gi.repository import GLib, Gst, GstAnalytics, GstVideo  # noqa: E402


def related(detection, kind, relation):
    relations = detection.meta
    return [
        mtd
        for mtd in relations
        if type(mtd) is kind and relations.get_relation(detection.id, mtd.id) == relation
    ]


def describe(buffer, detection):
    _, x, y, width, height, rotation, confidence = detection.get_oriented_location()
    [tracking] = related(detection, GstAnalytics.TrackingMtd, GstAnalytics.RelTypes.RELATE_TO)
    [channels] = related(detection, GstAnalytics.ClsMtd, GstAnalytics.RelTypes.CONTAIN)
    assert not related(detection, GstAnalytics.ClsMtd, GstAnalytics.RelTypes.RELATE_TO)
    times = tracking.get_info()
    jaw = channels.get_index_by_quark(GLib.quark_from_string("jawOpen"))
    region = GstVideo.buffer_get_video_region_of_interest_meta_id(buffer, detection.id)
    assert (region.x, region.y, region.w, region.h) == (x, y, width, height)
    part = region.get_param("detection")
    return (
        f"{GLib.quark_to_string(detection.get_obj_type())} {width}x{height} at {x},{y} turned {rotation:.1f} "
        f"sure {confidence:.2f} track {times.tracking_id} from {times.tracking_first_seen // Gst.MSECOND} "
        f"to {times.tracking_last_seen // Gst.MSECOND} lost {times.tracking_lost} "
        f"{channels.get_length()} channels jawOpen {channels.get_level(jaw):.3f} "
        f"object {region.get_param('object_id').get_value('id')} x_min {part.get_value('x_min'):.3f}"
    )


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("pull-sample"):
        buffer = sample.get_buffer()
        for mtd in GstAnalytics.buffer_get_analytics_relation_meta(buffer):
            if type(mtd) is GstAnalytics.ODMtd:
                print(describe(buffer, mtd))
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
