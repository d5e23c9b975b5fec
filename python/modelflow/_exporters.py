"""The two exporters of torch: how each is called, and how its inputs are named."""
from __future__ import annotations

import importlib.util
import inspect
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch.utils import _pytree as tree

from . import errors
from ._eager import Eager


class Exporter:
    """torch.onnx.export with everything but the file said."""

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], *, dynamic_shapes: Any, input_names: Optional[Sequence[str]],
                 output_names: Optional[Sequence[str]], dynamo: Optional[bool], more: Mapping[str, Any]):
        self._dynamo = _has_dynamo() and not isinstance(module, torch.jit.ScriptModule) if dynamo is None else dynamo
        self.name = f"torch {torch.__version__.split('+')[0]}, {'dynamo' if self._dynamo else 'TorchScript'}"
        self._module, self._args, self._kwargs = module, args, kwargs
        self._names = list(input_names or [])
        said: dict[str, Any] = {"input_names": input_names, "output_names": output_names}
        if self._dynamo:
            said.update(dynamo=True, verbose=False, dynamic_shapes=dynamic_shapes)
        else:
            self._args, self._kwargs = _positional(module, args, kwargs)
            self._names = self._names or _argument_names(module, self._args, self._kwargs)
            said.update(input_names=self._names, dynamic_axes=_axes(dynamic_shapes, module, self._names))
            said.update({"dynamo": False} if "dynamo" in _parameters() else {})
        self._said = {**{key: value for key, value in said.items() if value is not None}, **more}

    def write(self, path: pathlib.Path) -> None:
        """Exports; raises what torch raises."""
        if "kwargs" in _parameters():
            torch.onnx.export(self._module, self._args, str(path), kwargs=self._kwargs or None, **self._said)
        else:  # kwargs are the last of the arguments
            torch.onnx.export(self._module, (*self._args, self._kwargs), str(path), **self._said)

    @property
    def call(self) -> Eager:
        """The module with the arguments that it is exported with."""
        return Eager(self._module, self._args, self._kwargs)

    def places(self, names: Sequence[str]) -> dict[str, int]:
        """Where among `call.inputs` the model's inputs of these names come from."""
        inputs = self.call.inputs
        if not self._dynamo and set(names) <= set(self._names):  # it leaves out what nothing reads
            return {name: self._names.index(name) for name in names}
        tensors = [place for place, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        if len(tensors) != len(names):
            raise errors.UsageError(f"the exported model has the inputs {', '.join(names)}, the arguments hold {len(tensors)} tensors, which "
                                    "cannot be told apart: export with check=False")
        return dict(zip(names, tensors))


def _parameters() -> Mapping[str, Any]:
    return inspect.signature(torch.onnx.export).parameters


def _has_dynamo() -> bool:
    return "dynamic_shapes" in _parameters() and importlib.util.find_spec("onnxscript") is not None


def _positional(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position as far as the signature lets them: in this order TorchScript makes inputs of them."""
    if isinstance(module, torch.jit.ScriptModule):
        return args, kwargs
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    return bound.args, bound.kwargs


def _argument_names(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for every tensor and number, after the parameter of forward() that holds it."""
    parameters = [] if isinstance(module, torch.jit.ScriptModule) else list(inspect.signature(module.forward).parameters)
    names = []
    for position, (key, value) in enumerate([*zip([*parameters, *map(str, range(len(args)))], args), *kwargs.items()]):
        count = len([leaf for leaf in tree.tree_leaves(value) if isinstance(leaf, (torch.Tensor, bool, int, float))])
        name = key if not key.isdigit() else f"input_{position}"
        names += [name] if count == 1 else [f"{name}_{i}" for i in range(count)]
    return names


def _axes(dynamic_shapes: Any, module: torch.nn.Module, names: Sequence[str]) -> Optional[dict[str, dict[int, str]]]:
    """`dynamic_axes`, what TorchScript takes, out of `dynamic_shapes`. UsageError for what nests."""
    if dynamic_shapes is None:
        return None
    by_argument = dynamic_shapes if isinstance(dynamic_shapes, Mapping) else dict(zip(names, dynamic_shapes))
    axes = {}
    for name, open_axes in by_argument.items():
        if isinstance(open_axes, (list, tuple)):
            open_axes = {axis: dim for axis, dim in enumerate(open_axes) if dim is not None}
        plain = isinstance(open_axes, Mapping) and all(isinstance(axis, int) for axis in open_axes)
        if open_axes is not None and (name not in names or not plain):
            raise errors.UsageError(f"dynamic_shapes of '{name}': the TorchScript exporter takes {{argument: {{axis: name}}}}; for arguments "
                                    "that hold several tensors say input_names, and exporter={'dynamic_axes': {input: {axis: name}}}")
        if open_axes:
            axes[name] = {axis: _dim_name(dim, f"{name}_{axis}") for axis, dim in open_axes.items()}
    return axes or None


def _dim_name(dim: Any, otherwise: str) -> str:
    name = dim if isinstance(dim, str) else getattr(dim, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else otherwise
