"""A sample of the onnx package's backend models merged in pairs; backend_pairs.py takes all of them."""
import subprocess
import sys

from conftest import BUILD
from test_python import ROOT


def test_pairs_of_backend_models():
    done = subprocess.run([sys.executable, ROOT / "tests/outside/backend_pairs.py", "--build", BUILD, "--every", "9"], capture_output=True, text=True)
    assert done.returncode == 0 and " equal" in done.stdout, done.stdout[-2000:]
