"""Exports architectures as people do, optimizes them, verifies and times what comes out. Called by tools/exports."""
import argparse
import json
import pathlib
import sys

from catalogue import MODELS

HERE = pathlib.Path(__file__).parent
sys.path.insert(1, str(HERE.parent))
from measured import SLOWER, mean_text, run, timed  # noqa: E402

EXPORT_SECONDS, OPTIMIZE_SECONDS = 600, 300


def arguments():
    parser = argparse.ArgumentParser(prog="tools/exports", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder (tools/exports gives it)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where models and results go")
    parser.add_argument("--only", default="", help="architectures with one of these (comma) in their name")
    parser.add_argument("--exporter", default="dynamo", choices=["dynamo", "torchscript"])
    parser.add_argument("--threads", type=int, default=0, help="of every session (default: all cores)")
    parser.add_argument("--keep", action="store_true", help="models stay in the folder (they are large)")
    parser.add_argument("--page", type=pathlib.Path, help="write the table as Markdown")
    parser.add_argument("--list", action="store_true", help="only print the names")
    return parser.parse_args()


def export(options, entry, file):
    if not file.exists() or not file.with_suffix(".1.npz").exists():
        run([sys.executable, HERE / "export.py", entry.name, file, options.exporter], EXPORT_SECONDS)


def left(report):
    """What was not fused: the three most frequent standard ops."""
    plain = sorted(((n, op) for op, n in report["after"]["ops"].items() if not op.startswith("modelflow.")), reverse=True)
    return ", ".join(f"{n} {op}" for n, op in plain[:3])


def measure(options, entry):
    """A row of the table."""
    name = entry.name.replace(" ", "-")
    file, fast = options.out / f"{name}.{options.exporter}.onnx", options.out / f"{name}.{options.exporter}.fast.onnx"
    export(options, entry, file)
    report = json.loads(run([options.build / "optimize", file, "-o", fast, "--json", "--threads", options.threads,
                             "--inputs", file.with_suffix(".0.npz")], OPTIMIZE_SECONDS))
    run([options.build / "optimize", file, "-o", options.out / "other.onnx", "--json", "--no-measure", "--inputs",
         file.with_suffix(".1.npz")], OPTIMIZE_SECONDS)  # verified on the other sizes: exit 5 where it is wrong
    stock, speed, fallback = timed(options, file, fast, file.with_suffix(".0.npz"), OPTIMIZE_SECONDS)
    if not options.keep:
        for each in options.out.glob(f"{name}.*onnx*"):
            each.unlink()
    return {"stock_ms": stock, "speed": speed, "fallback": fallback, "verified": report["verified"],
            "nodes": (report["before"]["nodes"], report["after"]["nodes"]), "left": left(report)}


def row_text(entry, row):
    if "why" in row:
        return f"| {entry.name} | {row['why']} | | | | |"
    before, after = row["nodes"]
    return (f"| {entry.name} | {row['stock_ms']:.1f} ms | {row['speed']:.2f}x | {row['fallback']:.2f}x | {before} -> {after} | "
            f"{row['left']} |")


def page(results):
    lines = ["| architecture | stock | with plugin | fallback | nodes | most frequent left |", "|" + " --- |" * 6]
    lines += [row_text(entry, row) for entry, row in results]
    lines += mean_text([row["speed"] for _, row in results if "speed" in row], "", len(results))
    return "\n".join(lines) + "\n"


def main():
    options = arguments()
    wanted = [entry for entry in MODELS if any(part in entry.name for part in options.only.split(","))]
    if options.list:
        print("\n".join(entry.name for entry in wanted))
        return False
    options.out.mkdir(parents=True, exist_ok=True)
    results, wrong = [], []
    for entry in wanted:
        try:
            row = measure(options, entry)
            if row["speed"] < SLOWER or not row["verified"]:
                wrong.append(entry.name)
        except RuntimeError as error:
            row = {"why": str(error)}
        results.append((entry, row))
        print(row_text(entry, row), flush=True)
    if options.page:
        options.page.write_text(page(results))
    (options.out / "exports.json").write_text(json.dumps({entry.name: row for entry, row in results}, indent=1))
    refused = [entry.name for entry, row in results if "why" in row]
    print(f"{len(results)} architectures; slower or not verified: {', '.join(wrong) or 'none'}; "
          f"not exported or refused: {', '.join(refused) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
