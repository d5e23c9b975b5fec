"""What verification feeds, finds and keeps, seen from outside: the wrong kernels of tests/wrong_plugin in place of ours."""
import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import BUILD, PLUGIN, session

WRONG = next(iter(BUILD.glob("**/libwrong_plugin.so")), None)


def model(tmp_path, text, opset=17):
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n' + text), path)
    return path


def numbers(count):
    return "{" + ", ".join(f"{i * 7919 % 1000 / 1000 - 0.5:.3f}" for i in range(count)) + "}"


@pytest.fixture
def product(tmp_path):
    return model(tmp_path, f"g (float[batch,8] x) => (float[batch,8] y) <float[8,8] w = {numbers(64)}>"
                 "{ a = Sin(x)  m = MatMul(a, w)  r = Relu(m)  y = Neg(r) }")


def test_feeds_are_listed_with_their_shapes(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "o.onnx", "--no-measure", "--json")
    report = json.loads(done.out)
    feeds = {feed["name"]: feed for feed in report["feeds"]}
    batches = {feed["shapes"]["x"] for feed in feeds.values() if not feed["dropped"]}
    assert {f"float32[{n},3,32,32]" for n in (0, 1, 2, 3)} <= batches, batches
    assert {"typical", "empty batch", "zeros", "image 0..255", "NaN"} <= set(feeds) and all(f["why"] for f in feeds.values())
    assert feeds["NaN"]["kinds_only"] and report["faults"] == [] and report["verified"]


def test_given_shapes_stay(cnn, optimize, tmp_path):
    report = json.loads(optimize(cnn, "-o", tmp_path / "o.onnx", "--no-measure", "--json", "--input-shapes", "x:5,3,32,32").out)
    assert {feed["shapes"]["x"] for feed in report["feeds"]} == {"float32[5,3,32,32]"}
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 3, 32, 32), np.float32))
    report = json.loads(optimize(cnn, "-o", tmp_path / "o.onnx", "--no-measure", "--json", "--inputs", tmp_path / "in.npz").out)
    assert [feed["name"] for feed in report["feeds"]] == ["given"]


def test_what_the_original_refuses_is_dropped(optimize, tmp_path):
    path = model(tmp_path, "g (float[n,m] x) => (float[?,?] y) <int64[2] to = {-1, 64}> { y = Reshape(x, to) }")
    report = json.loads(optimize(path, "-o", tmp_path / "o.onnx", "--no-measure", "--json").out)
    dropped = [feed for feed in report["feeds"] if feed["dropped"]]
    assert dropped and not report["faults"] and report["verified"]


def test_a_wrong_kernel_is_named_left_out_and_kept(product, optimize, tmp_path):
    out, folder = tmp_path / "o.onnx", tmp_path / "kept" / "here"
    environment = {**os.environ, "MODELFLOW_PLUGIN": str(WRONG)}
    done = optimize(product, "-o", out, "--no-measure", "--json", "--reproducer", folder, env=environment)
    assert done.code == 0, done.err
    report = json.loads(done.out)
    (fault,) = report["faults"]
    assert "matmul" in fault["kernel"] and fault["node"] and fault["feed"] == "typical" and not fault["rule"]
    assert abs(fault["difference"]["max_rel"] - 1e-3) < 1e-4
    assert fault["what"] in report["notes"] and report["verified"]
    assert "MatMul" in {node.op_type for node in onnx.load(out).graph.node if node.domain == ""}
    # What was kept shows it: few nodes, their inputs, the result.
    small = onnx.parser.parse_model((folder / "model.onnxtxt").read_text())
    assert [node.op_type for node in small.graph.node] == ["MatMul"] == [n.op_type for n in onnx.load(folder / "model.onnx").graph.node]
    feeds = dict(np.load(folder / "feeds.npz"))
    right, = session(folder / "model.onnx", optimized=False).run(None, feeds)
    wrong, = session(folder / "wrong.onnx", WRONG).run(None, feeds)
    ours, = session(folder / "wrong.onnx", PLUGIN).run(None, feeds)
    assert np.allclose(wrong, right * 1.001, rtol=1e-4) and np.allclose(ours, right, atol=1e-5)
    assert fault["what"] in (folder / "fault.txt").read_text()


def test_each_of_many_models_keeps_its_own(product, optimize, tmp_path):
    models = tmp_path / "models" / "below"
    models.mkdir(parents=True)
    for name in ("a.onnx", "b.v2.onnx"):
        (models / name).write_bytes(product.read_bytes())
    done = optimize(tmp_path / "models", "-o", tmp_path / "fast", "--no-measure", "--reproducer", tmp_path / "kept",
                    env={**os.environ, "MODELFLOW_PLUGIN": str(WRONG)})
    assert done.code == 0, done.err
    for name in ("a.onnx", "b.v2.onnx"):
        assert (tmp_path / "kept" / "below" / name / "fault.txt").exists()


def test_the_same_from_c(product, tmp_path, monkeypatch):
    monkeypatch.setenv("MODELFLOW_PLUGIN", str(WRONG))
    code = f"""
import ctypes
c = ctypes.CDLL({str(BUILD / 'libmodelflow.so')!r})
c.modelflow_options_create.restype = ctypes.c_void_p
options, error = ctypes.c_void_p(c.modelflow_options_create()), ctypes.c_char_p()
for key, value in ((b"measure", b"0"), (b"reproducer", {str(tmp_path / 'kept').encode()!r})):
    assert c.modelflow_options_set(options, key, value, ctypes.byref(error)) == 0, error.value
path = {str(product).encode()!r}
code = c.modelflow_optimize_file(path, path + b".fast", options, None, ctypes.byref(error))
assert code == 0, error.value
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert {"model.onnxtxt", "feeds.npz", "fault.txt", "wrong.onnx"} <= {p.name for p in (tmp_path / "kept").iterdir()}


def test_nothing_is_kept_where_nothing_is_wrong(product, optimize, tmp_path):
    assert optimize(product, "-o", tmp_path / "o.onnx", "--no-measure", "--reproducer", tmp_path / "kept").code == 0
    assert not (tmp_path / "kept").exists()
