"""The console scripts: the commands of this package, with the onnxruntime package that this Python has."""
from __future__ import annotations

import os
import sys

from ._library import beside_library, environment


def _become(name: str) -> None:
    os.execve(beside_library(name), [name, *sys.argv[1:]], environment())


def optimize() -> None:
    """`optimize model.onnx -o fast.onnx`"""
    _become("optimize")


def bench() -> None:
    """`modelflow-bench fast.onnx --vs model.onnx`"""
    _become("modelflow-bench")
