"""Sessions of onnxruntime-gpu's CUDA provider over the stand-in for the CUDA runtime (tests/cuda/stand_in), or on the machine's GPU
with MODELFLOW_GPU=1: where they find a device, how they are started, and a model of one modelflow node for them."""
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import BUILD, PLUGIN, run
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORT_GPU = os.environ.get("MODELFLOW_ORT_GPU", "")
CUDA_INCLUDE = os.environ.get("MODELFLOW_CUDA_INCLUDE", "")
ON_GPU = os.environ.get("MODELFLOW_GPU") == "1"
EMULATED = BUILD / "libmodelflow_ort_cuda_emulated.so"
LIBRARY = BUILD / "libmodelflow_ort_cuda.so" if ON_GPU else EMULATED
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
needs_provider = pytest.mark.skipif(not ORT_GPU, reason="onnxruntime-gpu is not there: tools/setup --cuda brings it")
emulated_only = pytest.mark.skipif(ON_GPU, reason="asks the stand-in, not a GPU")


@pytest.fixture(scope="session")
def cuda(tmp_path_factory):
    """The environment in which onnxruntime-gpu finds a device."""
    found = {**os.environ, "PYTHONPATH": ORT_GPU, "MODELFLOW_CUDA_LIBRARY": str(LIBRARY)}
    if ON_GPU:
        return found
    if not CUDA_INCLUDE:
        pytest.skip("no headers of CUDA for the stand-in: tools/setup --cuda brings them")
    folder = tmp_path_factory.mktemp("stand_in")
    provider = pathlib.Path(ORT_GPU) / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    done = run(ROOT / "tests/cuda/stand_in/make", provider, CUDA_INCLUDE, folder)
    assert done.code == 0, done.err
    return {**found, "LD_LIBRARY_PATH": str(folder)}


def in_session(environment, model, **wanted):
    wanted = {"model": str(model), "plugin": str(PLUGIN), **wanted}
    done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("cuda_session.py"), json.dumps(wanted)], capture_output=True,
                          text=True, timeout=300, env=environment)
    assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def bits_of(array, type_name):
    """As the type is fed: bfloat16 as its bits."""
    if type_name == "bfloat16":
        word = array.astype(np.float32).view(np.uint32)
        return ((word + 0x7FFF + (word >> 16 & 1)) >> 16).astype(np.uint16)
    return array.astype(type_name)


def floats_of(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array.astype(np.float32)


def norm(type_name, n=96):
    """One modelflow node, with its body."""
    rng = np.random.default_rng(3)
    weights = {name: bits_of(rng.standard_normal(n, np.float32), type_name) for name in ("scale", "bias")}
    body = helper.make_function("modelflow", "LayerNorm_0", ["x", "scale", "bias"], ["y"],
                                [helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1, epsilon=1e-5)],
                                [helper.make_opsetid("", 17)])
    node = helper.make_node("LayerNorm_0", ["x", "scale", "bias"], ["y"], name="norm", domain="modelflow", axis=-1, epsilon=1e-5)
    ports = [helper.make_tensor_value_info(name, TYPES[type_name], ["rows", n]) for name in "xy"]
    graph = helper.make_graph([node], "norm", ports[:1], ports[1:],
                              [helper.make_tensor(name, TYPES[type_name], [n], w.tobytes(), raw=True) for name, w in weights.items()])
    model = helper.make_model(graph, ir_version=8, functions=[body], opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("modelflow", 1)])
    return model, {name: floats_of(w) for name, w in weights.items()}


def normalized(x, weights):
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weights["scale"] + weights["bias"]


class Norm:
    def __init__(self, folder, type_name="float32", n=96, rows=5):
        self.path, self.feeds, self.out = folder / "norm.onnx", folder / "x.npz", folder / "y.npz"
        model, self.weights = norm(type_name, n)
        onnx.save(model, self.path)
        self.x = bits_of(np.random.default_rng(rows).standard_normal((rows, n), np.float32), type_name)
        np.savez(self.feeds, x=self.x)
        self.digit = {"float32": 1e-5, "float16": 2.0**-10, "bfloat16": 2.0**-7}[type_name]

    def ran(self, environment, **wanted):
        said = in_session(environment, self.path, feeds=str(self.feeds), out=str(self.out), **wanted)
        assert "error" not in said, said
        want, got = normalized(floats_of(self.x), self.weights), floats_of(np.load(self.out)["arr_0"])
        assert np.abs(want - got).max() <= self.digit * np.abs(want).max()
        return said
