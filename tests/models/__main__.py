"""Optimizes trained models that nobody tuned for, verifies them on real inputs, times them. Called by tools/models."""
import argparse
import contextlib
import json
import math
import pathlib
import sys

import numpy as np
import onnxruntime

TESTS = pathlib.Path(__file__).parent.parent
sys.path[1:1] = [str(TESTS), str(TESTS / "accuracy")]
from catalogue import MODELS  # noqa: E402
from measured import SLOWER, mean_text, run, timed  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(prog="tools/models", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder (tools/models gives it)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where models and results go")
    parser.add_argument("--only", default="", help="models with this in their name")
    parser.add_argument("--precision", default="float32,int8", help="some of: %(default)s")
    parser.add_argument("--threads", type=int, default=0, help="of every session (default: all cores)")
    parser.add_argument("--samples", type=int, default=8, help="inputs to calibrate with; as many others judge")
    parser.add_argument("--page", type=pathlib.Path, help="write the table as Markdown")
    return parser.parse_args()


def read(outputs, feed, mask):
    """What a client reads: of tokens, those that are not padding."""
    kept = feed[mask].astype(bool) if mask else None
    return [y[kept] if mask and y.shape[:2] == kept.shape else y for y in outputs]


def answers(model, feeds, options, mask, plugin=None):
    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads, session.log_severity_level = options.threads, 4
    if plugin:
        session.register_custom_ops_library(str(plugin))
    else:
        session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    ready = onnxruntime.InferenceSession(str(model), session, providers=["CPUExecutionProvider"])
    return [read(ready.run(None, feed), feed, mask) for feed in feeds]


def difference(ours, theirs, scale):
    """The largest of one output over all inputs, relative to `scale` or to the largest value that the output has."""
    if any(a.shape != b.shape or (np.isnan(a) != np.isnan(b)).any() for a, b in zip(ours, theirs)):
        return math.inf
    if not np.issubdtype(theirs[0].dtype, np.floating):
        return float(any((a != b).any() for a, b in zip(ours, theirs)))
    largest = scale or max(np.nanmax(np.abs(b), initial=0) for b in theirs)
    return float(max(np.nanmax(np.abs(a - b), initial=0) for a, b in zip(ours, theirs)) / max(largest, 1e-30))


def command(options, entry, precision, folder, model):
    """What a user would type."""
    line = [options.build / "optimize", entry.path(), "-o", model, "--json", "--threads", options.threads]
    if precision == "float32":
        return [*line, "--inputs", folder / "0000.npz"]
    return [*line, "--precision", entry.int8, *(["--calibration", folder] if entry.int8 == "int8" else [])]


def measure(options, entry, precision):
    """A row: speed over stock, what it took, how far results are on inputs that calibration has not seen."""
    folder = options.out / entry.name.replace(" ", "-").replace(",", "")
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(options.samples):
        np.savez(folder / f"{i:04d}.npz", **entry.feeds(entry.path(), i))
    model = options.out / f"{folder.name}.{precision}.onnx"
    try:
        report = json.loads(run(command(options, entry, precision, folder, model)))
    except RuntimeError as error:
        return {"why": str(error)}
    stock, speed, fallback = timed(options, entry.path(), model, folder / "0000.npz")
    feeds = [entry.feeds(entry.path(), options.samples + i) for i in range(options.samples)]
    plugin = options.build / "libmodelflow_ort.so"
    return {"stock_ms": stock, "speedup": speed, "fallback": fallback, "verified": report["verified"],
            "nodes": (report["before"]["nodes"], report["after"]["nodes"]),
            "difference": max(difference(ours, theirs, entry.scale) for ours, theirs in zip(
                zip(*answers(model, feeds, options, entry.mask, plugin)),
                zip(*answers(entry.path(), feeds, options, entry.mask))))}


def row_text(entry, rows, precisions):
    cells = [entry.name]
    for precision in precisions:
        row = rows[precision]
        if "why" in row:
            cells += [row["why"]] + [""] * 2
            continue
        cells += [f"{row['speedup']:.2f}x", f"{row['fallback']:.2f}x", f"{row['difference']:.1e}"]
    return "| " + " | ".join(cells) + " |"


def page(results, precisions):
    heads = ["model"] + [f"{precision}{what}" for precision in precisions for what in ("", ", fallback", ", difference")]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += [row_text(entry, rows, precisions) for entry, rows in results]
    for precision in precisions:
        speeds = [rows[precision]["speedup"] for _, rows in results if "speedup" in rows[precision]]
        lines += mean_text(speeds, f" in {precision}", len(results))
    return "\n".join(lines) + "\n"


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    precisions, results, wrong = options.precision.split(","), [], []
    for entry in MODELS:
        if options.only not in entry.name:
            continue
        with contextlib.suppress(KeyboardInterrupt):
            rows = {precision: measure(options, entry, precision) for precision in precisions}
            results.append((entry, rows))
            print(row_text(entry, rows, precisions), flush=True)
            wrong += [f"{entry.name}, {precision}" for precision, row in rows.items()
                      if "why" in row or row["speedup"] < SLOWER or not row["verified"]
                      or (precision == "float32" and not row["difference"] < 1e-3)]
    if options.page:
        options.page.write_text(page(results, precisions))
    (options.out / "models.json").write_text(json.dumps({entry.name: rows for entry, rows in results}, indent=1))
    print(f"{len(results)} models; refused, slower or wrong: {', '.join(wrong) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
