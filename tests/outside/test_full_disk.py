"""A disk that is really full (a tmpfs of a few pages in a mount namespace of its own) and runs that are interrupted: what
was there before stays, and nothing half-written is left behind."""
import os
import re
import signal
import subprocess
import time

import numpy as np
import onnx
import pytest
from conftest import BUILD, close, session, small_cnn
from onnx import TensorProto, helper, numpy_helper

PAGE = os.sysconf("SC_PAGE_SIZE")
OPTIMIZE = BUILD / "optimize"


def on_disk_of(pages, folder, script):
    """The script's output; it runs in an empty file system of so many pages, which vanishes with it."""
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    mounted = f"mount -t tmpfs -o size={pages * PAGE} tmpfs '{disk}' && cd '{disk}' && echo mounted && {{ {script} ; }}"
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "bash", "-c", mounted], capture_output=True, text=True, timeout=300)
    if not done.stdout.startswith("mounted"):
        pytest.skip(f"no file system of its own for a test here: {done.stderr.strip()}")
    return done.stdout.removeprefix("mounted\n"), done.stderr


@pytest.fixture
def products(tmp_path):
    """Weights large enough for a file of their own, and what the model makes of zeros and ones."""
    rng = np.random.default_rng(3)
    weights = [numpy_helper.from_array(rng.standard_normal((40, 40), dtype=np.float32), f"w{i}") for i in range(4)]
    names = ["x", "a", "b", "c", "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(4)]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 40]) for n in "xy")
    model = helper.make_model(helper.make_graph(nodes, "products", [x], [y], weights), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    path = tmp_path / "products.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("external", ["always", "never"])
def test_every_size_of_disk_has_all_or_nothing(products, tmp_path, external):
    needed = sum(t.ByteSize() for t in onnx.load(products).graph.initializer) // PAGE
    good = {"x": np.stack([np.zeros(40), np.ones(40)]).astype(np.float32)}
    expected = session(products).run(None, good)
    codes = []
    for pages in range(1, needed + 8):
        copy = tmp_path / f"copy-{pages}"
        script = (f"echo precious > out.onnx; {OPTIMIZE} '{products}' -o out.onnx --no-measure --quiet --external-data {external};"
                  f"echo exit $?; ls -A; cp -r . '{copy}'")
        out, err = on_disk_of(pages, tmp_path, script)
        exit_line, *files = out.splitlines()
        codes.append(int(exit_line.removeprefix("exit ")))
        if codes[-1] == 0:
            close(expected, session(copy / "out.onnx").run(None, good))
        else:
            assert codes[-1] == 6 and len(err.strip().splitlines()) == 1, err
            assert files == ["out.onnx"] and (copy / "out.onnx").read_text() == "precious\n"
    assert codes == sorted(codes, reverse=True) and set(codes) == {0, 6}, codes


def test_no_room_for_the_report_or_for_the_model_beside_it(cnn, tmp_path):
    failures = 0
    for pages in range(2, 64):
        script = (f"echo precious > out.onnx; echo old > report.json; {OPTIMIZE} '{cnn}' -o out.onnx --no-measure --quiet "
                  "--report report.json; echo exit $?; ls -A; head -c 8 out.onnx report.json")
        out, err = on_disk_of(pages, tmp_path, script)
        if out.startswith("exit 0"):
            break
        failures += 1
        assert out.startswith("exit 6\nout.onnx\nreport.json\n==> out.onnx <==\nprecious") and out.endswith("old\n"), out
        assert len(err.strip().splitlines()) == 1 and ("report.json" in err or "out.onnx" in err), err
    assert out.startswith("exit 0") and failures > 1


def test_no_room_for_temporary_files(cnn, tmp_path):
    (tmp_path / "samples").mkdir()
    for i in range(8):
        x = np.random.default_rng(i).standard_normal((1, 3, 32, 32), dtype=np.float32)
        np.savez(tmp_path / "samples" / f"{i}.npz", x=x)
    command = (f"'{OPTIMIZE}' '{cnn}' -o '{tmp_path}/out.onnx' --no-measure --quiet --precision int8 "
               f"--calibration '{tmp_path}/samples' --score 'echo 1 # {{}}'; echo exit $?; ls -A")
    out, err = on_disk_of(1, tmp_path, f"TMPDIR=$PWD {command}")
    # A runtime may leave an empty folder of its own there, with a dot in front.
    assert re.fullmatch(r"exit 6\n(\.\w+\n)*", out), (out, err)
    assert len(err.strip().splitlines()) == 1 and not (tmp_path / "out.onnx").exists(), err
    out, err = on_disk_of(1, tmp_path, f"TMPDIR=/nowhere {command}")
    assert out == "exit 6\n" and len(err.strip().splitlines()) == 1 and "temporary" in err, (out, err)


def test_full_standard_output_is_said(cnn, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    for arguments in (["--list"], [cnn, "-o", tmp_path / "out.onnx", "--no-measure", "--json"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([str(OPTIMIZE), *map(str, arguments)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
        assert done.returncode == 6 and "standard output" in done.stderr, done.stderr
        assert ("is written" in done.stderr) == ("--list" not in arguments)


def test_no_report_is_made_of_what_is_no_file(cnn, optimize, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = optimize(cnn, "-o", tmp_path / "out.onnx", "--no-measure", "--quiet", "--report", tmp_path / "pipe")
    assert done.code == 6 and done.err.count("\n") == 1 and "not a regular file" in done.err
    assert (tmp_path / "pipe").is_fifo() and not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_stopped_at_any_time_all_or_nothing(tmp_path, stop):
    models = {"batch": tmp_path / "dynamic.onnx", 1: tmp_path / "fixed.onnx"}
    for batch, path in models.items():
        onnx.save(small_cnn(batch), path)
    out, scratch = tmp_path / "out.onnx", tmp_path / "tmp"
    scratch.mkdir()
    interrupted = 0
    for turn in range(12):
        out.write_text("precious")
        command = [str(OPTIMIZE), str(models["batch" if turn % 2 else 1]), "-o", str(out), "--quiet", "--external-data", "always"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)})
        time.sleep(0.05 * turn)
        process.send_signal(stop)
        _, err = process.communicate(timeout=120)
        # A signal that comes before main() has begun ends the process as it ends any other.
        assert process.returncode in (0, 130, -stop), (process.returncode, err)
        if process.returncode:
            interrupted += process.returncode == 130
            assert out.read_text() == "precious"
            assert {p.name for p in tmp_path.iterdir()} == {"dynamic.onnx", "fixed.onnx", "out.onnx", "tmp"}
        else:
            onnx.checker.check_model(str(out))
            for data in tmp_path.glob("out.onnx.data*"):
                data.unlink()
        assert not [p for p in scratch.iterdir() if not p.name.startswith(".")]
    assert interrupted
