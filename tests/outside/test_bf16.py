"""bfloat16: what comes out for CPUs that multiply it (they need not be this one), weights alone, and refusals."""
import json
import pathlib
import re

import numpy as np
import onnx
import pytest
from conftest import PLUGIN, close, session
from onnx import TensorProto, helper, numpy_helper


def model(rows):
    """Two convolutions, a normalization, a dense layer: [1, 32, rows, 16] -> [1, rows * 16, 96]."""
    rng = np.random.default_rng(3)
    weights = {"w0": rng.standard_normal((64, 32, 3, 3)) * 0.06, "w1": rng.standard_normal((64, 64, 1, 1)) * 0.12,
               "b1": rng.standard_normal(64) * 0.1, "s": rng.uniform(0.5, 1.5, 64), "b": rng.standard_normal(64) * 0.1,
               "w2": rng.standard_normal((64, 96)) * 0.12}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["c0"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["c0"], ["r0"]),
             helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"]), helper.make_node("Add", ["c1", "r0"], ["a1"]),
             helper.make_node("Reshape", ["a1", "rows"], ["flat"]), helper.make_node("Transpose", ["flat"], ["t"], perm=[0, 2, 1]),
             helper.make_node("LayerNormalization", ["t", "s", "b"], ["n"]), helper.make_node("MatMul", ["n", "w2"], ["y"])]
    constants = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
    constants.append(numpy_helper.from_array(np.array([1, 64, -1]), "rows"))
    graph = helper.make_graph(nodes, "bf16", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, rows, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, rows * 16, 96])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tests")


def decoder(width=512):
    """A step of a language model: one row through two long products."""
    rng = np.random.default_rng(4)
    w = [numpy_helper.from_array((rng.standard_normal((width, width)) / width**0.5).astype(np.float32), f"w{i}") for i in range(2)]
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["h"]), helper.make_node("Relu", ["h"], ["r"]),
             helper.make_node("MatMul", ["r", "w1"], ["y"])]
    graph = helper.make_graph(nodes, "decoder", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, width])], w)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="tests")


@pytest.fixture
def lower(optimize, tmp_path):
    """Optimizes for a target without measuring; gives the written model, its report and inputs for it."""
    def run(what, *arguments):
        source, out, report = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "report.json"
        onnx.save(what, source)
        done = optimize(source, "-o", out, "--no-measure", "--report", report, *arguments)
        assert (done.code, done.err) == (0, "")
        shape = [d.dim_value for d in what.graph.input[0].type.tensor_type.shape.dim]
        feeds = {"x": np.random.default_rng(5).standard_normal(shape, dtype=np.float32)}
        return source, out, json.loads(report.read_text()), feeds
    return run


def distance(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(a)


def types(path):
    return {i.name: i.data_type for i in onnx.load(path).graph.initializer}


# With twice the rate the 3x3 convolution is no faster than in float32 by minimal filtering.
@pytest.mark.parametrize("target, convolutions", [("cpu:avx512_bf16", 1), ("cpu:amx", 2)])
def test_products_and_convolutions_run_in_bf16(lower, target, convolutions):
    source, out, report, feeds = lower(model(24), "--precision", "bf16", "--target", target)
    ops = report["after"]["ops"]
    assert ops.get("modelflow.MatMulBf16") == 1 and ops.get("modelflow.LayerNorm") == 1, ops
    # The last one leads to a normalization; what the other writes, a convolution and its residual sum read.
    assert ops.get("modelflow.ConvBf16") == 1 and ops.get("modelflow.ConvToBf16", 0) == convolutions - 1, ops
    assert ops.get("modelflow.Conv", 0) == 2 - convolutions, ops
    between = [v for v in onnx.load(out).graph.value_info if v.type.tensor_type.elem_type == TensorProto.BFLOAT16]
    assert len(between) == convolutions - 1, between
    assert sum(t == TensorProto.BFLOAT16 for t in types(out).values()) == 1 + convolutions
    assert convolutions < 2 or out.stat().st_size < 0.6 * source.stat().st_size
    expected = session(source, optimized=False).run(None, feeds)
    with_plugin, without = (session(out, plugin).run(None, feeds) for plugin in (PLUGIN, None))
    assert 1e-4 < distance(expected[0], with_plugin[0]) < 1e-2
    # A sum in another order moves a rounding in front of the next product now and then.
    assert distance(with_plugin[0], without[0]) < 1e-3
    rows = report["quantization"]["ops"]
    assert {row["precision"] for row in rows} == {"bf16"} and all(25 < row["sqnr_db"] < 70 for row in rows), rows
    assert report["quantization"]["outputs"][0]["relative_l2"] < 1e-2


def test_the_bound_is_kept(lower):
    source, out, report, feeds = lower(model(24), "--precision", "bf16", "--target", "cpu:amx", "--metric", "l2", "--max-drop", "0")
    assert all(row["precision"] == "float32" and row["reason"] for row in report["quantization"]["ops"])
    close(session(source, optimized=False).run(None, feeds), session(out, PLUGIN).run(None, feeds))


def test_the_portable_form_is_standard(lower):
    source, out, report, feeds = lower(model(24), "--precision", "bf16", "--target", "cpu:amx", "--portable")
    assert not any(op.startswith("modelflow") for op in report["after"]["ops"])
    assert sum(t == TensorProto.BFLOAT16 for t in types(out).values()) == 3
    assert distance(session(source).run(None, feeds)[0], session(out).run(None, feeds)[0]) < 1e-2


def test_weights_alone_leave_activations_as_they_are(lower):
    source, out, report, feeds = lower(decoder(), "--precision", "bf16-weights", "--target", "cpu:avx512")
    assert report["after"]["ops"].get("modelflow.MatMulBf16") == 2, report["after"]["ops"]
    assert out.stat().st_size < 0.55 * source.stat().st_size
    with_plugin, without = (session(out, plugin).run(None, feeds) for plugin in (PLUGIN, None))
    close(without, with_plugin)
    assert 1e-4 < distance(session(source).run(None, feeds)[0], with_plugin[0]) < 1e-2


def test_weights_stay_where_arithmetic_decides(lower):
    _, out, report, _ = lower(model(24), "--precision", "bf16-weights", "--target", "cpu:avx512")
    assert TensorProto.BFLOAT16 not in types(out).values()
    assert any("stays in float32" in note for note in report["notes"])


def test_explain_says_why(optimize, tmp_path):
    onnx.save(model(24), tmp_path / "in.onnx")
    done = optimize(tmp_path / "in.onnx", "--explain", "--no-measure", "--precision", "bf16-weights", "--target", "cpu:avx512")
    assert done.code == 0 and "is not faster in bfloat16" in done.out, done.out


def test_without_arithmetic_for_it_the_price_is_named(optimize, tmp_path):
    def price(target):
        onnx.save(decoder(), tmp_path / "in.onnx")
        done = optimize(tmp_path / "in.onnx", "-o", tmp_path / "x.onnx", "--precision", "bf16", "--target", target)
        assert done.code == 4 and len(done.err.strip().splitlines()) == 1 and not (tmp_path / "x.onnx").exists(), done.err
        return float(re.search(r"takes ([\d.]+) times as long as in float32", done.err)[1]), done.err

    factor, line = price("cpu:avx512")
    assert factor > 1 and "cost model" in line and "bf16-weights" in line
    factor, line = price("cpu:avx2")
    assert factor > 1 and "bf16-weights" not in line, "they gain nothing there either"
    if "avx512_bf16" not in pathlib.Path("/proc/cpuinfo").read_text():
        factor, line = price("cpu")
        assert 0.5 < factor < 20 and "measured here" in line
