"""Inputs that become constants, in the library's words."""
from __future__ import annotations

import pathlib
import zipfile
from typing import Any

import numpy as np

from . import errors


def text_of(name: str, value: Any, folder: pathlib.Path) -> str:
    """A number as "name=number"; an array as the name of an archive in `folder`."""
    if isinstance(value, (np.number, np.bool_)):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return f"{name}={value + 0}"  # True is 1
    array = np.asarray(value)
    if array.dtype.kind in "OSUmM":
        raise errors.UsageError(f"bind: '{name}' takes numbers, not {type(value).__name__}")
    file = folder / f"{len(list(folder.iterdir()))}.npz"
    with zipfile.ZipFile(file, "w") as archive, archive.open(f"{name}.npy", "w", force_zip64=True) as out:
        np.lib.format.write_array(out, array, allow_pickle=False)
    return str(file)
