"""How far a model in ONNX Runtime is from the module that it was exported from."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import numpy as np

from . import errors
from ._eager import Eager

# Where a result is allowed to be farther from the module, because rounding moves the module itself as far.
_ROUNDING = 10


@dataclasses.dataclass(frozen=True)
class Compared:
    """One output of one model beside the module's. `sizes`: "as given" or as "at batch=3".

    `max_abs` is the largest difference, of numbers that are not finite on both sides alike infinite; `relative` the same
    by the largest value of the module; for integers and booleans `relative` is the share that differs. `allowed`: what
    `relative` may be (None: nothing was asked of it, as in lower precision)."""

    model: str  # "exported" or "optimized"
    sizes: str
    output: str
    max_abs: float
    relative: float
    allowed: Optional[float]

    @property
    def ok(self) -> bool:
        """Within what is allowed."""
        return self.allowed is None or self.relative <= self.allowed

    @property
    def difference(self) -> str:
        """In words."""
        bound = "" if self.allowed is None else f", allowed {self.allowed:.1e}"
        return f"output '{self.output}' {self.sizes} is off by {self.max_abs:.3g}, relative {self.relative:.1e}{bound}"

    def __str__(self) -> str:
        return f"{self.model}: {self.difference}"


@dataclasses.dataclass(frozen=True)
class Expected:
    """What the module gives for one set of inputs. `names`: of the exported model for each of `outputs`; one may stand there twice."""

    sizes: str
    call: Eager
    feeds: Mapping[str, np.ndarray]
    names: Sequence[str]
    outputs: Sequence[np.ndarray]


def distance(expected: np.ndarray, found: np.ndarray) -> tuple[float, float]:
    """The largest difference, and how large that is beside the largest value."""
    if not expected.size:
        return 0.0, 0.0
    if expected.dtype.kind not in "fc":
        differ = float(np.mean(expected != found))
        return float(np.max(np.abs(expected.astype(np.float64) - found.astype(np.float64)))), differ
    a, b = expected.astype(np.float64), found.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))  # infinities too
    difference = np.where(same, 0.0, np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b)))
    largest = float(np.max(np.where(np.isnan(difference), np.inf, difference)))
    scale = float(np.max(np.abs(a), where=np.isfinite(a), initial=0.0))
    return largest, largest and (largest / scale if scale else np.inf)


def compare(model: str, session: Any, cases: Sequence[Expected], allowed: Optional[float], blame: str, *,
            rounding: bool) -> list[Compared]:
    """Every output that both give on every set of inputs, of which the session is fed those that it takes. Where one is
    beyond `allowed` and `rounding` may be the reason, the module is asked in float64 how far that alone moves it.
    ExportError for what is farther and for other shapes."""
    inputs, outputs = ([entry.name for entry in entries] for entries in (session.get_inputs(), session.get_outputs()))
    compared: list[Compared] = []
    for case in cases:
        given = dict(zip(outputs, session.run(outputs, {name: case.feeds[name] for name in inputs})))
        found = {place: given[name] for place, name in enumerate(case.names) if name in given}
        _check_form(model, case, found)
        measured = {place: Compared(model, case.sizes, case.names[place], *distance(case.outputs[place], ours), allowed) for place, ours in found.items()}
        compared += measured.values() if not rounding or all(one.ok for one in measured.values()) else _with_rounding(measured, found, case)
    wrong = [one for one in compared if not one.ok]
    if wrong:
        worst = max(wrong, key=lambda one: one.relative)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise errors.ExportError(f"the {model} model differs from the module: {worst.difference}{more}; {_why(worst, cases, blame)}", compared)
    return compared


def _check_form(model: str, case: Expected, found: Mapping[int, np.ndarray]) -> None:
    for place, ours in found.items():
        theirs = case.outputs[place]
        if ours.shape != theirs.shape:
            raise errors.ExportError(f"the {model} model gives output '{case.names[place]}' the shape {list(ours.shape)} {case.sizes}, the module "
                                     f"{list(theirs.shape)}")


def _why(worst: Compared, cases: Sequence[Expected], blame: str) -> str:
    """A module that differs from itself is to blame itself."""
    case = next(case for case in cases if case.sizes == worst.sizes)
    itself = _differs_from_itself(case)
    return f"the module differs from itself by {itself:.1e} when called again" if itself else blame


def _differs_from_itself(case: Expected) -> float:
    return max((distance(before, now)[1] for before, now in zip(case.outputs, case.call.outputs())), default=0.0)


def _with_rounding(measured: Mapping[int, Compared], found: Mapping[int, np.ndarray], expected: Expected) -> list[Compared]:
    """The same from the float64 results, with more allowed where the module's own rounding is as large. What a module
    gives otherwise at every call is no rounding."""
    try:
        if _differs_from_itself(expected):
            return list(measured.values())
        exact = expected.call.in_double().outputs()
    except Exception:  # of modules that fix their types: rounding is not known then
        return list(measured.values())
    judged = []
    for place, one in measured.items():
        ours, theirs, best = found[place], expected.outputs[place], exact[place]
        if one.ok or theirs.dtype.kind != "f" or best.shape != theirs.shape:
            judged.append(one)
            continue
        rounding, off = distance(best, theirs)[1], distance(best, ours)
        assert one.allowed is not None
        judged.append(dataclasses.replace(one, max_abs=off[0], relative=off[1], allowed=max(one.allowed, _ROUNDING * rounding)))
    return judged
