"""The wheel in a clean virtual environment, with the packages of the tests beside it: no compiler, no network, no build tree."""
import os
import pathlib
import re
import site
import subprocess
import sys
import zipfile

import pytest
import tutorial
from conftest import BUILD, EXTRAS, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 40 << 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, ROOT / "tools/wheel", folder)
    assert done.code == 0, done.err
    print(done.out)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin/python"
    packages = next(folder.glob("lib/python3*/site-packages"))
    (packages / "beside.pth").write_text("\n".join(site.getsitepackages()))
    done = run(sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
    assert done.code == 0, done.err
    return python


def clean():
    """Nothing that leads to this checkout."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("MODELFLOW_", "PYTHON", "VIRTUAL_ENV"))}


def test_name_and_size(wheel):
    assert re.fullmatch(r"modelflow-[\d.]+-py3-none-manylinux_2_36_x86_64\.whl", wheel.name)
    assert wheel.stat().st_size < MOST_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    assert "modelflow/py.typed" in names and not [name for name in names if "__pycache__" in name]


def newest(said, symbol):
    return max((tuple(map(int, version.split("."))) for version in re.findall(rf"\b{symbol}_([\d.]+)", said)), default=())


def test_needs_no_newer_system(wheel, tmp_path):
    """What manylinux_2_36 allows, from the files themselves; and what auditwheel says, where it is installed."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    files = [path for folder in ("lib", "bin") for path in (tmp_path / "modelflow" / folder).iterdir()]
    assert len(files) == 4 + (BUILD / "libmodelflow_ort_cuda.so").exists()
    for file in files:
        versions = run("readelf", "--version-info", "--wide", file).out
        assert (2, 14) < newest(versions, "GLIBC") <= (2, 36) and newest(versions, "GLIBCXX") <= (3, 4, 30), file
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "--dynamic", file).out))
        assert needed <= {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2", "libmodelflow.so.0"}, needed
    if EXTRAS.exists():  # what PyPI's own tool says
        said = run(EXTRAS, "-m", "auditwheel", "show", wheel).out
        assert [int(v) for v in re.findall(r'tag:\s+"manylinux_2_(\d+)', said) if int(v) <= 36], said


def test_console_scripts(python, cnn, tmp_path):
    for command, said in ((["optimize", cnn, "-o", "fast.onnx", "--threads", "1", "--no-measure"], "ONNX Runtime"),
                          (["modelflow-bench", "fast.onnx", "--threads", "1", "--rounds", "1", "--block", "0.02"], "with plugin")):
        done = run(python.parent / command[0], *command[1:], env=clean(), cwd=tmp_path)
        assert done.code == 0 and said in done.out, done.err


def test_the_page_runs_as_written(python, cnn, tmp_path):
    """Every block of docs/python.md, in one program."""
    (tmp_path / "model.onnx").write_bytes(cnn.read_bytes())
    page = (ROOT / "docs/python.md").read_text().split("## From a training script")[0]  # the rest: test_torch.py, and below
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) >= 4
    (tmp_path / "page.py").write_text("\n".join(blocks) + "\nprint(modelflow.__file__)\n")
    done = run(python, "page.py", env=clean(), cwd=tmp_path)
    assert done.code == 0, done.err
    assert str(python.parent.parent) in done.out and "per cent lost" in done.out and "verified" in done.out
    shell = re.findall(r"```sh\n(.*?)```", page, re.S)
    assert len(shell) == 1 and "tools/wheel" in shell[0] and (ROOT / "tools/build").exists()


def test_the_tutorial_runs_as_written(python, tmp_path, monkeypatch):
    """Every command of docs/tutorial.md, and what it said when the page was made but for numbers."""
    for name in set(os.environ) - set(clean()):
        monkeypatch.delenv(name)
    (tmp_path / "empty").mkdir()
    assert tutorial.blurred(tutorial.run(tmp_path / "empty", python.parent)) == tutorial.blurred(tutorial.PAGE.read_text())


def test_the_tests_of_the_package_run_on_the_wheel(python, tmp_path):
    """The quick ones of test_python.py, on what is installed."""
    chosen = "bytes_and_protos or exceptions or errors or threads or version or every_session"
    environment = {**clean(), "MODELFLOW_BUILD": str(BUILD)}
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, ROOT / "tests/outside/test_python.py", env=environment, cwd=tmp_path)
    assert done.code == 0 and "passed" in done.out, done.out[-3000:] + done.err


def test_the_client_of_a_package_reads_the_same_faster(python, tmp_path):
    """rapidocr-onnxruntime's own client, with the model that the page optimizes, and nothing else changed."""
    done = run(python, ROOT / "tests/outside/ocr_client.py", ROOT, env=clean(), cwd=tmp_path)
    assert done.code == 0 and "equal text" in done.out, done.out[-1000:] + done.err[-2000:]
    print(done.out)
