"""Finds libmodelflow.so, the plugin, the commands and ONNX Runtime, and says what the C functions take."""
from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p
from typing import Any, Optional

from . import errors

NEXT_SAMPLE = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)
PROGRESS = CFUNCTYPE(c_int, c_void_p, c_char_p, c_double)
SCORE = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_double))

# Strings that the caller frees are c_void_p: as c_char_p they would be copied and lost.
_ERROR = POINTER(c_void_p)
_SIGNATURES = {
    "modelflow_version": (c_char_p, []),
    "modelflow_free": (None, [c_void_p]),
    "modelflow_cancel": (None, [c_void_p]),
    "modelflow_options_create": (c_void_p, []),
    "modelflow_options_free": (None, [c_void_p]),
    "modelflow_options_set": (c_int, [c_void_p, c_char_p, c_char_p, _ERROR]),
    "modelflow_options_set_calibration": (c_int, [c_void_p, NEXT_SAMPLE, c_void_p, _ERROR]),
    "modelflow_options_set_inputs": (c_int, [c_void_p, NEXT_SAMPLE, c_void_p, _ERROR]),
    "modelflow_options_set_progress": (c_int, [c_void_p, PROGRESS, c_void_p, _ERROR]),
    "modelflow_options_set_score": (c_int, [c_void_p, SCORE, c_void_p, _ERROR]),
    "modelflow_sample_set": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_int64), c_size_t, c_void_p, _ERROR]),
    "modelflow_sample_set_strings": (c_int, [c_void_p, c_char_p, POINTER(c_int64), c_size_t, POINTER(c_char_p), _ERROR]),
    "modelflow_sample_input": (c_char_p, [c_void_p, c_size_t]),
    "modelflow_candidate_save": (c_int, [c_void_p, c_char_p, _ERROR]),
    "modelflow_optimize_file": (c_int, [c_char_p, c_char_p, c_void_p, _ERROR, _ERROR]),
    "modelflow_merge_files": (c_int, [POINTER(c_char_p), POINTER(c_char_p), c_size_t, POINTER(c_char_p), c_size_t, c_char_p, c_void_p,
                                      _ERROR, _ERROR]),
    "modelflow_inline_file": (c_int, [c_char_p, c_char_p, c_void_p, _ERROR]),
    "modelflow_audio_front_end": (c_int, [c_char_p, c_char_p, _ERROR]),
    "modelflow_image_front_end": (c_int, [c_char_p, c_char_p, _ERROR]),
    "modelflow_report_page": (c_int, [c_char_p, POINTER(c_void_p), _ERROR]),
    "modelflow_optimize_bytes": (c_int, [c_char_p, c_size_t, c_void_p, _ERROR, POINTER(c_size_t), _ERROR, _ERROR]),
}


@functools.lru_cache(maxsize=None)
def library_file() -> pathlib.Path:
    """$MODELFLOW_LIBRARY, else the one of this package, else the one that this checkout built."""
    chosen = os.environ.get("MODELFLOW_LIBRARY")
    here = pathlib.Path(__file__).resolve().parent
    places = [pathlib.Path(chosen)] if chosen else [here / "lib/libmodelflow.so.0", here.parents[1] / "build/libmodelflow.so.0"]
    for place in places:
        if place.exists():
            return place.resolve()
    raise ImportError("libmodelflow.so was not found in " + " or ".join(str(p) for p in places) + "; set MODELFLOW_LIBRARY")


def beside_library(name: str) -> pathlib.Path:
    """A command or the plugin: beside the library or in the neighbouring folder for programs."""
    folder = library_file().parent
    for place in (folder / name, folder.parent / "bin" / name):
        if place.exists():
            return place
    raise errors.UnsupportedError(f"'{name}' is not beside '{library_file()}'")


def runtime_folder() -> Optional[str]:
    """Where the installed onnxruntime package has its library; it is not imported."""
    spec = importlib.util.find_spec("onnxruntime")
    for place in spec.submodule_search_locations or [] if spec else []:
        folder = pathlib.Path(place) / "capi"
        if any(folder.glob("libonnxruntime.so*")):
            return str(folder)
    return None


def environment() -> dict[str, str]:
    """For the commands: the environment, with the onnxruntime package that this Python has unless another is chosen."""
    folder = runtime_folder()
    return {**({"MODELFLOW_ONNXRUNTIME": folder} if folder else {}), **os.environ}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library, loaded once. Sets $MODELFLOW_ONNXRUNTIME to the installed onnxruntime package where it is not set."""
    loaded = ctypes.CDLL(str(library_file()))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    folder = runtime_folder()
    if folder:
        os.environ.setdefault("MODELFLOW_ONNXRUNTIME", folder)
    return loaded


def taken(pointer: c_void_p, size: Optional[int] = None) -> bytes:
    """The bytes behind a pointer that the library gave away (up to a zero, or so many), which is freed."""
    if not pointer.value:
        return b""
    try:
        return ctypes.string_at(pointer.value) if size is None else ctypes.string_at(pointer.value, size)
    finally:
        library().modelflow_free(pointer)


def encoded(value: Any, what: str) -> bytes:
    """A text or the name of a file as the library takes it. UsageError for what it would cut or cannot spell."""
    text = os.fspath(value)
    try:
        data = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        data = b"\0"
    if b"\0" in data:
        raise errors.UsageError(f"{what}: {text!r} holds what no name may hold")
    return data


def checked(function_name: str, *arguments: object) -> None:
    """Calls a function whose last argument is the error message; raises what it says."""
    message = c_void_p()
    code = getattr(library(), function_name)(*arguments, ctypes.byref(message))
    text = taken(message).decode(errors="replace")
    if code:
        raise errors.error(code, text)


def page(report: str) -> str:
    """The page for browsers of a report in JSON."""
    text = c_void_p()
    checked("modelflow_report_page", report.encode(), ctypes.byref(text))
    return taken(text).decode()
