"""One run of the optimizer: options by name, callbacks, and a result as bytes or as a file."""
from __future__ import annotations

import ctypes
import pathlib
import threading
from ctypes import c_size_t, c_void_p
from typing import Any, Callable, Optional

from . import errors
from ._bound import text_of
from ._caller import Caller
from ._folder import Folder
from ._kinds import Form
from ._library import NEXT_SAMPLE, PROGRESS, SCORE, checked, encoded, library, taken
from ._samples import Samples

CANCELLED = 130
_GIVEN_UP = -1


class Run:
    """Options under construction, then one call of run(). It holds what the callbacks need until the run is over."""

    def __init__(self) -> None:
        self._options = c_void_p(library().modelflow_options_create())
        if not self._options.value:
            raise errors.UsageError("$MODELFLOW_MAX_ISA names no instruction set, or there is no memory")
        self._alive = threading.Lock()
        self._caller = Caller(self._cancel)
        self._callbacks: list[Any] = []  # ctypes keeps none
        self._folder: Optional[Folder] = None  # until something is bound

    def set(self, key: str, value: Any) -> None:
        """An option in the library's words. UsageError for unknown keys and values."""
        checked("modelflow_options_set", self._options, key.encode(), encoded(str(value), key))

    def bind(self, name: str, value: Any) -> None:
        """An input that becomes a constant: a number, which fills it, or an array."""
        self._folder = self._folder or Folder()
        self.set("bind", text_of(name, value, self._folder.path))

    def set_samples(self, what: str, data: Any) -> None:
        """`calibration` or `inputs`."""
        samples = Samples(data, what)
        self._set(f"modelflow_options_set_{what}", NEXT_SAMPLE(
            lambda _, index, sample: self._caller.ask(lambda: samples.put(index, sample), _GIVEN_UP)))

    def set_progress(self, progress: Callable[[str, float], Any]) -> None:
        def tell(step: str, done: float) -> int:
            progress(step, done)
            return 0
        self._set("modelflow_options_set_progress", PROGRESS(
            lambda _, step, done: self._caller.ask(lambda: tell(step.decode(errors="replace"), done), _GIVEN_UP)))

    def set_score(self, score: Callable[[pathlib.Path], float]) -> None:
        """`score` gets the path of a candidate, which goes away behind it."""
        def answer(candidate: int, result: Any) -> int:
            folder = Folder()
            checked("modelflow_candidate_save", candidate, encoded(folder.path / "model.onnx", "candidate"))
            result[0] = float(score(folder.path / "model.onnx"))
            return 0
        self._set("modelflow_options_set_score", SCORE(
            lambda _, candidate, result: self._caller.ask(lambda: answer(candidate, result), _GIVEN_UP)))

    def run(self, model: Form, output: Optional[pathlib.Path], keep: Any) -> tuple[Form, str]:
        """The result, which lies at `output` where there is one, and its report as JSON. `keep` lives until the
        library is done, which after an exception may be later than the return."""
        def call() -> tuple[Form, str]:
            try:
                return _optimized(model, output, self._options)
            finally:
                self._free()
                keep  # noqa: B018
        return self._caller.run(call)

    def _set(self, function: str, callback: Any) -> None:
        self._callbacks.append(callback)
        checked(function, self._options, callback, None)

    def _cancel(self) -> None:
        with self._alive:
            library().modelflow_cancel(self._options)

    def _free(self) -> None:
        with self._alive:
            library().modelflow_options_free(self._options)
            self._options = c_void_p()

    def __del__(self) -> None:
        if getattr(self, "_options", c_void_p()).value:
            library().modelflow_options_free(self._options)


def _optimized(model: Form, output: Optional[pathlib.Path], options: c_void_p) -> tuple[Form, str]:
    report, message = c_void_p(), c_void_p()
    last = ctypes.byref(report), ctypes.byref(message)
    if isinstance(model, bytes):
        data, size = c_void_p(), c_size_t()
        code = library().modelflow_optimize_bytes(model, len(model), options, ctypes.byref(data), ctypes.byref(size), *last)
        done: Form = taken(data, size.value)
    else:
        assert output is not None
        code = library().modelflow_optimize_file(encoded(model, "model"), encoded(output, "output"), options, *last)
        done = output
    text, why = taken(report).decode(errors="replace"), taken(message).decode(errors="replace")
    if code == CANCELLED:
        raise errors.InternalError("the run ended without a reason")  # who cancels raises something else
    if code:
        raise errors.error(code, why)
    return done, text
