"""Arrays for the library and the commands in a file of numpy's kind .npz."""
from __future__ import annotations

import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import errors
from ._samples import array


def numbers(what: str, name: str, value: Any) -> np.ndarray:
    """The value of input `name` as an array. UsageError, beginning with `what`, for what is not in a type of numpy's own."""
    found = array(value)
    if found.dtype.kind not in "biufcUS":
        kind = type(value).__name__ if found.dtype.kind == "O" else found.dtype.name
        raise errors.UsageError(f"{what}: '{name}' takes numbers or texts in a type that numpy has itself, not {kind}")
    return found


def write(path: pathlib.Path, what: str, arrays: Mapping[str, Any]) -> None:
    """As numpy.savez, which takes some names for its own arguments. UsageError as of numbers()."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, numbers(what, name, value), allow_pickle=False)
