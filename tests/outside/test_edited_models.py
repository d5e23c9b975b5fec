"""Optimized models that people and tools have edited: without shapes of values, with attributes of other types, words and outputs."""
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import PLUGIN, close, session
from onnx import TensorProto, helper

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "corpus"
OLDEST = os.environ.get("MODELFLOW_ORT_OLDEST", "")
CELLS = ["resize_cubic", "resize_like", "pyramid", "pixel_shuffle", "gru", "lstm", "bert_layer_sdpa", "swin_block_timm", "squeeze_excite_timm",
         "statistics_pooling", "rotary"]


def drawn(model, extent=4):
    """Numbers for the inputs, axes of any extent that long."""
    rng, weights, feeds = np.random.default_rng(5), {w.name for w in model.graph.initializer}, {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        kind = value.type.tensor_type
        dims = [d.dim_value or extent for d in kind.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = (rng.standard_normal(dims) if dtype.kind == "f" else rng.integers(0, 2, dims)).astype(dtype)
    return feeds


def stripped(model):
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for output in bare.graph.output:
        output.type.tensor_type.ClearField("shape")
    return bare


def one_node(op, inputs, outputs, **attributes):
    """A model of one fused op: inputs with names of two letters are [2, 8], of one [8]."""
    node = helper.make_node(op, inputs, outputs, domain="modelflow", **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(x, TensorProto.FLOAT, [2, 8][-len(x):]) for x in inputs],
                              [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("modelflow", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("cell", CELLS)
def test_shapes_of_values_may_be_stripped(optimize, tmp_path, cell):
    text = min((CORPUS / cell).glob("*.onnxtxt")).read_text()
    onnx.save(onnx.parser.parse_model(text), tmp_path / "in.onnx")
    done = optimize(tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--no-measure")
    assert done.code == 0, done.err
    model = onnx.load(tmp_path / "out.onnx")
    assert any(node.domain == "modelflow" for node in model.graph.node)
    onnx.save(stripped(model), tmp_path / "bare.onnx")
    full, bare = session(tmp_path / "out.onnx", PLUGIN), session(tmp_path / "bare.onnx", PLUGIN)
    for extent in (4, 7, 4):
        feeds = drawn(model, extent)
        for a, b in zip(full.run(None, feeds), bare.run(None, feeds), strict=True):
            assert a.shape == b.shape and a.tobytes() == b.tobytes()


def test_pooling_of_images_of_unknown_rank(optimize, tmp_path):
    rng = np.random.default_rng(2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["r"]),
             helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]), helper.make_node("Conv", ["p", "v"], ["y"])]
    weights = [onnx.numpy_helper.from_array(rng.standard_normal(dims, np.float32), name) for name, dims in (("w", (8, 3, 3, 3)), ("v", (4, 8, 1, 1)))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4, "i", "j"])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "in.onnx")
    assert optimize(tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--no-measure").code == 0
    model = onnx.load(tmp_path / "out.onnx")
    assert "Pool_0" in {node.op_type for node in model.graph.node}
    onnx.save(stripped(model), tmp_path / "bare.onnx")
    bare = session(tmp_path / "bare.onnx", PLUGIN)
    for dims in ((1, 3, 16, 16), (2, 3, 9, 6)):
        feeds = {"x": rng.standard_normal(dims, np.float32)}
        close(session(tmp_path / "in.onnx").run(None, feeds), bare.run(None, feeds))


def test_whole_numbers_are_taken_for_floats(tmp_path):
    onnx.save(one_node("Activation_0", ["xs"], ["y"], activation="Clip", alpha=0, beta=6), tmp_path / "m.onnx")
    x = np.linspace(-3, 9, 16, dtype=np.float32).reshape(2, 8)
    close([np.clip(x, 0, 6)], session(tmp_path / "m.onnx", PLUGIN).run(None, {"xs": x}))


LOAD = """
import sys, onnxruntime as ort
so = ort.SessionOptions()
so.register_custom_ops_library(sys.argv[2])
ort.InferenceSession(sys.argv[1], so, providers=["CPUExecutionProvider"])
"""


@pytest.mark.parametrize("where", ["", pytest.param(OLDEST, marks=pytest.mark.skipif(not OLDEST, reason="tools/setup brings the oldest wheel"))])
@pytest.mark.parametrize("op, inputs, outputs, attributes, said", [
    ("Activation_0", ["xs"], ["y"], {"activation": "Clip", "beta": [6.0]}, "attribute beta is not a number"),
    ("Activation_0", ["xs"], ["y"], {"activation": "Clip", "beta": "6"}, "attribute beta is not a number"),
    ("Activation_0", ["xs"], ["y"], {"activation": ["Relu"]}, "attribute activation is not text"),
    ("Softmax_0", ["xs"], ["y"], {"axis": -1.0}, "attribute axis is not a whole number"),
    ("Pool_0", ["xs"], ["y"], {"mode": "max", "kernel_shape": 2}, "attribute kernel_shape is not a list of whole numbers"),
    ("Pool_0", ["xs"], ["y"], {"mode": "max", "strides": [2.0]}, "attribute strides is not a list of whole numbers"),
    ("Softmax_0", ["xs"], ["y"], {"replaces": "both"}, "replaces is 'both', not none, true or false"),
    ("Pool_0", ["xs"], ["y"], {"mode": "middle"}, "mode is 'middle', not max, average or global_average"),
    ("LayerNorm_0", ["xs", "s", "b"], ["y", "sum"], {"keep_sum": 0}, "output 1 is asked for"),
    ("LayerNorm_0", ["xs", "s", "b", "rs"], ["y"], {"keep_sum": 1, "residual": "before"}, "output 1 is not asked for"),
])
def test_what_a_node_says_is_checked(tmp_path, where, op, inputs, outputs, attributes, said):
    onnx.save(one_node(op, inputs, outputs, **attributes), tmp_path / "m.onnx")
    environment = {**os.environ, "PYTHONPATH": where} if where else None
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path / "m.onnx", PLUGIN], capture_output=True, text=True, timeout=60, env=environment)
    assert done.returncode == 1 and said in done.stderr, done.stderr
