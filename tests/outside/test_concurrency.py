"""The plugin in many threads and in many sessions one after the other, in every ONNX Runtime that is there: this one, the
oldest supported, and those that MODELFLOW_ORT_MORE names (folders for PYTHONPATH, with a colon between them)."""
import os
import subprocess
import sys

import pytest
from conftest import PLUGIN

MORE = [p for p in [os.environ.get("MODELFLOW_ORT_OLDEST", ""), *os.environ.get("MODELFLOW_ORT_MORE", "").split(":")] if p]
CYCLES = 1000

THREADS = """
import sys, threading
import numpy as np, onnxruntime as ort
plugin, path = sys.argv[1:]
options = ort.SessionOptions()
options.intra_op_num_threads = 2
options.log_severity_level = 3
options.register_custom_ops_library(plugin)
session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
feeds = [np.random.default_rng(n).standard_normal((n, 3, 32, 32), dtype=np.float32) for n in range(1, 8)]
expected = [session.run(None, {"x": x})[0] for x in feeds]
failures = []
def work(seed):
    try:
        for i in np.random.default_rng(seed).integers(0, len(feeds), 60):
            if not np.array_equal(session.run(None, {"x": feeds[i]})[0], expected[i]):
                failures.append(f"thread {seed}, batch {i + 1}: another result")
    except Exception as error:
        failures.append(str(error))
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads], [t.join() for t in threads]
print(ort.__version__, failures[:3])
sys.exit(bool(failures))
"""

CYCLING = """
import ctypes, gc, sys
import numpy as np, onnxruntime as ort
plugin, path, cycles = sys.argv[1], sys.argv[2], int(sys.argv[3])
libc = ctypes.CDLL(None)
x = np.ones((1, 3, 32, 32), np.float32)
def held():
    gc.collect()
    libc.malloc_trim(0)
    with open("/proc/self/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon", "VmSwap")))
def cycle():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.register_custom_ops_library(plugin)
    ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})
for _ in range(100):
    cycle()
before = held()
for _ in range(cycles):
    cycle()
print(ort.__version__, held() - before, "KiB more after", cycles)
sys.exit(held() - before > 1024)
"""


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    import onnx
    from conftest import run, small_cnn
    folder = tmp_path_factory.mktemp("fused")
    onnx.save(small_cnn(), folder / "cnn.onnx")
    assert run(PLUGIN.parent / "optimize", folder / "cnn.onnx", "-o", folder / "fused.onnx", "--no-measure", "-q").code == 0
    return folder / "fused.onnx"


def in_python(script, runtime, *arguments):
    environment = dict(os.environ, PYTHONPATH=runtime) if runtime else os.environ
    done = subprocess.run([sys.executable, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=environment)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("runtime", ["", *MORE])
def test_changing_shapes_in_eight_threads(fused, runtime):
    in_python(THREADS, runtime, PLUGIN, fused)


@pytest.mark.parametrize("runtime", ["", *MORE])
def test_a_thousand_sessions(fused, runtime):
    in_python(CYCLING, runtime, PLUGIN, fused, CYCLES)
