"""One node each, with numbers that shape inference, kernels and rules could divide by, multiply out or index with."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .case import Case, floats, info, ints, model, node, number

BIG, LEAST = 2**62, -2**63
T = TensorProto


def one(op, constants=(), inputs=("x",), outputs=1, opset=17, shape=(2, 3, 8, 8), **attributes):
    names = ["y"] + [f"y{i}" for i in range(1, outputs)]
    return model([node(op, list(inputs), names, **attributes)], constants, inputs=[info("x", shape)], opset=opset)


def reals(name, *values):
    return numpy_helper.from_array(np.array(values, np.float32), name)


def conv(op="Conv", shape=(4, 3, 3, 3), opset=17, **attributes):
    return one(op, [floats("w", *shape)], ["x", "w"], opset=opset, **attributes)


def reduced(axes, opset=18):
    return one("ReduceSum", [ints("a", *axes)], ["x", "a"], opset=opset)


def sliced(start, end, axis=2, step=1):
    return one("Slice", [ints("s", start), ints("e", end), ints("a", axis), ints("t", step)], ["x", "s", "e", "a", "t"])


def resized(*scales, **attributes):
    return one("Resize", [reals("s", *scales)], ["x", "", "s"], **attributes)


def loops(trips=3, body_inputs=3, body_outputs=2):
    names = [info("i", [], T.INT64), info("more", [], T.BOOL), info("a", [2, 3, 8, 8])]
    results = [info("on", [], T.BOOL), info("b", [2, 3, 8, 8])]
    body = helper.make_graph([node("Identity", ["c"], ["on"]), node("Relu", ["x"], ["b"])], "body", names[:body_inputs], results[:body_outputs])
    return model([node("Loop", ["n", "c", "x"], ["y"], body=body)], [number("n", trips), number("c", True, bool)], inputs=[info("x", [2, 3, 8, 8])])


def scan(count, **attributes):
    body = helper.make_graph([node("Relu", ["a"], ["b"])], "body", [info("a")], [info("b")])
    return model([node("Scan", ["x"], ["y"], body=body, num_scan_inputs=count, **attributes)], inputs=[info("x", [2, 4])])


def recurrent(op, hidden, gates, **attributes):
    weights = [floats("w", 1, gates * 4, 8), floats("r", 1, gates * 4, 4)]
    return one(op, weights, ["x", "w", "r"], shape=(5, 2, 8), hidden_size=hidden, **attributes)


def attention(heads, columns=8):
    return model([node("Attention", ["x", "x", "x"], ["y"], q_num_heads=heads, kv_num_heads=heads)], inputs=[info("x", [1, 4, columns])], opset=23)


def squeezed_conv(**attributes):
    return model([node("Conv", ["x", "w"], ["c"], **attributes), node("Squeeze", ["c", "a"], ["y"])], [floats("w", 4, 3, 3, 1), ints("a", 3)], inputs=[info("x", [2, 3, 8, 1])])


def filled_shape(*fill):
    value = numpy_helper.from_array(np.array(fill, np.int64))
    return model([node("ConstantOfShape", ["n"], ["s"], value=value), node("Reshape", ["x", "s"], ["y"])], [ints("n", 2)])


MODELS = {
    "Conv kernel 2^62": conv(kernel_shape=[BIG, BIG]), "Conv pads 2^62": conv(pads=[BIG] * 4), "Conv pads negative": conv(pads=[-9] * 4),
    "Conv dilations 2^62": conv(dilations=[BIG, BIG]), "Conv three pads": conv(pads=[1, 1, 1]), "Conv auto_pad unknown": conv(auto_pad="SOME"),
    "Conv weight without axes": conv(shape=()), "Conv weight empty": conv(shape=(0, 3, 3, 3)), "Conv weight of 0 windows": conv(shape=(4, 3, 0, 0)),
    "Conv group 3 of 4": conv(group=3), "Conv group -1": conv(group=-1), "ConvTranspose output_padding 2^62": conv("ConvTranspose", (3, 4, 3, 3), output_padding=[BIG, BIG]),
    "ConvTranspose output_shape 2^62": conv("ConvTranspose", (3, 4, 3, 3), output_shape=[BIG, BIG]), "ConvTranspose group 2^40": conv("ConvTranspose", (3, 4, 3, 3), group=2**40),
    "MaxPool kernel 2^31": one("MaxPool", kernel_shape=[2**31, 2**31]), "MaxPool kernel 0": one("MaxPool", kernel_shape=[0, 0]),
    "MaxPool pads": one("MaxPool", kernel_shape=[3, 3], pads=[BIG] * 4), "AveragePool pads": one("AveragePool", kernel_shape=[3, 3], pads=[2**63 - 1] * 4),
    "AveragePool one axis": one("AveragePool", kernel_shape=[3]), "LpPool p": one("LpPool", kernel_shape=[3, 3], p=-5),
    "Transpose twice": one("Transpose", perm=[0, 0, 1, 2]), "Transpose short": one("Transpose", perm=[1, 0]), "Transpose negative": one("Transpose", perm=[-1, 0, 1, 2]),
    "Reshape 2^62": one("Reshape", [ints("s", BIG, BIG)], ["x", "s"]), "Reshape -2": one("Reshape", [ints("s", -2, 4)], ["x", "s"]),
    "Reshape 0 beyond": one("Reshape", [ints("s", 0, 0, 0, 0, 0, 0)], ["x", "s"]), "Reshape -1 of 0": one("Reshape", [ints("s", -1, 0)], ["x", "s"], allowzero=1),
    "Reshape of a table": one("Reshape", [numpy_helper.from_array(np.ones((2, 2), np.int64), "s")], ["x", "s"]),
    "Reshape of 5000 axes": one("Reshape", [ints("s", *[1] * 5000)], ["x", "s"]),
    "Squeeze 99": one("Squeeze", [ints("a", 99)], ["x", "a"]), "Squeeze what is not 1": one("Squeeze", [ints("a", 1)], ["x", "a"]),
    "Unsqueeze twice": one("Unsqueeze", [ints("a", 0, 0)], ["x", "a"]), "Unsqueeze 2^62": one("Unsqueeze", [ints("a", BIG)], ["x", "a"]),
    "Unsqueeze 10000 axes": one("Unsqueeze", [ints("a", *range(10_000))], ["x", "a"]), "Flatten 99": one("Flatten", axis=99), "Flatten least": one("Flatten", axis=LEAST),
    "Softmax least": one("Softmax", axis=LEAST), "Concat 99": one("Concat", inputs=["x", "x"], axis=99), "Gather least": one("Gather", [ints("i", LEAST)], ["x", "i"]),
    "Gather beyond": one("Gather", [ints("i", 2**40)], ["x", "i"]), "GatherND beyond": one("GatherND", [ints("i", 9, 9)], ["x", "i"]),
    "GatherElements": one("GatherElements", [ints("i", 9)], ["x", "i"]), "ScatterND beyond": one("ScatterND", [ints("i", 9), floats("u", 3, 8, 8)], ["x", "i", "u"]),
    "Slice step 0": sliced(0, 9, step=0), "Slice step least": sliced(0, 9, step=LEAST), "Slice ends": sliced(LEAST, 2**63 - 1), "Slice backwards": sliced(2**63 - 1, LEAST, step=-1),
    "Slice axis": sliced(0, 1, axis=BIG), "Split sizes": one("Split", [ints("s", -1, 4)], ["x", "s"], 2), "Split more": one("Split", [ints("s", BIG, BIG)], ["x", "s"], 2),
    "Split into 0": one("Split", opset=18, num_outputs=0), "Split into 2^62": one("Split", opset=18, num_outputs=BIG), "Split into 5000": one("Split", outputs=5000, opset=13),
    "TopK": one("TopK", [ints("k", BIG)], ["x", "k"], 2), "TopK negative": one("TopK", [ints("k", -1)], ["x", "k"], 2),
    "DepthToSpace 0": one("DepthToSpace", blocksize=0), "DepthToSpace 2^31": one("DepthToSpace", blocksize=2**31), "DepthToSpace 2^32": one("DepthToSpace", blocksize=2**32),
    "SpaceToDepth 0": one("SpaceToDepth", blocksize=0), "SpaceToDepth -1": one("SpaceToDepth", blocksize=-1),
    "Resize 0": resized(1, 1, 0, 0), "Resize negative": resized(1, 1, -2, -2), "Resize NaN": resized(1, 1, np.nan, 1), "Resize inf": resized(1, 1, np.inf, 1),
    "Resize 1e30": resized(1, 1, 1e30, 1e30), "Resize 1e-30": resized(1, 1, 1e-30, 1), "Resize three": resized(1, 1, 2), "Resize axes": resized(2.0, opset=18, axes=[99]),
    "Upsample": one("Upsample", opset=7, scales=[1.0, 1.0, 1e30, 1e30]), "Pad more": one("Pad", [ints("p", *[BIG] * 8)], ["x", "p"]),
    "Pad less": one("Pad", [ints("p", *[-BIG] * 8)], ["x", "p"]), "Pad three": one("Pad", [ints("p", 1, 1, 1)], ["x", "p"]), "Pad axes": one("Pad", [ints("p", 1, 1), ints("a", 77)], ["x", "p", "", "a"], opset=18),
    "ReduceSum 99": reduced([99]), "ReduceSum twice": reduced([1, 1]), "ReduceSum least": reduced([LEAST]), "CumSum": one("CumSum", [number("a", 99)], ["x", "a"]),
    "Einsum dots": one("Einsum", equation="...i...->i"), "Einsum long": one("Einsum", equation="," * 10_000), "Einsum other": one("Einsum", equation="\0->\x1b"),
    "Gemm of four axes": one("Gemm", [floats("w", 3, 3)], ["x", "w"]), "MatMul of unlike": one("MatMul", [floats("w", 5, 5)], ["x", "w"]),
    "MatMul of a number": one("MatMul", [floats("w")], ["x", "w"]), "BatchNormalization": one("BatchNormalization", [floats("w", 7)], ["x", "w", "w", "w", "w"]),
    "LayerNormalization": one("LayerNormalization", [floats("w", 7)], ["x", "w"], axis=99), "InstanceNormalization": one("InstanceNormalization", [floats("w", 7)], ["x", "w", "w"]),
    "GroupNormalization": one("GroupNormalization", [floats("w", 3)], ["x", "w", "w"], opset=21, num_groups=2**31), "LRN": one("LRN", size=-5),
    "Cast to 999": one("Cast", to=999), "Cast to text": one("Cast", to=8), "OneHot": one("OneHot", [number("d", -5), floats("v", 2)], ["x", "d", "v"]),
    "Tile": one("Tile", [ints("r", BIG, BIG, BIG, BIG)], ["x", "r"]), "Tile negative": one("Tile", [ints("r", -1, 1, 1, 1)], ["x", "r"]),
    "Expand": one("Expand", [ints("s", BIG, 1, 1, 1, 1)], ["x", "s"]), "Expand negative": one("Expand", [ints("s", -1)], ["x", "s"]),
    "Loop of no inputs": loops(body_inputs=0), "Loop of no outputs": loops(body_outputs=0), "Loop of negative trips": loops(LEAST),
    "Scan of 2^62": scan(BIG), "Scan of -1": scan(-1), "Scan of 0": scan(0), "Scan axes": scan(1, scan_input_axes=[BIG]), "Scan directions": scan(1, scan_input_directions=[9] * 50),
    "LSTM 2^62": recurrent("LSTM", BIG, 4), "LSTM 0": recurrent("LSTM", 0, 4), "LSTM activations": recurrent("LSTM", 4, 4, activations=["\x1b"] * 3),
    "GRU direction": recurrent("GRU", 4, 3, direction="up"), "GRU -4": recurrent("GRU", -4, 3), "RNN layout": recurrent("RNN", 4, 1, layout=1),
    "QuantizeLinear axis": one("QuantizeLinear", [reals("s", 1, 1, 1), ], ["x", "s"], axis=99), "DequantizeLinear block": one("DequantizeLinear", [reals("s", 1)], ["x", "s"], opset=21, block_size=BIG),
    "Attention 0 heads": attention(0), "Attention 2^62 heads": attention(BIG), "Attention 3 heads": attention(3), "STFT": one("STFT", [number("s", 0)], ["x", "s"]),
    "DFT": one("DFT", inputs=["x"], axis=BIG), "NonMaxSuppression": one("NonMaxSuppression", inputs=["x", "x"]), "RoiAlign": one("RoiAlign", [floats("r", 1, 4), ints("b", 99)], ["x", "r", "b"], output_height=BIG),
    "GridSample": one("GridSample", [floats("g", 2, 0, 0, 2)], ["x", "g"]), "MaxUnpool": one("MaxUnpool", [ints("i", 1)], ["x", "i"], kernel_shape=[2, 2]),
    "Col2Im": one("Col2Im", [ints("a", BIG, BIG), ints("b", 0, 0)], ["x", "a", "b"], opset=18), "Compress": one("Compress", [numpy_helper.from_array(np.ones(99, bool), "c")], ["x", "c"]),
    "Clip": one("Clip", [reals("a", 1, 2)], ["x", "a"]), "Dropout": one("Dropout", [number("r", 7, np.float32)], ["x", "r"]), "EyeLike": one("EyeLike", k=BIG),
    "Range inside": one("Range", inputs=["x", "x", "x"]), "Hann": one("HannWindow", [number("n", 2**40)], ["n"]), "Mel": one("MelWeightMatrix", [number("n", 2**40), number("f", 1, np.float32)], ["n", "n", "n", "f", "f"]),
    "Conv of one stride squeezed": squeezed_conv(strides=[1]), "Conv of one pad squeezed": squeezed_conv(pads=[0]), "Conv of one dilation squeezed": squeezed_conv(dilations=[1]),
    "Reshape to nothing's numbers": filled_shape(), "Reshape to two numbers": filled_shape(2, 4),
    "a fused op of ours": model([node("Conv", ["x"], ["y"], domain="modelflow")], domains=["modelflow"]),
    "a fused op of wrong attributes": model([node("Pointwise", ["x"], ["y"], domain="modelflow", program="\x1b" * 99)], domains=["modelflow"]),
    "a fused op nobody has": model([node("Anything", ["x"], ["y"], domain="modelflow")], domains=["modelflow"]),
}

# Valid or not is for ONNX to say: what counts is that nothing falls over, and that what is said is one line.
# (4: an op of ours in a version that this build does not have.)
CASES = {f"operator: {name}": Case(lambda f, m=made: m, codes=(0, 3, 4)) for name, made in MODELS.items()}
CASES["operator: Attention of 2^40 columns"] = Case(lambda f: attention(2, 2**40), codes=(0, 3, 7), flags=("--no-verify",))
CASES["operator: Conv weight empty"].codes = (0, 3, 5)  # the runtime's own optimizations do not survive it
