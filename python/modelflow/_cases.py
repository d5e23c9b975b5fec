"""What a module gives for its arguments, and for other sizes of them where the exported model leaves sizes open."""
from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from . import errors
from ._compare import Expected
from ._eager import Eager, numbers
from ._exporters import Exporter
from ._names import names
from ._samples import array
from ._sizes import Sizes


def plain_session(path: pathlib.Path, custom_ops: Any = ()) -> Any:
    """A session without any optimization: what it gives is what the exporter wrote."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for library in names("custom_ops", custom_ops):
        options.register_custom_ops_library(library)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class Cases:
    """The sets of inputs that a model and the module are compared on.

    plain: a session of the exported model. bind: as optimize() takes it; these inputs have their values in all sets."""

    def __init__(self, plain: Any, writer: Exporter, bind: Mapping[str, Any], notes: list[str]):
        self._declared = {entry.name: entry.shape for entry in plain.get_inputs()}
        self._outputs = [entry.name for entry in plain.get_outputs()]
        self._notes, self._bind = notes, bind
        self._places = writer.places(list(self._declared))
        inputs = writer.call.inputs
        for name, place in self._places.items():
            if name in bind:
                inputs[place] = _bound(name, inputs[place], array(bind[name]))
        self._call = writer.call.with_inputs(inputs)
        self.given = self._case("as given", self._call)
        self._sizes = Sizes(self._declared, {name: value.shape for name, value in self.given.feeds.items()})

    def all(self, ranges: Mapping[str, tuple[int, int]]) -> list[Expected]:
        """The given one, one that is larger and one that is smaller, as far as the module takes them. ranges: of symbols."""
        found = [self.given]
        for what, trials in (("larger", self._sizes.larger(ranges)), ("smaller", self._sizes.smallest(ranges))):
            refused = ""
            for values in trials:
                shapes = self._sizes.shapes(values)
                if shapes is None or values == self._sizes.values:
                    continue
                sizes = ", ".join(f"{symbol}={value}" for symbol, value in values.items())
                try:
                    found.append(self._case(f"at {sizes}", self._resized(shapes)))
                    refused = ""
                    break
                except errors.ExportError:
                    raise
                except Exception as error:  # whatever a module does with sizes that it cannot take
                    refused = f"not compared at {what} sizes: the module raises {type(error).__name__} at {sizes}"
            self._notes += [refused] if refused else []
        return found

    def open_shapes(self) -> dict[str, tuple[int, ...]]:
        """The given shapes of inputs whose extents the model leaves open."""
        return {name: self.given.feeds[name].shape for name, dims in self._declared.items() if not all(isinstance(dim, int) for dim in dims)}

    def _case(self, sizes: str, call: Eager) -> Expected:
        feeds = {name: numbers(call.inputs[place]) for name, place in self._places.items()}
        outputs = call.outputs()
        if len(outputs) != len(self._outputs):
            raise errors.ExportError(f"the exported model has {len(self._outputs)} outputs ({', '.join(self._outputs)}), the module gives "
                                     f"{len(outputs)} tensors {sizes}")
        return Expected(sizes, call, feeds, self._outputs, outputs)

    def _resized(self, shapes: Mapping[str, Sequence[int]]) -> Eager:
        inputs = self._call.inputs
        for name, place in self._places.items():
            if isinstance(inputs[place], torch.Tensor) and name not in self._bind:
                inputs[place] = _resized(inputs[place], shapes[name])
        return self._call.with_inputs(inputs)


def _bound(name: str, argument: Any, value: np.ndarray) -> Any:
    """The argument with other numbers: a single one fills it. UsageError for arrays of other shapes."""
    if not isinstance(argument, torch.Tensor):
        return type(argument)(value.item())
    if value.ndim and value.shape != argument.shape:
        raise errors.UsageError(f"bind: '{name}' has the shape {list(value.shape)}, the argument {list(argument.shape)}: export with arguments "
                                "of the shape that is bound")
    return torch.tensor(value, dtype=argument.dtype).expand_as(argument).clone()


def _resized(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The tensor cut, or repeated from its beginning: its numbers stay what the module takes."""
    for axis, (has, wanted) in enumerate(zip(tensor.shape, shape)):
        if has and has != wanted:
            tensor = tensor.index_select(axis, torch.arange(wanted) % has)
    return tensor
