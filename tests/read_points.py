# SPDX-License-Identifier: MPL-2.0
"""Prints a line for each group of points of each face in a launch line's frames, as tests/elements/analytics_points.rs expects
it, with only GStreamer's own bindings.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstAnalytics", "1.0")
from gi.repository import Gst, GstAnalytics  # noqa: E402

Rel = GstAnalytics.RelTypes


def describe(point):
    _, x, y, _, _ = point.get_position()
    _, confidence = point.get_confidence()
    return f"{x},{y},{confidence:.4f}"


def groups(detection):
    relations = detection.meta
    for group in detection.iter_direct_related(Rel.CONTAIN, GstAnalytics.GroupMtd):
        assert relations.get_relation(detection.id, group.id) == Rel.CONTAIN | Rel.RELATE_TO
        assert relations.get_relation(group.id, detection.id) == Rel.IS_PART_OF | Rel.RELATE_TO
        points = " ".join(map(describe, group))
        yield f"{detection.get_semantic_tag()} {group.get_semantic_tag()} {points}"


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("pull-sample"):
        relations = GstAnalytics.buffer_get_analytics_relation_meta(sample.get_buffer())
        for detection in relations.iter_on_type(GstAnalytics.ODMtd):
            for line in groups(detection):
                print(line)
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
