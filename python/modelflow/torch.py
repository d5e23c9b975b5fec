"""modelflow.torch.export: from a module of torch to an optimized model in one call, compared with the module itself."""
from __future__ import annotations

import html
import inspect
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import torch

from . import _npz, errors
from ._cases import Cases, plain_session
from ._compare import Compared, compare
from ._exporters import Exporter
from ._folder import Folder
from ._module import evaluating, on_cpu
from ._optimize import optimize, refuse_contradictions
from ._result import Result, refuse_unwritable
from ._session import session
from ._sizes import ranges_of

__all__ = ["Compared", "Exported", "export"]

# Of an output's largest value; what optimize() allows as well. Rounding that is larger in the module itself is let pass.
_TOLERANCE = 1e-4
_FULL = ("float32", "fp32", "f32")


class Exported(Result):
    """What export() gives: `model` (a path) and `report` as of modelflow.optimize, and beyond that:

    original: the model as the exporter wrote it, in a temporary folder that goes with this object.
    compared: every output of the exported and of the optimized model beside the module's.
    notes: what was done to the module, and what could not be compared."""

    def __init__(self, result: Result, original: pathlib.Path, compared: Sequence[Compared], notes: Sequence[str], folder: Folder):
        super().__init__(result.model, result.report, result._form, result._folder, result._limits)
        self.original, self.compared, self.notes = original, tuple(compared), tuple(notes)
        self._exported = folder

    def __repr__(self) -> str:
        worst = max((one.relative for one in self.compared if one.model == "optimized"), default=None)
        said = "not compared with the module" if worst is None else f"at most {worst:.1e} from the module"
        return f"<modelflow.torch.Exported: {self.report.summary}; {said}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<li>{html.escape(str(line))}</li>" for line in (*self.compared, *self.notes))
        return f"{super()._repr_html_()}<p>Beside the module</p><ul>{rows}</ul>"


def export(module: torch.nn.Module, args: Any = (), output: Union[None, str, os.PathLike[str]] = None, *,
           kwargs: Optional[Mapping[str, Any]] = None, dynamic_shapes: Any = None, input_names: Optional[Sequence[str]] = None,
           output_names: Optional[Sequence[str]] = None, dynamo: Optional[bool] = None, exporter: Optional[Mapping[str, Any]] = None,
           check: bool = True, max_difference: Optional[float] = None, **options: Any) -> Exported:
    """Exports a module with torch.onnx.export, optimizes what comes out, and compares both with the module.

        result = modelflow.torch.export(module, (images,), "fast.onnx", dynamic_shapes=({0: "batch"},))

    module: in training mode it is exported as it is after eval(), with a warning, and put back. From other devices a copy
        is moved to the CPU. Compiled modules are exported as what was compiled.
    args, kwargs: as the module is called: a tensor, or a tuple of what it takes (tensors, numbers, dicts and lists of them).
    output: where to write the model; nothing is written where it differs from the module.
    dynamic_shapes: as torch.export.export takes it: for each argument {axis: name or torch.export.Dim}. What is open there
        is compared at other sizes as well: larger ones, and 1 (or the Dim's least).
    input_names, output_names: names in the model.
    dynamo: the exporter: True, based on torch.export; False, based on TorchScript; default: the former where it is there.
    exporter: more arguments of torch.onnx.export, as {"opset_version": 20}.
    check: False leaves the comparison with the module out.
    max_difference: the largest difference from the module that is let pass, relative to the output's largest value.
        Default 1e-4, or ten times what rounding moves the module itself (as its float64 copy shows) where that is more;
        a number given holds as it is.
        In lower precision the default is any: the differences are in `compared`, and max_drop bounds the loss.
    options: of modelflow.optimize. Without `inputs` and `input_shapes`, the shapes of `args` are those that are timed. What
        `bind` makes constant has its value in the module as well; of `outputs`, values inside of the model are not compared.

    Raises ExportError where a model differs from the module, what the exporter raises, and what modelflow.optimize does."""
    _refuse_early(module, output, options)
    notes: list[str] = []
    args = args if isinstance(args, tuple) else tuple(args) if isinstance(args, list) else (args,)
    module, args, kwargs = on_cpu(getattr(module, "_orig_mod", module), args, dict(kwargs or {}), notes)
    writer = Exporter(module, args, kwargs, dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, dynamo=dynamo,
                      more=exporter or {})
    folder = Folder()
    original, fast = folder.path / "exported.onnx", folder.path / "optimized.onnx"
    compared: list[Compared] = []
    custom_ops = options.get("custom_ops", ())
    bound = _TOLERANCE if max_difference is None else max_difference
    with evaluating(module, notes):
        writer.write(original)
        if check:
            plain = plain_session(original, custom_ops)
            cases = Cases(plain, writer, options.get("bind") or {}, notes)
            all_cases = cases.all(ranges_of(dynamic_shapes))
            compared += compare("exported", plain, all_cases, bound, f"the exporter wrote it so ({writer.name})",
                                rounding=max_difference is None)
            if "inputs" not in options and "input_shapes" not in options:
                options["input_shapes"] = cases.open_shapes()
            del plain
        result = optimize(original, fast, **options)
        if check:
            loses = max_difference is None and options.get("precision", "float32") not in _FULL
            optimized = session(fast, custom_ops=custom_ops)
            compared += compare("optimized", optimized, all_cases, None if loses else bound, "the exported one agrees with the module",
                                rounding=max_difference is None)
            inner = [entry.name for entry in optimized.get_outputs() if entry.name not in cases.given.names]
            notes += [f"not compared, as the module does not give it: {', '.join(inner)}"] if inner else []
    exported = Exported(result, original, compared, notes, folder)
    if output is not None:
        exported.model = exported.save(output, external_data=options.get("external_data"))
    return exported


def _refuse_early(module: Any, output: Any, options: Mapping[str, Any]) -> None:
    """What would be found after minutes of exporting and optimizing."""
    if not isinstance(module, torch.nn.Module):
        raise errors.UsageError(f"no module: {type(module).__name__}; expected a torch.nn.Module")
    inspect.signature(optimize).bind(None, **options)
    refuse_contradictions(options.get("precision", "float32"), options.get("calibration"),
                          **{key: options.get(key) for key in ("observer", "score", "max_drop", "metric")})
    for name, value in (options.get("bind") or {}).items():
        _npz.numbers("bind", name, value)
    if output is not None:
        refuse_unwritable(output)
