"""Plans models for GPUs and asks ONNX Runtime's CUDA provider where it would run them. See tools/gpu-plans."""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MODELFLOW_BUILD", ROOT / "build")).resolve()
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
ZOO = CACHE / "modelflow-zoo"
CPU = "CPUExecutionProvider"
BATCH = 50  # sessions in one process
NOT_HERE = "the stand-in computes nothing"  # cuDNN prepares recurrent layers when a session is made: only a GPU can open these
MARKS = ("<!-- gpu-plans: the table that tools/gpu-plans --page writes -->", "<!-- end of gpu-plans -->")

Plan = collections.namedtuple("Plan", "path report error")
Placed = collections.namedtuple("Placed", "nodes on_cpu error")


def setting(name):
    """From the environment, else as tools/setup --cuda left it."""
    deps = CACHE / "modelflow/deps/deps.cmake"
    found = re.findall(rf'set\({name} "(.*)"\)', deps.read_text()) if deps.exists() else []
    return os.environ.get(name) or (found[-1] if found else "")


def environment(folder):
    """In which onnxruntime-gpu finds a device that is host memory."""
    runtime, include = setting("MODELFLOW_ORT_GPU"), setting("MODELFLOW_CUDA_INCLUDE")
    if not runtime or not include:
        sys.exit("tools/gpu-plans: onnxruntime-gpu or the headers of CUDA are not there: tools/setup --cuda brings them")
    provider = pathlib.Path(runtime) / "onnxruntime/capi/libonnxruntime_providers_cuda.so"
    subprocess.run([ROOT / "tests/cuda/stand_in/make", provider, include, folder / "stand_in"], check=True)
    return {**os.environ, "PYTHONPATH": runtime, "LD_LIBRARY_PATH": str(folder / "stand_in"),
            "MODELFLOW_CUDA_LIBRARY": str(BUILD / "libmodelflow_ort_cuda_emulated.so")}


def plan(model, target, precision, out, *more, calibration=None):
    if precision == "int8" and calibration:
        more = (*more, "--calibration", calibration)
    done = subprocess.run([BUILD / "optimize", model, "-o", out, "--target", target, "--precision", precision, "--no-measure", "--json",
                           "--threads", "1", *more], capture_output=True, text=True)
    return Plan(out, json.loads(done.stdout) if done.returncode == 0 else {}, done.stderr.strip() if done.returncode else "")


def sessions(wanted, env):
    """Where the nodes of each model are placed."""
    found = []
    for at in range(0, len(wanted), BATCH):
        batch = wanted[at:at + BATCH]
        done = subprocess.run([sys.executable, ROOT / "tests/outside/cuda_session.py", json.dumps(batch)], capture_output=True, text=True, env=env)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        lines += [{"error": f"the process ended: {done.returncode}"}] * (len(batch) - len(lines))
        for said in lines:
            on_cpu = collections.Counter(said.get("placed", {}).get(CPU, []))
            found.append(Placed(sum(map(len, said.get("placed", {}).values())), on_cpu, said.get("error", "")))
    return found


def count_nodes(graph):
    return sum(1 + sum(count_nodes(a.g) for a in node.attribute if a.HasField("g")) for node in graph.node)


def fused(report):
    return sum(n for op, n in report["after"]["ops"].items() if op.startswith("modelflow."))


def extents(report):
    """--input-shapes of the typical feed."""
    shapes = next(iter(report.get("feeds", [])), {}).get("shapes", {})
    return [f"--input-shapes={name}:{shape.partition('[')[2].rstrip(']')}" for name, shape in shapes.items()]


def predicted(found, model, left, target, precision):
    """Seconds of what ONNX Runtime leaves, ours and the floor. What has weights in 4 or 8 bits computes in the model's own type."""
    floats = [f"--predict-in={precision}"] if precision in ("fp16", "bf16") else []
    done = subprocess.run([BUILD / "modelflow-bench", found.path, f"--vs={model}", f"--vs={left}", "--json", f"--predict={target}",
                           *floats, *extents(found.report)], capture_output=True, text=True, check=True)
    ours, _, stock = json.loads(done.stdout)["models"]
    return stock["predicted_seconds"], ours["predicted_seconds"], ours["floor_seconds"]


HEAD = ["model", "plan", "exported", "ORT CUDA", "of these on the CPU", "planned", "fused", "Cast", "on the CPU", "ORT, predicted us",
        "planned, predicted us", "floor us"]


def zoo_rows(models, ways, env, folder, problems, calibration):
    import onnx

    for model in models:
        left = folder / f"{model.stem}.left.onnx"
        stock, = sessions([{"model": str(model), "save": str(left)}], env)
        kept = count_nodes(onnx.load(left, load_external_data=False).graph) if left.exists() else 0
        if stock.error:
            problems.append(f"{model.name} in ONNX Runtime: {stock.error}")
        for target, precision in ways:
            found = plan(model, target, precision, folder / f"{model.stem}.planned.onnx", calibration=calibration)
            if found.error:
                problems.append(f"{model.name} {target} {precision}: {found.error}")
                continue
            placed, = sessions([{"model": str(found.path), "plugin": str(BUILD / "libmodelflow_ort.so")}], env)
            if placed.error:
                problems.append(f"{model.name} {target} {precision}: {placed.error}")
            if placed.on_cpu:
                print(f"  {model.name} {target} {precision}: on the CPU {dict(placed.on_cpu)}", file=sys.stderr)
            times = predicted(found, model, left, target, precision)
            after = found.report["after"]
            yield [model.stem, f"{target.removeprefix('cuda:')} {precision}", found.report["before"]["nodes"], kept, sum(stock.on_cpu.values()),
                   after["nodes"], fused(found.report), after["ops"].get("Cast", 0), sum(placed.on_cpu.values()),
                   *(f"{1e6 * t:.1f}" for t in times)]
        for file in folder.glob(f"{model.stem}.*"):
            file.unlink()


def corpus_rows(ways, env, folder, jobs, problems):
    import onnx

    sys.path.insert(0, str(ROOT / "tests/outside"))
    import test_coverage

    models = [test_coverage.written(cell, folder) for cell in test_coverage.CELLS]
    left = [path.with_suffix(".left.onnx") for path in models]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        stock = sessions([{"model": str(m), "save": str(out)} for m, out in zip(models, left, strict=True)], env)
        kept = sum(count_nodes(onnx.load(out, load_external_data=False).graph) for out in left if out.exists())
        for target, precision in ways:
            plans = list(pool.map(lambda m: plan(m, target, precision, m.with_suffix(".planned"), "--no-verify"), models))
            good = [p for p in plans if not p.error]
            problems += [f"{m.stem} {target} {precision}: {p.error}" for m, p in zip(models, plans, strict=True) if p.error]
            placed = sessions([{"model": str(p.path), "plugin": str(BUILD / "libmodelflow_ort.so")} for p in good], env)
            problems += [f"{p.path.stem} {target} {precision}: {s.error}" for p, s in zip(good, placed, strict=True)
                         if s.error and NOT_HERE not in s.error]
            unseen = sum(NOT_HERE in s.error for s in placed)
            on_cpu = sum((s.on_cpu for s in placed), collections.Counter())
            where = collections.Counter(re.sub(r"-\d+$", "", p.path.stem) for p, s in zip(good, placed, strict=True) if s.on_cpu)
            print(f"  corpus {target} {precision}: on the CPU {dict(on_cpu)} in {dict(where)}", file=sys.stderr)
            yield [f"corpus, {len(good)} cells" + (f" (sessions of {unseen} not opened: cuDNN's LSTM and GRU)" if unseen else ""),
                   f"{target.removeprefix('cuda:')} {precision}", sum(p.report["before"]["nodes"] for p in good), kept,
                   sum(sum(s.on_cpu.values()) for s in stock), sum(p.report["after"]["nodes"] for p in good), sum(fused(p.report) for p in good),
                   sum(p.report["after"]["ops"].get("Cast", 0) for p in good), on_cpu.total(), "", "", ""]


def write_page(page, text):
    old = page.read_text()
    begin, end = (old.index(mark) for mark in MARKS)
    page.write_text(old[:begin] + MARKS[0] + "\n" + text + old[end:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", nargs="+", type=pathlib.Path)
    parser.add_argument("--targets", default="cuda:sm_80,cuda:sm_90")
    parser.add_argument("--precisions", default="fp16,bf16")
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("--no-corpus", action="store_true")
    parser.add_argument("--no-zoo", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=pathlib.Path)
    wanted = parser.parse_args()
    models = wanted.models or sorted(p for p in ZOO.glob("*.onnx") if "." not in p.stem)
    if not models and not wanted.no_zoo:
        print(f"tools/gpu-plans: no models in {ZOO}: name some with --models", file=sys.stderr)
    ways = [(t, p) for t in wanted.targets.split(",") for p in wanted.precisions.split(",")]
    problems, rows = [], ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        env = environment(folder)
        parts = ([] if wanted.no_zoo else [zoo_rows(models, ways, env, folder, problems, wanted.calibration)]) + (
            [] if wanted.no_corpus else [corpus_rows(ways, env, folder, wanted.jobs, problems)])
        for row in (row for part in parts for row in part):
            rows.append("| " + " | ".join(map(str, row)) + " |")
            print(rows[-1], file=sys.stderr)
    text = "\n".join(rows) + "\n"
    if wanted.page:
        write_page(wanted.page, text)
    else:
        print(text, end="")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
