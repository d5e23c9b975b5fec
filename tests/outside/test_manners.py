"""How the command behaves beside its work: folders of models, completion, manual pages, a quick mode, and no colours."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import time

import onnx
import pytest
from conftest import BUILD, run, small_cnn

COMMANDS = ["optimize", "modelflow-bench"]


@pytest.fixture
def folder(tmp_path):
    """Two models, one of them in a folder of its own, and a file that is none between them."""
    models = tmp_path / "models"
    (models / "more").mkdir(parents=True)
    (models / "a.onnx").write_bytes(small_cnn().SerializeToString())
    (models / "b.onnx").write_bytes(b"nonsense")
    (models / "more/c.onnx").write_bytes(small_cnn(batch=2).SerializeToString())
    (models / "notes.txt").write_text("no model")
    return models


def test_a_folder_of_models(folder, optimize, tmp_path):
    done = optimize(folder, "-o", tmp_path / "out", "--no-measure", "--report", tmp_path / "pages")
    assert done.code == 3, "of the first that failed"
    assert done.err.count("\n") == 1 and "b.onnx" in done.err
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["model", "a.onnx", "b.onnx", "more/c.onnx"] and "failed, exit code 3" in lines[2]
    assert lines[-1] == "2 of 3 models written" and len(lines) == 6
    for name in ("a", "more/c"):
        assert any(node.domain == "modelflow" for node in onnx.load(tmp_path / f"out/{name}.onnx").graph.node)
        assert "<!doctype html>" in (tmp_path / f"pages/{name}.html").read_text()
    assert not (tmp_path / "out/b.onnx").exists()
    (folder / "b.onnx").unlink()
    done = optimize(folder, "-o", tmp_path / "out", "--no-measure", "--json")
    rows = json.loads(done.out)
    assert done.code == 0 and [row["code"] for row in rows] == [0, 0] and all(row["verified"] and row["nodes_after"] < row["nodes_before"] for row in rows)


def test_several_models_and_folders(folder, optimize, tmp_path):
    done = optimize(folder / "more", folder / "a.onnx", "-o", tmp_path / "out", "--no-measure")
    assert done.code == 0 and [line.split()[0] for line in done.out.splitlines()[1:3]] == ["c.onnx", "a.onnx"], done.err
    assert sorted(path.name for path in (tmp_path / "out").glob("*.onnx")) == ["a.onnx", "c.onnx"]
    assert optimize(folder / "a.onnx", tmp_path / "pair.onnx", "--no-measure").code == 0 and (tmp_path / "pair.onnx").is_file()
    (tmp_path / "a.onnx").write_bytes((folder / "a.onnx").read_bytes())
    for arguments, words in (([folder / "a.onnx", tmp_path / "a.onnx", "-o", tmp_path / "two"], "one name"), ([folder / "a.onnx", folder / "b.onnx", tmp_path / "o.onnx"], "-o"),
                             ([folder / "a.onnx", folder / "b.onnx", "-o", tmp_path / "o.onnx"], "need a folder"), ([folder / "a.onnx", folder / "b.onnx", "-o", folder], "another folder")):
        done = optimize(*arguments)
        assert done.code == 2 and done.err.count("\n") == 1 and words in done.err and not done.out, done.err
    assert not (tmp_path / "two").exists() and not (tmp_path / "o.onnx").exists()


def test_no_result_takes_the_place_of_a_model(folder, optimize, tmp_path):
    """A given folder lies where results of another one would go."""
    out = tmp_path / "out"
    (out / "more").mkdir(parents=True)
    (out / "more/c.onnx").write_bytes((folder / "a.onnx").read_bytes())
    before = (out / "more/c.onnx").read_bytes()
    done = optimize(folder, out / "more", "-o", out, "--no-measure", "-q")
    assert done.code == 2 and done.err.count("\n") == 1 and "take the place of the model" in done.err, done.err
    assert (out / "more/c.onnx").read_bytes() == before and [path.name for path in out.iterdir()] == ["more"]
    (tmp_path / "a.pb").write_bytes((folder / "a.onnx").read_bytes())
    done = optimize(folder / "a.onnx", tmp_path / "a.pb", "-o", tmp_path / "two", "--report", tmp_path / "pages", "--no-measure")
    assert done.code == 2 and "one name" in done.err and not (tmp_path / "two").exists(), done.err


@pytest.mark.parametrize("given", [["--explain"], []])
def test_a_second_model_is_not_replaced_unasked(folder, optimize, given):
    """As *.onnx names two models."""
    before = (folder / "b.onnx").read_bytes()
    done = optimize(folder / "a.onnx", folder / "b.onnx", *given, "--no-measure")
    assert done.code == 2 and done.err.count("\n") == 1 and "-o" in done.err and (folder / "b.onnx").read_bytes() == before, done.err


def test_results_inside_of_the_folder_are_no_models(folder, optimize):
    (folder / "b.onnx").unlink()
    for _ in range(2):
        done = optimize(folder, "-o", folder / "fast", "--no-measure")
        assert done.code == 0 and done.out.splitlines()[-1] == "2 of 2 models written", done.out


def test_links_in_a_circle_are_no_models(folder, optimize, tmp_path):
    (folder / "b.onnx").unlink()
    (folder / "loop.onnx").symlink_to("loop.onnx")
    done = optimize(folder, "-o", tmp_path / "out", "--fast")
    assert done.code == 0 and not done.err and done.out.splitlines()[-1] == "2 of 2 models written", (done.out, done.err)


def test_results_that_cannot_be_written_are_known_before_the_work(folder, optimize, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/more").write_text("precious")
    done = optimize(folder, "-o", tmp_path / "out", "--fast")
    assert done.code == 6 and done.err.count("\n") == 1 and "out/more" in done.err and not done.out, done.err
    assert not (tmp_path / "out/a.onnx").exists()


def test_folders_that_cannot_be(folder, optimize, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for arguments, words in (([folder], "-o"), ([folder, "-o", folder], "another folder"), ([tmp_path / "empty", "-o", tmp_path / "out"], "no .onnx file"),
                             ([folder, "-o", tmp_path / "file"], "is no folder"), ([folder, "--explain", "-o", tmp_path / "out"], "--explain")):
        done = optimize(*arguments)
        assert done.code == 2 and done.err.count("\n") == 1 and words in done.err and not done.out, done.err


def test_a_quick_run_measures_nothing(cnn, optimize, tmp_path):
    done = optimize(cnn, "-o", tmp_path / "fast.onnx", "--fast", "--json")
    report = json.loads(done.out)
    assert done.code == 0 and report["verified"] and report["stock_ms"] == 0 and report["sides"] == []
    assert any(node.domain == "modelflow" for node in onnx.load(tmp_path / "fast.onnx").graph.node)


def options_of(command):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", run(BUILD / command, "--help").out.split("Options:")[1].split("Examples:")[0]))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_option(command, shell):
    done = run(BUILD / command, "--completion", shell)
    assert done.code == 0 and not done.err
    known = set(re.findall(r"-l ([a-z][a-z-]+)", done.out)) if shell == "fish" else {name[2:] for name in re.findall(r"--[a-z][a-z-]+", done.out)}
    assert {name[2:] for name in options_of(command)} <= known
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=done.out, text=True, capture_output=True).returncode == 0
    assert run(BUILD / command, "--completion", "tcsh").code == 2


def completed(*words):
    """What bash offers behind these words."""
    script = f'eval "$({BUILD}/optimize --completion bash)"; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _optimize; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_bash_completes_options_and_their_words():
    assert completed("optimize", "--no-") == ["--no-measure", "--no-verify"]
    assert completed("optimize", "--precision", "int4") == ["int4-weights"]
    assert completed("optimize", "--external-data", "n") == ["never"]
    assert completed("optimize", "--threads", "''") == []


def in_fish(line):
    """What fish offers for a line."""
    script = f"{BUILD}/optimize --completion fish | source; complete --do-complete '{line}'"
    return [offer.split("\t")[0] for offer in subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True).stdout.splitlines()]


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here: tools/setup --extras installs it")
def test_fish_completes_options_and_their_words():
    assert set(in_fish("optimize --no-")) == {"--no-measure", "--no-verify"}
    assert in_fish("optimize --precision int4") == ["int4-weights"]
    assert in_fish("optimize --external-data n") == ["never"]


def in_zsh(line, folder):
    """What a line becomes when TAB is pressed in zsh on a terminal."""
    (folder / "_optimize").write_text(run(BUILD / "optimize", "--completion", "zsh").out)
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True, env={**os.environ, "PS1": "> ", "TERM": "dumb"})
    os.close(theirs)

    def say(text, until, patience=30):
        os.write(ours, text.encode())
        seen = ""
        while until not in seen:
            if not select.select([ours], [], [], patience)[0]:
                raise AssertionError(f"zsh said {seen!r}, and not {until!r}")
            seen += os.read(ours, 65536).decode(errors="replace")
        return seen

    try:
        say(f"unsetopt zle_bracketed_paste; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print re''ady\n", "ready")
        say(line + "\t", line)
        time.sleep(1)
        # the line as it stands, printed instead of run
        seen = say("\x01print -r -- '[\x05]'\n", "]'") + say("print do''ne\n", "done")
        return re.findall(r"^\[(.*?)\]\r?$", seen, re.M)[-1].strip()
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh here: tools/setup --extras installs it")
@pytest.mark.parametrize("typed, completed_to", [("optimize --precision int4", "optimize --precision int4-weights"), ("optimize --no-m", "optimize --no-measure"),
                                                 ("optimize --external-data n", "optimize --external-data never")])
def test_zsh_completes_options_and_their_words(tmp_path, typed, completed_to):
    assert in_zsh(typed, tmp_path) == completed_to


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_pages(command):
    done = run(BUILD / command, "--manual")
    assert done.code == 0 and done.out.startswith(".TH ")
    if shutil.which("man"):
        (page := BUILD / f"described/{command}.1").exists() or pytest.skip("the build makes it")
        shown = run("man", "--warnings", "-l", page, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C"})
        assert shown.code == 0 and not shown.err.strip(), shown.err
        assert all(name in shown.out for name in options_of(command)), "every option"


@pytest.mark.parametrize("more", [{}, {"NO_COLOR": "1"}])
def test_no_colours(cnn, tmp_path, more):
    """On a terminal a line of progress is written over and over; colours there are none."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([BUILD / "optimize", cnn, "-o", tmp_path / "fast.onnx", "--max-seconds", "2", "--threads", "1"], stdout=theirs, stderr=theirs, env={**os.environ, **more})
    os.close(theirs)
    seen = b""
    while process.poll() is None or select.select([ours], [], [], 0.2)[0]:
        try:
            if select.select([ours], [], [], 0.2)[0]:
                seen += os.read(ours, 65536)
        except OSError:
            break
    os.close(ours)
    assert process.wait() == 0
    assert not re.search(rb"\x1b\[[0-9;]*m", seen)
    assert set(re.findall(rb"\x1b\[[^a-zA-Z]*[a-zA-Z]", seen)) <= {b"\x1b[K"}
