"""A sample of the onnx package's backend tests; backend_suite.py runs all of them."""
import pathlib
import sys

from conftest import BUILD, run


def test_sample():
    done = run(sys.executable, pathlib.Path(__file__).parent / "backend_suite.py", "--build", BUILD, "--every", "23", timeout=1500)
    assert done.code == 0, done.out[-4000:] + done.err[-2000:]
