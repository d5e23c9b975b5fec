"""Serves ONNX models over HTTP, in the protocol that Triton and KServe speak: python server.py NAME=fast.onnx ... [options]

    curl localhost:8000/v2/models/NAME                      its inputs and outputs
    curl localhost:8000/v2/models/NAME/infer -d '{"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]}'
    curl localhost:8000/v2/health/ready
    curl localhost:8000/metrics                             for Prometheus: requests, failures, seconds

Tensors travel as JSON, or as bytes behind it (the protocol's binary extension); with `--grpc-port` over gRPC as well. So many sessions as
`--sessions` says run at the same time, each with `--threads` threads; `modelflow-bench --streams best` says how many of each serve most. On
SIGTERM the server takes no more requests, answers those that it has, and ends. Needs onnxruntime, numpy, starlette, uvicorn and prometheus_client."""
import argparse
import asyncio
import concurrent.futures
import contextlib
import json
import signal

import numpy as np
import prometheus_client
import uvicorn
from models import NAMES, TYPES, Model, Refused, counted
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

LENGTH = "Inference-Header-Content-Length"


def tensors_of(body, length):
    """A request's header, and its inputs by name."""
    head = json.loads(body[:length] if length else body)
    rest, feeds = memoryview(body)[length or len(body):], {}
    for item in head["inputs"]:
        kind = TYPES[item["datatype"]]
        size = item.get("parameters", {}).get("binary_data_size")
        if size is None:
            flat = np.asarray(item["data"], kind)
        else:
            flat, rest = np.frombuffer(rest[:size], kind), rest[size:]
        feeds[item["name"]] = flat.reshape(item["shape"])
    return head, feeds


def wanted_of(head):
    """Whether each output that a request names comes as bytes, and whether the others do."""
    binary = head.get("parameters", {}).get("binary_data_output", False)
    return {item["name"]: item.get("parameters", {}).get("binary_data", binary) for item in head.get("outputs", [])}, binary


def answer_to(model, head, found, as_bytes):
    """The outputs, as bytes where `as_bytes` says so by name."""
    outputs, pieces = [], []
    for name, value in found:
        item = {"name": name, "datatype": NAMES[value.dtype], "shape": list(value.shape)}
        if as_bytes(name):
            pieces.append(value.tobytes())
            item["parameters"] = {"binary_data_size": len(pieces[-1])}
        else:
            item["data"] = value.ravel().tolist()
        outputs.append(item)
    text = json.dumps({"model_name": model.name, "model_version": "1", **({"id": head["id"]} if "id" in head else {}), "outputs": outputs}).encode()
    if not pieces:
        return Response(text, media_type="application/json")
    return Response(b"".join([text, *pieces]), media_type="application/octet-stream", headers={LENGTH: str(len(text))})


def infer(model, body, length):
    with counted(model):
        try:
            head, feeds = tensors_of(body, int(length))
            wanted, binary = wanted_of(head)
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
            raise Refused(f"no request for a model: {type(error).__name__}: {error}") from error
        return answer_to(model, head, model.run(feeds, list(wanted)), lambda name: wanted.get(name, binary))


def application(models, most_at_once):
    pool = concurrent.futures.ThreadPoolExecutor(most_at_once)

    async def run(request):
        model = models.get(request.path_params["name"])
        if model is None:
            return JSONResponse({"error": f"there is no model '{request.path_params['name']}'"}, 404)
        length = request.headers.get(LENGTH, 0)
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, infer, model, await request.body(), length)
        except Refused as error:
            return JSONResponse({"error": str(error)}, 400)

    async def describe(request):
        model = models.get(request.path_params["name"])
        return JSONResponse(model.described()) if model else JSONResponse({"error": "there is no such model"}, 404)

    async def well(request):
        return JSONResponse({})

    async def metrics(request):
        return Response(prometheus_client.generate_latest(), media_type=prometheus_client.CONTENT_TYPE_LATEST)

    named = "/v2/models/{name}"
    health = [Route(path, well) for path in ("/v2/health/live", "/v2/health/ready", named + "/ready")]
    return Starlette(routes=[*health, Route(named, describe), Route(named + "/infer", run, methods=["POST"]), Route("/metrics", metrics)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--plugin", help="libmodelflow_ort.so")
    parser.add_argument("--sessions", type=int, default=1, help="of each model (default: 1)")
    parser.add_argument("--threads", type=int, default=0, help="of each session (default: all cores)")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--grpc-port", type=int, help="also over gRPC (needs grpcio and tritonclient)")
    parser.add_argument("--host", default="127.0.0.1")
    given = parser.parse_args()
    models = {}
    for item in given.models:
        name, _, path = item.partition("=")
        models[name] = Model(name, path, given.plugin, given.sessions, given.threads)
    with over_grpc(models, given) if given.grpc_port else contextlib.nullcontext():
        uvicorn.run(application(models, given.sessions * len(models)), host=given.host, port=given.port, log_level="warning",
                    timeout_graceful_shutdown=30)


@contextlib.contextmanager
def over_grpc(models, given):
    import over_grpc as front
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # uvicorn hears it; when it is done it sends it to this process again
    server = front.serve(models, f"{given.host}:{given.grpc_port}", given.sessions * len(models))
    try:
        yield
    finally:
        server.stop(30).wait()


if __name__ == "__main__":
    main()
