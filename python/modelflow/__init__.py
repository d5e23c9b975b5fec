"""ModelFlow: makes ONNX models faster on CPU without changing how they are deployed.

    import modelflow
    result = modelflow.optimize("model.onnx", "fast.onnx")
    print(result.report)
    session = modelflow.session("fast.onnx")
"""
import importlib
from typing import Any

from . import errors
from ._bench import Bench, Side, bench
from ._inline import inline
from ._library import library as _library
from ._merge import Merged, audio_front_end, image_front_end, merge
from ._optimize import explain, optimize
from ._result import Result
from ._session import plug_in, plugin_path, session
from .errors import (Error, ExportError, InternalError, InvalidInputError, LimitError, OutputError, UnsupportedError, UsageError,
                     VerificationError)
from .report import Miss, Report

__all__ = ["Bench", "Error", "ExportError", "InternalError", "InvalidInputError", "LimitError", "Merged", "Miss", "OutputError", "Report", "Result", "Side",
           "UnsupportedError", "UsageError", "VerificationError", "audio_front_end", "bench", "errors", "explain", "image_front_end", "inline", "merge", "optimize", "plug_in", "plugin_path", "session"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _library().modelflow_version().decode()
    if name == "torch":  # imports torch, so not before it is asked for
        return importlib.import_module(f"{__name__}.torch")
    raise AttributeError(f"module 'modelflow' has no attribute '{name}'")
