"""The Python package as type checkers see it: complete hints, and none that contradict."""
import pathlib

import pytest
from conftest import EXTRAS, needs_extras, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = needs_extras


def test_the_package_is_strictly_typed(tmp_path):
    done = run(EXTRAS, "-m", "mypy", "--strict", "--ignore-missing-imports", "--cache-dir", tmp_path, ROOT / "python/modelflow")
    assert done.code == 0, done.out


@pytest.mark.parametrize("line, right", [('modelflow.optimize("m.onnx", threads=2).report.speedup + 1.0', True), ('modelflow.optimize("m.onnx", threads="two")', False),
                                         ('modelflow.optimize("m.onnx").report.speedup.lower()', False), ('modelflow.bench("m.onnx").sides[0].p50_ms / 2', True)])
def test_users_are_checked(tmp_path, line, right):
    (tmp_path / "use.py").write_text(f"import modelflow\n\n{line}\n")
    done = run(EXTRAS, "-m", "mypy", "--cache-dir", tmp_path, "--ignore-missing-imports", tmp_path / "use.py", env={"MYPYPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"})
    assert (done.code == 0) == right, done.out
