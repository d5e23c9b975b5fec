"""Inputs that become constants, in the library's words."""
from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from . import _npz


def text_of(name: str, value: Any, folder: pathlib.Path) -> str:
    """A number as "name=number"; an array as the name of an archive in `folder`."""
    if isinstance(value, (np.number, np.bool_)):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return f"{name}={value + 0}"  # True is 1
    file = folder / f"{len(list(folder.iterdir()))}.npz"
    _npz.write(file, "bind", {name: value})
    return str(file)
