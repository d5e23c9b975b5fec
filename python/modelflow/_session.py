"""Sessions of ONNX Runtime that run optimized models at their speed."""
from __future__ import annotations

import functools
import os
from typing import Any, Iterable, Optional, Sequence, Union

from ._folder import Folder
from ._kinds import kind_of, unwrapped
from ._library import beside_library
from ._names import names

_CPU = "CPUExecutionProvider"


def plugin_path() -> str:
    """The plugin, for SessionOptions.register_custom_ops_library. UnsupportedError where it is not installed."""
    return str(beside_library("libmodelflow_ort.so"))


def session(model: Any, providers: Optional[Sequence[Any]] = None, options: Any = None, *, threads: Optional[int] = None,
            custom_ops: Iterable[Union[str, os.PathLike[str]]] = ()) -> Any:
    """An onnxruntime.InferenceSession with the plugin registered.

    model: as for modelflow.optimize. providers: the CPU unless told otherwise; with another provider
    the plugin is left out, and fused ops run as the standard ops that they stand for: nothing says whether a model was
    planned for that provider. For one that was, register plugin_path() in `options` (docs/gpu.md). options: an
    onnxruntime.SessionOptions; on the CPU the plugin is registered in it. threads: intra-op threads.
    custom_ops: libraries of custom operators that the model needs, as for modelflow.optimize.
    Raises ImportError without onnxruntime, and what onnxruntime raises for models that it does not load."""
    import onnxruntime
    providers = [_CPU] if providers is None else list(providers)
    options = onnxruntime.SessionOptions() if options is None else options
    if threads:
        options.intra_op_num_threads = threads
    if _only_cpu(providers):
        _register(options, plugin_path())
    for library in names("custom_ops", custom_ops):
        options.register_custom_ops_library(library)
    folder, inner = Folder(), unwrapped(model)
    form = kind_of(inner).arrive(inner, folder.path)
    return onnxruntime.InferenceSession(form if isinstance(form, bytes) else str(form), options, providers=providers)


def plug_in() -> None:
    """From now on every onnxruntime.InferenceSession of this process has the plugin registered, unless it runs on another
    provider than the CPU (docs/gpu.md): for packages that make their sessions themselves. Models that were not optimized run as before.
    Call it once, at any time; sessions that are there already do not change."""
    import onnxruntime
    made = onnxruntime.InferenceSession.__init__
    if hasattr(made, "_modelflow"):
        return
    plugin = plugin_path()

    @functools.wraps(made)
    def with_plugin(self: Any, path_or_bytes: Any, sess_options: Any = None, providers: Any = None, *rest: Any, **more: Any) -> None:
        if _only_cpu(providers or onnxruntime.get_available_providers()):
            sess_options = onnxruntime.SessionOptions() if sess_options is None else sess_options
            _register(sess_options, plugin)
        made(self, path_or_bytes, sess_options, providers, *rest, **more)

    with_plugin._modelflow = True  # type: ignore[attr-defined]
    onnxruntime.InferenceSession.__init__ = with_plugin


def _register(options: Any, plugin: Any) -> None:
    """In a session of the CPU, which the plugin cannot tell from others: where there is a GPU and no library of kernels for
    it, it would register nothing."""
    try:
        options.get_session_config_entry("modelflow.kernels")
    except RuntimeError:  # nothing is said of it
        options.add_session_config_entry("modelflow.kernels", "on")
    options.register_custom_ops_library(plugin)


def _only_cpu(providers: Sequence[Any]) -> bool:
    """Azure's computes elsewhere what only it can, and takes no ops away."""
    return {provider if isinstance(provider, str) else provider[0] for provider in providers} <= {_CPU, "AzureExecutionProvider"}
