"""A module of torch run eagerly on its arguments: what an exported model is compared with."""
from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as tree


class Eager:
    """A module with one set of arguments. It is called without gradients, on copies, so that modules may write to them."""

    def __init__(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]):
        self._module = module
        self._leaves, self._form = tree.tree_flatten((args, dict(kwargs)))

    @property
    def inputs(self) -> list[Any]:
        """Tensors and numbers among the arguments, in the order in which exporters make them inputs."""
        return [leaf for leaf in self._leaves if _is_input(leaf)]

    def with_inputs(self, inputs: Sequence[Any]) -> Eager:
        """The same call with others in the places of these."""
        other, rest = copy.copy(self), iter(inputs)
        other._leaves = [next(rest) if _is_input(leaf) else leaf for leaf in self._leaves]
        return other

    def in_double(self) -> Eager:
        """The same call in float64, of which nearly every digit that a float32 has is right."""
        other = self.with_inputs([leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf for leaf in self.inputs])
        other._module = copy.deepcopy(self._module).double()
        return other

    def outputs(self) -> list[np.ndarray]:
        """The tensors that the module gives, in the order in which they stand in its dicts and tuples."""
        args, kwargs = tree.tree_unflatten([leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in self._leaves], self._form)
        with torch.no_grad():
            given = self._module(*args, **kwargs)
        return [numbers(leaf) for leaf in tree.tree_leaves(given) if isinstance(leaf, torch.Tensor)]


def _is_input(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, bool, int, float))


def numbers(value: Any) -> np.ndarray:
    """As exporters hand tensors on: complex ones as pairs. bfloat16 comes as float32, which holds the same numbers."""
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach().cpu()
    value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    return np.ascontiguousarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
