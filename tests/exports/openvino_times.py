"""OpenVINO beside stock ONNX Runtime: openvino_times.py MODEL FEEDS.npz THREADS prints how many times faster it is (float32, latency).

Blocks of runs of either, in turns, in one process; the median of the quotients of neighbouring blocks. Every engine gets what is best for it:
OpenVINO the extents of the inputs as they are, one stream; ONNX Runtime all its optimizations."""
import statistics
import sys
import time

import numpy as np
import onnxruntime
import openvino

ROUNDS, BLOCK_SECONDS, LEAST_RUNS = 7, 0.3, 3


def stock(model, feeds, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def peer(model, feeds, threads):
    core = openvino.Core()
    graph = core.read_model(model)
    graph.reshape({name: list(value.shape) for name, value in feeds.items()})
    settings = {"NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if threads:
        settings["INFERENCE_NUM_THREADS"] = threads
    request = core.compile_model(graph, "CPU", settings).create_infer_request()
    return lambda: request.infer(feeds, share_inputs=True)


def block(run):
    """Median seconds of the runs of one block."""
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < BLOCK_SECONDS or len(times) < LEAST_RUNS:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main():
    model, feeds, threads = sys.argv[1], dict(np.load(sys.argv[2])), int(sys.argv[3])
    sides = stock(model, feeds, threads), peer(model, feeds, threads)
    for run in sides:
        block(run)
    pairs = [[block(run) for run in sides] for _ in range(ROUNDS)]
    print(statistics.median(ours / theirs for ours, theirs in pairs))


if __name__ == "__main__":
    main()
