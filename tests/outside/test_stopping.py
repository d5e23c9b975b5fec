"""Runs that somebody stops, or a limit: they end soon, leave no process behind and say of which model they speak."""
import fcntl
import json
import os
import pathlib
import pty
import signal
import subprocess
import termios
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD, small_cnn
from onnx import TensorProto, helper

SLOW = float(os.environ.get("MODELFLOW_SLOWNESS", "1"))  # how much slower a build with sanitizers is
BLOCKS = 'if test -e "$1"; then echo $$ > "$2.new"; mv "$2.new" "$2"; exec sleep 600; fi; echo 1'


class Blocked:
    """Three models are optimized; the first or the second waits in a command that computes its score."""

    def __init__(self, folder, model, terminal=None):
        self.out, marker = folder / "out", folder / "marker"
        (folder / "models").mkdir()
        for name in "abc":
            onnx.save(small_cnn(), folder / f"models/{name}.onnx")
        np.savez(folder / "sample.npz", x=np.zeros((2, 3, 32, 32), np.float32))
        (folder / "blocks.sh").write_text(BLOCKS)
        when = folder / "models" if model == 1 else self.out / "a.onnx"
        self.process = subprocess.Popen(
            [BUILD / "optimize", folder / "models", "-o", self.out, "--json", "--no-measure", "--precision", "int8", "--calibration", folder / "sample.npz",
             "--score", f"sh {folder}/blocks.sh {when} {marker} {{}}"],
            stdin=terminal or subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if terminal else None)
        while not marker.exists():
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)
        self.sleeper = int(marker.read_text())

    def ended(self):
        """What it said, JSON and text. The sleeper holds its pipes, so they are not read to their ends."""
        code = self.process.wait(timeout=30 * SLOW)  # of the 600 s that the step would take
        alive = is_alive(self.sleeper)
        if alive:
            os.kill(self.sleeper, signal.SIGKILL)
        out, err = self.process.communicate(timeout=30)
        assert code == 130, (code, err)
        return json.loads(out), err.replace("Killed\n", ""), alive  # what its shell says of the sleeper


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def of_group(group):
    """The processes of a group that live."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of) == group and state not in "ZX":
            found.append(int(folder.name))
    return found


def ctrl_c(blocked, terminal):
    os.write(terminal, b"\x03")


def kill(blocked, terminal):
    blocked.process.send_signal(signal.SIGTERM)


def kill_group(blocked, terminal):
    os.killpg(blocked.process.pid, signal.SIGTERM)


@pytest.mark.parametrize("model", [1, 2])
@pytest.mark.parametrize("stop", [ctrl_c, kill, kill_group])
def test_many_models_are_stopped(tmp_path, stop, model):
    ours, theirs = pty.openpty()
    blocked = Blocked(tmp_path, model, theirs if stop is ctrl_c else None)  # a terminal hangs up for all of them
    stop(blocked, ours)
    rows, err, others_live = blocked.ended()
    assert err.count("\n") == 1 and f"models/{'ab'[model - 1]}.onnx: interrupted; nothing written" in err, err
    done = ["a.onnx"][:model - 1]
    assert [row["model"] for row in rows] == done and sorted(path.name for path in blocked.out.glob("*.onnx")) == done
    assert others_live == (stop is kill), "nobody else of the group was meant"
    for end in (ours, theirs):
        os.close(end)


def looping(nodes=(), weights=(), steps=4 * 10**12, empty=True):
    """Where an input has no elements, the original is tried in a process of its own; so many steps come to no end."""
    value = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)  # noqa: E731
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["still"]), helper.make_node("Cos", ["v"], ["w"])], "body",
                             [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [1])], [value("still", [], TensorProto.BOOL), value("w", [1])])
    loop = [helper.make_node("Loop", ["steps", "", "a"], ["z"], body=body)] if steps else []
    relu = [helper.make_node("Relu", ["e"], ["y"])] if empty else []
    inputs = [value("a", [1])] + ([value("e", [0, 4])] if empty else [])
    outputs = ([value("z", None)] if loop or nodes else []) + ([value("y", [0, 4])] if empty else [])
    weights = list(weights) + ([helper.make_tensor("steps", TensorProto.INT64, [], [steps])] if steps else [])
    graph = helper.make_graph([*relu, *nodes, *loop], "g", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def watched(command):
    """A run, the largest memory of one of its processes in bytes, and those of them that outlive it."""
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    largest = 0
    while process.poll() is None:
        for each in of_group(process.pid):
            try:
                largest = max(largest, int(pathlib.Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
            except (FileNotFoundError, ProcessLookupError):
                pass
        time.sleep(0.005)
    try:
        out, err = process.communicate(timeout=10)  # to the ends of its pipes
        patience = time.monotonic() + 10
        while (left := of_group(process.pid)) and time.monotonic() < patience:
            time.sleep(0.02)
    finally:
        for each in of_group(process.pid):
            os.kill(each, signal.SIGKILL)
    return process.returncode, err, largest, left


def test_the_time_is_over_for_tries_as_well(tmp_path):
    onnx.save(looping(), tmp_path / "m.onnx")
    code, err, _, left = watched([BUILD / "optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--fast", "--timeout", 1])
    assert code == 7 and "--timeout" in err and not left and not (tmp_path / "o.onnx").exists(), (code, err, left)


def test_the_memory_of_tries_is_bounded(tmp_path):
    """What it asks for are 800 MB, twice."""
    nodes = [helper.make_node("Expand", ["a", "large"], ["b"]), helper.make_node("Sin", ["b"], ["c"]), helper.make_node("ReduceSum", ["c"], ["z"], keepdims=0)]
    onnx.save(looping(nodes, [helper.make_tensor("large", TensorProto.INT64, [2], [20000, 10000])], steps=0), tmp_path / "m.onnx")
    code, err, largest, left = watched([BUILD / "optimize", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--fast", "--max-memory", "200M"])
    assert "max_memory" in err and largest < 800e6 and not left, (code, err, largest, left)


def test_a_limit_names_its_model(optimize, tmp_path):
    (tmp_path / "models").mkdir()
    onnx.save(looping(empty=False), tmp_path / "models/endless.onnx")
    onnx.save(small_cnn(), tmp_path / "models/quick.onnx")
    done = optimize(tmp_path / "models", "-o", tmp_path / "out", "--fast", "--timeout", 5 * SLOW, "-q")
    assert done.code == 7 and done.err.count("\n") == 1 and "models/endless.onnx: not done within" in done.err and "nothing written" in done.err, done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["quick.onnx"]


def test_a_written_model_is_said_to_be(optimize, tmp_path):
    """What is measured for a server counts as well."""
    onnx.save(looping(empty=False), tmp_path / "m.onnx")
    done = optimize(tmp_path / "m.onnx", "--triton", tmp_path / "repository", "--no-verify", "--no-measure", "--timeout", 3)
    assert done.code == 7 and done.err.count("\n") == 1 and "the model is written" in done.err, done.err
    assert [path.name for path in (tmp_path / "repository/m").rglob("*") if path.is_file()] == ["model.onnx"]


def test_a_caller_that_ignores_its_children(cnn, tmp_path):
    done = subprocess.run([BUILD / "optimize", cnn, "-o", tmp_path / "o.onnx", "--fast", "-q"], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN), capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr and (tmp_path / "o.onnx").exists(), done
