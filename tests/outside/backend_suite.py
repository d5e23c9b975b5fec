"""The backend tests of the onnx package through `optimize` at every level, with and without the plugin.

    python tests/outside/backend_suite.py --build build                  everything (1884 node tests, 149 model tests)
    python tests/outside/backend_suite.py --build build --every 12       a sample: every 12th test

A test counts only where stock ONNX Runtime passes the original. Then, at each level, `optimize` must exit with 0, the
result must pass the checker, and it must give the expected outputs with and without the plugin. Where stock ONNX Runtime
cannot run the original, `optimize` must still not crash (exit codes 0, 3 or 4). Where rounding of sums decides what comes
out, other numbers than the expected ones are counted, and are no finding.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

LEVELS = ("O0", "O1", "O2")


def node_cases():
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(op_type=None):
        yield case.name, case.model, case.data_sets, case.rtol, case.atol


def read_pb(path, value):
    if value.type.HasField("sequence_type"):
        proto = onnx.SequenceProto()
        proto.ParseFromString(path.read_bytes())
        return numpy_helper.to_list(proto)
    if value.type.HasField("optional_type"):
        proto = onnx.OptionalProto()
        proto.ParseFromString(path.read_bytes())
        return numpy_helper.to_optional(proto)
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(proto)


def folder_cases(data):
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for folder in sorted((data / kind).iterdir()):
            if not (folder / "model.onnx").exists():
                continue
            model = onnx.load(folder / "model.onnx")
            sets = []
            for one in sorted(folder.glob("test_data_set_*")):
                values = [[read_pb(one / f"{side}_{i}.pb", value) for i, value in enumerate(formals)
                           if (one / f"{side}_{i}.pb").exists()]
                          for side, formals in (("input", model.graph.input), ("output", model.graph.output))]
                sets.append(tuple(values))
            yield folder.name, model, sets, 1e-3, 1e-7


def light_cases(data):
    for path in sorted((data / "light").glob("light_*.onnx")):
        model = onnx.load(path)
        initializers = {t.name for t in model.graph.initializer}
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal([d.dim_value or 1 for d in v.type.tensor_type.shape.dim]).astype(np.float32)
                  for v in model.graph.input if v.name not in initializers]
        yield path.stem, model, [(inputs, None)], 2e-3, 1e-5  # compared with stock ORT: inputs are ours


def all_cases():
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    yield from node_cases()
    yield from folder_cases(data)
    yield from light_cases(data)


def plain(value):
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiubOSU"


def run_model(path, inputs, plugin=None):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if plugin:
        options.register_custom_ops_library(plugin)
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {}
    for formal, value in zip(session.get_inputs(), inputs):
        if value is not None:
            feeds[formal.name] = value.astype(object) if isinstance(value, np.ndarray) and value.dtype.kind in "SU" else value
    return session.run(None, feeds)


def same(expected, actual, rtol, atol):
    if len(expected) != len(actual):
        return False
    for a, b in zip(expected, actual):
        if isinstance(a, list):
            if not isinstance(b, list) or not same(a, b, rtol, atol):
                return False
            continue
        if a is None or b is None:
            if a is not b:
                return False
            continue
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return False
        if a.dtype.kind in "fc" and not np.allclose(a.astype(np.complex128), b.astype(np.complex128), rtol, atol, equal_nan=True):
            return False
        if a.dtype.kind not in "fcV" and not np.array_equal(a.astype(str) if a.dtype.kind in "OSU" else a,
                                                             b.astype(str) if b.dtype.kind in "OSU" else b):
            return False
    return True


def attempt(path, sets, rtol, atol, plugin=None):
    """None when every data set passes, else what went wrong."""
    try:
        for inputs, expected in sets:
            got = run_model(path, inputs, plugin)
            if expected is not None and not same(expected, got, rtol, atol):
                return "differs"
    except Exception as error:  # whatever ORT throws is a finding, not our crash
        return str(error).splitlines()[0][:160]
    return None


def rounding_decides(path, sets, rtol, atol):
    """Whether filters that are off by what rounding does to a sum of so many products, sqrt(n) half digits, miss the expected
    outputs in stock ONNX Runtime, too. (The softmax of light_squeezenet sees logits of 7e9.)"""
    model, draw = onnx.load(path), np.random.default_rng(0)
    for weights in model.graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype == np.float32 and values.ndim > 1 and values.size:
            rounding = np.sqrt(values.size / values.shape[0]) * 2.0**-24
            off = 1 + rounding * draw.uniform(-1, 1, values.shape[:1] + (1,) * (values.ndim - 1))
            weights.CopyFrom(numpy_helper.from_array((values * off).astype(np.float32), weights.name))
    onnx.save(model, path + ".off")
    return attempt(path + ".off", sets, rtol, atol) == "differs"


def check(name, model, sets, rtol, atol, build, folder):
    source, result = str(folder / "model.onnx"), {"name": name, "findings": [], "open": 0}
    pathlib.Path(source).write_bytes(model.SerializeToString())
    result["stock"] = attempt(source, sets, rtol, atol)
    if sets and sets[0][1] is None and result["stock"] is None:
        sets = [(inputs, run_model(source, inputs)) for inputs, _ in sets]
    for level in LEVELS:
        out = str(folder / "out.onnx")
        done = subprocess.run([build / "optimize", source, "-o", out, "--level", level, "--no-measure", "--quiet"],
                              capture_output=True, text=True, timeout=300)
        allowed = (0,) if result["stock"] is None else (0, 3, 4)
        if done.returncode not in allowed:
            result["findings"].append([level, "optimize", done.returncode, done.stderr.strip()[-200:]])
        if done.returncode != 0 or result["stock"] is not None:
            continue
        try:
            onnx.checker.check_model(out)
        except Exception as error:
            try:
                onnx.checker.check_model(source)
                result["findings"].append([level, "checker", 0, str(error).splitlines()[0][:200]])
            except Exception:
                pass  # the original does not pass either
        for side, plugin in (("plain", None), ("plugin", str(build / "libmodelflow_ort.so"))):
            if wrong := attempt(out, sets, rtol, atol, plugin):
                if wrong == "differs" and rounding_decides(out, sets, rtol, atol):
                    result["open"] += 1
                    continue
                result["findings"].append([level, side, 0, wrong])
    return result


def worker(arguments):
    """Prints one line when a test starts and one with its result, so that a crash has a name."""
    with tempfile.TemporaryDirectory() as tmp:
        for index, (name, *rest) in enumerate(all_cases()):
            if index < arguments.start or index % arguments.every or (arguments.only and arguments.only not in name):
                continue
            if (index // arguments.every) % arguments.shards != arguments.shard:
                continue
            print(json.dumps({"index": index, "name": name}), flush=True)
            try:
                result = check(name, *rest, pathlib.Path(arguments.build).resolve(), pathlib.Path(tmp))
            except subprocess.TimeoutExpired:
                result = {"name": name, "stock": None, "findings": [["?", "optimize", 124, "timed out"]]}
            print(json.dumps(result), flush=True)


def start_worker(arguments, shard, first):
    command = [sys.executable, __file__, "--worker", "--build", arguments.build, "--every", str(arguments.every), "--only", arguments.only,
               "--shards", str(arguments.shards), "--shard", str(shard), "--start", str(first)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def drain(arguments, shard, results):
    """Runs one shard; when a worker dies, the test it was at is a finding and the next worker goes on behind it."""
    first = 0
    while True:
        process, current = start_worker(arguments, shard, first), None
        for line in process.stdout:
            item = json.loads(line)
            if "index" in item:
                current = item
            else:
                results.append(item)
                current = None
        if process.wait() == 0:
            return
        if current is None:
            raise SystemExit(f"a worker died with {process.returncode} before its first test")
        results.append({"name": current["name"], "stock": "?", "findings": [["?", "crash", process.returncode, "the runtime process died"]]})
        first = current["index"] + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--shards", type=int, default=os.cpu_count())
    parser.add_argument("--shard", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--worker", action="store_true")
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments)
    import threading

    results = []
    threads = [threading.Thread(target=drain, args=(arguments, shard, results)) for shard in range(arguments.shards)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    bad = [r for r in results if r["findings"]]
    for result in sorted(bad, key=lambda r: r["name"]):
        for finding in result["findings"]:
            print(f"{result['name']}: {finding[0]} {finding[1]} ({finding[2]}): {finding[3]}")
    kinds = collections.Counter(f[1] for r in bad for f in r["findings"])
    print(f"{len(results)} tests, {sum(r['stock'] is None for r in results)} of them run by stock ONNX Runtime; "
          f"{len(bad)} with findings {dict(kinds)}, {sum(r.get('open', 0) for r in results)} results left open, which rounding decides")
    return 1 if bad or not results else 0


if __name__ == "__main__":
    sys.exit(main())
