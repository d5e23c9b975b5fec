"""What every case needs: models in packages, sessions, models in text."""
import importlib.util
import pathlib

import numpy as np
import onnx
import onnx.parser
import onnxruntime


def folder(package):
    return pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])


def session(path, plugin, threads=0):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    if plugin:
        options.register_custom_ops_library(str(plugin))
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def save(out, name, text):
    """A model in text, for what a client does between two networks."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 13]> {name} {text}')
    onnx.checker.check_model(model)
    onnx.save(model, out / f"{name}.onnx")
    return out / f"{name}.onnx"


def apart(ours, theirs):
    """The largest difference of two lists of scores; infinite where one has other shapes, or NaN in other places."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return float(np.nan_to_num(np.abs(a - b), nan=0, posinf=np.inf).max(initial=0))


def maps(*edges):
    return [word for edge in edges for word in ("--map", edge)]
