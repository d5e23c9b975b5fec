"""Sessions of ONNX Runtime that run optimized models at their speed."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from ._folder import Folder
from ._kinds import kind_of
from ._library import beside_library
from ._result import Result

_CPU = "CPUExecutionProvider"


def plugin_path() -> str:
    """The plugin, for SessionOptions.register_custom_ops_library. UnsupportedError where it is not installed."""
    return str(beside_library("libmodelflow_ort.so"))


def session(model: Any, providers: Optional[Sequence[Any]] = None, options: Any = None, *, threads: Optional[int] = None) -> Any:
    """An onnxruntime.InferenceSession with the plugin registered.

    model: as for modelflow.optimize, or what that gave. providers: the CPU unless told otherwise; with another provider
    the plugin, which has CPU kernels only, is left out, and fused ops run as the standard ops that they stand for.
    options: a fresh onnxruntime.SessionOptions; the plugin is registered in it. threads: intra-op threads.
    Raises ImportError without onnxruntime, and what onnxruntime raises for models that it does not load."""
    import onnxruntime
    providers = [_CPU] if providers is None else list(providers)
    options = onnxruntime.SessionOptions() if options is None else options
    if threads:
        options.intra_op_num_threads = threads
    if all(provider == _CPU for provider in providers):
        options.register_custom_ops_library(plugin_path())
    model = model.model if isinstance(model, Result) else model
    folder = Folder()
    form = kind_of(model).arrive(model, folder.path)
    return onnxruntime.InferenceSession(form if isinstance(form, bytes) else str(form), options, providers=providers)
