"""The library of kernels for GPUs as the plugin meets it: built of other sources, for other devices or another driver, in sessions of
one of several devices, and not at all in sessions of the CPU."""
import ctypes
import hashlib
import re
import shutil

import numpy as np
import onnx
import pytest
from conftest import run
from cuda_stand_in import CPU, CUDA, CUDA_INCLUDE, EMULATED, LIBRARY, ROOT, Norm, cuda, emulated_only, in_session, needs_provider
from onnx import TensorProto, helper


class Head(ctypes.Structure):
    """What stands first in the table."""
    _fields_ = [("version", ctypes.c_uint32), ("built", ctypes.c_char_p), ("cuda", ctypes.c_int32), ("architectures", ctypes.c_char_p)]


def test_the_version_is_that_of_all_that_both_sides_share():
    """Of every header that says how what is passed lies in memory and how much is granted, and of no other."""
    shared = [ROOT / "backends/cuda" / header for header in ("library.h", "launches/shared_memory.h")]
    listed = run("g++", "-std=c++20", "-MM", f"-I{ROOT}", f"-I{ROOT}/include", "-x", "c++", *shared).out
    headers = sorted(set(re.findall(rf"{re.escape(str(ROOT))}/(backends/\S+\.h)", listed)) - {"backends/call_attrs.h"})
    assert "backends/cuda/launches.h" in headers and "backends/activation.h" in headers
    hashes = "".join(hashlib.sha256((ROOT / header).read_bytes()).hexdigest() for header in headers)
    library = ctypes.CDLL(str(EMULATED))
    library.modelflow_device_library.restype = ctypes.POINTER(Head)
    head = library.modelflow_device_library().contents
    assert head.version == int(hashlib.sha256(hashes.encode()).hexdigest()[:8], 16)
    assert head.built == b"emulated" and head.architectures


CALLS = """
#include <cstdio>
#include "backends/cuda/device/cuda_calls.h"
using namespace modelflow::cuda;
static void kernel() {}
int main() {
  void* memory = nullptr;
  const char* why = text_of(cudaMalloc(&memory, std::size_t{1} << 60));
  std::printf("%s, then %s\\n", why ? why : "nothing", cudaPeekAtLastError() == cudaSuccess ? "nothing" : "the same");
  cudaFuncAttributes found;
  why = ask_for_shared(reinterpret_cast<const void*>(kernel));
  cudaFuncGetAttributes(&found, reinterpret_cast<const void*>(kernel));
  std::printf("%s, %d bytes\\n", why ? why : "nothing", found.maxDynamicSharedSizeBytes);
}
"""


@pytest.mark.skipif(not CUDA_INCLUDE, reason="no headers of CUDA for the stand-in: tools/setup --cuda brings them")
def test_calls_of_cuda_leave_nothing_behind(tmp_path):
    """A call that failed is not the fault of the next launch, and a launch takes no shared memory from others of its kernel."""
    (tmp_path / "calls.cpp").write_text(CALLS)
    done = run("g++", "-std=c++20", "-w", "-fno-builtin", f"-I{ROOT}", f"-I{CUDA_INCLUDE}", tmp_path / "calls.cpp", ROOT / "tests/cuda/stand_in/runtime.cpp",
               "-o", tmp_path / "calls")
    assert done.code == 0, done.err
    assert run(tmp_path / "calls").out.splitlines() == ["out of memory, then nothing", f"nothing, {226 << 10} bytes"]


CHANGED = """
#include <dlfcn.h>
#include "backends/cuda/library.h"
using namespace modelflow::cuda;
static decltype(DeviceLibrary::describe) describe;
static DeviceLibrary made() {
  void* const file = dlopen("LIBRARY", RTLD_NOW | RTLD_LOCAL);
  DeviceLibrary table = *reinterpret_cast<decltype(&modelflow_device_library)>(dlsym(file, "modelflow_device_library"))();
  describe = table.describe;
  CHANGE
  return table;
}
static const DeviceLibrary table = made();
extern "C" const DeviceLibrary* modelflow_device_library() { return &table; }
"""


def compiled(folder, text):
    (folder / "library.cpp").write_text(text)
    done = run("g++", "-std=c++20", f"-I{ROOT}", f"-I{ROOT}/include", "-shared", "-fPIC", folder / "library.cpp", "-o", folder / "library.so")
    assert done.code == 0, done.err
    return folder / "library.so"


def changed(folder, change):
    """The library with something else in its table."""
    return compiled(folder, CHANGED.replace("LIBRARY", str(LIBRARY)).replace("CHANGE", change))


def without_library(cuda, tmp_path, library):
    model = Norm(tmp_path)
    environment = {**cuda, "MODELFLOW_CUDA_LIBRARY": str(library)}
    said = in_session(environment, model.path)
    assert said.get("placed") == {CUDA: ["::LayerNormalization"]}, said
    said = model.ran(environment, config={"modelflow.kernels": "on"})
    assert said["placed"] == {CPU: ["modelflow::LayerNorm_0"]}


@needs_provider
def test_without_the_library_bodies_run_on_the_device(cuda, tmp_path):
    without_library(cuda, tmp_path, tmp_path / "missing.so")
    (tmp_path / "text.so").write_text("not a library")
    without_library(cuda, tmp_path, tmp_path / "text.so")
    without_library(cuda, tmp_path, compiled(tmp_path, "int other;"))


@needs_provider
@pytest.mark.parametrize("change", ["version ^= 1", "cuda = 99000", 'architectures = "70-real+120-real"'])
def test_libraries_for_something_else_are_not_used(cuda, tmp_path, change):
    """Built of other structures, for a newer driver, for other devices."""
    without_library(cuda, tmp_path, changed(tmp_path, f"table.{change};"))


OTHER_DEVICE = """
table.describe = [](int device, DeviceNumbers* numbers) {
  const char* const why = describe(0, numbers);
  if (device == 1) numbers->sm = 70;
  return why;
};
"""


@needs_provider
@emulated_only
def test_each_session_is_that_of_its_device(cuda, tmp_path):
    """The second device has no kernels: what runs on the first runs on the host there."""
    environment = {**cuda, "MODELFLOW_CUDA_LIBRARY": str(changed(tmp_path, OTHER_DEVICE)), "MODELFLOW_STAND_IN_DEVICES": "2"}
    for device, refused in ((0, ""), (1, "is of sm_70")):
        on = {"providers": [[CUDA, {"device_id": device}], CPU]}
        assert Norm(tmp_path, "float16").ran(environment, **on)["placed"] == {CUDA: ["modelflow::LayerNorm_0"]}
        said = in_session(environment, tmp_path / "norm.onnx", config={"modelflow.kernels": "cuda.layer_norm"}, **on)
        assert refused in said.get("error", "") and bool(refused) == ("error" in said), said


@needs_provider
@emulated_only
def test_what_runs_on_the_host_is_no_part_of_a_graph(cuda, tmp_path):
    environment = {**cuda, "MODELFLOW_CUDA_LIBRARY": str(changed(tmp_path, "table.capturing = [](void*) { return true; };"))}
    model = Norm(tmp_path, n=80000, rows=2)  # rows that are longer than shared memory is
    said = in_session(environment, model.path, refused=[str(model.feeds)])
    assert len(said["messages"]) == 1 and "a CUDA graph cannot hold what runs on the host" in said["messages"][0], said
    Norm(tmp_path).ran(environment)


@needs_provider
@emulated_only
def test_what_is_made_ready_in_a_run_is_no_part_of_a_graph(cuda, tmp_path):
    """Where the rank of an operand is known in runs alone."""
    model = Norm(tmp_path)
    loose = onnx.load(model.path)
    for port in (*loose.graph.input, *loose.graph.output):
        port.type.tensor_type.ClearField("shape")
    onnx.save(loose, model.path)
    asked = {"modelflow.kernels": "cuda.layer_norm"}
    model.ran(cuda, config=asked)
    environment = {**cuda, "MODELFLOW_CUDA_LIBRARY": str(changed(tmp_path, "table.capturing = [](void*) { return true; };"))}
    said = in_session(environment, model.path, refused=[str(model.feeds)], config=asked)
    assert len(said["messages"]) == 1 and "a CUDA graph cannot hold what is made ready" in said["messages"][0], said


@needs_provider
@emulated_only
def test_a_session_of_the_cpu_starts_no_cuda(cuda, tmp_path):
    log = tmp_path / "log"
    environment = {**cuda, "MODELFLOW_STAND_IN_LOG": str(log)}
    assert Norm(tmp_path).ran(environment, providers=[CPU])["placed"] == {CPU: ["modelflow::LayerNorm_0"]}
    assert not log.exists() or "CUDA was started" not in log.read_text()


@needs_provider
@emulated_only
def test_without_nvml_cuda_says_what_there_is(cuda, tmp_path):
    folder = shutil.copytree(cuda["LD_LIBRARY_PATH"], tmp_path / "stand_in")
    (folder / "libnvidia-ml.so.1").write_text("not a library")
    log = tmp_path / "log"
    environment = {**cuda, "LD_LIBRARY_PATH": str(folder), "MODELFLOW_STAND_IN_LOG": str(log)}
    assert Norm(tmp_path).ran(environment)["placed"] == {CUDA: ["modelflow::LayerNorm_0"]}
    assert "CUDA was started" in log.read_text()


@needs_provider
@emulated_only
@pytest.mark.parametrize("visible", ["", "-1"])
def test_hidden_devices_are_none(cuda, tmp_path, visible):
    """Without a library, bodies would run there, for nothing."""
    environment = {**cuda, "MODELFLOW_CUDA_LIBRARY": str(tmp_path / "missing.so"), "CUDA_VISIBLE_DEVICES": visible}
    assert Norm(tmp_path).ran(environment, providers=[CPU])["placed"] == {CPU: ["modelflow::LayerNorm_0"]}


def lstm():
    """On sequences of any length."""
    rng = np.random.default_rng(2)
    weights = {"w": (1, 32, 5), "r": (1, 32, 8)}
    graph = helper.make_graph([helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=8)], "lstm",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["steps", 2, 5])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["steps", 1, 2, 8])],
                              [onnx.numpy_helper.from_array(rng.standard_normal(shape, np.float32), name) for name, shape in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@needs_provider
def test_sequences_without_a_step_have_no_result(cuda, optimize, tmp_path):
    onnx.save(lstm(), tmp_path / "lstm.onnx")
    done = optimize(tmp_path / "lstm.onnx", "-o", tmp_path / "fast.onnx", "--no-measure", "--target", "cuda:sm_90")
    assert done.code == 0, done.err
    assert [node.domain for node in onnx.load(tmp_path / "fast.onnx").graph.node] == ["modelflow"]
    for steps in (3, 0):
        np.savez(tmp_path / "x.npz", x=np.ones((steps, 2, 5), np.float32))
        said = in_session(cuda, tmp_path / "fast.onnx", feeds=str(tmp_path / "x.npz"), out=str(tmp_path / "y.npz"))
        assert "error" not in said, said
        assert np.load(tmp_path / "y.npz")["arr_0"].shape == (steps, 1, 2, 8)
