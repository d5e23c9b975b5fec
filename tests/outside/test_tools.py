"""The scripts of tools/ where something goes wrong: what they leave alone, what they leave behind, and what they say."""
import importlib.util
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

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


# What tools/setup does around run_logged; $WAY is a function or nothing.
LOGGED = """
set -euo pipefail
. "$TOOLS/setup.d/common.sh"
exec 9> "$SETUP_CACHE/lock"
flock --nonblock 9
by_function() { "$@"; }
run_logged tried $WAY "$@"
echo "went on"
"""


def logged(project, *command, way="", **more):
    environment = {**project.environment, "TOOLS": str(ROOT / "tools"), "WAY": way}
    return subprocess.Popen(["bash", "-c", LOGGED, "setup", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                            start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **more)


def is_locked(tmp_path):
    return run("flock", "--nonblock", tmp_path / "cache/modelflow/lock", "true").code != 0


def pid_in(file):
    for _ in range(600):
        if file.exists() and file.read_text().endswith("\n"):
            return int(file.read_text())
        time.sleep(0.05)
    pytest.fail(f"{file} was not written")


SLEEPING = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1]).write_text(f"{os.getpid()}\\n")
try:
    time.sleep(60)
except KeyboardInterrupt:
    if sys.argv[2] == "tidy":  # as pip
        sys.exit(1)
    raise
"""


@pytest.mark.parametrize("manner", ["tidy", "plain"])
@pytest.mark.parametrize("way", ["", "by_function"])
def test_ctrl_c_ends_what_setup_runs(project, tmp_path, manner, way):
    setup = logged(project, sys.executable, "-c", SLEEPING, tmp_path / "pid", manner, way=way)
    pid = pid_in(tmp_path / "pid")
    assert is_locked(tmp_path)
    os.killpg(setup.pid, signal.SIGINT)
    out, _ = setup.communicate(timeout=30)
    assert setup.returncode in (130, -signal.SIGINT) and "went on" not in out
    assert not is_locked(tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_lock_goes_with_setup(project, tmp_path):
    """Whatever a command leaves running."""
    setup = logged(project, "sh", "-c", f'sleep 60 & echo $! > "{tmp_path / "pid"}"')
    out, err = setup.communicate(timeout=30)
    try:
        assert setup.returncode == 0 and out == "went on\n" and not err and not is_locked(tmp_path)
    finally:
        os.kill(pid_in(tmp_path / "pid"), signal.SIGKILL)


def test_a_step_that_fails_shows_the_end_of_its_log(project, tmp_path):
    setup = logged(project, "sh", "-c", "cat; echo E: no such mirror; exit 3")
    out, err = setup.communicate(timeout=30)
    assert setup.returncode == 1 and not out and "tried failed" in err and err.count("E: no such mirror") == 2


SOURCES = """
set -euo pipefail
. "$TOOLS/setup.d/common.sh"
. "$TOOLS/setup.d/system.sh"
prepare_private_apt() { :; }
apt_show_source() { echo "Version: 1.0-2"; }
private_apt() {
  echo download >> "$CALLS"
  echo upstream > thing_1.0.orig.tar.xz
  echo thing > thing_1.0-2.dsc
  [ "$BREAKS" = no ] || return 1
  echo patches > thing_1.0-2.debian.tar.xz
}
dpkg-source() { cat "${3%.dsc}.debian.tar.xz"; }
debian_source thing 1.0-2 thing_1.0.orig.tar.xz "$(echo upstream | sha256sum | cut -d' ' -f1)"
unpack_debian_source thing 1.0-2 "$WORK/thing"
"""


def test_a_download_that_broke_off_is_made_again(project, tmp_path):
    calls = tmp_path / "calls"
    for breaks, right, downloads in (("yes", False, 1), ("no", True, 2), ("no", True, 2)):
        done = run("bash", "-c", SOURCES, env={**project.environment, "TOOLS": str(ROOT / "tools"), "CALLS": str(calls), "BREAKS": breaks})
        assert (done.code == 0) == right, done.out + done.err
        assert calls.read_text().count("download") == downloads


@pytest.mark.parametrize("given", [None, "other", "absolute"])
def test_the_demo_is_of_the_build_that_is_named(project, tmp_path, given):
    folder = project("demo")
    script(folder / "tools/build", "#!/bin/sh\n")
    python = script(project.bin / "python", '#!/bin/sh\necho "$@"\n')
    script(tmp_path / "cache/modelflow/deps/deps.cmake", f'set(Python3_EXECUTABLE "{python}")\n')
    name = str(tmp_path / "built") if given == "absolute" else given
    done = run(folder / "tools/demo", env={**project.environment, **({"MODELFLOW_BUILD": name} if name else {})})
    build = (folder / (name or "build")).resolve()
    assert done.code == 0 and done.out.split() == ["tools/demo.py", "--build", str(build), "--out", str(build / "demo")], done.err


@pytest.mark.parametrize("says, shown", [("echo 'a.cpp:1: error: no such name'", "no such name"), ("echo 'killed for memory'", "killed for memory"),
                                         ("echo 'fatal: no repository'; seq 100", "no repository"), ("echo 'sh: 1: ninja: not found'; seq 100", "ninja"),
                                         ("yes error: much | head -n 100000", "much"), ("true", "")])
def test_a_build_that_fails_says_so(project, says, shown):
    folder = project("build")
    script(folder / "tools/setup", "#!/bin/sh\n")
    script(project.bin / "cmake", f"#!/bin/sh\n{says}\nexit 1\n")
    done = run(folder / "tools/build", env=project.environment)
    assert done.code == 1 and shown in done.err and done.err.strip().endswith("build/build.log") and len(done.err.splitlines()) < 50, done.err


@pytest.mark.parametrize("exported", [True, False])
def test_an_architecture_that_comes_out_wrong_is_no_export_that_failed(tmp_path, exported):
    script(tmp_path / "optimize", "#!/bin/sh\necho \"output 'y' differs\" >&2\nexit 5\n")
    script(tmp_path / "packages/torch.py", "raise SystemExit('no torch')")
    for end in ("onnx", "1.npz") if exported else ():
        script(tmp_path / f"out/torchvision-alexnet.dynamo.{end}", "")
    done = run(sys.executable, ROOT / "tests/exports", "--build", tmp_path, "--out", tmp_path / "out", "--only", "torchvision alexnet", env={**os.environ, "PYTHONPATH": str(tmp_path / "packages")})
    assert done.code == int(exported) and ("failed: torchvision alexnet" in done.out) == exported and ("not exported: torchvision alexnet" in done.out) != exported, done.out + done.err


def test_scores_that_are_no_numbers_are_compared():
    spec = importlib.util.spec_from_file_location("case", ROOT / "tests/clients/case.py")
    case = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(case)
    nan, inf = math.nan, math.inf
    assert case.apart([1, 2], [1, 2.5]) == 0.5 and case.apart([], []) == 0 and case.apart([nan, 1], [nan, 1]) == 0
    for ours, theirs in (([nan, 1], [1, 1]), ([1], [nan]), ([[1, 1]], [1, 1]), ([1], [1, 1]), ([inf], [1]), ([inf], [-inf])):
        assert case.apart(ours, theirs) == inf, (ours, theirs)
