"""The module that is exported: on the CPU, as eval() makes it, and given back as it was."""
from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as tree

from . import errors


def on_cpu(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], notes: list[str]) -> tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]:
    """The call on the CPU, where ONNX Runtime computes: what lies elsewhere is copied, the caller's module stays there."""
    held = [*module.parameters(), *module.buffers(), *(leaf for leaf in tree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))]
    elsewhere = sorted({tensor.device.type for tensor in held} - {"cpu"})
    if "meta" in elsewhere:
        raise errors.UsageError("the module has weights or arguments on the device 'meta', which holds no numbers")
    if not elsewhere:
        return module, args, kwargs
    notes.append(f"exported and compared on the CPU, from a copy of what was on {', '.join(elsewhere)}")
    args, kwargs = tree.tree_map(lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf, (args, kwargs))
    return copy.deepcopy(module).cpu(), args, kwargs


@contextmanager
def evaluating(module: torch.nn.Module, notes: list[str]) -> Iterator[None]:
    """The module as eval() makes it, and every part of it afterwards as it was."""
    training = [part for part in module.modules() if part.training]
    if training:
        notes.append("the module was in training mode: exported as it is after eval()")
        warnings.warn(notes[-1], stacklevel=4)
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
