"""Models behind a server: sessions that run one request each, and what is counted of them."""
import contextlib
import queue
import time

import numpy as np
import onnxruntime as ort
import prometheus_client

TYPES = {"BOOL": np.bool_, "UINT8": np.uint8, "INT8": np.int8, "UINT16": np.uint16, "INT16": np.int16, "UINT32": np.uint32, "INT32": np.int32,
         "UINT64": np.uint64, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}
OF_ONNX = {"tensor(float)": "FP32", "tensor(double)": "FP64", "tensor(float16)": "FP16", "tensor(bool)": "BOOL",
           **{f"tensor({name.lower()})": name for name in TYPES if "INT" in name}}
REQUESTS = prometheus_client.Counter("infer_requests", "Requests that were answered", ["model"])
FAILURES = prometheus_client.Counter("infer_failures", "Requests that were refused", ["model"])
SECONDS = prometheus_client.Histogram("infer_seconds", "Seconds from a request to its answer", ["model"],
                                      buckets=[0.001 * 2 ** i for i in range(14)])


class Refused(Exception):
    """What is wrong with a request."""


@contextlib.contextmanager
def counted(model):
    start = time.perf_counter()
    try:
        yield
    except Refused:
        FAILURES.labels(model.name).inc()
        raise
    REQUESTS.labels(model.name).inc()
    SECONDS.labels(model.name).observe(time.perf_counter() - start)


class Model:
    """So many sessions of one model; each runs one request at a time."""

    def __init__(self, name, path, plugin, sessions, threads):
        self.name, self._free = name, queue.SimpleQueue()
        for _ in range(sessions):
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            if plugin:
                options.register_custom_ops_library(plugin)  # the only line that optimized models add
            self._free.put(ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]))
        session = self._free.get()
        self.inputs, self.outputs = session.get_inputs(), session.get_outputs()
        self._free.put(session)

    def run(self, feeds, wanted):
        """The outputs of these names, or all: (name, array) each."""
        wanted = wanted or [output.name for output in self.outputs]
        session = self._free.get()
        try:
            return list(zip(wanted, session.run(wanted, feeds)))
        except Exception as error:  # of ONNX Runtime: shapes and types that the model does not take
            raise Refused(str(error)) from error
        finally:
            self._free.put(session)

    def described(self):
        def tensors(values):
            return [{"name": v.name, "datatype": OF_ONNX.get(v.type, v.type), "shape": [d if isinstance(d, int) else -1 for d in v.shape]} for v in values]
        return {"name": self.name, "versions": ["1"], "platform": "onnxruntime_onnx", "inputs": tensors(self.inputs), "outputs": tensors(self.outputs)}
