# SPDX-License-Identifier: MPL-2.0
"""Prints a line for each face of a launch line's frames, as tests/elements/analytics_tensor.rs expects it, with only
GStreamer's own bindings: name, shape and bytes of the tensor of its landmarks.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstAnalytics", "1.0")
from gi.repository import GLib, Gst, GstAnalytics  # noqa: E402

Rel = GstAnalytics.RelTypes


def describe(detection):
    relations = detection.meta
    [mtd] = detection.iter_direct_related(Rel.CONTAIN, GstAnalytics.TensorMtd)
    assert relations.get_relation(detection.id, mtd.id) == Rel.CONTAIN | Rel.RELATE_TO
    assert relations.get_relation(mtd.id, detection.id) == Rel.IS_PART_OF | Rel.RELATE_TO
    tensor = mtd.get_tensor()
    assert tensor.data_type == GstAnalytics.TensorDataType.FLOAT32
    assert tensor.dims_order == GstAnalytics.TensorDimOrder.ROW_MAJOR
    count, dimensions = tensor.get_dims()
    data = tensor.data.extract_dup(0, tensor.data.get_size())
    return f"{GLib.quark_to_string(tensor.id)} {count}x{dimensions} {data.hex()}"


def main(line):
    Gst.init(None)
    pipeline = Gst.parse_launch(f"{line} ! appsink name=sink sync=false")
    sink = pipeline.get_by_name("sink")
    pipeline.set_state(Gst.State.PLAYING)
    while sample := sink.emit("pull-sample"):
        relations = GstAnalytics.buffer_get_analytics_relation_meta(sample.get_buffer())
        for detection in relations.iter_on_type(GstAnalytics.ODMtd):
            print(describe(detection))
    pipeline.set_state(Gst.State.NULL)


main(sys.argv[1])
