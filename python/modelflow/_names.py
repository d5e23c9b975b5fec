"""Names and files as callers give them: one, or several."""
from __future__ import annotations

import os
from typing import Any

from . import errors


def names(what: str, given: Any) -> list[str]:
    """Names or files, or one."""
    try:
        return [os.fsdecode(each) for each in ([given] if isinstance(given, (str, os.PathLike)) else given)]
    except TypeError:
        raise errors.UsageError(f"{what}: expected names, found {given!r}") from None
