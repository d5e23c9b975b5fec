"""The golden corpus in tests/corpus: what exporters write for one construct, and whether it all becomes the same few nodes.

Every cell is optimized for a fixed target without measuring, verified against the original by `optimize` itself, and
counted. What comes out is written in standard ops, stripped of what is known of its values, and optimized again: nothing may change. docs/coverage.md is the table of it; MODELFLOW_UPDATE=1 writes the page again.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

import onnx
import pytest
from conftest import BUILD, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(1, str(ROOT / "tests"))
from again import by_kind, forget_values  # noqa: E402

CORPUS = ROOT / "tests/corpus"
PAGE = ROOT / "docs/coverage.md"
TARGET = "cpu:avx512_vnni,cores=2"
GROUPS = {"torchscript": "TorchScript", "dynamo": "dynamo", "keras": "Keras", "paddle": "Paddle", "f16": "float16"}
PEERS = {"onnxruntime": "ONNX Runtime", "onnxsim": "onnxsim", "onnxslim": "onnxslim"}
# Nodes that move or describe data: a fused op may keep some of them around it.
VIEWS = set("Cast Concat Constant ConstantOfShape Expand Flatten Gather Identity Range Reshape Shape Slice Split Squeeze Transpose "
            "Unsqueeze".split())

Cell = collections.namedtuple("Cell", "name construct exporter opset half fused left peers")
Result = collections.namedtuple("Result", "code error verified ops reason path")


def cells():
    manifest = json.loads((CORPUS / "manifest.json").read_text())
    for name, entry in manifest["cells"].items():
        construct, rest = name.split("/")
        wanted = manifest["constructs"][construct]
        for opset in entry["opsets"]:
            yield Cell(name, construct, rest.split("-")[0], opset, rest.endswith("-f16"), wanted["fused"], wanted["left"], entry["peers"])


CELLS = list(cells())


def left_over(ops, cell):
    """Standard ops that compute and are not meant to stay."""
    return {op: n for op, n in ops.items() if "." not in op and op not in VIEWS and op not in cell.left}


def closest_miss(report):
    """The reason that --explain gives for the node that came closest to a fused op."""
    misses = [(s["stage"] == "fuse", m["matched"], m) for s in report["steps"] for m in s["misses"] if "reason" in m]
    lost = [r["reason"] for r in report["regions"] if not r["kept"]]
    if lost:
        return lost[0]
    if not misses:
        return "no rule came close"
    best = max(misses, key=lambda m: m[:2])[2]
    return f"{best['rule']}: {best['reason']}"


def run_optimize(path, out, *more):
    return run(BUILD / "optimize", path, "-o", out, "--no-measure", "--json", "--target", TARGET, "--threads", "1", *more, timeout=60)


def written(cell, folder):
    """The model of a cell, as a file."""
    text = (CORPUS / f"{cell.name}.onnxtxt").read_text()
    text = re.sub(r'("" : )\d+', rf"\g<1>{cell.opset}", text, count=1)
    path = folder / f"{cell.name.replace('/', '-')}-{cell.opset}.onnx"
    model = onnx.parser.parse_model(text)
    for i, node in enumerate(model.graph.node):  # a text has no node names; exporters give every node one
        node.name = f"{node.op_type}_{i}"
    onnx.save(model, path)
    return path


def optimize(cell, folder):
    path = written(cell, folder)
    out = path.with_suffix(".out")
    try:
        done = run_optimize(path, out)
    except subprocess.TimeoutExpired:
        return Result(-1, "does not end", False, {}, "does not end", out)
    if done.code:
        return Result(done.code, done.err.strip(), False, {}, done.err.strip(), out)
    report = json.loads(done.out)
    return Result(0, "", report["verified"], report["after"]["ops"], closest_miss(report), out)


def optimize_again(result):
    """The ops of a result in standard ops, of whose values nothing is said, after it was optimized once more."""
    plain, again = result.path.with_suffix(".plain"), result.path.with_suffix(".again")
    assert run(BUILD / "optimize", "--inline", result.path, "-o", plain).code == 0
    forget_values(plain)
    done = run_optimize(plain, again, "--no-verify")
    return json.loads(done.out)["after"]["ops"] if done.code == 0 else {done.err.strip(): 1}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(zip(CELLS, pool.map(lambda c: optimize(c, folder), CELLS), strict=True))


def kinds(ops):
    """Fused ops by kind: MatMul and MatMul_1 are two bodies of one op."""
    counts = collections.Counter()
    for op, n in ops.items():
        if op.startswith("modelflow."):
            counts[re.sub(r"_\d+$", "", op.removeprefix("modelflow."))] += n
    return dict(counts)


def is_fused(cell, result):
    return result.code == 0 and kinds(result.ops) == cell.fused and not left_over(result.ops, cell)


def peer_reaches(cell, ops):
    """As few computing nodes as there are fused ops: asks less of a peer than of us."""
    return isinstance(ops, dict) and sum(left_over(ops, cell).values()) <= sum(cell.fused.values())


def test_every_cell_runs_and_is_verified(results):
    bad = [f"{c.name} at opset {c.opset}: exit {r.code} {r.error}" for c, r in results if r.code or not r.verified]
    assert not bad, "\n".join(bad)


def test_optimizing_again_changes_nothing(results):
    newest = {cell.name: (cell, result) for cell, result in results if result.code == 0}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        again = list(pool.map(lambda pair: optimize_again(pair[1]), newest.values()))
    changed = [f"{cell.name} at opset {cell.opset}: {dict(by_kind(result.ops))} became {dict(by_kind(ops))}"
               for (cell, result), ops in zip(newest.values(), again, strict=True) if by_kind(result.ops) != by_kind(ops)]
    assert not changed, "\n".join(changed)


def ratio(pairs):
    pairs = list(pairs)
    return f"{sum(pairs)}/{len(pairs)}" if pairs else ""


def group(cell):
    return "f16" if cell.half else cell.exporter


def table(results):
    yield "| construct | must fuse | " + " | ".join([*GROUPS.values(), "all"]) + " | " + " | ".join(PEERS.values()) + " |"
    yield "|---" * (len(GROUPS) + len(PEERS) + 3) + "|"
    for construct in sorted({c.construct for c, _ in results if c.fused}):
        rows = [(c, r) for c, r in results if c.construct == construct]
        fused = " + ".join(f"{n} {op}" if n > 1 else op for op, n in sorted(rows[0][0].fused.items()))
        ours = [ratio(is_fused(c, r) for c, r in rows if group(c) == g) for g in GROUPS]
        peers = [ratio(peer_reaches(c, c.peers[p]) for c, _ in rows) for p in PEERS]
        yield f"| {construct} | {fused} | " + " | ".join([*ours, ratio(is_fused(*row) for row in rows), *peers]) + " |"


def opsets(numbers):
    numbers = sorted(numbers)
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def misses(results):
    by_name = collections.defaultdict(list)
    for c, r in results:
        if c.fused and not is_fused(c, r):
            left = " ".join(f"{op}" if n == 1 else f"{n} {op}" for op, n in sorted(left_over(r.ops, c).items()))
            got = " + ".join(f"{n} {op}" for op, n in sorted(kinds(r.ops).items())) or "nothing"
            by_name[c.name.rsplit("-", 2 if c.half else 1)[0], c.half, got, left, r.reason].append(c.opset)
    for (name, half, got, left, reason), numbers in sorted(by_name.items()):
        yield (f"- {name}, opset {opsets(numbers)}{', float16' if half else ''}: {got} fused{', left: ' + left if left else ''}; "
               f"closest miss: {reason}")


def page(results):
    versions = json.loads((CORPUS / "manifest.json").read_text())["versions"]
    counted = [(c, r) for c, r in results if c.fused]
    fused = [is_fused(c, r) for c, r in counted]
    total = len(counted)
    share = {PEERS[p]: sum(peer_reaches(c, c.peers[p]) for c, _ in counted) for p in PEERS}
    listed = list(misses(results))
    plain = sorted({c.construct for c, _ in results if not c.fused})
    return "\n".join([
        "# Coverage", "",
        "One construct, many spellings: small graphs as exporters write them (tests/corpus, synthetic weights), and whether each becomes",
        "the fused ops that it means. A cell is one construct by one exporter at one opset. Written by tests/outside/test_coverage.py,",
        "which runs `optimize --no-measure` on every cell; every cell is also verified against the original.", "",
        f"**{sum(fused)} of {total} cells ({100 * sum(fused) / total:.1f} %) are fused.** "
        + ", ".join(f"{name} {n} ({100 * n / total:.1f} %)" for name, n in share.items()) + ".", "",
        "A cell of ours counts when exactly the ops named here come out and no other node computes anything; one of another tool counts when",
        "no more computing nodes remain than we have fused ops, whatever they are (views such as Reshape do not count). ONNX Runtime is asked",
        "for the graph of its level extended. Versions: " + ", ".join(f"{k} {v}" for k, v in sorted(versions.items())) + ".", "",
        *table(results), "",
        *([f"Also in the corpus, with nothing to fuse: {', '.join(plain)}.", ""] if plain else []),
        "## Misses", "",
        *(listed or ["None."]), "",
    ])


def test_page_is_what_happens(results):
    text = page(results)
    if os.environ.get("MODELFLOW_UPDATE"):
        PAGE.write_text(text)
    assert PAGE.exists() and PAGE.read_text() == text, "docs/coverage.md is stale: run this test with MODELFLOW_UPDATE=1"
