"""One run of the optimizer: options by name, callbacks, and a result as bytes or as a file."""
from __future__ import annotations

import ctypes
import os
import pathlib
import threading
from ctypes import c_size_t, c_void_p
from typing import Any, Callable, Mapping, Optional, Sequence, TypeVar

import numpy as np

from . import errors
from ._bound import text_of
from ._caller import Caller
from ._folder import Folder
from ._kinds import Form
from ._library import NEXT_SAMPLE, PROGRESS, SCORE, checked, encoded, library, taken
from ._names import names
from ._samples import Samples, shape_text

_GIVEN_UP = -1
_T = TypeVar("_T")


class Run:
    """Options under construction, then one call of run() or call(). It holds what the callbacks need until that is over."""

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

    def set_given(self, **values: Any) -> None:
        """Options by name, but for those that are None."""
        for key, value in values.items():
            if value is not None:
                self.set(key, value)

    def set_flags(self, **values: Any) -> None:
        for key, value in values.items():
            if not isinstance(value, (bool, int, np.bool_)):
                raise errors.UsageError(f"{key}: expected True or False, found {value!r}")
            self.set(key, int(value))

    def set_each(self, key: str, values: Any, what: Optional[str] = None) -> None:
        """An option that is given again and again; `what`: what the caller calls it."""
        for value in names(what or key, values):
            self.set(key, value)

    def set_shapes(self, shapes: Optional[Mapping[str, Sequence[int]]]) -> None:
        for name, shape in (shapes or {}).items():
            self.set("input_shape", shape_text(name, shape))

    def bind(self, name: str, value: Any) -> None:
        """An input that becomes a constant: a number, which fills it, or an array."""
        self._folder = self._folder or Folder()
        self.set("bind", text_of(name, value, self._folder.path))

    def set_data(self, what: str, data: Any) -> None:
        """`calibration` or `inputs`: a path, samples, or None."""
        if isinstance(data, (str, os.PathLike)):
            self.set(what, os.fspath(data))
        elif data is not None:
            self._set_samples(what, Samples(data, what))

    def _set_samples(self, what: str, samples: Samples) -> None:
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
        """The result, which lies at `output` where there is one, and its report as JSON."""
        return self.call(lambda options: _optimized(model, output, options), keep)

    def call(self, work: Callable[[c_void_p], _T], keep: Any) -> _T:
        """What `work` gives or raises, called with these options on a thread of its own. `keep` lives until the library
        is done, which after an exception may be later than the return."""
        def call() -> _T:
            try:
                return work(self._options)
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
    report = c_void_p()
    if isinstance(model, bytes):
        data, size = c_void_p(), c_size_t()
        checked("modelflow_optimize_bytes", model, len(model), options, ctypes.byref(data), ctypes.byref(size), ctypes.byref(report))
        done: Form = taken(data, size.value)
    else:
        assert output is not None
        checked("modelflow_optimize_file", encoded(model, "model"), encoded(output, "output"), options, ctypes.byref(report))
        done = output
    return done, taken(report).decode(errors="replace")
