"""What a task is: trained models, data in two halves, and what counts as good."""
import dataclasses
import random

import numpy as np


@dataclasses.dataclass(frozen=True)
class Metric:
    """One figure of a task. `loss`: how far it may fall behind the original's; `floor`: the least it may be."""

    name: str
    unit: str = "%"
    loss: float | None = None
    floor: float | None = None
    rises: bool = True  # more is better
    digits: int = 2

    def holds(self, value, original):
        if self.floor is not None:
            return value >= self.floor
        return (original - value if self.rises else value - original) <= self.loss

    def bound(self):
        return f"at least {self.floor:g}" if self.floor is not None else f"loses at most {self.loss:g}"


class Missing(Exception):
    """A package that the task needs is not installed."""


class Task:
    """A task loads its models and data in __init__; a share of 1 is the whole test, less of it is a quick look."""

    name: str
    title: str
    metrics: tuple[Metric, ...]
    models: dict  # name -> path of the original
    dynamic = False  # products dominate: peers' dynamic quantization is worth a row

    def run(self, engines, split):
        """Runs the data of `split` ("calibration" or "test") through one engine per model; answers in any form."""
        raise NotImplementedError

    def score(self, answers, original):
        """Metric name -> value, from the answers of one variant and those of the original models."""
        raise NotImplementedError


def random_of(*seed):
    """The same data on every machine: text seeds do not depend on Python's hash."""
    return random.Random("/".join(map(str, seed)))


def take(share, count, least=1):
    return max(least, round(count * share))


def edit_distance(a, b):
    """Levenshtein's distance of two sequences."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        before, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            before, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, before + (x != y))
    return row[-1]


def ranks(values):
    """Ranks from 0, ties at their mean."""
    values = np.asarray(values)
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right") - 1) / 2


def spearman(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def agreement(a, b):
    """Per cent of equal entries."""
    return 100 * float(np.mean(np.asarray(a) == np.asarray(b)))
