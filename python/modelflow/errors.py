"""What can go wrong, one class for each kind of error; the numbers are the exit codes of the command line."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Error(Exception):
    """Base of everything that ModelFlow itself raises. The message is one line."""

    code = 1


class InternalError(Error):
    """A fault of ModelFlow."""

    code = 1


class UsageError(Error, ValueError):
    """The caller asked for something that makes no sense."""

    code = 2


class InvalidInputError(Error, ValueError):
    """The model or a data file is unreadable or breaks the rules of ONNX."""

    code = 3


class UnsupportedError(Error):
    """Valid, but this build, runtime or machine cannot do it."""

    code = 4


class VerificationError(Error):
    """The optimized model differs from the original, whatever is left out."""

    code = 5


class ExportError(VerificationError):
    """A model that was exported from a module differs from it; `compared` says how far every output is off."""

    def __init__(self, message: str, compared: Sequence[Any] = ()):
        super().__init__(message)
        self.compared = tuple(compared)


class OutputError(Error, OSError):
    """The result could not be written; what was there before is intact."""

    code = 6


class LimitError(Error):
    """A limit of memory, size or time was reached."""

    code = 7


def error(code: int, message: str) -> Error:
    """The error of that exit code."""
    kinds = (InternalError, UsageError, InvalidInputError, UnsupportedError, VerificationError, OutputError, LimitError)
    return next((kind for kind in kinds if kind.code == code), InternalError)(message)
