"""The scripts of tools/ where something goes wrong: what they leave alone, what they leave behind, and what they say."""
import os
import pathlib
import re
import shutil
import sys

import pytest
from conftest import run

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def project(tmp_path):
    """A project of these tools alone: a function that copies some, and a folder for stand-ins, first on PATH."""
    def copied(*names):
        for name in names:
            (tmp_path / "project/tools" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "tools" / name, tmp_path / "project/tools" / name)
        return tmp_path / "project"

    copied.bin = tmp_path / "bin"
    copied.environment = {**os.environ, "PATH": f"{copied.bin}:{os.environ['PATH']}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    copied.environment.pop("MODELFLOW_BUILD", None)
    (tmp_path / "cache/modelflow").mkdir(parents=True)
    return copied


MKDOCS = """
import os, pathlib, sys
site = pathlib.Path(sys.argv[sys.argv.index("--site-dir") + 1])
site.mkdir()
(site / "index.html").write_text("new")
sys.exit(os.environ.get("FAILS"))
"""


@pytest.fixture
def site(tmp_path):
    """tools/site.py with a stand-in for mkdocs."""
    script(tmp_path / "packages/mkdocs/__main__.py", MKDOCS)
    return lambda out, **more: run(sys.executable, ROOT / "tools/site.py", out, env={**os.environ, "PYTHONPATH": str(tmp_path / "packages"), **more})


def test_a_site_replaces_nothing_but_a_site(site, tmp_path):
    there = tmp_path / "sites"
    (there / "empty").mkdir(parents=True)
    for out in (there / "new", there / "empty", there / "new"):
        done = site(out)
        assert done.code == 0 and done.out.strip() == str(out / "index.html"), done.err
        assert {path.name for path in out.iterdir()} == {"index.html", ".modelflow-site"}
        (out / "old.html").touch()
    (there / "new/index.html").write_text("old")
    assert site(there / "new", FAILS="no pages").code != 0 and (there / "new/index.html").read_text() == "old"
    (there / "mine").mkdir()
    (there / "mine/precious.txt").write_text("mine")
    for out in (there / "mine", there, there / "mine/precious.txt"):
        done = site(out)
        assert done.code == 2 and len(done.err.strip().splitlines()) == 1 and str(out) in done.err
    assert (there / "mine/precious.txt").read_text() == "mine" and {path.name for path in there.iterdir()} == {"new", "empty", "mine"}


def test_a_site_goes_where_the_caller_stands(project, tmp_path):
    tools = project("site", "site.py") / "tools"
    for part in ("versions", "common"):
        script(tools / f"setup.d/{part}.sh", "")
    script(tools / "setup.d/python.sh", "python_paths() { DEPS=$PWD/deps; }\ninstall_venv() { :; }\ninstall_extras_venv() { :; }\n")
    script(tools.parent / "deps/extras/bin/python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/precious.txt").touch()
    done = run(tools / "site", ".", cwd=tmp_path / "elsewhere")
    assert done.code == 2 and str(tmp_path / "elsewhere") in done.err and (tmp_path / "elsewhere/precious.txt").exists() and (tools / "site").exists()


@pytest.mark.parametrize("first, plain, second, quick, right", [
    ("not verified", 0, "verified: 2 outputs", 0, True), ("not verified", 1, "verified: 2 outputs", 0, False), ("slow", 0, "verified: 2 outputs", 0, False),
    ("not verified", 0, "not verified", 0, False), ("not verified", 0, "verified: 2 outputs", 1, False)])
def test_a_clean_machine_fails_where_the_command_does(project, tmp_path, first, plain, second, quick, right):
    """The lines of tools/test-clean that look at the command, with one that says and returns what it is told."""
    inside = re.search(r"<<'INSIDE'\n(.*?)\nINSIDE\n", (ROOT / "tools/test-clean").read_text(), re.S)[1]
    lines = [line for line in inside.splitlines() if re.search(r"^set |optimize model|optimize\.err", line)]
    assert len(lines) >= 3
    script(project.bin / "optimize", f'#!/bin/sh\ncase "$*" in *plain*) echo "warning: {first}" >&2; exit {plain} ;; esac\necho "{second}"\nexit {quick}\n')
    assert (run("bash", "-c", "\n".join(lines), cwd=tmp_path, env=project.environment).code == 0) == right
