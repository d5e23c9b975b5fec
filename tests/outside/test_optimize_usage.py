"""What the command `optimize` is asked for: contradictions are one line, and nothing that matters goes unsaid."""
import json
import os
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD
from onnx import TensorProto, helper


def refused(done, *words):
    assert done.code == 2 and done.err.count("\n") == 1 and not done.out, (done.code, done.out, done.err)
    assert all(word in done.err for word in words), done.err


@pytest.mark.parametrize("shape, words", [("q:1,3,32,32", ["'q'", "x [batch,3,32,32]"]), ("x:1,4,32,32", ["[1,4,32,32]", "[batch,3,32,32]"]),
                                          ("x:1,3,32", ["[1,3,32]"])])
def test_shapes_that_the_inputs_cannot_have(cnn, optimize, bench, tmp_path, shape, words):
    for level in ("O0", "O2"):
        refused(optimize(cnn, "-o", tmp_path / "o.onnx", "--level", level, "--no-measure", "--input-shapes", shape), *words)
    refused(bench(cnn, "--input-shapes", shape), *words)
    assert not (tmp_path / "o.onnx").exists()


def test_a_machine_can_pretend_to_be_a_smaller_one(cnn, optimize, bench, tmp_path):
    out = tmp_path / "o.onnx"
    for isa in ("baseline", "avx2"):
        done = optimize(cnn, "-o", out, "--no-measure", "--json", env={**os.environ, "MODELFLOW_MAX_ISA": isa})
        assert done.code == 0, done.err
        report = json.loads(done.out)
        assert report["target"].startswith(f"cpu:{isa},") and report["verified"], report["target"]
    for command in (lambda **o: optimize(cnn, "-o", tmp_path / "p.onnx", **o), lambda **o: bench(out, "--rounds", "1", **o)):
        refused(command(env={**os.environ, "MODELFLOW_MAX_ISA": "avx3"}), "MODELFLOW_MAX_ISA", "'avx3'", "avx2")


CONTRADICTIONS = {
    "inline and a report": (["-o", "o.onnx", "--inline", "--report", "r.json"], ["--inline", "--report"]),
    "inline and JSON": (["-o", "o.onnx", "--inline", "--json"], ["--inline", "--json"]),
    "inline and a precision": (["-o", "o.onnx", "--inline", "--precision", "int8-dynamic"], ["--inline", "--precision"]),
    "inline and a level": (["-o", "o.onnx", "--inline", "--level", "O1"], ["--inline", "--level"]),
    "inline and reasons": (["-o", "o.onnx", "--inline", "--explain"], ["--inline", "--explain"]),
    "a list and a model": (["--list"], ["--list", "MODEL"]),
    "portable and fused": (["-o", "o.onnx", "--portable", "--level", "O2"], ["--portable", "O2"]),
    "portable and a copy": (["-o", "o.onnx", "--portable", "--level", "0"], ["--portable"]),
    "no number": (["-o", "o.onnx", "--tolerance", "nan"], ["--tolerance", "nan"]),
    "infinite": (["-o", "o.onnx", "--tolerance", "inf"], ["--tolerance"]),
    "negative": (["-o", "o.onnx", "--tolerance", "-1"], ["--tolerance"]),
    "denormal": (["-o", "o.onnx", "--tolerance", "1e-320"], ["--tolerance"]),
    "no time": (["-o", "o.onnx", "--max-seconds", "nan"], ["--max-seconds"]),
    "shapes twice": (["-o", "o.onnx", "--input-shapes", "x:1,3,32,32", "--input-shapes", "x:2,3,32,32"], ["--input-shapes", "'x'", "twice"]),
    "a model as text": (["-o", "o.onnxtxt"], ["o.onnxtxt", "text"]),
    "a score of no model": (["-o", "o.onnx", "--precision", "int8-dynamic", "--score", "echo 1"], ["--score", "{}"]),
    "no drop": (["-o", "o.onnx", "--precision", "int8-dynamic", "--max-drop", "nan"], ["--max-drop"]),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions(cnn, optimize, tmp_path, case):
    arguments, words = CONTRADICTIONS[case]
    done = optimize(cnn, *arguments, cwd=tmp_path)
    refused(done, *words)
    assert len(done.err) < 200 and {p.name for p in tmp_path.iterdir()} == {"cnn.onnx"}


def test_functions_that_stay_are_said(optimize, tmp_path):
    """A body for another opset than the model's."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    function = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [helper.make_opsetid("", 13)])
    graph = helper.make_graph([helper.make_node("F", ["x"], ["y"], domain="my")], "g", [x], [y])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("my", 1)], functions=[function])
    onnx.save(model, tmp_path / "m.onnx")
    done = optimize("--inline", tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "-q")
    assert done.code == 0 and done.err.startswith("optimize: warning: ") and "my:F" in done.err and done.err.count("\n") == 1, done.err


def test_names_of_another_level_do_nothing(cnn, optimize, tmp_path):
    for options in (["--portable", "--disable", "fuse"], ["--level", "O0", "--disable", "layout"], ["--level", "O1", "--portable"]):
        done = optimize(cnn, "-o", tmp_path / "o.onnx", "--no-measure", *options)
        assert done.code == 0, done.err


@pytest.fixture
def foreign(tmp_path):
    """A model of an operator that ONNX Runtime does not have."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Foreign", ["a"], ["y"], domain="elsewhere")],
                              "g", [x], [y])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("elsewhere", 1)])
    onnx.save(model, tmp_path / "foreign.onnx")
    return tmp_path / "foreign.onnx"


def test_what_was_not_verified_is_said(foreign, optimize, tmp_path):
    for options in (["--quiet"], ["--json"], []):
        done = optimize(foreign, "-o", tmp_path / "o.onnx", "--no-measure", *options)
        assert done.code == 0 and done.err.startswith("optimize: warning: not verified: ") and done.err.count("\n") == 1, done.err
        assert options != ["--quiet"] or not done.out
        assert options != ["--json"] or json.loads(done.out)["verified"] is False
    for options in (["--no-verify"], ["--level", "O0"]):
        assert optimize(foreign, "-o", tmp_path / "o.onnx", "--no-measure", "--quiet", *options).err == ""


def test_an_interrupt_ends_a_step_that_takes_long(cnn, tmp_path):
    out, scratch, marker = tmp_path / "out.onnx", tmp_path / "scratch", tmp_path / "marker"
    out.write_text("precious")
    scratch.mkdir()
    sample = tmp_path / "sample.npz"
    np.savez(sample, x=np.zeros((2, 3, 32, 32), np.float32))
    command = [BUILD / "optimize", cnn, "-o", out, "--quiet", "--no-measure", "--precision", "int8", "--calibration", sample, "--score",
               f"touch {marker}; sleep 60; echo 1 # {{}}"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}, start_new_session=True)
    while not marker.exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    returncode = process.wait(timeout=30)  # of the 60 that the step would take
    os.killpg(process.pid, signal.SIGKILL)  # the sleeper
    err = process.stderr.read()
    assert returncode == 130 and err == "optimize: interrupted; nothing written\n", err
    assert out.read_text() == "precious" and not list(scratch.iterdir())


def test_an_interrupt_ends_inlining(tmp_path):
    """A model of many calls; wherever the signal comes, the old file is whole or the new one is."""
    path, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(many_calls(), path)
    for delay in (0.05, 0.2, 0.8):
        out.write_text("precious")
        process = subprocess.Popen([BUILD / "optimize", path, "--inline", "-o", out, "--quiet"], stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (0, 130, -signal.SIGINT)
        if process.returncode:
            assert out.read_text() == "precious"
        assert {p.name for p in tmp_path.iterdir()} == {"m.onnx", "out.onnx"}


def many_calls(count=5000):
    domain = "modelflow.test"
    body = helper.make_function(domain, "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 17)])
    names = ["x", *(f"v{i}" for i in range(count - 1)), "y"]
    nodes = [helper.make_node("Twice", [names[i]], [names[i + 1]], domain=domain) for i in range(count)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), ir_version=8, functions=[body],
                             opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])


def test_who_reads_half_of_it_hears_no_crash():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([BUILD / "optimize", "--list"], stdout=writer, stderr=subprocess.PIPE, text=True, restore_signals=True)
    os.close(writer)
    assert done.returncode == 6 and done.stderr == "", done


def test_the_list_as_json_names_what_the_list_names(optimize):
    for options in ([], ["--precision", "int8-dynamic"]):
        text, stages = optimize("--list", *options).out, json.loads(optimize("--list", "--json", *options).out)
        lines = [stage["name"] + (" (repeated until nothing changes)" if stage["repeat"] else "") for stage in stages]
        assert [line for line in text.splitlines() if not line.startswith(" ")] == lines
        named = [entry for stage in stages for one in stage["passes"] for entry in (one, *one["rules"])]
        found = [line.split(maxsplit=1) for line in text.splitlines() if line.startswith(" ")]
        assert found == [[entry["name"], entry["doc"]] for entry in named] and len(found) > 50


@pytest.fixture
def scored(cnn, optimize, tmp_path):
    np.savez(tmp_path / "sample.npz", x=np.zeros((2, 3, 32, 32), np.float32))
    lower = ["--precision", "int8", "--calibration", tmp_path / "sample.npz"]
    return lambda command, **options: optimize(cnn, "-o", tmp_path / "o.onnx", "-q", "--no-measure", *lower, "--score", command, **options)


@pytest.mark.parametrize("command", ["test -f {}", "test -f '{}'", 'test -f "{}"', """x="file={}"; test -f "${x#file=}\"""", "test \\' != {} && test -f {}"])
@pytest.mark.parametrize("folder", ["plain", "a b", "it's", 'a"$HOME`b'])
def test_scores_of_files_in_any_folder(scored, tmp_path, folder, command):
    """The file is one word to the shell, whatever stands around it."""
    (tmp_path / folder).mkdir()
    done = scored(f"{command} && echo 1", env={**os.environ, "TMPDIR": str(tmp_path / folder)})
    assert done.code == 0, done.err


@pytest.mark.parametrize("command, how", [("exit 3 # {}", "exit code 3"), ("kill -9 $$ # {}", "Killed"), ("echo good # {}", "no number")])
def test_a_score_that_fails_says_how(scored, command, how):
    refused(scored(command), "--score", how)
