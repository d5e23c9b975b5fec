"""The report as a notebook shows it: the page, and plain tables for viewers that show no pages."""
from __future__ import annotations

import html as escaping
import json
from typing import Any, Iterable, Sequence

from .report import Report

_MOST_ROWS = 30
_MOST_BYTES = 4 << 20  # of a report inside of a notebook; a larger one goes without its graphs


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table, or nothing without rows."""
    listed = list(rows)
    if not listed:
        return ""
    cells = "".join("<tr>" + "".join(f"<td>{escaping.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in listed[:_MOST_ROWS])
    titles = "".join(f"<th scope='col'>{escaping.escape(title)}</th>" for title in head)
    more = f"<p>and {len(listed) - _MOST_ROWS} more</p>" if len(listed) > _MOST_ROWS else ""
    return f"<table><caption>{escaping.escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>{cells}</tbody></table>{more}"


def _count(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.3g}"


def html(report: Report) -> str:
    """The result in a sentence, the page in a frame that may run its own scripts and nothing else, and the tables."""
    return f"<div><p><strong>{escaping.escape(report.summary)}</strong></p>{_frame(report)}<details><summary>As tables</summary>{_tables(report)}</details></div>"


def _frame(report: Report) -> str:
    """The page of `save_html`. Viewers that trust no frames leave it out."""
    from ._library import page
    text = report.to_json()
    if len(text) > _MOST_BYTES:
        text = json.dumps({**json.loads(text), "graphs": []})
    return ("<iframe title='ModelFlow report' sandbox='allow-scripts' style='width:100%;height:640px;border:1px solid #8884;resize:vertical' "
            f"srcdoc='{escaping.escape(page(text))}'></iframe>")


def _tables(report: Report) -> str:
    """What became of the model, its fused ops, lower precision, and notes."""
    before, after = report.before, report.after
    parts = [_table("Model", ["", "before", "after"], [
        ["nodes", before.nodes, after.nodes], ["parameters", _count(before.parameters), _count(after.parameters)],
        ["bytes of weights", _count(before.weight_bytes), _count(after.weight_bytes)],
        *([["ms", f"{report.stock_ms:.3f}", f"{report.optimized_ms:.3f}"]] if report.optimized_ms else [])])]
    parts.append(_table("Fused ops", ["node", "op", "kernel", "stands for"],
                        [[op.node, op.op, op.kernel, ", ".join(op.replaced)] for op in report.fused]))
    parts.append(_table("Outputs", ["output", "largest difference", "relative", "on", "right"],
                        [[d.output, f"{d.max_abs:.2e}", f"{d.max_rel:.2e}", d.feed, "yes" if d.ok else "no"] for d in report.verification]))
    parts.append(_table("Left out as wrong", ["what", "node"], [[fault.what, fault.node] for fault in report.faults]))
    if report.quantization:
        parts.append(_table("Lower precision", ["node", "op", "precision", "why not"],
                            [[op.node, op.op, op.precision, op.reason] for op in report.quantization.ops]))
        parts.append(_table("Tried", ["ops", "drop %", "speedup", "chosen"],
                            [[p.quantized, "not judged" if p.drop is None else p.drop, f"{p.speedup:.2f}x", "yes" if p.chosen else ""] for p in report.quantization.frontier]))
    if report.notes:
        parts.append("<ul>" + "".join(f"<li>{escaping.escape(note)}</li>" for note in report.notes) + "</ul>")
    return "".join(parts)
