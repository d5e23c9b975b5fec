"""Names that the command `optimize` writes to: links are followed, and nothing but the file that was meant is touched."""
import os

import numpy as np
import onnx
import pytest
from conftest import PLUGIN, close, run, session
from test_optimize import feeds


@pytest.fixture
def folders(tmp_path):
    """A link beside a model in another folder, as caches and deployments have them."""
    for name in ("links", "models"):
        (tmp_path / name).mkdir()
    real, link = tmp_path / "models" / "real.onnx", tmp_path / "links" / "link.onnx"
    real.write_text("old")
    link.symlink_to("../models/real.onnx")
    return link, real


@pytest.mark.parametrize("external", ["always", "never"])
def test_a_link_is_followed(cnn, optimize, folders, external):
    link, real = folders
    done = optimize(cnn, "-o", link, "--no-measure", "--quiet", "--external-data", external)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert os.readlink(link) == "../models/real.onnx"
    data = {"real.onnx.data"} if external == "always" else set()
    assert {p.name for p in real.parent.iterdir()} == {"real.onnx"} | data and {p.name for p in link.parent.iterdir()} == {"link.onnx"} | data
    expected = session(cnn).run(None, feeds())
    for name in (real, link):  # data is looked for beside the name that is given
        close(expected, session(name, PLUGIN).run(None, feeds()))
    # The data that the old model had goes once the new one is there, and the link to it.
    assert optimize(cnn, "-o", link, "--no-measure", "--external-data", "never").code == 0
    assert link.is_symlink() and {p.name for p in real.parent.iterdir()} == {"real.onnx"} and {p.name for p in link.parent.iterdir()} == {"link.onnx"}


def test_weights_that_cannot_have_a_link(cnn, optimize, folders):
    """The name beside the link is taken: nothing is written."""
    link, real = folders
    (link.parent / "real.onnx.data").write_text("precious")
    done = optimize(cnn, "-o", link, "--no-measure", "--quiet", "--external-data", "always")
    assert done.code == 6 and done.err.count("\n") == 1 and "link" in done.err, done.err
    assert real.read_text() == "old" and [p.name for p in real.parent.iterdir()] == ["real.onnx"]
    assert (link.parent / "real.onnx.data").read_text() == "precious"


def test_a_link_to_nothing_makes_the_file(cnn, optimize, tmp_path):
    (tmp_path / "link.onnx").symlink_to("new.onnx")
    assert optimize(cnn, "-o", tmp_path / "link.onnx", "--no-measure").code == 0
    assert (tmp_path / "link.onnx").is_symlink() and not (tmp_path / "new.onnx").is_symlink()
    onnx.checker.check_model(str(tmp_path / "new.onnx"))


def test_the_report_follows_a_link(cnn, optimize, tmp_path):
    (tmp_path / "link.json").symlink_to("report.json")
    assert optimize(cnn, "-o", tmp_path / "out.onnx", "--no-measure", "--report", tmp_path / "link.json").code == 0
    assert (tmp_path / "link.json").is_symlink() and (tmp_path / "report.json").read_text().startswith("{")


def special(folder):
    """Names that lead to no regular file: none that a mistake would do harm to."""
    os.mkfifo(folder / "pipe")
    (folder / "to_pipe").symlink_to("pipe")
    (folder / "folder").mkdir()
    (folder / "out").symlink_to("/proc/self/fd/1")
    (folder / "circle").symlink_to("circle")
    return ["pipe", "to_pipe", "folder", "out", "circle"]


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_what_is_no_file_is_refused_and_stays(cnn, optimize, tmp_path, option):
    for name in special(tmp_path):
        kind = (tmp_path / name).lstat().st_mode
        given = ["-o", tmp_path / name] if option == "-o" else ["-o", tmp_path / "fast.onnx", "--report", tmp_path / name]
        # stdout is a pipe here, then a file: neither is replaced.
        done = optimize(cnn, *given, "--no-measure", "--quiet")
        assert done.code == 6 and done.err.count("\n") == 1 and not done.out, (name, done.err)
        assert (tmp_path / name).lstat().st_mode == kind
        assert not (tmp_path / "fast.onnx").exists()


def test_a_redirected_stdout_is_no_output(cnn, tmp_path):
    (tmp_path / "out").symlink_to("/proc/self/fd/1")
    done = run("bash", "-c", f"{PLUGIN.parent}/optimize {cnn} -o {tmp_path}/out --no-measure -q > {tmp_path}/caught")
    assert done.code == 6 and (tmp_path / "caught").read_bytes() == b"" and (tmp_path / "out").is_symlink()


REPORTS = ["{cnn}", "{out}", "./out.onnx", "link.onnx", "hard.onnx", "{out}.data", "{cnn}.data.2"]


@pytest.mark.parametrize("report", REPORTS)
def test_the_report_is_not_the_model(cnn, optimize, tmp_path, report):
    out = tmp_path / "out.onnx"
    if report != "./out.onnx":
        out.write_text("precious")
        os.link(cnn, tmp_path / "hard.onnx")
    (tmp_path / "link.onnx").symlink_to("out.onnx")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.exists()}
    done = optimize(cnn, "-o", out, "--no-measure", "--report", report.format(cnn=cnn, out=out), cwd=tmp_path)
    assert done.code == 2 and done.err.count("\n") == 1 and "--report" in done.err, done.err
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.exists()} == before


DATA = {"inputs": (["--inputs", "data.npz"], "data.npz"), "a folder of inputs": (["--inputs", "folder"], "folder/0.npz"), "samples": (["--precision", "int8", "--calibration", "data.npz"], "data.npz"),
        "what is bound": (["--bind", "data.npz"], "data.npz"), "a library": (["--custom-ops", "ops.so"], "ops.so"),
        "a front end": (["--image-front-end", "front.json"], "front.json")}


@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("option", ["-o", "--report"])
def test_data_that_are_read_are_not_replaced(cnn, optimize, tmp_path, option, case):
    given, victim = DATA[case]
    (tmp_path / "folder").mkdir()
    for name in ("data.npz", "folder/0.npz"):
        np.savez(tmp_path / name, **feeds())
    (tmp_path / "ops.so").write_text("precious")
    (tmp_path / "front.json").write_text("precious")
    os.link(tmp_path / victim, tmp_path / "other name")
    before = (tmp_path / victim).read_bytes()
    for name in (victim, "other name"):
        written = ["-o", name] if option == "-o" else ["-o", "o.onnx", "--report", name]
        done = optimize(cnn, *written, *given, "--no-measure", cwd=tmp_path)
        assert done.code == 2 and done.err.count("\n") == 1 and f"{option} '{name}'" in done.err, done.err
        assert (tmp_path / victim).read_bytes() == before and not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("name", ["r.onnx", "r.npz", "r.so"])
def test_reports_have_names_of_reports(cnn, optimize, bench, tmp_path, name):
    for done, option in ((optimize(cnn, "-o", tmp_path / "o.onnx", "--report", tmp_path / name), "--report"), (bench(cnn, "--report", tmp_path / name), "--report"),
                         (bench(cnn, "--trace", tmp_path / name), "--trace")):
        assert done.code == 2 and done.err.count("\n") == 1 and option in done.err and not done.out, done.err
    assert [path.name for path in tmp_path.iterdir()] == ["cnn.onnx"]


UNWRITABLE = {"no folder": "none/out", "a folder": "folder", "a folder to be": "none/", "below a file": "file/out", "a name too long": "a" * 300, "a name too long for a temporary one": "a" * 250}


@pytest.mark.parametrize("name", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_cannot_be_written_is_known_before_the_work(optimize, bench, tmp_path, name):
    """The model is none, which nobody has looked at."""
    (tmp_path / "m.onnx").write_text("nonsense")
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    model = [tmp_path / "m.onnx"]
    commands = [optimize(*model, "-o", f"{tmp_path}/{name}"), optimize(*model, "-o", tmp_path / "o.onnx", "--report", f"{tmp_path}/{name}"), optimize(*model, "--inline", "-o", f"{tmp_path}/{name}"),
                bench(*model, "--report", f"{tmp_path}/{name}"), bench(*model, "--trace", f"{tmp_path}/{name}")]
    for done in commands:
        assert done.code == 6 and done.err.count("\n") == 1 and not done.out, done.err
    assert {path.name for path in tmp_path.iterdir()} == before and not list((tmp_path / "folder").iterdir())


@pytest.mark.parametrize("option", ["--triton", "--reproducer"])
def test_folders_that_cannot_be_made(cnn, optimize, tmp_path, option):
    (tmp_path / "file").write_text("precious")
    done = optimize(cnn, option, tmp_path / "file/folder", *(["-o", tmp_path / "o.onnx"] if option != "--triton" else []), "--fast")
    assert done.code == 6 and done.err.count("\n") == 1 and "is no folder" in done.err, done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cnn.onnx", "file"]


def test_a_repository_that_nothing_came_of_is_not_there(cnn, optimize, tmp_path):
    assert optimize(cnn, "--triton", tmp_path / "repository", "--input-shapes", "none:1").code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["cnn.onnx"]
