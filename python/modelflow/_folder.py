"""A folder for temporary files that goes with its owner, or with the process."""
from __future__ import annotations

import pathlib
import shutil
import tempfile
import weakref


class Folder:
    """Its `path` is there as long as this object."""

    def __init__(self) -> None:
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="modelflow-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
