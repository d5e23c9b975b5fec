"""Names that the command `optimize` writes to: links are followed, and nothing but the file that was meant is touched."""
import os

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
