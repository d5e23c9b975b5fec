"""What every case needs: models in packages, sessions, models in text."""
import importlib.util
import pathlib

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


def maps(*edges):
    return [word for edge in edges for word in ("--map", edge)]
