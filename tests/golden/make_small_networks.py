#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Makes two small networks with every operator and pattern of MediaPipe's face networks, one that holds an unsupported
operator, and records what LiteRT computes with the first two, for
crates/facetrack/tests/engines/networks.rs.

    python3 -m pip install ai-edge-litert==2.3.0 flatbuffers numpy
    python3 tests/golden/make_small_networks.py

The networks go to networks/small_*.tflite. Weights and inputs are `random` of make_networks.py.
"""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as tfl

from make_networks import OUT, random, record

CODE, OPTIONS = tfl.BuiltinOperator, tfl.BuiltinOptions
SAME, VALID = tfl.Padding.SAME, tfl.Padding.VALID


class Network:
    """Builds a .tflite file operator by operator; methods take and return indices of tensors."""

    def __init__(self):
        self.graph = tfl.SubGraphT()
        self.graph.tensors, self.graph.operators, self.codes = [], [], []
        self.graph.inputs, self.graph.outputs = [], []
        self.buffers = [tfl.BufferT()]
        self.seed = 0

    def tensor(self, shape, kind=tfl.TensorType.FLOAT32, data=None, name=None):
        tensor = tfl.TensorT()
        tensor.shape, tensor.type, tensor.buffer = list(shape), kind, 0
        tensor.name = name or f"t{len(self.graph.tensors)}"
        if data is not None:
            tensor.buffer = len(self.buffers)
            self.buffers.append(tfl.BufferT())
            self.buffers[-1].data = np.frombuffer(data.tobytes(), np.uint8)
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def shape(self, tensor):
        return self.graph.tensors[tensor].shape

    def input(self, shape, name):
        self.graph.inputs.append(self.tensor(shape, name=name))
        return self.graph.inputs[-1]

    def output(self, tensor, name):
        self.graph.tensors[tensor].name = name
        self.graph.outputs.append(tensor)

    def ints(self, values):
        values = np.array(values, np.int32)
        return self.tensor(values.shape, tfl.TensorType.INT32, values)

    def weights(self, shape, low, high):
        """A constant in f16, dequantised."""
        self.seed += 1
        values = random(self.seed, int(np.prod(shape)), low, high).astype(np.float16)
        return self.op(CODE.DEQUANTIZE, [self.tensor(shape, tfl.TensorType.FLOAT16, values)], shape)

    def op(self, code, inputs, shape, **options):
        operator = tfl.OperatorT()
        if code not in self.codes:
            self.codes.append(code)
        operator.opcodeIndex = self.codes.index(code)
        operator.inputs, operator.outputs = inputs, [self.tensor(shape)]
        for kind, fields in options.items():
            operator.builtinOptionsType = getattr(OPTIONS, kind)
            operator.builtinOptions = getattr(tfl, kind + "T")()
            for field, value in fields.items():
                setattr(operator.builtinOptions, field, value)
        self.graph.operators.append(operator)
        return operator.outputs[0]

    def walked(self, source, kernel, stride, padding):
        reach = [1, 1] if padding == SAME else kernel
        return [-((side - r + 1) // -stride) for side, r in zip(self.shape(source)[1:3], reach)]

    def conv(self, source, outputs, kernel=1, stride=1, padding=SAME, activation=0):
        inputs, scale = self.shape(source)[3], 1.7
        kernel = [min(kernel, side) for side in self.shape(source)[1:3]]
        scale /= (inputs * kernel[0] * kernel[1]) ** 0.5
        weights = self.weights([outputs, *kernel, inputs], -scale, scale)
        bias = self.weights([outputs], -0.3, 0.3)
        shape = [1, *self.walked(source, kernel, stride, padding), outputs]
        fields = dict(padding=padding, strideW=stride, strideH=stride, fusedActivationFunction=activation)
        return self.op(CODE.CONV_2D, [source, weights, bias], shape, Conv2DOptions=fields)

    def depthwise(self, source, stride=1):
        channels = self.shape(source)[3]
        weights, bias = self.weights([1, 3, 3, channels], -0.5, 0.5), self.weights([channels], -0.3, 0.3)
        shape = [1, *self.walked(source, [3, 3], stride, SAME), channels]
        fields = dict(padding=SAME, strideW=stride, strideH=stride, depthMultiplier=1)
        return self.op(CODE.DEPTHWISE_CONV_2D, [source, weights, bias], shape, DepthwiseConv2DOptions=fields)

    def prelu(self, source):
        return self.op(CODE.PRELU, [source, self.weights([1, 1, self.shape(source)[3]], -1.5, 2.5)], self.shape(source))

    def unary(self, code, source):
        return self.op(code, [source], self.shape(source))

    def binary(self, code, a, b, **options):
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        return self.op(code, [a, b], [int(n) for n in shape], **options)

    def add(self, a, b):
        return self.binary(CODE.ADD, a, b, AddOptions={})

    def pool(self, source, padding):
        shape = [1, *self.walked(source, [2, 2], 2, padding), self.shape(source)[3]]
        fields = dict(padding=padding, strideW=2, strideH=2, filterWidth=2, filterHeight=2)
        return self.op(CODE.MAX_POOL_2D, [source], shape, Pool2DOptions=fields)

    def pad(self, source, channels):
        shape = self.shape(source)[:3] + [channels]
        amounts = self.ints([[0, 0], [0, 0], [0, 0], [0, channels - self.shape(source)[3]]])
        return self.op(CODE.PAD, [source, amounts], shape, PadOptions={})

    def reshape(self, source, shape):
        return self.op(CODE.RESHAPE, [source, self.ints(shape)], shape, ReshapeOptions=dict(newShape=shape))

    def concat(self, parts, axis):
        shape = list(self.shape(parts[0]))
        shape[axis] = sum(self.shape(part)[axis] for part in parts)
        return self.op(CODE.CONCATENATION, parts, shape, ConcatenationOptions=dict(axis=axis))

    def reduce(self, code, source, axis):
        shape = list(self.shape(source))
        shape[axis] = 1
        return self.op(code, [source, self.ints([axis])], shape, ReducerOptions=dict(keepDims=True))

    def swap(self, source):
        shape = [self.shape(source)[i] for i in (0, 1, 3, 2)]
        return self.op(CODE.TRANSPOSE, [source, self.ints([0, 1, 3, 2])], shape, TransposeOptions={})

    def slice(self, source, end, shape, **masks):
        rank = len(self.shape(source))
        bounds = [self.ints([0] * rank), self.ints(end), self.ints([1] * rank)]
        return self.op(CODE.STRIDED_SLICE, [source, *bounds], shape, StridedSliceOptions=masks)

    def layer_norm(self, source):
        mean = self.reduce(CODE.MEAN, source, 3)
        negative = self.unary(CODE.NEG, mean)
        square = self.binary(CODE.SQUARED_DIFFERENCE, source, mean)
        variance = self.reduce(CODE.MEAN, square, 3)
        root = self.unary(CODE.RSQRT, self.add(variance, self.weights([], 0.0009, 0.0011)))
        factor = self.binary(CODE.MUL, root, self.weights([self.shape(source)[3]], 0.5, 1.5), MulOptions={})
        scaled = self.binary(CODE.MUL, source, factor, MulOptions={})
        shift = self.binary(CODE.MUL, negative, factor, MulOptions={})
        return self.add(scaled, shift)

    def file(self):
        model = tfl.ModelT()
        model.version, model.subgraphs, model.buffers, model.operatorCodes = 3, [self.graph], self.buffers, []
        for code in self.codes:
            entry = tfl.OperatorCodeT()
            entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), 1
            model.operatorCodes.append(entry)
        builder = flatbuffers.Builder(0)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def image_network():
    n = Network()
    # As the landmark network: PRelu after a sum, between convolutions of 8 and of 16 channels, and appended channels.
    x = n.prelu(n.conv(n.input([1, 24, 24, 3], "image"), 16, 3))
    y = n.conv(n.depthwise(n.prelu(n.conv(x, 8))), 16)
    x = n.prelu(n.add(x, y))
    y = n.conv(n.depthwise(n.prelu(n.conv(x, 16, 2, 2, VALID))), 32)
    x = n.prelu(n.add(n.pad(n.pool(x, VALID), 32), y))
    # As the detector: Relu, channels that fill no whole block, odd sides under SAME padding.
    x = n.unary(CODE.RELU, n.conv(x, 20, 3, 2))
    y = n.conv(n.depthwise(x, 2), 24)
    x = n.unary(CODE.RELU, n.add(n.pad(n.pool(x, SAME), 24), y))
    y = n.conv(n.depthwise(x), 40)
    x = n.unary(CODE.RELU, n.add(n.pad(x, 40), y))
    boxes = [n.reshape(n.conv(x, 6), [1, 27, 2]), n.reshape(n.conv(x, 2), [1, 9, 2])]
    score = n.unary(CODE.LOGISTIC, n.conv(x, 1, 3, 1, VALID))
    n.output(n.concat(boxes, 1), "boxes")
    n.output(n.reshape(score, [1, 1]), "score")
    return n.file()


def token_network():
    n = Network()
    x = n.input([1, 10, 2], "points")
    x = n.binary(CODE.SUB, x, n.reduce(CODE.MEAN, x, -2), SubOptions={})
    length = n.unary(CODE.SQRT, n.reduce(CODE.SUM, n.binary(CODE.MUL, x, x, MulOptions={}), -1))
    x = n.binary(CODE.DIV, x, n.reduce(CODE.MEAN, length, -2), DivOptions={})
    x = n.swap(n.reshape(x, [1, 1, 10, 2]))
    x = n.conv(n.swap(n.conv(x, 6)), 8)
    x = n.concat([n.weights([1, 1, 1, 8], -1, 1), x], -2)
    for _ in range(2):
        y = n.swap(n.layer_norm(x))
        y = n.swap(n.conv(n.conv(y, 12, activation=1), 7))
        x = n.add(y, x)
        y = n.conv(n.conv(n.layer_norm(x), 16, activation=1), 8)
        x = n.add(y, x)
    x = n.slice(x, [0, 0, 2, 0], [1, 1, 2, 8], beginMask=15, endMask=11)
    x = n.slice(x, [0, 0, 1, 0], [1, 1, 1, 8], beginMask=11, endMask=11)
    x = n.reshape(n.unary(CODE.LOGISTIC, n.conv(x, 5)), [1, 5])
    n.output(n.slice(x, [1, 5], [5], beginMask=2, endMask=2, shrinkAxisMask=1), "channels")
    return n.file()


def unsupported_network():
    n = Network()
    n.output(n.unary(CODE.HARD_SWISH, n.input([1, 4], "x")), "y")
    return n.file()


def main():
    OUT.mkdir(exist_ok=True)
    networks = {
        "small_image": (image_network(), random(11, 24 * 24 * 3, -1, 1)),
        "small_tokens": (token_network(), random(12, 10 * 2, 0, 640)),
    }
    for name, (content, value) in networks.items():
        (OUT / f"{name}.tflite").write_bytes(content)
        record(name, "random", content, value)
    (OUT / "small_unsupported.tflite").write_bytes(unsupported_network())


if __name__ == "__main__":
    main()
