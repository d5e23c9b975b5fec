"""Models of the onnx package's backend tests merged in pairs, beside running one after the other.

    python tests/outside/backend_pairs.py --build build                  each model with a partner that takes its result
    python tests/outside/backend_pairs.py --build build --every 12       a sample

A pair counts where stock ONNX Runtime runs both in turn. Then `optimize --merge` must exit with 0 (2, 3 and 4 are refusals,
which are counted), and the merged model must give what the two give in turn.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from backend_suite import all_cases, run_model, same


def kind(value):
    return (value.dtype.str, value.shape) if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" else None


def formals(model):
    """Inputs that are fed: older files list initializers too."""
    known = {each.name for each in model.graph.initializer}
    return [each.name for each in model.graph.input if each.name not in known]


def pairs(seed=7):
    """(name, giving model, its inputs, its output, taking model, its inputs, place): a partner is drawn among those that fit."""
    cases = [(name, model, sets[0]) for name, model, sets, *_ in all_cases() if sets and len(formals(model)) == len(sets[0][0])]
    takers, dice = collections.defaultdict(list), random.Random(seed)
    for name, model, (inputs, _) in cases:
        for place, value in enumerate(inputs):
            if kind(value):
                takers[kind(value)].append((name, model, inputs, place))
    for name, model, (inputs, outputs) in cases:
        for output, value in enumerate(outputs or []):
            if fitting := takers.get(kind(value)):
                taker = dice.choice(fitting)
                yield f"{name} -> {taker[0]}", model, inputs, output, *taker[1:]
                break


def feeds_of(path, names, inputs, part):
    """The inputs as the merged model calls them."""
    merged = {each.name for each in onnx.load(path, load_external_data=False).graph.input}
    return {name if name in merged else f"{part}.{name}": value for name, value in zip(names, inputs)}


def check(pair, build, folder):
    name, first, first_inputs, output, second, second_inputs, place = pair
    onnx.save(first, folder / "a.onnx")
    onnx.save(second, folder / "b.onnx")
    try:
        results = run_model(folder / "a.onnx", first_inputs)
        handed = [results[output] if i == place else value for i, value in enumerate(second_inputs)]
        expected = [value for i, value in enumerate(results) if i != output] + run_model(folder / "b.onnx", handed)
    except Exception:
        return "not run in turn", ""
    edge = f"a.{first.graph.output[output].name}=b.{formals(second)[place]}"
    out = folder / "m.onnx"
    done = subprocess.run([build / "optimize", "--merge", folder / "a.onnx", folder / "b.onnx", "--map", edge, "-o", out, "--level", "O0", "--quiet"],
                          capture_output=True, text=True, timeout=120)
    if done.returncode:
        return "refused" if done.returncode in (2, 3, 4) else "wrong", f"{done.returncode} {done.stderr.strip()[-200:]}"
    rest = [(each, value) for i, (each, value) in enumerate(zip(formals(second), second_inputs)) if i != place]
    feeds = {**feeds_of(out, formals(first), first_inputs, "a"), **feeds_of(out, [each for each, _ in rest], [value for _, value in rest], "b")}
    try:
        got = run_model(out, [feeds.get(name) for name in formals(onnx.load(out, load_external_data=False))])
    except Exception as error:
        return "wrong", str(error).splitlines()[0][:200]
    half = any(kind(value) and value.dtype == np.float16 for value in expected)  # rounded otherwise across the border
    return ("equal", "") if same(expected, got, *((2e-3, 1e-3) if half else (1e-6, 1e-7))) else ("wrong", "differs")


def worker(given):
    with tempfile.TemporaryDirectory() as tmp:
        for index, pair in enumerate(pairs()):
            if index < given.first or index % given.every:
                continue
            print(json.dumps([index, pair[0], "wrong", "the process died"]), flush=True)
            print(json.dumps([index, pair[0], *check(pair, pathlib.Path(given.build).resolve(), pathlib.Path(tmp))]), flush=True)


def results(given):
    """A worker that dies leaves its last word; the next one goes on behind that."""
    first, found = 0, {}
    while True:
        process = subprocess.run([sys.executable, __file__, "--worker", "--build", given.build, "--every", str(given.every), "--first", str(first)],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in process.stdout.splitlines():
            index, *result = json.loads(line)
            found[index] = result
        if process.returncode == 0:
            return list(found.values())
        first = max(found, default=first) + 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return worker(given)
    all_results = results(given)
    for name, result, why in all_results:
        if result in ("wrong", "refused"):
            print(f"{result}: {name}: {why}")
    counts = collections.Counter(result for _, result, _ in all_results)
    print(f"{len(all_results)} pairs: " + ", ".join(f"{count} {result}" for result, count in sorted(counts.items())))
    return 1 if counts["wrong"] or not counts["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
