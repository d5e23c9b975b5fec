"""Models under load: many sessions at once, and the example server against the stock model."""
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import re
import signal
import subprocess
import time

import numpy as np
import pytest
from conftest import EXTRAS, PLUGIN, close, needs_extras, run, session
from protocol import ask, free_port, request_of, result_of

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


ASK_OVER_GRPC = """
import sys
import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException
client = triton.InferenceServerClient(f"127.0.0.1:{sys.argv[1]}")
assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("digits") and not client.is_model_ready("none")
known = client.get_model_metadata("digits")
said, = known.inputs
assert (said.name, said.datatype, list(said.shape)) == ("x", "FP32", [-1, 3, 32, 32])
x = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
def infer(model, x):
    tensor = triton.InferInput("x", x.shape, "FP32")
    tensor.set_data_from_numpy(x)
    return client.infer(model, [tensor], request_id="7")
answer = infer("digits", x)
whole = answer.as_numpy(known.outputs[0].name)
assert answer.get_response().id == "7" and whole.shape == (2, 10)
plain = triton.service_pb2.ModelInferRequest(model_name="digits")  # numbers in place of bytes
item = plain.inputs.add(name="x", datatype="FP32", shape=x.shape)
item.contents.fp32_contents.extend(x.ravel().tolist())
reply = client._client_stub.ModelInfer(plain)
assert np.array_equal(np.frombuffer(reply.raw_output_contents[0], np.float32).reshape(2, 10), whole)
for model, bad, code in (("digits", x[:, :2], "INVALID_ARGUMENT"), ("none", x, "NOT_FOUND")):
    try:
        infer(model, bad)
    except InferenceServerException as error:
        assert code in str(error.status()), error.status()
    else:
        sys.exit(f"{model} took {bad.shape}")
"""


@needs_extras
def test_the_example_server(cnn, fast):
    x = np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)
    expected, = session(cnn).run(None, {"x": x})
    line = re.search(r"^python examples/serve/server.py (.*)$", (ROOT / "docs/deploy.md").read_text(), re.M)[1]
    known = {"digits=fast.onnx": f"digits={fast}", "build/libmodelflow_ort.so": PLUGIN}
    over_grpc = free_port()
    with server(*[known.get(word, word) for word in line.split()], "--grpc-port", over_grpc) as (port, process):
        assert ask(port, "GET", "/v2/health/live")[0] == 200 and ask(port, "GET", "/v2/models/digits/ready")[0] == 200
        assert json.loads(ask(port, "GET", "/v2/models/digits")[1])["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 3, 32, 32]}]
        plain = json.dumps({"id": "7", "inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32", "data": x.ravel().tolist()}]})
        answer = json.loads(ask(port, "POST", "/v2/models/digits/infer", plain)[1])
        assert answer["id"] == "7" and np.allclose(np.reshape(answer["outputs"][0]["data"], answer["outputs"][0]["shape"]), expected, atol=1e-5)
        status, body, headers = ask(port, "POST", "/v2/models/digits/infer", *request_of(x))
        assert status == 200 and np.allclose(result_of(body, headers), expected, atol=1e-5)
        assert ask(port, "POST", "/v2/models/none/infer", plain)[0] == 404
        refused = [b"{}", b"no JSON", b"[" * 100000, plain.replace("[2, 3, 32, 32]", "[2, 3072]"), plain.replace('"FP32"', '"FP32", "parameters": null'),
                   plain.replace("{", '{"parameters": null, ', 1), plain.replace("{", '{"outputs": [{"name": "y", "parameters": null}], ', 1),
                   json.dumps({"inputs": [{"name": "x", "shape": [1], "datatype": "UINT8", "data": [300]}]})]
        for bad in refused:
            status, body, _ = ask(port, "POST", "/v2/models/digits/infer", bad)
            assert status == 400 and json.loads(body)["error"], bad[:80]
        metrics = ask(port, "GET", "/metrics")[1].decode()
        assert 'infer_requests_total{model="digits"} 2.0' in metrics and f'infer_failures_total{{model="digits"}} {len(refused)}.0' in metrics
        done = run(EXTRAS, "-c", ASK_OVER_GRPC, over_grpc)
        assert done.code == 0, done.err
        assert 'infer_requests_total{model="digits"} 4.0' in ask(port, "GET", "/metrics")[1].decode()
    assert process.returncode == 0


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
