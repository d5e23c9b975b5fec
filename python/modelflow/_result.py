"""What modelflow.optimize gives: the model and its report."""
from __future__ import annotations

import os
import pathlib
import tempfile
from typing import Any, Mapping, Optional, Union

from . import errors
from ._folder import Folder
from ._kinds import Form, Holder
from ._library import encoded
from ._run import Run
from .report import Report


def refuse_unwritable(path: Union[str, os.PathLike[str]]) -> None:
    """Raises OutputError where Result.save() could not write, as the library does before it works for a file."""
    target = os.path.realpath(encoded(path, "output"))  # the end of links
    if os.path.isdir(target):
        raise errors.OutputError(f"'{path}' exists and is not a regular file")
    try:
        with tempfile.TemporaryFile(dir=os.path.dirname(target)):
            pass
    except OSError as error:
        raise errors.OutputError(f"'{path}' cannot be written: {error.strerror}") from None


class Result(Holder):
    """An optimized model: `model`, of the kind that was given, and `report`.

    For a path that was optimized without `output`, `model` is a file in a temporary folder that goes with this object."""

    def __init__(self, model: Any, report: Report, form: Form, folder: Folder, limits: Mapping[str, Any]):
        self.model, self.report = model, report
        self._form, self._folder, self._limits = form, folder, limits

    def save(self, path: Union[str, os.PathLike[str]], *, external_data: Optional[str] = None) -> pathlib.Path:
        """Writes the model, weights of more than 1 MiB beside it as PATH.data (ONNX Runtime maps those without a copy)
        unless external_data is "always" or "never". What was there before stays until the new file is complete. OutputError."""
        output = pathlib.Path(os.fspath(path))
        folder, source = Folder(), self._form
        if isinstance(source, bytes):
            (folder.path / "model.onnx").write_bytes(source)
            source = folder.path / "model.onnx"
        copy = Run()
        copy.set_given(level="O0", external_data=external_data, **self._limits)  # reads, checks and writes
        copy.run(source, output, folder)
        return output

    def __repr__(self) -> str:
        return f"<modelflow.Result: {self.report.summary}>"

    def _repr_html_(self) -> str:
        return self.report._repr_html_()
