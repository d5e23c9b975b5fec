"""Other sizes than the given ones, where a model leaves extents of its inputs open."""
from __future__ import annotations

import ast
import operator
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

Shapes = Mapping[str, Sequence[Union[int, str, None]]]

_OPERATORS: dict[type, Callable[[int, int], int]] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
                                                     ast.FloorDiv: operator.floordiv}


class Sizes:
    """The symbols in a model's input shapes (`batch`, `2*half`) and their values for given inputs."""

    def __init__(self, declared: Shapes, given: Mapping[str, Sequence[int]]):
        self._dims = {(name, axis): _parsed(dim, f"{name}[{axis}]") for name, dims in declared.items() for axis, dim in enumerate(dims)
                      if not isinstance(dim, int)}
        self._given = given
        self.values: dict[str, int] = {}
        for (name, axis), dim in sorted(self._dims.items(), key=lambda item: not isinstance(item[1], ast.Name)):
            unknown = sorted(_symbols(dim) - set(self.values))
            if len(unknown) == 1:
                self._solve(dim, unknown[0], given[name][axis])

    def _solve(self, dim: ast.expr, symbol: str, extent: int) -> None:
        for value in range(4 * extent + 2):  # of twice, half, or one more or less, none goes beyond
            if _value(dim, {**self.values, symbol: value}) == extent:
                self.values[symbol] = value
                return

    def shapes(self, values: Mapping[str, int]) -> Optional[dict[str, tuple[int, ...]]]:
        """The shapes of all inputs where symbols have these values; None where some extent would be negative."""
        shapes = {name: list(shape) for name, shape in self._given.items()}
        for (name, axis), dim in self._dims.items():
            extent = _value(dim, values)
            shapes[name][axis] = shapes[name][axis] if extent is None else extent
        return None if any(extent < 0 for shape in shapes.values() for extent in shape) else {n: tuple(s) for n, s in shapes.items()}

    def larger(self, ranges: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
        """Values above the given ones, those that say most first: unlike ones, one more for all, twice as many for all."""
        rules: tuple[Callable[[int, int], int], ...] = (lambda value, position: value + 1 + position, lambda value, position: value + 1, lambda value, position: 2 * value)
        for rule in rules:
            yield {symbol: min(rule(value, position), ranges.get(symbol, (0, value + 99))[1])
                   for position, (symbol, value) in enumerate(self.values.items())}

    def smallest(self, ranges: Mapping[str, tuple[int, int]]) -> Iterator[dict[str, int]]:
        """One of each, or what the ranges say is the least; where that does not do, one of a single symbol."""
        least = {symbol: max(1, ranges.get(symbol, (1, 1))[0]) for symbol in self.values}
        yield least
        for symbol in self.values:
            yield {**self.values, symbol: least[symbol]}


def ranges_of(dynamic_shapes: Any) -> dict[str, tuple[int, int]]:
    """The least and most that torch.export.Dim objects say, by name, wherever they stand."""
    if isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = list(dynamic_shapes.values())
    if isinstance(dynamic_shapes, (list, tuple)):
        return {name: span for item in dynamic_shapes for name, span in ranges_of(item).items()}
    dim = getattr(dynamic_shapes, "root", dynamic_shapes)  # of 2 * Dim("half")
    name, least, most = (getattr(dim, field, None) for field in ("__name__", "min", "max"))
    if not isinstance(name, str) or least is None or most is None:
        return {}
    return {name: (int(least), int(min(most, 1 << 40)))}


def _parsed(dim: Union[str, None], otherwise: str) -> ast.expr:
    """`2*half` as a tree; what is no arithmetic is a symbol by itself."""
    try:
        tree = ast.parse(dim or "", mode="eval").body
    except SyntaxError:
        return ast.Name(dim or otherwise)
    arithmetic = (ast.BinOp, ast.Name, ast.Constant, ast.operator, ast.expr_context)
    return tree if all(isinstance(node, arithmetic) for node in ast.walk(tree)) else ast.Name(dim or otherwise)


def _symbols(dim: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(dim) if isinstance(node, ast.Name)}


def _value(dim: ast.expr, values: Mapping[str, int]) -> Optional[int]:
    if isinstance(dim, ast.Name):
        return values.get(dim.id)
    if isinstance(dim, ast.Constant):
        return dim.value if isinstance(dim.value, int) else None
    assert isinstance(dim, ast.BinOp)
    left, right, work = _value(dim.left, values), _value(dim.right, values), _OPERATORS.get(type(dim.op))
    if left is None or right is None or work is None or (work is operator.floordiv and right == 0):
        return None
    return work(left, right)
