"""The project as its users meet it: the built commands and the plugin, driven from Python."""
import os
import pathlib
import subprocess

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

BUILD = pathlib.Path(os.environ.get("MODELFLOW_BUILD", "build")).resolve()
PLUGIN = BUILD / "libmodelflow_ort.so"


EXTRAS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "modelflow/deps/extras/bin/python"
needs_extras = pytest.mark.skipif(not EXTRAS.exists(), reason="tools/setup --extras installs what this needs")


class Run:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def run(*arguments, timeout=300, **options):
    return Run(subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=timeout, **options))


@pytest.fixture
def optimize():
    return lambda *arguments, **options: run(BUILD / "optimize", *arguments, **options)


@pytest.fixture
def bench():
    return lambda *arguments, **options: run(BUILD / "modelflow-bench", *arguments, **options)


def small_cnn(batch="batch"):
    """Conv, BatchNormalization, Relu, a residual block, pooling and a classifier: what most rules look at."""
    rng = np.random.default_rng(7)
    weights, nodes = {}, []

    def w(name, *shape, scale=0.2):
        weights[name] = (rng.standard_normal(shape) * scale).astype(np.float32)
        return name

    def norm(x, y, channels):
        weights[y + "_var"] = rng.uniform(0.5, 1.5, channels).astype(np.float32)
        nodes.append(helper.make_node("BatchNormalization", [x, w(y + "_s", channels, scale=1), w(y + "_b", channels), w(y + "_m", channels),
                                                             y + "_var"], [y]))

    nodes.append(helper.make_node("Conv", ["x", w("w0", 16, 3, 3, 3)], ["c0"], pads=[1, 1, 1, 1], strides=[2, 2]))
    norm("c0", "n0", 16)
    nodes.append(helper.make_node("Relu", ["n0"], ["r0"]))
    nodes.append(helper.make_node("Conv", ["r0", w("w1", 16, 1, 3, 3), w("b1", 16)], ["c1"], pads=[1, 1, 1, 1], group=16))
    nodes.append(helper.make_node("HardSigmoid", ["c1"], ["h1"], alpha=1 / 6, beta=0.5))
    nodes.append(helper.make_node("Mul", ["c1", "h1"], ["s1"]))
    nodes.append(helper.make_node("Conv", ["s1", w("w2", 16, 16, 1, 1), w("b2", 16)], ["c2"]))
    nodes.append(helper.make_node("Add", ["c2", "r0"], ["a2"]))
    nodes.append(helper.make_node("Relu", ["a2"], ["r2"]))
    nodes.append(helper.make_node("GlobalAveragePool", ["r2"], ["p"]))
    nodes.append(helper.make_node("Flatten", ["p"], ["f"]))
    nodes.append(helper.make_node("Gemm", ["f", w("w3", 10, 16), w("b3", 10)], ["y"], transB=1))
    graph = helper.make_graph(nodes, "small_cnn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 32, 32])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 10])],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tests")
    onnx.checker.check_model(model, full_check=True)
    return model


@pytest.fixture
def cnn(tmp_path):
    path = tmp_path / "cnn.onnx"
    onnx.save(small_cnn(), path)
    return path


def session(path, plugin=None, optimized=True, threads=2):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if plugin:
        options.register_custom_ops_library(str(plugin))
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def close(expected, actual, tolerance=1e-4):
    for a, b in zip(expected, actual, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.size and a.dtype.kind == "f":
            assert np.abs(a - b).max() <= tolerance * max(np.abs(a).max(), 1e-30)
        else:
            assert np.array_equal(a, b)
