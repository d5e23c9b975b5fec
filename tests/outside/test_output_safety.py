"""The file that a run writes, whatever ends the run: the old model or the new one, never a mixture, and after a failure that
could be handled nothing left beside it. MODELFLOW_KILLS says how often a run is killed (20; tools/test-kills asks for 200)."""
import os
import random
import resource
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD
from onnx import TensorProto, helper, numpy_helper
from test_full_disk import on_disk_of

OPTIMIZE = BUILD / "optimize"
KILLS = int(os.environ.get("MODELFLOW_KILLS", "20"))
FLAGS = ["--portable", "--no-measure", "--no-verify", "--quiet"]


def products(path, seed, megabytes=16):
    """A model whose weights all follow from the seed; a quarter of a megabyte each."""
    weights = [numpy_helper.from_array(np.full((256, 256), seed * 1000 + i, np.float32), f"w{i}") for i in range(4 * megabytes)]
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(len(weights))]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 256]) for n in ("t0", f"t{len(weights)}")]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def seed_of(path):
    """Which of the models it is: all of it, or this fails."""
    weights = [numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer]
    assert len(weights) == 64 and all(w.shape == (256, 256) and (w == w[0, 0]).all() for w in weights)
    seeds = {(int(w[0, 0]) - i) / 1000 for i, w in enumerate(weights)}
    assert len(seeds) == 1
    return seeds.pop()


def command(source, out, external):
    return [str(OPTIMIZE), str(source), "-o", str(out), *FLAGS, "--external-data", external]


def seconds_of(arguments):
    start = time.monotonic()
    subprocess.run(arguments, check=True, timeout=120)
    return time.monotonic() - start


@pytest.mark.parametrize("external", ["always", "never"])
def test_killed_at_any_time(tmp_path, external):
    out, models = tmp_path / "out.onnx", [products(tmp_path / f"in{seed}.onnx", seed) for seed in (1, 2)]
    seconds_of(command(models[0], out, external))
    seconds = seconds_of(command(models[0], out, external))
    draw, killed, became = random.Random(), 0, {1: 0, 2: 0}
    for turn in range(KILLS):
        process = subprocess.Popen(command(models[turn % 2], out, external), start_new_session=True)
        time.sleep(draw.uniform(0, 1.2 * seconds))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        killed += process.wait(timeout=60) == -signal.SIGKILL
        became[seed_of(out)] += 1
        assert len(list(tmp_path.glob("out.onnx.data*"))) <= 3
        # Where a file must have a name while it is written, a killed process leaves it to the next one.
        assert len([p for p in tmp_path.iterdir() if p.name.startswith(".out.onnx")]) <= 2 * (turn + 1)
    assert killed and sum(became.values()) == KILLS
    seconds_of(command(models[1], out, external))
    assert seed_of(out) == 2


def test_killed_in_place(tmp_path):
    """The model is its own output, and its weights are mapped while they are written."""
    path = products(tmp_path / "in.onnx", 3)
    model = onnx.load(path)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    seconds = seconds_of(command(tmp_path / "m.onnx", tmp_path / "m.onnx", "always"))
    draw = random.Random()
    for _ in range(KILLS // 2):
        process = subprocess.Popen(command(tmp_path / "m.onnx", tmp_path / "m.onnx", "always"), start_new_session=True)
        time.sleep(draw.uniform(0, 1.2 * seconds))
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(timeout=60)
        assert seed_of(tmp_path / "m.onnx") == 3


def names(folder):
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("external", ["always", "never"])
@pytest.mark.parametrize("megabytes", [0, 1, 15])
def test_limit_of_file_size(tmp_path, external, megabytes):
    source, out = products(tmp_path / "in.onnx", 1), tmp_path / "out.onnx"
    out.write_text("precious")
    limit = megabytes << 20 or 100
    done = subprocess.run(command(source, out, external), capture_output=True, text=True, timeout=120,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 6 and done.stderr.count("\n") == 1 and "file size limit" in done.stderr, done.stderr
    assert out.read_text() == "precious" and names(tmp_path) == ["in.onnx", "out.onnx"]


def test_folder_that_cannot_be_written(cnn, tmp_path):
    script = (f"echo precious > out.onnx; mount -o remount,ro . ; for out in out.onnx new.onnx; do {OPTIMIZE} '{cnn}' -o $out --no-measure --no-verify -q; "
              f"echo exit $?; done; {OPTIMIZE} '{cnn}' -o '{tmp_path}/fast.onnx' --report r.json --no-measure --no-verify -q; echo exit $?; ls -A; cat out.onnx")
    out, err = on_disk_of(16, tmp_path, script)
    assert out == "exit 6\nexit 6\nexit 6\nout.onnx\nprecious\n" and err.count("\n") == 3, (out, err)
    assert not (tmp_path / "fast.onnx").exists()


def test_folder_that_is_not_there(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "none/out.onnx", "--no-measure", "--no-verify", "-q")
    assert done.code == 6 and done.err.count("\n") == 1 and not (tmp_path / "none").exists()


def test_data_of_another_model_stays(tmp_path):
    """Two models name the data file that the output's old model names."""
    model = onnx.load(products(tmp_path / "in.onnx", 5))
    for name in ("out.onnx", "other.onnx"):
        onnx.save(onnx.ModelProto.FromString(model.SerializeToString()), tmp_path / name, save_as_external_data=True, location="out.onnx.data", size_threshold=0)
        if name == "out.onnx":
            os.remove(tmp_path / "out.onnx.data")
    seconds_of(command(products(tmp_path / "new.onnx", 6), tmp_path / "out.onnx", "always"))
    assert seed_of(tmp_path / "out.onnx") == 6 and seed_of(tmp_path / "other.onnx") == 5
    # The input's weights lie where the output's would: they are mapped, and stay.
    seconds_of(command(tmp_path / "other.onnx", tmp_path / "out.onnx", "always"))
    assert seed_of(tmp_path / "out.onnx") == 5 and seed_of(tmp_path / "other.onnx") == 5


def test_data_of_the_original_stays_in_place(optimize, tmp_path):
    """Though every weight becomes another one: a convolution takes the normalization in."""
    path, ends = tmp_path / "m.onnx", [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 16, 8, 8]) for n in "xy"]
    weights = [numpy_helper.from_array(np.full(shape, 0.5, np.float32), name) for name, shape in
               (("w", (16, 16, 3, 3)), *((n, (16,)) for n in ("scale", "bias", "mean", "var")))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=True, location="m.onnx.data", size_threshold=1)
    before = (tmp_path / "m.onnx.data").read_bytes()
    assert optimize(path, "-o", path, "--portable", "--no-measure").code == 0
    assert len(onnx.load(path).graph.node) == 1 and (tmp_path / "m.onnx.data").read_bytes() == before


@pytest.mark.parametrize("given", [["-o", "weights.bin"], ["-o", "./weights.bin"], ["-o", "link"], ["-o", "out.onnx", "--report", "weights.bin"],
                                   ["--merge", "b=cnn.onnx", "-o", "weights.bin"], ["--inline", "-o", "weights.bin"]])
def test_weights_of_the_input_are_no_output(cnn, optimize, tmp_path, given):
    onnx.save(onnx.load(cnn), cnn, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "link").symlink_to("weights.bin")
    before = (tmp_path / "weights.bin").read_bytes()
    done = optimize("cnn.onnx", *given, "--no-measure" if "--inline" not in given else "--quiet", cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1 and "weights of" in done.err, done.err
    assert (tmp_path / "weights.bin").read_bytes() == before and not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("limit", [["--timeout", "0.001"], ["--max-memory", "1M"], ["--max-nodes", "3"]])
def test_a_limit_leaves_nothing(cnn, optimize, tmp_path, limit):
    (tmp_path / "out.onnx").write_text("precious")
    (tmp_path / "tmp").mkdir()
    done = optimize(cnn, "-o", tmp_path / "out.onnx", "-q", *limit, env={**os.environ, "TMPDIR": str(tmp_path / "tmp")})
    assert done.code == 7 and done.err.count("\n") == 1 and (tmp_path / "out.onnx").read_text() == "precious", done.err
    assert names(tmp_path) == ["cnn.onnx", "out.onnx", "tmp"] and not names(tmp_path / "tmp")
