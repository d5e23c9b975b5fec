"""modelflow.bench: the command modelflow-bench on models in memory."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import _npz, errors
from ._files import file_of
from ._folder import Folder
from ._kinds import unwrapped
from ._library import beside_library, environment
from ._names import names
from ._samples import shape_text
from .report import from_data


@dataclasses.dataclass(frozen=True)
class Side:
    """One way to run a model; times in milliseconds. `speedup` is over the first side, from interleaved runs."""

    name: str
    plugin: bool
    load_ms: float
    runs: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    mean_ms: float
    runs_per_second: float
    speedup: float


@dataclasses.dataclass(frozen=True)
class Bench:
    """How fast a model ran in ONNX Runtime, against others or without the plugin."""

    threads: int
    onnxruntime: str
    sides: tuple[Side, ...]

    def __str__(self) -> str:
        lines = [f"ONNX Runtime {self.onnxruntime}, {self.threads} threads"]
        lines += [f"{side.p50_ms:9.3f} ms  {side.speedup:5.2f}x  {side.name}" for side in self.sides]
        return "\n".join(lines)


def bench(model: Any, against: Any = None, *, threads: Optional[int] = None, rounds: int = 10, block: float = 0.3, warmup: float = 0.2,
          inputs: Optional[Mapping[str, Any]] = None, input_shapes: Optional[Mapping[str, Sequence[int]]] = None,
          custom_ops: Iterable[Union[str, os.PathLike[str]]] = ()) -> Bench:
    """Times a model, sides interleaved: `against` (another model, without the plugin) first, then the model without and
    with the plugin. It runs in a process of its own.

    model, against: as for modelflow.optimize. inputs: {input name: array}, else made up, for dynamic models of
    input_shapes. rounds: blocks per side; block, warmup: seconds of each. custom_ops: libraries of custom operators that
    the models need. Raises classes of modelflow.errors."""
    folder = Folder()
    arguments = [_file(model, folder.path / "model"), "--rounds", rounds, "--block", block, "--warmup", warmup]
    if against is not None:
        arguments += ["--vs", _file(against, folder.path / "against")]
    if threads is not None:
        arguments += ["--threads", threads]
    if inputs is not None:
        _npz.write(folder.path / "inputs.npz", "inputs", inputs)
        arguments += ["--inputs", folder.path / "inputs.npz"]
    for name, shape in (input_shapes or {}).items():
        arguments += ["--input-shapes", shape_text(name, shape)]
    for library in names("custom_ops", custom_ops):
        arguments += ["--custom-ops", library]
    command = [str(beside_library("modelflow-bench")), *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise errors.error(done.returncode, done.stderr.strip().removeprefix("modelflow-bench: "))
    found: Bench = from_data(Bench, json.loads(done.stdout))
    return found


def _file(model: Any, folder: pathlib.Path) -> str:
    return os.path.abspath(file_of(unwrapped(model), folder))
