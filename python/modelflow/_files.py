"""Models of any kind as files, and back."""
from __future__ import annotations

import pathlib
from typing import Any

from ._kinds import MOST_BYTES, kind_of


def file_of(model: Any, folder: pathlib.Path) -> str:
    """Where it lies: in `folder`, which is made, unless it came as a path."""
    folder.mkdir()
    form = kind_of(model).arrive(model, folder)
    if isinstance(form, bytes):
        (folder / "model.onnx").write_bytes(form)
        form = folder / "model.onnx"
    return str(form)


def as_it_came(done: pathlib.Path, first: Any) -> Any:
    """A file as a model of the kind of `first`; what was bytes is bytes again where they hold all of it."""
    whole = done.stat().st_size <= MOST_BYTES and not pathlib.Path(f"{done}.data").exists()
    return done.read_bytes() if whole and isinstance(first, (bytes, bytearray, memoryview)) else kind_of(first).leave(done, first)
