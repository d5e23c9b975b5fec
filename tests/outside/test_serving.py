"""Models under load: many sessions at once, repositories for Triton, and the example server against the stock model."""
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from conftest import EXTRAS, PLUGIN, close, needs_extras, run, session
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUICK = ["--rounds", 2, "--block", 0.05]


@pytest.fixture
def fast(cnn, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    return tmp_path / "fast.onnx"


def test_so_many_sessions_at_once(cnn, fast, bench):
    done = bench(fast, "--vs", cnn, "--streams", 2, "--threads", 1, *QUICK, "--json")
    assert done.code == 0, done.err
    sides = json.loads(done.out)["sides"]
    assert [side["name"] for side in sides] == [str(cnn), "without plugin", "with plugin"]
    for side in sides:
        load, = side["loads"]
        assert (load["streams"], load["threads"]) == (2, 1) and side["best"] == {"streams": 2, "threads": 1}
        assert load["runs"] >= 2 and load["runs_per_second"] > 0 and 0 < load["p50_ms"] <= load["p99_ms"] and load["memory_bytes"] > 0


def test_the_best_way_to_share_out_the_cores(fast, bench):
    done = bench(fast, "--streams", "best", "--threads", 4, *QUICK, "--json")
    assert done.code == 0, done.err
    for side in json.loads(done.out)["sides"]:
        assert [(load["streams"], load["threads"]) for load in side["loads"]] == [(1, 4), (2, 2), (4, 1)]
        most = max(load["runs_per_second"] for load in side["loads"])
        best = next(load for load in side["loads"] if load["streams"] == side["best"]["streams"])
        assert best["runs_per_second"] >= 0.97 * most
    text = bench(fast, "--streams", "best", "--threads", 2, *QUICK)
    assert text.code == 0 and "runs/s" in text.out and "most of 'with plugin'" in text.out


@pytest.mark.parametrize("arguments, said", [(["--streams", "none"], "'none'"), (["--streams", "0"], "'0'"), (["--streams", "2", "--profile"], "--profile")])
def test_streams_that_cannot_be(fast, bench, arguments, said):
    done = bench(fast, *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and said in done.err


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


def test_a_repository_that_is_seen_elsewhere(optimize, tmp_path, cnn):
    folder, text = without_measuring(optimize, onnx.load(cnn), tmp_path, "--triton-root", "/models")
    assert 'op_library_filename: [ "/models/m/libmodelflow_ort.so" ]' in text and "max_batch_size: 8\n" in text
    assert (folder / "libmodelflow_ort.so").read_bytes() == PLUGIN.read_bytes()


@pytest.mark.parametrize("arguments, said", [(["-o", "fast.onnx"], "-o"), (["--triton-root", "/models"], None)])
def test_repositories_that_cannot_be(optimize, cnn, tmp_path, arguments, said):
    if said is None:
        done = optimize(cnn, "-o", tmp_path / "fast.onnx", *arguments)
    else:
        done = optimize(cnn, "--triton", tmp_path / "models", *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and "--triton" in done.err and not list(tmp_path.glob("models/*"))


def free_port():
    with socket.socket() as any_of_them:
        any_of_them.bind(("127.0.0.1", 0))
        return any_of_them.getsockname()[1]


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


@contextlib.contextmanager
def server(*arguments):
    port = free_port()
    process = subprocess.Popen([str(part) for part in (EXTRAS, ROOT / "examples/serve/server.py", *arguments, "--port", port)], stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                if ask(port, "GET", "/v2/health/ready")[0] == 200:
                    break
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.1)
        yield port, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stderr.close()


def request_of(x):
    """A request whose input lies as bytes behind the JSON."""
    head = json.dumps({"inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


def result_of(body, headers):
    length = int(headers["Inference-Header-Content-Length"])
    item, = json.loads(body[:length])["outputs"]
    return np.frombuffer(body[length:], np.float32).reshape(item["shape"])


@needs_extras
def test_the_example_server(cnn, fast):
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    expected, = session(cnn).run(None, {"x": x})
    line = re.search(r"^python examples/serve/server.py (.*)$", (ROOT / "docs/deploy.md").read_text(), re.M)[1]
    known = {"digits=fast.onnx": f"digits={fast}", "build/libmodelflow_ort.so": PLUGIN}
    with server(*[known.get(word, word) for word in line.split()]) as (port, process):
        assert ask(port, "GET", "/v2/health/live")[0] == 200 and ask(port, "GET", "/v2/models/digits/ready")[0] == 200
        assert json.loads(ask(port, "GET", "/v2/models/digits")[1])["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]
        plain = json.dumps({"id": "7", "inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}]})
        answer = json.loads(ask(port, "POST", "/v2/models/digits/infer", plain)[1])
        assert answer["id"] == "7" and np.allclose(np.reshape(answer["outputs"][0]["data"], answer["outputs"][0]["shape"]), expected, atol=1e-5)
        status, body, headers = ask(port, "POST", "/v2/models/digits/infer", *request_of(x))
        assert status == 200 and np.allclose(result_of(body, headers), expected, atol=1e-5)
        for path, bad, code in (("digits", b"{}", 400), ("digits", b"no JSON", 400), ("digits", plain.replace("[2, 3, 32, 32]", "[2, 3072]").encode(), 400), ("none", plain, 404)):
            status, body, _ = ask(port, "POST", f"/v2/models/{path}/infer", bad)
            assert status == code and json.loads(body)["error"]
        metrics = ask(port, "GET", "/metrics")[1].decode()
        assert 'infer_requests_total{model="digits"} 2.0' in metrics and 'infer_failures_total{model="digits"} 3.0' in metrics


def load(port, x, clients, seconds):
    """Requests per second and p99 in ms of clients that ask again as soon as they are answered."""
    body, headers = request_of(x)

    def client(_):
        connection, took = http.client.HTTPConnection("127.0.0.1", port, timeout=60), []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            connection.request("POST", "/v2/models/m/infer", body, headers)
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            took.append(time.perf_counter() - start)
        return took

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        took = sorted(sum(pool.map(client, range(clients)), []))
    return len(took) / seconds, took[int(0.99 * len(took))] * 1e3


@needs_extras
def test_the_optimized_model_serves_more_at_equal_load(optimize, tmp_path):
    """Text recognition of PP-OCR in two servers, stock and optimized, asked in turns by three clients."""
    import rapidocr_onnxruntime
    model = pathlib.Path(rapidocr_onnxruntime.__file__).parent / "models/ch_PP-OCRv4_rec_infer.onnx"
    assert optimize(model, "-o", tmp_path / "fast.onnx", "--input-shapes", "x:1,3,48,320", "--fast").code == 0
    x = np.random.default_rng(0).random((1, 3, 48, 320), dtype=np.float32)
    each = ["--sessions", 2, "--threads", 1]
    with server(f"m={model}", *each) as (stock, _), server(f"m={tmp_path / 'fast.onnx'}", "--plugin", PLUGIN, *each) as (ours, _):
        answers = [result_of(*ask(port, "POST", "/v2/models/m/infer", *request_of(x))[1:]) for port in (stock, ours)]
        close(answers[:1], answers[1:])
        rounds = [[load(port, x, 3, 1.5) for port in pair] for pair in ([stock, ours], [stock, ours], [stock, ours])]
    rates = [ours[0] / stock[0] for stock, ours in rounds]
    for name, side in (("stock", 0), ("optimized", 1)):
        print(f"{name}: {np.median([r[side][0] for r in rounds]):.1f} requests/s, p99 {np.median([r[side][1] for r in rounds]):.1f} ms")
    assert max(rates) > 1, rates  # the best of three: others use this machine as well


@needs_extras
def test_who_is_served_is_served_to_the_end(fast):
    """SIGTERM in the middle of a request: it is answered, and the server ends without an error."""
    x = np.zeros((64, 3, 32, 32), np.float32)
    with server(f"m={fast}", "--plugin", PLUGIN, "--threads", 1) as (port, process), concurrent.futures.ThreadPoolExecutor(1) as pool:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body, headers = request_of(x)
        connection.putrequest("POST", "/v2/models/m/infer")
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(body[:1000])
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.send(body[1000:])
        answer = pool.submit(connection.getresponse).result(30)
        assert answer.status == 200 and result_of(answer.read(), answer.headers).shape == (64, 10)
        assert process.wait(30) in (0, -signal.SIGTERM)
