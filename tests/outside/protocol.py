"""Requests in the protocol that Triton and KServe speak over HTTP."""
import http.client
import json
import socket

import numpy as np


def free_port():
    with socket.socket() as any_of_them:
        any_of_them.bind(("127.0.0.1", 0))
        return any_of_them.getsockname()[1]


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def request_of(x, name="x"):
    """A request whose input lies as bytes behind the JSON."""
    head = json.dumps({"inputs": [{"name": name, "shape": list(x.shape), "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


def result_of(body, headers):
    length = int(headers["Inference-Header-Content-Length"])
    item, = json.loads(body[:length])["outputs"]
    return np.frombuffer(body[length:], np.float32).reshape(item["shape"])
