"""Calibration data and quantized models that are damaged or make no sense: one clear line and the exit code of its class, or a
result that means what the original means; never a crash."""
import io
import os
import pathlib
import struct
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest
from conftest import PLUGIN
from onnx import TensorProto, helper, numpy_helper


def sample(seed=0, **changes):
    arrays = {"x": np.random.default_rng(seed).standard_normal((1, 3, 32, 32), dtype=np.float32)} | changes
    return {name: value for name, value in arrays.items() if value is not None}


def archive(compressed=False, **arrays):
    data = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(data, **arrays)
    return data.getvalue()


def members(*pairs, method=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as out:
        for name, content in pairs:
            out.writestr(name, content)
    return data.getvalue()


def npy(header, content=b"", version=1):
    text = header.encode() + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + content


def shared_bytes():
    """Many members that all unpack the same bytes, each to 64 MiB."""
    content = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (16777216,), }", bytes(64 << 20))
    one = bytearray(members(("a.npy", content)))
    end = one.rfind(b"PK\x05\x06")
    start, = struct.unpack_from("<I", one, end + 16)
    entry = bytes(one[start:end])
    entries = b"".join(entry.replace(b"a.npy", b"%05d" % i) for i in range(2000))
    tail = bytearray(one[end:])
    struct.pack_into("<HHII", tail, 8, 2000, 2000, len(entries), start)
    return bytes(one[:start]) + entries + bytes(tail)


def claims_more():
    """A member that claims to unpack to almost 4 GiB."""
    good = bytearray(archive(True, **sample()))
    start = good.find(b"PK\x01\x02")
    struct.pack_into("<I", good, start + 24, 0xFFFFFFF0)
    return bytes(good)


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 32, 32), }"
SPOILED = {  # content of one sample -> exit code, a word of the message
    "truncated": (archive(**sample())[:-700], 3, "bad.npz"),
    "truncated inside": (archive(True, **sample())[:5000], 3, "bad.npz"),
    "empty": (b"", 3, "bad.npz"),
    "random": (np.random.default_rng(0).bytes(5000), 3, "bad.npz"),
    "no arrays": (members(), 3, "no arrays"),
    "text in it": (members(("x.npy", b"1, 2, 3")), 3, ".npy"),
    "pickled": (archive(x=np.array([{"a": 1}], dtype=object)), 3, "x"),
    "strings": (archive(x=np.array(["a", "b"])), 2, "string"),
    "records": (archive(x=np.zeros(3, dtype=[("a", "f4"), ("b", "i4")])), 3, "x"),
    "big-endian": (archive(x=sample()["x"].astype(">f4")), 3, "little-endian"),
    "Fortran order": (archive(x=np.asfortranarray(np.zeros((3, 4), np.float32))), 3, "Fortran"),
    "negative dims": (members(("x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3), }", b"1" * 12))), 2, "sample"),
    "huge dims": (members(("x.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 999999999999999999), }"))), 3, "x"),
    "dims that overflow": (members(("x.npy", npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'4294967296, ' * 4}), }}"))), 3, "x"),
    "many dims": (members(("x.npy", npy(f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({'1, ' * 1000}), }}", b"1234"))), 3, "axes"),
    "long header": (members(("x.npy", npy(GOOD + " " * 60000, bytes(12288)))), 3, "header"),
    "header of 4 GiB": (members(("x.npy", b"\x93NUMPY\x02\0\xff\xff\xff\xff" + bytes(100))), 3, "header"),
    "other version": (members(("x.npy", npy(GOOD, bytes(12288), 9))), None, ""),
    "bzip2": (members(("x.npy", npy(GOOD, bytes(12288))), method=zipfile.ZIP_BZIP2), 3, "deflated"),
    "bomb": (members(("x.npy", npy(GOOD, bytes(256 << 20)))), None, ""),
    "bomb of shared bytes": (shared_bytes(), 3, "archive"),
    "claims 4 GiB": (claims_more(), 3, "bad.npz"),
    "no such input": (archive(y=sample()["x"]), 2, "'x'"),
    "path for a name": (members(("../../x.npy", npy(GOOD, bytes(12288)))), 2, "x"),
    "wrong dtype": (archive(x=sample()["x"].astype(np.float64)), 2, "float64"),
    "wrong rank": (archive(x=sample()["x"][0]), 2, "'x'"),
    "wrong shape": (archive(x=sample()["x"][:, :2]), 2, "'x'"),
    "nothing in it": (archive(x=np.zeros((0, 3, 32, 32), np.float32)), None, ""),
    "not a number": (archive(x=np.full((1, 3, 32, 32), np.nan, np.float32)), None, ""),
    "infinite": (archive(x=np.full((1, 3, 32, 32), np.inf, np.float32)), None, ""),
    "largest": (archive(x=np.full((1, 3, 32, 32), 3e38, np.float32)), None, ""),
}


@pytest.mark.parametrize("case", SPOILED)
@pytest.mark.parametrize("place", [0, 2, 3])  # the first sample, one to calibrate with, one to judge by
def test_spoiled_calibration_sample(cnn, optimize, tmp_path, case, place):
    content, code, word = SPOILED[case]
    folder = tmp_path / "samples"
    folder.mkdir()
    for i in range(6):
        (folder / f"{i}-good.npz").write_bytes(archive(**sample(i)))
    (folder / f"{place}-bad.npz").write_bytes(content)
    done = optimize(cnn, "-o", tmp_path / "out.onnx", "--no-measure", "--quiet", "--precision", "int8", "--calibration", folder)
    assert done.code == code if code is not None else done.code in (0, 2, 3), (done.code, done.err)
    if done.code:
        assert len(done.err.strip().splitlines()) == 1 and word in done.err, done.err
        assert not (tmp_path / "out.onnx").exists()
    assert {p.name for p in tmp_path.iterdir()} <= {"cnn.onnx", "samples", "out.onnx"}


def test_folder_with_odd_files(cnn, optimize, tmp_path):
    folder = tmp_path / "samples"
    folder.mkdir()
    for i in range(6):
        (folder / f"{i}.npz").write_bytes(archive(**sample(i)))
    (folder / "readme.txt").write_text("what is here")
    (folder / ".hidden").write_text("")
    (folder / "inner").mkdir()
    flags = ["--no-measure", "--quiet", "--precision", "int8", "--calibration", folder]
    assert optimize(cnn, "-o", tmp_path / "out.onnx", *flags).code == 0
    for name, make in {"folder.npz": lambda p: p.mkdir(), "dangling.npz": lambda p: p.symlink_to("nowhere"), "pipe.npz": os.mkfifo}.items():
        make(folder / name)
        done = optimize(cnn, "-o", tmp_path / "none.onnx", *flags, timeout=60)
        assert done.code == 3 and name in done.err and len(done.err.strip().splitlines()) == 1, done.err
        (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()
    done = optimize(cnn, "-o", tmp_path / "none.onnx", *flags[:-1], "n" * 5000)
    assert done.code == 3 and len(done.err.strip().splitlines()) == 1, done.err[-300:]
    assert not (tmp_path / "none.onnx").exists()


def constant(value, dtype):
    return np.array(value, dtype)


def quantized_conv(x_scale=0.02, x_zero=3, w_scale=0.01, w_zero=0, y_scale=0.05, y_zero=5, bias_scale=None, back_zero=None, act=np.uint8,
                   axis=0):
    """QuantizeLinear, DequantizeLinear, Conv of 8-bit weights with a bias of 32 bits, QuantizeLinear, DequantizeLinear."""
    rng = np.random.default_rng(1)
    constants = {
        "xs": constant(x_scale, np.float32), "xz": constant(x_zero, act), "ws": constant(w_scale, np.float32),
        "wz": constant(w_zero, np.int8), "ys": constant(y_scale, np.float32), "yz": constant(y_zero, act),
        "bs": constant(w_scale if bias_scale is None else bias_scale, np.float32), "bz": constant(x_zero if back_zero is None else back_zero, act),
        "w": rng.integers(-127, 128, (8, 4, 3, 3), np.int8), "b": rng.integers(-999, 999, 8, np.int32)}
    per_axis = {"axis": axis} if constants["ws"].ndim else {}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), helper.make_node("DequantizeLinear", ["xq", "xs", "bz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"] if constants["wz"].ndim or not constants["ws"].ndim else ["w", "ws"], ["wd"], **per_axis),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], **({"axis": 0} if constants["bs"].ndim else {})),
        helper.make_node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1, 1, 1, 1]), helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"])]
    return model_of(nodes, constants)


def model_of(nodes, constants):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 9, 9])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 9, 9])
    graph = helper.make_graph(nodes, "quantized", [x], [y], [numpy_helper.from_array(v, k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def operator_conv(left_out=None, **changes):
    constants = {"xs": constant(0.02, np.float32), "xz": constant(3, np.uint8), "ws": constant(0.01, np.float32), "wz": constant(0, np.int8),
                 "ys": constant(0.05, np.float32), "yz": constant(5, np.uint8), "b": np.arange(8, dtype=np.int32),
                 "w": np.random.default_rng(1).integers(-127, 128, (8, 4, 3, 3), np.int8)} | changes
    inputs = ["xq", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
    inputs = ["" if name == left_out else name for name in inputs]
    nodes = [helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]), helper.make_node("QLinearConv", inputs, ["yq"], pads=[1, 1, 1, 1]),
             helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"])]
    return model_of(nodes, constants)


ODD = [0.0, -0.02, float("nan"), float("inf"), 1e-45, 1e38]
QUANTIZED = {f"{name} {value}": quantized_conv(**{name: value}) for name in ("x_scale", "w_scale", "y_scale", "bias_scale") for value in ODD}
QUANTIZED |= {f"one w_scale {value}": quantized_conv(w_scale=[0.01] * 7 + [value]) for value in ODD}
QUANTIZED |= {f"{name} of {n}": quantized_conv(**{name: [0.01] * n}) for name in ("x_scale", "w_scale", "y_scale", "bias_scale") for n in (0, 1, 5, 8, 9)}
QUANTIZED |= {f"{name} of {n}": quantized_conv(w_scale=[0.01] * 8, **{name: [0] * n}) for name in ("x_zero", "w_zero", "y_zero") for n in (0, 1, 5, 8)}
QUANTIZED |= {"two zero points": quantized_conv(back_zero=77), "two zero points, int8": quantized_conv(back_zero=77, act=np.int8),
              "int8": quantized_conv(act=np.int8), "asymmetric": quantized_conv(w_zero=7), "axis 9": quantized_conv(w_scale=[0.01] * 8, axis=9),
              "axis 1": quantized_conv(w_scale=[0.01] * 4, axis=1), "axis -4": quantized_conv(w_scale=[0.01] * 8, axis=-4)}
QUANTIZED |= {f"QLinearConv without {name}": operator_conv(name) for name in ("xq", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b")}
QUANTIZED |= {f"QLinearConv, {name} of {len(value)}": operator_conv(**{name: np.array(value, t)}) for name, value, t in
              [("ws", [0.01] * 5, np.float32), ("ws", [], np.float32), ("b", [1] * 3, np.int32), ("xs", [0.1, 0.2], np.float32), ("wz", [1] * 3, np.int8)]}
QUANTIZED |= {f"QLinearConv, {name} {value}": operator_conv(**{name: constant(value, np.float32)}) for name in ("xs", "ys", "ws") for value in ODD}


RUN_EACH = """
import os, sys, numpy as np, onnxruntime as ort
x = np.random.default_rng(5).standard_normal((1, 4, 9, 9), dtype=np.float32)
for line in sys.stdin.read().splitlines():
    model, plugin, result = line.split()
    child = os.fork()  # a runtime may crash on what is no model; it crashes alone then
    if not child:
        try:
            so = ort.SessionOptions()
            so.intra_op_num_threads, so.log_severity_level = 1, 4
            so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it would quantize float weights itself
            if plugin != "-": so.register_custom_ops_library(plugin)
            np.save(result, ort.InferenceSession(model, so, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])
        except BaseException:
            pass
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""


def run_each(jobs):
    """Of (model, plugin or "-") in a process of its own each: what it gives, None, or the signal that ended it."""
    lines = [f"{model} {plugin} {model}.{i}.npy" for i, (model, plugin) in enumerate(jobs)]
    done = subprocess.run([sys.executable, "-c", RUN_EACH], input="\n".join(lines), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    results = []
    for line, status in zip(lines, done.stdout.split(), strict=True):
        path = pathlib.Path(line.split()[2])
        results.append(f"signal {status}" if status != "0" else np.load(path) if path.exists() else None)
    return results


def step_of(model):
    """A step of y: what a result may be off by where a product lies in the middle between two."""
    scale = numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == "ys"))
    return float(np.abs(np.nan_to_num(scale)).max(initial=0))


def defined(model):
    """Whether QuantizeLinear gets numbers only: a runtime may make anything of what is divided by 0 or leaves float32."""
    scales = {t.name: np.abs(numpy_helper.to_array(t)) for t in model.graph.initializer if t.name in ("xs", "ys", "ws", "bs")}
    return all((s < 1e30).all() and (name in ("ws", "bs") or (s > 1e-30).all()) for name, s in scales.items())


def test_quantized_models(optimize, tmp_path):
    outcomes, jobs = {}, []
    for index, (case, model) in enumerate(QUANTIZED.items()):
        path, out = tmp_path / f"{index}.onnx", tmp_path / f"{index}-out.onnx"
        onnx.save(model, path)
        done = optimize(path, "-o", out, "--no-measure", "--no-verify", "--quiet", timeout=60)
        outcomes[case] = done
        assert done.code in (0, 3, 4, 5) and len(done.err.strip().splitlines()) == bool(done.code), (case, done.code, done.err)
        assert out.exists() == (done.code == 0), case
        jobs += [(path, "-"), (out, "-"), (out, PLUGIN)]
    results = run_each(jobs)
    for index, (case, model) in enumerate(QUANTIZED.items()):
        expected, fallback, fast = results[3 * index:3 * index + 3]
        if not isinstance(expected, np.ndarray):
            assert not isinstance(fast, str), (case, fast)  # what crashes the runtime alone is not ours, the plugin is
            continue
        assert outcomes[case].code == 0, (case, outcomes[case].err)  # what runs is a model
        for actual in (fallback, fast):
            assert isinstance(actual, np.ndarray), (case, actual)
            if not defined(model):
                continue
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1.001 * step_of(model), err_msg=case)


@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool", "ConvTranspose"])
@pytest.mark.parametrize("name, value", [("strides", 0), ("strides", -1), ("strides", 2**40), ("dilations", 0), ("kernel_shape", 0)])
def test_windows_that_nothing_can_divide_by(optimize, tmp_path, op, name, value):
    if op == "AveragePool" and name == "dilations":
        pytest.skip("has none at this opset")
    pool = op.endswith("Pool")
    attributes = {"kernel_shape": [3, 3], "strides": [1, 1]} | {name: [1, value]}
    node = helper.make_node(op, ["x"] if pool else ["x", "w"], ["y"], name="window", **attributes)
    w = numpy_helper.from_array(np.ones((4, 4, 3, 3), np.float32), "w")
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", [1, 4, 9, 9]), ("y", None))]
    graph = helper.make_graph([node], "g", ports[:1], ports[1:], [] if pool else [w])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    done = optimize(tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--no-measure")
    assert done.code == 3 and done.err.count("\n") == 1 and "'window'" in done.err and name in done.err
    assert not (tmp_path / "out.onnx").exists()
