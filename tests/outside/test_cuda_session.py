"""Sessions of onnxruntime-gpu's CUDA provider with the plugin, on a machine without a GPU: the provider is the real one, the
CUDA runtime under it a stand-in over host memory (tests/cuda/stand_in), the kernels are emulated.

tools/setup --cuda brings what this needs; without it these tests are skipped. With MODELFLOW_GPU=1 the same tests run on the
GPU of the machine, on libmodelflow_ort_cuda.so."""
import os
import pathlib
import sys

import numpy as np
import onnx
import pytest
from conftest import BUILD, run
from cuda_stand_in import CPU, CUDA, EMULATED, LIBRARY, ORT_GPU, ROOT, TYPES, Norm, cuda, emulated_only, in_session, needs_provider
from onnx import TensorProto, helper


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
