"""ModelFlow: makes ONNX models faster on CPU without changing how they are deployed.

    import modelflow
    result = modelflow.optimize("model.onnx", "fast.onnx")
    print(result.report)
    session = modelflow.session("fast.onnx")
"""
from . import errors
from ._bench import Bench, Side, bench
from ._library import library as _library
from ._optimize import Result, explain, optimize
from ._session import plugin_path, session
from .errors import (Error, InternalError, InvalidInputError, LimitError, OutputError, UnsupportedError, UsageError,
                     VerificationError)
from .report import Miss, Report

__all__ = ["Bench", "Error", "InternalError", "InvalidInputError", "LimitError", "Miss", "OutputError", "Report", "Result", "Side",
           "UnsupportedError", "UsageError", "VerificationError", "bench", "errors", "explain", "optimize", "plugin_path", "session"]


def __getattr__(name: str) -> str:
    if name == "__version__":
        return _library().modelflow_version().decode()
    raise AttributeError(f"module 'modelflow' has no attribute '{name}'")
