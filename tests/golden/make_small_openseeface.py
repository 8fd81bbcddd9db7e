#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Makes two small networks with the tensors of OpenSeeFace's smallest landmark model, and records what ONNX Runtime
computes with them of noise, for
crates/facetrack/tests/engines/openseeface_networks.rs.

    python3 -m pip install onnx==1.22.0 onnxruntime==1.31.1 numpy
    ORT_DISABLE_TELEMETRY=1 python3 tests/golden/make_small_openseeface.py

networks/small_openseeface.onnx has every pattern of the published networks: hard sigmoids in pieces,
squeeze-and-excitation, a sum, an upsampled image put beside another, numbers of channels that are no whole blocks, and
the three last convolutions. networks/small_plain.onnx ends with one convolution. What is recorded is what
make_openseeface_networks.py records of landmark networks. Weights are random; the noise is that of make_networks.py,
which the test makes anew."""

import numpy as np
import onnx
import onnxruntime
from make_openseeface_networks import OUT
from onnx import TensorProto, helper, numpy_helper

POINTS = 30

# One for which no two cells compete.
SEED = 4
CLIP = {"activation": "Clip", "activation_params": [0.0, 6.0]}
RELU = {"activation": "Relu"}


def noise(seed, count, low, high):
    state, values = seed, np.empty(count)
    for i in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        values[i] = low + (high - low) * (state >> 8) / 2**24
    return values.astype(np.float32)


class Network:
    """Builds an ONNX file node by node; methods take and return names of values."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def constant(self, values):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, *inputs, **attributes):
        output = f"value{len(self.nodes)}"
        domain = "com.microsoft" if op == "FusedConv" else ""
        self.nodes.append(helper.make_node(op, list(inputs), [output], domain=domain, **attributes))
        return output

    def convolution(self, value, inputs, outputs, kernel=1, stride=1, group=1, gain=1.0, **activation):
        weights = self.random.normal(size=(outputs, inputs // group, kernel, kernel))
        weights *= gain / np.sqrt(inputs // group * kernel * kernel)
        bias = self.random.normal(size=outputs) * 0.2
        constants = [self.constant(array.astype(np.float32)) for array in (weights, bias)]
        return self.node(
            "FusedConv" if activation else "Conv",
            value,
            *constants,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
            group=group,
            **activation,
        )

    def hard_sigmoid(self, value):
        three, zero, six = (self.constant(np.float32(number)) for number in (3, 0, 6))
        value = self.node("Clip", self.node("Add", value, three), zero, six)
        return self.node("Div", value, six)

    def hard_swish(self, value):
        return self.node("Mul", value, self.hard_sigmoid(value))

    def excited(self, value, channels):
        mean = self.node("GlobalAveragePool", value)
        reduced = self.convolution(mean, channels, 6, **RELU)
        return self.node("Mul", value, self.hard_sigmoid(self.convolution(reduced, 6, channels)))

    def upsampled(self, value):
        """To twice the size, as the published networks do it."""
        start, end, axes = (self.constant(np.array([number], np.int64)) for number in (0, 2, 0))
        kept = self.node("Slice", self.node("Shape", value), start, end, axes)
        size = self.node("Concat", kept, self.constant(np.array([14, 14], np.int64)), axis=0)
        nothing = self.constant(np.zeros(0, np.float32))
        return self.node(
            "Resize", value, nothing, nothing, size, mode="linear", coordinate_transformation_mode="align_corners"
        )

    def write(self, name):
        self.nodes[-1].output[0] = "output"
        image = helper.make_tensor_value_info("input", TensorProto.FLOAT, ["batch_size", 3, 56, 56])
        maps = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch_size", 3 * POINTS, 7, 7])
        graph = helper.make_graph(self.nodes, "small", [image], [maps], self.constants)
        opsets = [helper.make_opsetid("", 11), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=6)
        path = OUT / "networks" / f"{name}.onnx"
        onnx.save(model, path)
        record(path)


def whole():
    net = Network(SEED)
    stem = net.hard_swish(net.convolution("input", 3, 20, kernel=3, stride=4))
    deep = net.hard_swish(net.convolution(stem, 20, 20, kernel=3, stride=2, group=20))
    deep = net.convolution(net.excited(deep, 20), 20, 12)
    deep = net.node("Add", net.convolution(net.convolution(deep, 12, 24, **RELU), 24, 12), deep)
    both = net.node("Concat", stem, net.upsampled(deep), axis=1)
    both = net.convolution(both, 32, 32, kernel=3, stride=2, group=32, **CLIP)
    features = net.convolution(both, 32, 3 * POINTS, gain=2.0, **CLIP)
    filtered = net.convolution(features, 3 * POINTS, 12 * POINTS, kernel=3, group=3 * POINTS, **CLIP)
    net.convolution(filtered, 12 * POINTS, 3 * POINTS, group=3, gain=1.5, **CLIP)
    net.write("small_openseeface")


def plain():
    net = Network(2)
    net.convolution("input", 3, 3 * POINTS, kernel=3, stride=8)
    net.write("small_plain")


def record(path):
    image = noise(5, 3 * 56 * 56, -2.0, 2.0).reshape(1, 3, 56, 56)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    maps = onnxruntime.InferenceSession(str(path), options).run(None, {"input": image})[0]
    heat, rows, columns = maps[0].reshape(3, POINTS, -1)
    cells, each = heat.argmax(1), np.arange(POINTS)
    margins = np.diff(np.sort(heat))[:, -1]
    assert margins.min() > 1e-4, f"a peak is {margins.min()} above another cell"
    edges = sum(cell % 7 in (0, 6) or cell // 7 in (0, 6) for cell in cells)
    print(f"{path.name}: {len(set(cells))} peaks, {edges} at edges, margin {margins.min():.5f}")
    peaks = np.stack([heat[each, cells], cells, rows[each, cells], columns[each, cells]])
    peaks.astype("<f4").tofile(path.with_suffix(".bin"))


if __name__ == "__main__":
    whole()
    plain()
