"""modelflow.inline: a model without functions, as `optimize --inline` writes it."""
from __future__ import annotations

import os
import pathlib
from typing import Any, Optional, Union

from . import errors
from ._files import as_it_came, file_of
from ._folder import Folder
from ._kinds import unwrapped
from ._library import checked, encoded
from ._run import Run


def inline(model: Any, output: Union[None, str, os.PathLike[str]] = None, *, external_data: Optional[str] = None,
           max_nodes: Optional[int] = None, max_depth: Optional[int] = None) -> Any:
    """Fused ops, and all other local functions, written out as the standard ops that they stand for: for runtimes without
    the plugin that do not expand functions. Functions of another opset than the model's stay.

        modelflow.inline("fast.onnx", "plain.onnx")

    model: kinds as for optimize(). It is not changed.
    output: also where the result is written.
    external_data, max_nodes, max_depth: as for optimize().

    Gives the result, of the kind that came in; the path `output` for a path. UsageError for a path without output."""
    run, folder = Run(), Folder()
    run.set_given(external_data=external_data, max_nodes=max_nodes, max_depth=max_depth)
    holder, model = model, unwrapped(model)
    file = file_of(model, folder.path / "0")
    target = pathlib.Path(os.fspath(output)) if output is not None else folder.path / "plain.onnx"
    run.call(lambda options: checked("modelflow_inline_file", encoded(file, "model"), encoded(target, "output"), options),
             (folder, holder))
    result = as_it_came(target, model)
    if output is None and isinstance(result, pathlib.Path):  # it goes with the folder
        raise errors.UsageError("output: say where the model without functions is to be written")
    return result
