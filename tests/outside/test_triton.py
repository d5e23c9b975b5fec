"""Repositories for Triton: as its own protobuf reads them, as its backend looks at models, and in the server itself where there is one."""
import concurrent.futures
import contextlib
import json
import os
import re
import shlex
import subprocess
import time

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import EXTRAS, PLUGIN, close, needs_extras, run, session
from onnx import TensorProto, helper
from protocol import ask, free_port, request_of, result_of


def is_fused(folder):
    return any(node.domain == "modelflow" for node in onnx.load(folder / "1/model.onnx").graph.node)


PARSE = """
import importlib.util, json, sys
from google.protobuf import json_format, text_format
where = importlib.util.find_spec("tritonclient").submodule_search_locations[0] + "/grpc/model_config_pb2.py"
spec = importlib.util.spec_from_file_location("model_config_pb2", where)
config = importlib.util.module_from_spec(spec)
spec.loader.exec_module(config)
print(json.dumps(json_format.MessageToDict(text_format.Parse(open(sys.argv[1]).read(), config.ModelConfig()), preserving_proto_field_name=True)))
"""


def parsed(config):
    """As Triton's own protobuf reads it."""
    done = run(EXTRAS, "-c", PARSE, config)
    assert done.code == 0, done.err
    return json.loads(done.out)


TYPES = {"tensor(float)": "TYPE_FP32", "tensor(int64)": "TYPE_INT64", "tensor(bool)": "TYPE_BOOL"}


def check_as_the_backend_does(folder, config):
    """What Triton's ONNX Runtime backend looks at before it takes a model: names, types and extents."""
    options = ort.SessionOptions()
    for library in config.get("model_operations", {}).get("op_library_filename", []):
        options.register_custom_ops_library(library)
    options.intra_op_num_threads = int(config["parameters"]["intra_op_thread_count"]["string_value"])
    loaded = ort.InferenceSession(str(folder / "1" / config["default_model_filename"]), options, providers=["CPUExecutionProvider"])
    rows = int(config.get("max_batch_size", 0)) > 0
    for values, said in ((loaded.get_inputs(), config["input"]), (loaded.get_outputs(), config["output"])):
        assert {value.name for value in values} == {item["name"] for item in said}
        for value in values:
            item = next(item for item in said if item["name"] == value.name)
            extents = [extent if isinstance(extent, int) else -1 for extent in value.shape]
            assert item["data_type"] == TYPES[value.type]
            dims = [int(extent) for extent in item["dims"]] if "reshape" not in item else [int(extent) for extent in item["reshape"].get("shape", [])]
            assert ([-1] if rows else []) + dims == extents or (not extents and dims == [1])
    return loaded


@needs_extras
def test_a_repository_for_triton(cnn, optimize, tmp_path):
    done = optimize(cnn, "--triton", tmp_path / "models", "--max-seconds", 2)
    assert done.code == 0, done.err
    folder = tmp_path / "models/cnn"
    config = parsed(folder / "config.pbtxt")
    plugin = ["libmodelflow_ort.so"] if is_fused(folder) else []  # on a busy machine nothing of so small a model may be worth it
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == ["1/model.onnx", "config.pbtxt", *plugin]
    assert config["name"] == "cnn" and config["backend"] == "onnxruntime" and config["max_batch_size"] >= 1
    assert ("dynamic_batching" in config) == (config["max_batch_size"] > 1)
    assert config.get("model_operations", {}).get("op_library_filename", []) == [str(folder / name) for name in plugin]
    group, = config["instance_group"]
    assert group["kind"] == "KIND_CPU" and group["count"] * int(config["parameters"]["intra_op_thread_count"]["string_value"]) == os.cpu_count()
    loaded = check_as_the_backend_does(folder, config)
    x = np.random.default_rng(0).standard_normal((config["max_batch_size"], 3, 32, 32), dtype=np.float32)
    close(session(cnn).run(None, {"x": x}), loaded.run(None, {"x": x}))
    text = (folder / "config.pbtxt").read_text()
    assert len(re.findall(r"^#   \d+ x \d+ threads: [\d.]+ runs/s", text, re.M)) >= 1 and "rows at once" in text, "what it was chosen from"


def without_measuring(optimize, model, tmp_path, *more):
    onnx.save(model, tmp_path / "m.onnx")
    done = optimize(tmp_path / "m.onnx", "--triton", tmp_path / "models", "--no-measure", *more)
    assert done.code == 0, done.err
    return tmp_path / "models/m", (tmp_path / "models/m/config.pbtxt").read_text()


def of_nodes(nodes, inputs, outputs, weights=()):
    value = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    graph = helper.make_graph(nodes, "g", [value(*item) for item in inputs.items()], [value(*item) for item in outputs.items()], list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS = {
    "rows that know of each other": (of_nodes([helper.make_node("ReduceMean", ["x"], ["m"], axes=[0]), helper.make_node("Sub", ["x", "m"], ["y"])],
                                              {"x": ["n", 8]}, {"y": ["n", 8]}), "not independent"),
    "an axis of time first": (of_nodes([helper.make_node("CumSum", ["x", "axis"], ["y"])], {"x": ["time", 8]}, {"y": ["time", 8]},
                                       [helper.make_tensor("axis", TensorProto.INT64, [], [0])]), "not independent"),
    "a fixed batch": (of_nodes([helper.make_node("Relu", ["x"], ["y"])], {"x": [2, 8]}, {"y": [2, 8]}), "'x' does not begin"),
    "a number": (of_nodes([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {"x": ["n", 8]}, {"y": []}), "'y' does not begin")}


@pytest.mark.parametrize("case", MODELS)
def test_requests_that_must_not_be_gathered(optimize, tmp_path, case):
    folder, text = without_measuring(optimize, MODELS[case][0], tmp_path)
    assert "max_batch_size: 0\n" in text and MODELS[case][1] in text and "dynamic_batching" not in text
    assert ("model_operations" in text) == (folder / "libmodelflow_ort.so").exists() == is_fused(folder), "the plugin where it is used"
    if EXTRAS.exists():
        check_as_the_backend_does(folder, parsed(folder / "config.pbtxt"))


def switched():
    """z is read where `flip` is false; k has a default."""
    values = [("flip", TensorProto.BOOL, []), ("x", TensorProto.FLOAT, ["n", 8]), ("z", TensorProto.FLOAT, ["n", 8]), ("k", TensorProto.FLOAT, [8])]
    nodes = [helper.make_node("Where", ["flip", "x", "z"], ["w"]), helper.make_node("Mul", ["w", "k"], ["y"])]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*value) for value in values], [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8])],
                              [helper.make_tensor("k", TensorProto.FLOAT, [8], [2.0] * 8)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("more", [["--inputs", "{folder}/given.npz"], ["--input-shapes", "flip:", "--input-shapes", "x:3,8"]])
def test_inputs_that_are_bound_are_no_matter_to_a_server(optimize, tmp_path, more):
    rows = np.ones((3, 8), np.float32)
    np.savez(tmp_path / "given.npz", flip=np.array(True), x=rows, z=rows, k=np.full(8, 3, np.float32))
    _, text = without_measuring(optimize, switched(), tmp_path, "--bind", "flip=true", *(word.format(folder=tmp_path) for word in more))
    assert "max_batch_size: 8\n" in text and 'name: "x"' in text and '"flip"' not in text and '"k"' not in text, text


def test_a_repository_that_is_seen_elsewhere(optimize, tmp_path, cnn):
    folder, text = without_measuring(optimize, onnx.load(cnn), tmp_path, "--triton-root", "/models")
    assert 'op_library_filename: [ "/models/m/libmodelflow_ort.so" ]' in text and "max_batch_size: 8\n" in text
    assert (folder / "libmodelflow_ort.so").read_bytes() == PLUGIN.read_bytes()


@pytest.mark.parametrize("arguments, name", [(["--audio-front-end", "whisper"], "front"), (["--merge", "net=m.onnx", "other.onnx", "--map", "net.y=other.x"], "net")])
def test_what_a_repository_calls_models(optimize, tmp_path, arguments, name):
    model = of_nodes([helper.make_node("Relu", ["x"], ["y"])], {"x": ["n", 8]}, {"y": ["n", 8]})
    for file in ("m.onnx", "other.onnx"):
        onnx.save(model, tmp_path / file)
    done = optimize(*arguments, "--triton", "models", "--no-measure", "-q", cwd=tmp_path)
    assert done.code == 0, done.err
    assert [folder.name for folder in (tmp_path / "models").iterdir()] == [name]
    assert f'name: "{name}"' in (tmp_path / f"models/{name}/config.pbtxt").read_text()


@pytest.mark.parametrize("arguments, said", [(["-o", "fast.onnx"], "-o"), (["--triton-root", "/models"], None)])
def test_repositories_that_cannot_be(optimize, cnn, tmp_path, arguments, said):
    if said is None:
        done = optimize(cnn, "-o", tmp_path / "fast.onnx", *arguments)
    else:
        done = optimize(cnn, "--triton", tmp_path / "models", *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and "--triton" in done.err and not list(tmp_path.glob("models/*"))


def test_repositories_are_for_cpus(optimize, cnn, tmp_path):
    done = optimize(cnn, "--triton", tmp_path / "models", "--target", "cuda:sm_90", "--no-measure")
    assert done.code == 4 and done.err.count("\n") == 1 and "CPUs, not for cuda:sm_90" in done.err
    assert not (tmp_path / "models").exists()


SERVER = os.environ.get("MODELFLOW_TRITON")


@pytest.mark.skipif(not SERVER, reason="MODELFLOW_TRITON='/opt/tritonserver/bin/tritonserver --backend-directory=/opt/tritonserver/backends'")
def test_the_server_itself(cnn, optimize, tmp_path):
    """It loads the repository, gathers requests, and answers as the original does."""
    assert optimize(cnn, "--triton", tmp_path / "models", "--no-measure").code == 0
    assert is_fused(tmp_path / "models" / cnn.stem)
    port = free_port()
    command = [*shlex.split(SERVER), f"--model-repository={tmp_path / 'models'}", f"--http-port={port}", "--allow-grpc=0", "--allow-metrics=0"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            for _ in range(300):
                assert process.poll() is None, (tmp_path / "log").read_text()
                with contextlib.suppress(OSError):
                    if ask(port, "GET", "/v2/health/ready")[0] == 200:
                        break
                time.sleep(0.1)
            stock = session(cnn)
            (name, shape), = [(value.name, value.shape) for value in stock.get_inputs()]
            rng = np.random.default_rng(0)
            feeds = [rng.standard_normal([rows, *shape[1:]], dtype=np.float32) for rows in (1, 2, 1, 3, 1, 1, 2, 1)]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda x: ask(port, "POST", f"/v2/models/{cnn.stem}/infer", *request_of(x, name)), feeds))
            for x, (status, body, headers) in zip(feeds, answers):
                assert status == 200, body
                close(stock.run(None, {name: x}), [result_of(body, headers)])
        finally:
            process.terminate()
