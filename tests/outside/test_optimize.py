"""The command `optimize`: results, exit codes, and that nothing is lost when something goes wrong."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from conftest import BUILD, PLUGIN, close, session, small_cnn
from onnx import TensorProto, helper, numpy_helper


def feeds(batch=2):
    return {"x": np.random.default_rng(1).standard_normal((batch, 3, 32, 32), dtype=np.float32)}


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
@pytest.mark.parametrize("batch", [1, 3])
def test_levels_keep_the_meaning_with_and_without_plugin(cnn, optimize, tmp_path, level, batch):
    out = tmp_path / "out.onnx"
    done = optimize(cnn, "-o", out, "--level", level, "--no-measure")
    assert (done.code, done.err) == (0, "")
    onnx.checker.check_model(str(out))
    expected = session(cnn, optimized=False).run(None, feeds(batch))
    for plugin in (None, PLUGIN):
        close(expected, session(out, plugin).run(None, feeds(batch)))


def test_o0_writes_the_same_model(cnn, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "o0.onnx", "--level", "O0").code == 0
    assert onnx.load(tmp_path / "o0.onnx") == onnx.load(cnn)


def test_o2_fuses_and_o1_stays_standard(cnn, optimize, tmp_path):
    optimize(cnn, "-o", tmp_path / "o1.onnx", "--portable")
    optimize(cnn, "-o", tmp_path / "o2.onnx", "--no-measure")
    portable, fused = onnx.load(tmp_path / "o1.onnx"), onnx.load(tmp_path / "o2.onnx")
    assert not {n.domain for n in portable.graph.node} - {""} and not portable.functions
    assert "BatchNormalization" not in {n.op_type for n in portable.graph.node}
    assert sum(n.domain == "modelflow" for n in fused.graph.node) >= 3
    assert fused.ir_version == 8 and {o.domain: o.version for o in fused.opset_import}[""] == 17


def test_same_input_gives_the_same_bytes(cnn, optimize, tmp_path):
    for name in ("a", "b"):
        optimize(cnn, "-o", tmp_path / f"{name}.onnx", "--no-measure", "--external-data", "never")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_twice_is_once_and_inline_gives_standard_ops(cnn, optimize, tmp_path):
    one, two, plain = (tmp_path / f"{n}.onnx" for n in ("one", "two", "plain"))
    assert optimize(cnn, one, "--no-measure").code == 0
    assert optimize(one, two, "--no-measure").code == 0
    assert optimize("--inline", one, "-o", plain).code == 0
    assert sorted(n.op_type for n in onnx.load(one).graph.node) == sorted(n.op_type for n in onnx.load(two).graph.node)
    inlined = onnx.load(plain)
    assert {n.domain for n in inlined.graph.node} == {""} and not inlined.functions
    close(session(cnn).run(None, feeds()), session(plain).run(None, feeds()))


def test_a_folder_of_models_without_functions(cnn, optimize, tmp_path):
    (tmp_path / "fast").mkdir()
    assert optimize(cnn, "-o", tmp_path / "fast/m.onnx", "--no-measure").code == 0
    done = optimize("--inline", tmp_path / "fast", "-o", tmp_path / "plain")
    assert done.code == 0, done.err
    nodes = [len(onnx.load(tmp_path / path).graph.node) for path in ("fast/m.onnx", "plain/m.onnx")]
    row = next(line for line in done.out.splitlines() if line.startswith("m.onnx")).split()
    assert row[1:8] == [str(nodes[0]), "->", str(nodes[1]), "-", "-", "-", "-"], done.out


def test_report_list_explain(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "o.onnx", "--no-measure", "--json", "--report", tmp_path / "r.json")
    printed, stored = json.loads(done.out), json.loads((tmp_path / "r.json").read_text())
    assert printed == stored and printed["verified"] is True
    assert printed["before"]["ops"]["Conv"] == 3 and printed["after"]["nodes"] < printed["before"]["nodes"]
    assert "fold" in optimize("--list").out
    explained = optimize(cnn, "--explain", "--no-measure")
    assert explained.code == 0 and explained.out


def test_user_inputs_and_shapes(cnn, optimize, tmp_path):
    np.savez(tmp_path / "in.npz", **feeds(4))
    assert optimize(cnn, "-o", tmp_path / "a.onnx", "--inputs", tmp_path / "in.npz", "--no-measure").code == 0
    assert optimize(cnn, "-o", tmp_path / "b.onnx", "--input-shapes", "x:5,3,32,32", "--no-measure").code == 0
    np.savez_compressed(tmp_path / "bad.npz", x=np.zeros((1, 3, 32), np.float32))
    bad = optimize(cnn, "-o", tmp_path / "c.onnx", "--inputs", tmp_path / "bad.npz")
    assert bad.code in (2, 3) and "x" in bad.err and not (tmp_path / "c.onnx").exists()


def test_measured_run_is_verified_and_keeps_only_what_is_faster(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "o.onnx", "--max-seconds", "20", "--report", tmp_path / "r.json")
    assert done.code == 0 and json.loads((tmp_path / "r.json").read_text())["verified"] is True
    close(session(cnn).run(None, feeds()), session(tmp_path / "o.onnx", PLUGIN).run(None, feeds()))


@pytest.mark.parametrize("arguments", [[], ["m.onnx"], ["--nonsense"], ["m.onnx", "-o", "x", "--level", "O9"],
                                       ["m.onnx", "-o", "x", "--target", "toaster"], ["m.onnx", "a.onnx", "-o", "b.onnx"]])
def test_usage_errors(optimize, arguments):
    done = optimize(*arguments)
    assert done.code == 2 and len(done.err.strip().splitlines()) == 1 and not done.out


def test_precisions_that_do_not_pay(cnn, optimize, tmp_path):
    for precision, word in (("bf16", "bfloat16"), ("float16", "float16")):
        done = optimize(cnn, "-o", tmp_path / "x.onnx", "--precision", precision, "--target", "cpu:avx512_vnni")
        assert done.code == 4 and word in done.err and "int8" in done.err
        assert len(done.err.strip().splitlines()) == 1 and not (tmp_path / "x.onnx").exists()


LOW_PRECISION_ERRORS = {
    "no data": (["--precision", "int8"], 2, ["--calibration", "int8-dynamic"]),
    "unknown precision": (["--precision", "int7"], 2, ["int7", "int8-dynamic"]),
    "data for float32": (["--calibration", "."], 2, ["--precision int8"]),
    "data that dynamic does not read": (["--precision", "int8-dynamic", "--calibration", "."], 2, ["int8-dynamic"]),
    "options of low precision": (["--metric", "l2"], 2, ["--precision"]),
    "observer of nothing": (["--precision", "int8-dynamic", "--observer", "mse"], 2, ["observer", "int8-dynamic"]),
    "unknown observer": (["--precision", "int8-dynamic", "--observer", "best"], 2, ["best", "percentile"]),
    "unknown metric": (["--precision", "int8-dynamic", "--metric", "accuracy"], 2, ["accuracy", "cosine"]),
    "drop below nothing": (["--precision", "int8-dynamic", "--max-drop", "-1"], 2, ["max-drop"]),
    "no such folder": (["--precision", "int8", "--calibration", "nowhere"], 3, ["nowhere"]),
    "empty folder": (["--precision", "int8", "--calibration", "empty"], 3, ["empty", ".npz"]),
}


@pytest.mark.parametrize("case", LOW_PRECISION_ERRORS)
def test_errors_of_low_precision(cnn, optimize, tmp_path, case):
    arguments, code, words = LOW_PRECISION_ERRORS[case]
    (tmp_path / "empty").mkdir()
    done = optimize(cnn, "-o", "x.onnx", *arguments, cwd=tmp_path)
    assert done.code == code and len(done.err.strip().splitlines()) == 1, done.err
    assert all(word in done.err for word in words), done.err
    assert not (tmp_path / "x.onnx").exists()


def test_unknown_pass_is_named(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "x.onnx", "--disable", "fold-constant")
    assert done.code == 2 and "fold-constant" in done.err


def hostile_models(folder):
    good = small_cnn()
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "truncated.onnx").write_bytes(good.SerializeToString()[:-700])
    (folder / "random.onnx").write_bytes(np.random.default_rng(0).bytes(4096))
    (folder / "text.onnx").write_text("this is not a model\n")
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")

    def save(name, nodes, initializers=(), **kw):
        graph = helper.make_graph(nodes, "g", [x], [y], list(initializers), **kw)
        (folder / f"{name}.onnx").write_bytes(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())

    save("cyclic", [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Relu", ["a"], ["y"])])
    save("twice", [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["x"], ["y"])])
    save("undefined", [helper.make_node("Add", ["x", "nobody"], ["y"])])
    negative = numpy_helper.from_array(np.ones(4, np.float32), "w")
    negative.dims[0] = -4
    save("negative", [helper.make_node("Add", ["x", "w"], ["y"])], [negative])
    huge = numpy_helper.from_array(np.ones(4, np.float32), "w")
    huge.dims[0] = 1 << 62
    save("huge", [helper.make_node("Add", ["x", "w"], ["y"])], [huge])
    (folder.parent / "secret.bin").write_bytes(b"\0" * 64)
    (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    for name, where in {"missing": "nothing.bin", "outside": "../secret.bin", "absolute": "/etc/passwd", "symlink": "link.bin"}.items():
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        for key, value in {"location": where, "offset": "0", "length": "8"}.items():
            tensor.external_data.add(key=key, value=value)
        save(name, [helper.make_node("Add", ["x", "w"], ["y"])], [tensor])
    wrap = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    (folder / "data.bin").write_bytes(b"\0" * 64)
    for key, value in {"location": "data.bin", "offset": "18446744073709551612", "length": "8"}.items():
        wrap.external_data.add(key=key, value=value)
    save("wrapping", [helper.make_node("Add", ["x", "w"], ["y"])], [wrap])
    return sorted(folder.glob("*.onnx"))


def test_bad_input_is_one_line_and_keeps_the_old_output(optimize, tmp_path):
    folder = tmp_path / "hostile"
    folder.mkdir()
    models = hostile_models(folder)
    assert len(models) >= 14
    out = tmp_path / "out.onnx"
    for path in [*models, folder / "not_there.onnx"]:
        out.write_text("precious")
        done = optimize(path, "-o", out, timeout=60)
        assert done.code == 3, (path.name, done.code, done.err)
        assert len(done.err.strip().splitlines()) == 1 and "Traceback" not in done.err, (path.name, done.err)
        assert out.read_text() == "precious" and not list(tmp_path.glob("*.tmp*")), path.name


def test_unwritable_output_keeps_the_old_file(cnn, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "no" / "such" / "dir.onnx", "--no-measure").code == 6
    out = tmp_path / "out.onnx"
    out.write_text("precious")
    limited = subprocess.run(["bash", "-c", f"ulimit -f 1; trap '' XFSZ; exec {BUILD}/optimize {cnn} -o {out} --no-measure"],
                             capture_output=True, text=True, timeout=120)
    assert limited.returncode == 6, limited.stderr
    assert out.read_text() == "precious" and {p.name for p in tmp_path.iterdir()} == {"cnn.onnx", "out.onnx"}


def test_interrupt_leaves_nothing_behind(cnn, tmp_path):
    process = subprocess.Popen([BUILD / "optimize", cnn, "-o", tmp_path / "out.onnx"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    assert process.returncode in (0, 130)
    if process.returncode == 130:
        assert {p.name for p in tmp_path.iterdir()} == {"cnn.onnx"}


def test_a_crash_is_one_line_and_keeps_the_old_file(cnn, tmp_path):
    out = tmp_path / "out.onnx"
    out.write_text("precious")
    process = subprocess.Popen([BUILD / "optimize", cnn, "-o", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not (worker := children.read_text().split()):
        time.sleep(0.001)
    os.kill(int(worker[0]), signal.SIGSEGV)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (1, 3) and len(err.splitlines()) == 1 and "crashed" in err, err
    assert out.read_text() == "precious"


def test_output_over_input_and_external_data(optimize, tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(small_cnn(), path)
    expected = session(path).run(None, feeds())
    assert optimize(path, "-o", path, "--no-measure", "--external-data", "always").code == 0
    assert len(list(tmp_path.iterdir())) == 2
    close(expected, session(path, PLUGIN).run(None, feeds()))
    for tensor in onnx.load(path, load_external_data=False).graph.initializer:
        for entry in tensor.external_data:
            assert entry.key != "offset" or int(entry.value) % 4096 == 0
    assert optimize(path, "-o", path, "--no-measure").code == 0
    close(expected, session(path).run(None, feeds()))


def test_no_onnxruntime_is_said(cnn, optimize, tmp_path):
    hidden = {k: v for k, v in os.environ.items() if k not in ("MODELFLOW_ONNXRUNTIME", "LD_LIBRARY_PATH", "VIRTUAL_ENV")}
    done = optimize(cnn, "-o", tmp_path / "o.onnx", env={**hidden, "PATH": "/nowhere", "MODELFLOW_ONNXRUNTIME": "/nowhere/lib.so"})
    assert done.code == 0 and "no ONNX Runtime: " in done.out.splitlines()[0] and "\nverified: " not in done.out, done.out
    assert "not verified: there is no ONNX Runtime" in done.err, done.err
