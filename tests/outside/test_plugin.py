"""The plugin in ONNX Runtime as deployments use it: oldest and newest wheel, several sessions and threads at once."""
import json
import os
import subprocess
import sys
import threading

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import PLUGIN, close, session
from onnx import TensorProto, helper, numpy_helper

OLDEST = os.environ.get("MODELFLOW_ORT_OLDEST", "")

CHECK = """
import sys, numpy as np, onnxruntime as ort
model, plugin, feeds, expected, tolerance = sys.argv[1:]
x, want = np.load(feeds)["x"], np.load(expected)["y"]
for use in (True, False):
    so = ort.SessionOptions()
    so.log_severity_level = 3
    if use: so.register_custom_ops_library(plugin)
    got = ort.InferenceSession(model, so, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    assert np.linalg.norm(got - want) <= float(tolerance) * np.linalg.norm(want)
print(ort.__version__)
"""


@pytest.fixture
def fast(cnn, optimize, tmp_path):
    out = tmp_path / "fast.onnx"
    assert optimize(cnn, "-o", out, "--no-measure").code == 0
    return out


def feeds(batch=2, seed=1):
    return {"x": np.random.default_rng(seed).standard_normal((batch, 3, 32, 32), dtype=np.float32)}


def check_in_both_wheels(model, folder, expected, tolerance):
    np.savez(folder / "in.npz", **feeds())
    np.savez(folder / "out.npz", y=expected)
    for version, where in {"": {}, "1.21": {"PYTHONPATH": OLDEST}}.items():
        done = subprocess.run([sys.executable, "-c", CHECK, model, PLUGIN, folder / "in.npz", folder / "out.npz", str(tolerance)],
                              capture_output=True, text=True, timeout=300, env={**os.environ, **where})
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.strip().startswith(version)


@pytest.mark.skipif(not OLDEST, reason="tools/setup brings the oldest wheel")
def test_oldest_and_newest_wheel(cnn, fast, tmp_path):
    check_in_both_wheels(fast, tmp_path, session(cnn).run(None, feeds())[0], 1e-4)


@pytest.mark.skipif(not OLDEST, reason="tools/setup brings the oldest wheel")
@pytest.mark.parametrize("flags", [[], ["--portable"]])
def test_8_bits_in_oldest_and_newest_wheel(cnn, optimize, tmp_path, flags):
    (tmp_path / "samples").mkdir()
    for i in range(8):
        np.savez(tmp_path / "samples" / f"{i}.npz", **feeds(seed=10 + i))
    out = tmp_path / "int8.onnx"
    done = optimize(cnn, "-o", out, "--no-measure", "--precision", "int8", "--calibration", tmp_path / "samples", "--json", *flags)
    quantization = json.loads(done.out)["quantization"]
    assert {n.op_type for n in onnx.load(out).graph.node} & {"QConv", "QConv_1", "QuantizeLinear"}
    angle = (2 * quantization["max_drop"] / 100) ** 0.5  # what a loss of so much cosine is at most
    check_in_both_wheels(out, tmp_path, session(cnn).run(None, feeds())[0], angle)


def test_kernels_run_and_can_be_switched_off(fast, tmp_path):
    def profiled(config):
        options = ort.SessionOptions()
        options.enable_profiling = True
        options.profile_file_prefix = str(tmp_path / "profile")
        for key, value in config.items():
            options.add_session_config_entry(key, value)
        options.register_custom_ops_library(str(PLUGIN))
        run = ort.InferenceSession(str(fast), options, providers=["CPUExecutionProvider"])
        run.run(None, feeds())
        return open(run.end_profiling()).read()

    with_kernels, without = (profiled(config).count("_kernel_time") for config in ({}, {"modelflow.kernels": "off"}))
    assert 0 < with_kernels < without, "the body of an op is more nodes than one"


def test_registering_twice_is_harmless(fast):
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(PLUGIN))
    options.register_custom_ops_library(str(PLUGIN))
    ort.InferenceSession(str(fast), options, providers=["CPUExecutionProvider"]).run(None, feeds())


def test_sessions_and_threads_at_once(cnn, fast):
    sessions = [session(fast, PLUGIN, threads=t) for t in (1, 2, 2)]
    expected = {b: session(cnn).run(None, feeds(b, b)) for b in (1, 2, 5)}
    errors = []

    def work(index):
        try:
            for turn in range(15):
                batch = (1, 2, 5)[(index + turn) % 3]
                close(expected[batch], sessions[index % 3].run(None, feeds(batch, batch)))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors


def test_batch_zero_and_wrong_shapes(cnn, fast):
    run = session(fast, PLUGIN)
    close(session(cnn).run(None, feeds(0)), run.run(None, feeds(0)))
    with pytest.raises(Exception):
        run.run(None, {"x": np.zeros((1, 4, 32, 32), np.float32)})
    close(session(cnn).run(None, feeds()), run.run(None, feeds()))


def test_many_sessions_leak_nothing(fast):
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(10):
        session(fast, PLUGIN, threads=1).run(None, feeds())
    before = resident()
    for _ in range(60):
        session(fast, PLUGIN, threads=1).run(None, feeds())
    assert resident() - before < 16 << 20


def test_models_that_need_other_libraries(optimize, cnn, tmp_path):
    """Custom operators that only a library knows: here our own, in a file without the functions that say what they mean."""
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    needs = onnx.load(tmp_path / "fast.onnx")
    del needs.functions[:]
    tail = needs.graph.node.add(op_type="Identity", input=[needs.graph.output[0].name], output=["copied"])
    tail.name = "tail"
    needs.graph.output[0].name = "copied"
    onnx.save(needs, tmp_path / "needs.onnx")
    out = tmp_path / "out.onnx"
    without = optimize(tmp_path / "needs.onnx", "-o", out, "--portable")
    assert without.code == 0 and "not verified" in without.err, without.err
    done = optimize(tmp_path / "needs.onnx", "-o", out, "--portable", "--custom-ops", PLUGIN)
    assert done.code == 0 and "verified: 1 outputs" in done.out and not done.err, done.out + done.err
    assert optimize(tmp_path / "needs.onnx", "-o", out, "--custom-ops", tmp_path / "none.so").code == 2
    broken = optimize(tmp_path / "needs.onnx", "-o", out, "--custom-ops", cnn)
    assert broken.code == 2 and broken.err.count("\n") == 1, broken.err


@pytest.fixture
def product(tmp_path):
    """y = a w, w beside the model."""
    w = np.random.default_rng(3).standard_normal((512, 1024)).astype(np.float32)
    node = helper.make_node("MatMul_0", ["a", "w"], ["y"], domain="modelflow")
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("a", TensorProto.FLOAT, [4, 512])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 1024])], [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("modelflow", 1)]
    path = tmp_path / "product.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    return path, w


def mapped_kib(name):
    """How much of files of that name this process holds in memory."""
    held, at = 0, False
    for line in open("/proc/self/smaps"):
        first, *rest = line.split()
        if not first.endswith(":"):
            at = bool(rest) and rest[-1].endswith(name)
        elif at and first == "Rss:":
            held += int(rest[0])
    return held


def test_packed_weights_of_a_file_leave_memory(product):
    path, w = product
    run = session(path, PLUGIN)
    a = np.ones((4, 512), np.float32)
    close([a @ w], run.run(None, {"a": a}), 1e-5)
    assert mapped_kib("w.bin") < w.nbytes / 1024 / 4


def test_weights_that_were_changed_in_memory_stay(product):
    """A private mapping holds what was written into it nowhere else."""
    path, w = product
    a = np.ones((4, 512), np.float32)
    w.tofile(path.parent / "plain.bin")
    changed = np.memmap(path.parent / "plain.bin", dtype=np.float32, mode="c", shape=w.shape)
    changed[100:300] *= 2
    want = np.array(changed)
    for _ in range(2):
        options = ort.SessionOptions()
        options.register_custom_ops_library(str(PLUGIN))
        value = ort.OrtValue.ortvalue_from_numpy(changed)
        options.add_initializer("w", value)
        run = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        close([a @ want], run.run(None, {"a": a}), 1e-5)
        assert np.array_equal(changed, want)
