"""Models of NNSmith (PyPI: nnsmith 0.1.0), a source of random graphs that knows nothing of our rules, for tools/fuzz.

    python -m venv /tmp/nnsmith && /tmp/nnsmith/bin/pip install nnsmith onnx
    /tmp/nnsmith/bin/python tests/outside/nnsmith_models.py /tmp/models --count 1000 --seed 1
    tools/fuzz /tmp/models/*.onnx

NNSmith chooses ops, attributes and shapes with a solver (z3). Its own way to ONNX goes through PyTorch, which is not
needed here: its ops are written down as ONNX ops. The weights that they have in PyTorch are drawn at random.
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17
SAME = {"Abs", "Acos", "Add", "And", "Asin", "Atan", "Ceil", "Cos", "Div", "Equal", "Floor", "Greater", "Less", "MatMul",
        "Max", "Min", "Mul", "Neg", "Or", "Pow", "Round", "Sigmoid", "Sin", "Sqrt", "Sub", "Tan", "Where", "Xor"}
RENAMED = {"ReLU": "Relu"}
INTERPOLATION = {"NearestInterp": "nearest", "LinearInterp": "linear", "BilinearInterp": "linear",
                 "TrilinearInterp": "linear", "BicubicInterp": "cubic"}
PADDING = {"ConstPad": "constant", "ReplicatePad": "edge", "ReflectPad": "reflect"}


class Writer:
    """One graph of NNSmith as an ONNX model."""

    def __init__(self, graph, random):
        self.graph, self.random = graph, random
        self.nodes, self.constants, self.inputs = [], [], []

    def type_of(self, name):
        known = self.graph.vars[name]
        return helper.np_dtype_to_tensor_dtype(np.dtype(str(known.dtype))), [int(n) for n in known.shape]

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def ints(self, values):
        return self.constant(np.array([int(v) for v in values], dtype=np.int64))

    def like(self, name, number):
        return self.constant(np.array(number, dtype=str(self.graph.vars[name].dtype)))

    def weights(self, *dims):
        return self.constant(self.random.standard_normal([int(d) for d in dims]).astype(np.float32))

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def write(self):
        for inst in self.graph.insts:
            self.write_one(inst)
        results = [helper.make_tensor_value_info(name, *self.type_of(name)) for name in self.graph.leaf_var()]
        body = helper.make_graph(self.nodes, "nnsmith", self.inputs, results, self.constants)
        return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)

    def write_one(self, inst):
        op, y, args = inst.iexpr.op, inst.retval(), list(inst.iexpr.args)
        name = type(op).__name__
        dtype, dims = self.type_of(y)
        if name == "Input":
            self.inputs.append(helper.make_tensor_value_info(y, dtype, dims))
        elif name == "Constant":
            values = self.random.standard_normal(dims) * 2
            array = values > 0 if dtype == onnx.TensorProto.BOOL else values.astype(helper.tensor_dtype_to_np_dtype(dtype))
            self.constants.append(numpy_helper.from_array(np.asarray(array), y))
        elif name in SAME or name in RENAMED:
            self.add(RENAMED.get(name, name), args, y)
        elif name.startswith("Reduce"):
            self.reduce(op, name, args[0], y)
        else:
            method = name.lower() if hasattr(self, name.lower()) else name.lower().rstrip("12345")
            getattr(self, method, self.others)(op, name, args, y)

    def reduce(self, op, name, x, y):
        axis = int(op.extra_attrs["reduce_dim"])
        if name == "ReduceSum":
            self.add(name, [x, self.ints([axis])], y, keepdims=0)
        else:
            self.add(name, [x], y, axes=[axis], keepdims=0)

    def others(self, op, name, args, y):
        if name in INTERPOLATION:
            self.add("Resize", [args[0], "", "", self.ints(self.type_of(y)[1])], y, mode=INTERPOLATION[name])
        elif name in PADDING:
            self.pad(op, PADDING[name], args[0], y)
        elif name.startswith("Cast"):
            self.add("Cast", args, y, to=self.type_of(y)[0])
        elif name.startswith("ExpandLast"):
            self.add("Expand", [args[0], self.ints(self.type_of(y)[1])], y)
        elif name in ("ArgMin", "ArgMax"):
            self.add(name, args, y, axis=int(op.extra_attrs["reduce_dim"]), keepdims=0)
        elif name in ("Tril", "Triu"):
            self.add("Trilu", [args[0], self.constant(np.int64(int(op.diagonal)))], y, upper=int(name == "Triu"))
        else:
            raise NotImplementedError(name)

    def pad(self, op, mode, x, y):
        rank, pads = len(self.type_of(x)[1]), [int(p) for p in op.padding_list]
        first, last = [0] * rank, [0] * rank
        for i in range(len(pads) // 2):
            first[rank - 1 - i], last[rank - 1 - i] = pads[2 * i], pads[2 * i + 1]
        self.add("Pad", [x, self.ints(first + last)], y, mode=mode)

    def clip(self, op, name, args, y):
        self.add("Clip", [args[0], self.like(y, -1), self.like(y, 1)], y)

    def leakyrelu(self, op, name, args, y):
        self.add("LeakyRelu", args, y, alpha=0.01)

    def prelu(self, op, name, args, y):
        self.add("PRelu", [args[0], self.constant(np.float32(0.25))], y)

    def gelu(self, op, name, args, y):
        scaled = self.add("Div", [args[0], self.like(y, np.sqrt(2))], y + "_scaled")
        more = self.add("Add", [self.add("Erf", [scaled], y + "_erf"), self.like(y, 1)], y + "_more")
        product = self.add("Mul", [args[0], more], y + "_product")
        self.add("Mul", [product, self.like(y, 0.5)], y)

    def log2(self, op, name, args, y):
        self.add("Div", [self.add("Log", args, y + "_log"), self.like(y, np.log(2))], y)

    def softmax(self, op, name, args, y):
        self.add("Softmax", args, y, axis=int(op.dim))

    def maxpool2d(self, op, name, args, y):
        pool = "MaxPool" if name == "MaxPool2d" else "AveragePool"
        more = {} if pool == "MaxPool" else {"count_include_pad": 1}
        self.add(pool, args, y, kernel_shape=[int(op.kernel_h_size), int(op.kernel_w_size)],
                 strides=[int(op.stride)] * 2, pads=[int(op.padding)] * 4, **more)

    avgpool2d = maxpool2d

    def slice(self, op, name, args, y):
        end = min(int(op.end), 2**63 - 1)
        self.add("Slice", [args[0], self.ints([op.start]), self.ints([end]), self.ints([op.extra_attrs["axis"]]),
                           self.ints([op.step])], y)

    def batchnorm2d(self, op, name, args, y):
        scale, bias, mean = (self.weights(op.nfeat) for _ in range(3))
        variance = self.constant(self.random.uniform(0.5, 2, int(op.nfeat)).astype(np.float32))
        self.add("BatchNormalization", [args[0], scale, bias, mean, variance], y)

    def conv1d(self, op, name, args, y):
        self.add("Conv", [args[0], self.weights(op.out_channels, op.in_channels, op.kernel_size),
                          self.weights(op.out_channels)], y, strides=[int(op.stride)], pads=[int(op.padding)] * 2,
                 dilations=[int(op.dilation)])

    def nchwconv2d(self, op, name, args, y):
        w = self.weights(op.out_channels, op.in_channels, op.kernel_h_size, op.kernel_w_size)
        self.add("Conv", [args[0], w, self.weights(op.out_channels)], y, strides=[int(op.stride)] * 2,
                 pads=[int(op.padding)] * 4, dilations=[int(op.dilation_h), int(op.dilation_w)])

    def reshape(self, op, name, args, y):
        self.add("Reshape", [args[0], self.ints(self.type_of(y)[1])], y)

    def transpose(self, op, name, args, y):
        perm = list(range(len(self.type_of(y)[1])))
        a, b = int(op.extra_attrs["dim0"]), int(op.extra_attrs["dim1"])
        perm[a], perm[b] = perm[b], perm[a]
        self.add("Transpose", args, y, perm=perm)

    def squeeze(self, op, name, args, y):
        axis = op.extra_attrs["reduce_dim"]
        self.add("Squeeze", args if axis is None else [args[0], self.ints([axis])], y)

    def concat(self, op, name, args, y):
        self.add("Concat", args, y, axis=int(op.extra_attrs["axis"]))


def generated(seed, most):
    from nnsmith.abstract.op import FULL_OPERATOR_SETS
    from nnsmith.abstract.dtype import DType
    from nnsmith.graph_gen import model_gen
    graph = model_gen(opset=list(FULL_OPERATOR_SETS["core"]), method="symbolic-cinit", seed=seed,
                      max_nodes=2 + seed % most, timeout_ms=10000,
                      dtype_choices=[DType.float32, DType.float32, DType.float64, DType.int32, DType.int64, DType.bool]).make_concrete()
    return Writer(graph, np.random.default_rng(seed)).write()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=12, help="at most")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = {}
    for number in range(options.seed, options.seed + options.count):
        try:
            onnx.save(generated(number, options.nodes), options.folder / f"nnsmith-{number}.onnx")
        except Exception as error:  # the solver gives up, or an op that is not written here
            failed[f"{type(error).__name__}: {error}"] = failed.get(f"{type(error).__name__}: {error}", 0) + 1
    print(f"{options.count - sum(failed.values())} models in {options.folder}; not made: {failed or 'none'}")


if __name__ == "__main__":
    main()
