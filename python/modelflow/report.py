"""The report of a run, as frozen dataclasses: docs/report.md says what every field means."""
from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import typing
from typing import Any, Optional, Union


@dataclasses.dataclass(frozen=True)
class Stats:
    """A model in numbers; `ops` counts by type."""

    nodes: int
    ops: dict[str, int]
    parameters: float
    flops: float
    weight_bytes: float
    activation_bytes: float = 0.0


@dataclasses.dataclass(frozen=True)
class Miss:
    """A rule that almost fired: `matched` nodes of its pattern fitted."""

    rule: str
    node: str
    reason: str
    matched: int


@dataclasses.dataclass(frozen=True)
class Step:
    """One pass: how often each of its rules fired, and what almost did."""

    stage: str
    name: str
    seconds: float
    nodes_before: int
    nodes_after: int
    hits: dict[str, int]
    misses: tuple[Miss, ...]


@dataclasses.dataclass(frozen=True)
class Fused:
    """A fused op of the result, the kernel that will run it, and the ops that it stands for."""

    node: str
    op: str
    kernel: str
    replaced: tuple[str, ...]
    predicted_seconds: float


@dataclasses.dataclass(frozen=True)
class Region:
    """A part of the model that was timed by itself."""

    name: str
    nodes: int
    stock_seconds: float
    fused_seconds: float
    kept: bool
    reason: str


@dataclasses.dataclass(frozen=True)
class Feed:
    """One set of inputs that original and result were compared on; `dropped`: why they were not."""

    name: str
    why: str
    shapes: dict[str, str]
    kinds_only: bool
    dropped: str


@dataclasses.dataclass(frozen=True)
class Difference:
    """The largest difference of one output, and on which inputs; `max_rel` is infinite where the original is 0 throughout."""

    output: str
    max_abs: float
    max_rel: float
    equal_type: bool
    ok: bool
    feed: str
    explained: str


@dataclasses.dataclass(frozen=True)
class Fault:
    """What gave wrong results, or failed, and was left out."""

    rule: str
    kernel: str
    node: str
    feed: str
    difference: Difference
    what: str
    pass_: str = dataclasses.field(default="", metadata={"key": "pass"})  # a word of Python


@dataclasses.dataclass(frozen=True)
class OutputError:
    """How far an output in lower precision is from float32, over all samples."""

    output: str
    relative_l2: Optional[float]
    sqnr_db: Optional[float]
    cosine: Optional[float]
    top1: Optional[float]


@dataclasses.dataclass(frozen=True)
class LoweredOp:
    """One op that low precision was asked for; `reason`: why it stays in float."""

    node: str
    op: str
    precision: str
    sqnr_db: Optional[float]
    reason: str


@dataclasses.dataclass(frozen=True)
class FrontierPoint:
    """One choice of ops: what it costs (per cent; None: nothing judged it) and gains (over float32)."""

    quantized: int
    precisions: dict[str, int]
    drop: Optional[float]
    speedup: float
    chosen: bool


@dataclasses.dataclass(frozen=True)
class Quantization:
    """What lower precision came to; `max_drop` and `drop` in per cent (`drop` None: nothing judged it)."""

    precision: str
    metric: str
    max_drop: float
    drop: Optional[float]
    samples: int
    outputs: tuple[OutputError, ...]
    ops: tuple[LoweredOp, ...]
    frontier: tuple[FrontierPoint, ...]


@dataclasses.dataclass(frozen=True)
class NodeRun:
    """A node in a profile, as the runtime names it; `ms` per run."""

    name: str
    op: str
    ms: float
    operations: float = 0.0
    share_of_peak: Optional[float] = None


@dataclasses.dataclass(frozen=True)
class Side:
    """One way to run the model: "stock", "float32", "fallback" (without the plugin) or "optimized". Each time with its 95 % interval."""

    name: str
    graph: str
    ms: float
    low_ms: float
    high_ms: float
    speedup: float
    speedup_low: float
    speedup_high: float
    memory_bytes: float
    nodes: tuple[NodeRun, ...]


@dataclasses.dataclass(frozen=True)
class Node:
    """A node of a main graph; `sources`: positions in the graph before of what it stands for."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: tuple[str, ...]
    sources: tuple[int, ...]
    flops: float
    weight_bytes: float
    live_bytes: float


@dataclasses.dataclass(frozen=True)
class Graph:
    """A main graph: "before" or "after"."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where the numbers were taken; `peak`: operations per second by type, 0: not measured."""

    cpu: str
    isas: str
    system: str
    cores: int
    threads: int
    memory_bytes: float
    peak: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything that happened in one run. Notebooks show it as a table."""

    version: str
    input: str
    target: str
    level: str
    runtime: str
    command: str
    created: str
    machine: Machine
    before: Stats
    after: Stats
    steps: tuple[Step, ...]
    fused: tuple[Fused, ...]
    regions: tuple[Region, ...]
    feeds: tuple[Feed, ...]
    faults: tuple[Fault, ...]
    verification: tuple[Difference, ...]
    verified: bool
    quantization: Optional[Quantization]
    stock_ms: float
    optimized_ms: float
    speedup: float
    sides: tuple[Side, ...]
    graphs: tuple[Graph, ...]
    notes: tuple[str, ...]
    _text: str = dataclasses.field(repr=False, compare=False)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """From what the library gives and `optimize --json` prints."""
        made: Report = from_data(cls, {**json.loads(text), "_text": text})
        return made

    def to_json(self) -> str:
        """The report as the library wrote it."""
        return self._text

    def save_html(self, path: Union[str, os.PathLike[str]]) -> pathlib.Path:
        """Writes the report as a page for browsers, one file that needs nothing else; what was there is replaced."""
        from ._library import page
        file = pathlib.Path(os.fspath(path))
        file.write_text(page(self._text), encoding="utf-8")
        return file

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        times = f"{self.speedup:.2f}x as fast ({self.stock_ms:.3g} ms, now {self.optimized_ms:.3g} ms)" if self.optimized_ms else "not timed"
        relative = max((d.max_rel for d in self.verification), default=0.0)
        worst = f"relative difference {relative:.1e}" if relative < math.inf else f"difference {max(d.max_abs for d in self.verification):.1e}"
        checked = f"verified, largest {worst}" if self.verified else "not verified"
        return f"{times}; {self.before.nodes} nodes, now {self.after.nodes}; {checked}"

    def __str__(self) -> str:
        return "\n".join([self.summary, *self.notes])

    def _repr_html_(self) -> str:
        from ._html import html
        return html(self)


def from_data(kind: Any, data: Any) -> Any:
    """What JSON gave, as dataclasses; fields that they do not have are left out."""
    arguments = typing.get_args(kind)
    if type(None) in arguments:
        return None if data is None else from_data(arguments[0], data)
    if typing.get_origin(kind) is tuple:
        return tuple(from_data(arguments[0], item) for item in data)
    if not dataclasses.is_dataclass(kind):
        return math.inf if kind is float and data is None else data  # which JSON has no word for
    keys = {field.name: field.metadata.get("key", field.name) for field in dataclasses.fields(kind)}
    given = {field.name for field in dataclasses.fields(kind) if keys[field.name] in data or field.default is dataclasses.MISSING}
    hints, make = typing.get_type_hints(kind), typing.cast(Any, kind)
    return make(**{name: from_data(hint, data[keys[name]]) for name, hint in hints.items() if name in given})
