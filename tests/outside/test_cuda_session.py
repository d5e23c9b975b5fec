"""Sessions of onnxruntime-gpu's CUDA provider with the plugin, on a machine without a GPU: the provider is the real one, the
CUDA runtime under it a stand-in over host memory (tests/cuda/stand_in), the kernels are emulated.

tools/setup --cuda brings what this needs; without it these tests are skipped. With MODELFLOW_GPU=1 the same tests run on the
GPU of the machine, on libmodelflow_ort_cuda.so."""
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


@needs_provider
@pytest.mark.parametrize("type_name", TYPES)
def test_nodes_run_on_the_device(cuda, tmp_path, type_name):
    said = Norm(tmp_path, type_name).ran(cuda)
    assert said["placed"] == {CUDA: ["modelflow::LayerNorm_0"]}


@pytest.mark.parametrize("type_name", TYPES)
def test_such_models_run_on_a_cpu(tmp_path, type_name):
    said = Norm(tmp_path, type_name).ran(dict(os.environ), providers=[CPU])
    assert said["placed"] == {CPU: ["modelflow::LayerNorm_0"]}


@needs_provider
@pytest.mark.parametrize("type_name", TYPES)
def test_every_sample_of_every_op(cuda, type_name):
    program = BUILD / "modelflow_gpu_tests"
    if not program.exists():
        pytest.skip("built without tests")
    library = next((pathlib.Path(ORT_GPU) / "onnxruntime/capi").glob("libonnxruntime.so.*"))
    done = run(program, f"--gtest_filter=*CudaSessions*/{type_name}", env={**cuda, "MODELFLOW_ONNXRUNTIME": str(library)}, timeout=1200)
    assert done.code == 0 and "[  PASSED  ] 1 test." in done.out, done.out[-3000:]


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


@needs_provider
@pytest.mark.parametrize("what", ["text", "another library", "another version", "no device"])
def test_libraries_that_cannot_be_used(cuda, tmp_path, what):
    library = tmp_path / "library.so"
    library.write_text("not a library")
    text = {"another library": "int other;",
            "another version": "static int table[64] = {999}; const void* modelflow_device_library() { return table; }",
            "no device": NO_DEVICE}
    if what in text:
        (tmp_path / "library.cpp").write_text(text[what].replace("const void*", 'extern "C" const void*'))
        done = run("g++", "-std=c++20", f"-I{ROOT}", f"-I{ROOT}/include", "-shared", "-fPIC", tmp_path / "library.cpp", "-o", library)
        assert done.code == 0, done.err
    without_library(cuda, tmp_path, library)


NO_DEVICE = """
#include "backends/cuda/library.h"
using namespace modelflow::cuda;
static const char* describe(int, DeviceNumbers*) { return "CUDA driver version is insufficient for CUDA runtime version"; }
static DeviceLibrary made() {
  DeviceLibrary table = {};
  table.version = DeviceLibrary::kVersion;
  table.size = sizeof table;
  table.describe = describe;
  return table;
}
static const DeviceLibrary table = made();
extern "C" const DeviceLibrary* modelflow_device_library() { return &table; }
"""


@needs_provider
@emulated_only
def test_without_a_driver_sessions_run_on_the_cpu(tmp_path):
    environment = {**os.environ, "PYTHONPATH": ORT_GPU, "MODELFLOW_CUDA_LIBRARY": str(LIBRARY)}
    assert Norm(tmp_path).ran(environment)["placed"] == {CPU: ["modelflow::LayerNorm_0"]}


@needs_provider
@emulated_only
def test_out_of_memory_is_one_message(cuda, tmp_path):
    model = Norm(tmp_path)
    np.savez(tmp_path / "large.npz", x=np.zeros((40000, 96), np.float32))
    said = model.ran({**cuda, "MODELFLOW_STAND_IN_MEMORY": str(8 << 20)}, refused=[str(tmp_path / "large.npz")])
    assert len(said["messages"]) == 1 and "memory" in said["messages"][0].lower(), said


@needs_provider
def test_what_the_device_has_no_kernel_for_runs_on_the_host(cuda, tmp_path):
    for type_name in TYPES:  # rows that are longer than shared memory is
        said = Norm(tmp_path, type_name, n=80000, rows=2).ran(cuda)
        assert said["placed"] == {CUDA: ["modelflow::LayerNorm_0"]}
    said = in_session(cuda, Norm(tmp_path, n=80000).path, config={"modelflow.kernels": "cuda.layer_norm"})
    assert "a row does not fit into shared memory" in said["error"]


@needs_provider
def test_sessions_and_threads_at_once(cuda, tmp_path):
    assert Norm(tmp_path, "float16", rows=64).ran(cuda, sessions=3, times=20)["wrong"] == []


@needs_provider
@emulated_only
def test_nothing_is_left_in_the_devices_memory(cuda, tmp_path):
    log = tmp_path / "log"
    Norm(tmp_path).ran({**cuda, "MODELFLOW_STAND_IN_LOG": str(log)}, sessions=2, times=5)
    lines = log.read_text().splitlines()
    assert not [line for line in lines if "refused" in line]
    assert lines[-1].endswith(" 0 in use")


def perceptron():
    """Two products: what 8 bits are for, under names that products in float have too."""
    rng = np.random.default_rng(5)
    weights = {name: rng.standard_normal(shape).astype(np.float32) * 0.1 for name, shape in {"w0": (64, 128), "w1": (128, 32)}.items()}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]), helper.make_node("MatMul", ["b", "w1"], ["y"])]
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 64])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 32])],
                              [onnx.numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@needs_provider
@pytest.mark.parametrize("precision", ["float32", "bf16", "int8-dynamic", "int8-weights", "int4-weights"])
def test_models_for_a_cpu_load_and_run(cuda, optimize, tmp_path, precision):
    """Their names may be those of kernels of the device, their ops are not."""
    onnx.save(perceptron(), tmp_path / "mlp.onnx")
    machine = ["--target", "cpu:amx"] if precision == "bf16" else []  # which this one need not be: its kernels run everywhere
    done = optimize(tmp_path / "mlp.onnx", "-o", tmp_path / "fast.onnx", "--no-measure", "--precision", precision, *machine)
    assert done.code == 0, done.err
    if not all(node.domain == "modelflow" for node in onnx.load(tmp_path / "fast.onnx").graph.node):
        pytest.skip(f"not every node of it is fused here with --precision {precision}: NVIDIA's own kernels do not run")
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).standard_normal((7, 64), np.float32))
    outputs = []
    for providers in ([CPU], [CUDA, CPU]):
        said = in_session(cuda, tmp_path / "fast.onnx", feeds=str(tmp_path / "x.npz"), out=str(tmp_path / "y.npz"), providers=providers)
        assert "error" not in said, said
        outputs.append(np.load(tmp_path / "y.npz")["arr_0"])
    assert np.abs(outputs[0] - outputs[1]).max() <= 1e-5 * np.abs(outputs[0]).max()


def pixels():
    """Two convolutions without bias."""
    rng = np.random.default_rng(6)
    weights = {"w0": rng.standard_normal((64, 32, 1, 1)).astype(np.float32) * 0.1, "w1": rng.standard_normal((32, 64, 3, 3)).astype(np.float32) * 0.05}
    nodes = [helper.make_node("Conv", ["x", "w0"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("Conv", ["b", "w1"], ["y"], pads=[1, 1, 1, 1])]
    graph = helper.make_graph(nodes, "pixels", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 9, 7])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 9, 7])],
                              [onnx.numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def residual_network():
    """What networks of pictures have: a stem, a depthwise convolution, a sum, poolings and a classifier."""
    rng = np.random.default_rng(8)
    weights = {"stem": (16, 3, 3, 3), "wide": (32, 16, 1, 1), "deep": (32, 1, 3, 3), "back": (16, 32, 1, 1), "class": (16, 10)}
    weights = {name: (rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32) for name, shape in weights.items()}
    node = helper.make_node
    nodes = [node("Conv", ["x", "stem"], ["a0"], pads=[1] * 4, strides=[2, 2]), node("Relu", ["a0"], ["a"]),
             node("Conv", ["a", "wide"], ["b0"]), node("Relu", ["b0"], ["b"]), node("Conv", ["b", "deep"], ["c0"], pads=[1] * 4, group=32),
             node("Relu", ["c0"], ["c"]), node("Conv", ["c", "back"], ["d0"]), node("Add", ["d0", "a"], ["d1"]), node("Relu", ["d1"], ["d"]),
             node("MaxPool", ["d"], ["e"], kernel_shape=[2, 2], strides=[2, 2]), node("GlobalAveragePool", ["e"], ["f0"]),
             node("Flatten", ["f0"], ["f"]), node("MatMul", ["f", "class"], ["y"])]
    graph = helper.make_graph(nodes, "network", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3, 24, 20])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
                              [onnx.numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@needs_provider
def test_a_network_in_eight_bits_runs_on_the_device(cuda, optimize, tmp_path):
    onnx.save(residual_network(), tmp_path / "network.onnx")
    (tmp_path / "samples").mkdir()
    for i in range(4):
        np.savez(tmp_path / f"samples/{i}.npz", x=np.random.default_rng(i).standard_normal((1, 3, 24, 20), np.float32))
    done = optimize(tmp_path / "network.onnx", "-o", tmp_path / "fast.onnx", "--no-measure", "--precision", "int8", "--calibration", tmp_path / "samples",
                    "--target", "cuda:sm_80", "--max-drop", "20")
    assert done.code == 0, done.err
    ops = [node.op_type.rpartition("_")[0] for node in onnx.load(tmp_path / "fast.onnx").graph.node if node.domain == "modelflow"]
    assert ops.count("QConv") == 4 and ops.count("Quantize") == 1, ops
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(9).standard_normal((3, 3, 24, 20), np.float32))
    outputs = []
    for providers in ([CPU], [CUDA, CPU]):
        said = in_session(cuda, tmp_path / "fast.onnx", feeds=str(tmp_path / "x.npz"), out=str(tmp_path / "y.npz"), providers=providers)
        assert "error" not in said, said
        outputs.append(np.load(tmp_path / "y.npz")["arr_0"])
    assert list(said["placed"]) == [CUDA], said["placed"]
    assert np.abs(outputs[0] - outputs[1]).max() <= 0.01 * np.abs(outputs[0]).max()


@pytest.fixture(params=[(made, target) for made in (perceptron, pixels) for target in ("cpu:amx", "cuda:sm_90")],
                ids=lambda wanted: f"{wanted[0].__name__} for {wanted[1]}")
def in_bfloat16(request, optimize, tmp_path):
    """A model whose ops read bfloat16 alone and give float32 for a CPU, bfloat16 for a GPU, under names that are the same."""
    made, target = request.param
    onnx.save(made(), tmp_path / "plain.onnx")
    done = optimize(tmp_path / "plain.onnx", "-o", tmp_path / "fast.onnx", "--no-measure", "--precision", "bf16", "--target", target)
    assert done.code == 0, done.err
    graph = onnx.load(tmp_path / "fast.onnx").graph
    types = {value.name: value.data_type for value in graph.initializer}
    types |= {value.name: value.type.tensor_type.elem_type for value in [*graph.input, *graph.value_info]}
    assert any(node.domain == "modelflow" and all(types[name] == TensorProto.BFLOAT16 for name in node.input) for node in graph.node)
    shape = [dim.dim_value or 7 for dim in graph.input[0].type.tensor_type.shape.dim]
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(1).standard_normal(shape, np.float32))
    return tmp_path


def test_bfloat16_for_a_cpu_and_for_a_gpu_runs_without_one(in_bfloat16):
    outputs = []
    for name in ("plain", "fast"):
        said = in_session(dict(os.environ), in_bfloat16 / f"{name}.onnx", feeds=str(in_bfloat16 / "x.npz"), out=str(in_bfloat16 / "y.npz"), providers=[CPU])
        assert "error" not in said, said
        outputs.append(np.load(in_bfloat16 / "y.npz")["arr_0"])
    assert np.abs(outputs[0] - outputs[1]).max() <= 2.0**-7 * np.abs(outputs[0]).max()


@needs_provider
def test_bfloat16_for_a_cpu_and_for_a_gpu_loads_beside_one(cuda, in_bfloat16):
    for providers in ([CPU], [CUDA, CPU]):
        said = in_session(cuda, in_bfloat16 / "fast.onnx", providers=providers)
        assert "error" not in said, said


@emulated_only
def test_the_command_for_gpus_says_when_there_is_none():
    if not pathlib.Path("/proc/driver/nvidia").exists():
        done = run(ROOT / "tools/test-gpu")
        assert done.code == 5 and done.out.count("\n") == 1 and "no GPU here" in done.out


def test_what_travels_to_a_gpu_fits(tmp_path):
    if not (BUILD / "libmodelflow_ort_cuda.so").exists() or not (BUILD / "modelflow_gpu_tests").exists():
        pytest.skip("no libmodelflow_ort_cuda.so: built without a CUDA compiler")
    done = run(ROOT / "tools/test-gpu", "--pack", tmp_path / "gpu.tar.gz", env={**os.environ, "MODELFLOW_BUILD": str(BUILD)})
    assert done.code == 0, done.err
    assert (tmp_path / "gpu.tar.gz").stat().st_size < 60 << 20
    assert run("tar", "xf", tmp_path / "gpu.tar.gz", "-C", tmp_path).code == 0
    environment = {**os.environ, "MODELFLOW_CUDA_LIBRARY": str(EMULATED), "MODELFLOW_ONNXRUNTIME": str(next((tmp_path / "gpu").glob("libonnxruntime*")))}
    done = run(tmp_path / "gpu/modelflow_gpu_tests", "--gtest_filter=*Times*:*DeviceConformance.EqualsTheBody/cuda_layer_norm_float16", env=environment, timeout=900)
    assert done.code == 0 and "[  PASSED  ] 1 test." in done.out and "the emulator has no times" in done.out, done.out[-2000:]


@needs_provider
@emulated_only
def test_plans_are_opened_and_counted(cuda, tmp_path):
    onnx.save(perceptron(), tmp_path / "mlp.onnx")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- gpu-plans: the table that tools/gpu-plans --page writes -->\nold\n<!-- end of gpu-plans -->\nbehind\n")
    done = run(sys.executable, ROOT / "tools/gpu_plans.py", "--models", tmp_path / "mlp.onnx", "--no-corpus", "--targets", "cuda:sm_90",
               "--precisions", "fp16", "--page", page, env={**os.environ, "MODELFLOW_BUILD": str(BUILD)})
    assert done.code == 0, done.err
    lines = page.read_text().splitlines()
    assert lines[0] == "before" and lines[-1] == "behind" and "old" not in lines
    row = dict(zip((cell.strip() for cell in lines[2].split("|")), (cell.strip() for cell in lines[4].split("|"))))
    assert row["model"] == "mlp" and row["exported"] == "3" and (row["planned"], row["fused"], row["Cast"], row["on the CPU"]) == ("4", "2", "2", "0")
    assert 0 <= float(row["floor us"]) < float(row["planned, predicted us"])
