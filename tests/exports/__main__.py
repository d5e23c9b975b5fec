"""Exports architectures as people do, optimizes them, verifies and times what comes out. Called by tools/exports."""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

from catalogue import MODELS

HERE = pathlib.Path(__file__).parent
sys.path.insert(1, str(HERE.parent))
from again import by_kind, forget_values  # noqa: E402
from measured import SLOWER, mean_text, run, timed  # noqa: E402

EXPORT_SECONDS, OPTIMIZE_SECONDS = 600, 300
LOWER = {"eight_bits": "8 bits", "calibrated": "8 bits calibrated"}  # parts of a row
APART = 0.03  # what a speed that `optimize` reports may differ by elsewhere

# The page begins so.
HEAD = """# Architectures that hubs serve

Exported with random weights (nothing is downloaded) by `tools/exports`, from torchvision, timm, transformers, diffusers, ultralytics, torchaudio,
segmentation_models_pytorch, MONAI, x_transformers, torch_geometric, snac, speechbrain, TabNet, FT-Transformer, DLRM and entity embeddings: language models with two layers of the width that
they have on hubs or of 512, what draws pictures with two blocks. PyTorch's older exporter makes those that the newer one does not take. Written by `tools/exports --page {page}` on {machine}.

Speed is that of the model over stock ONNX Runtime with all its optimizations, float32, batch 1 (sentences: 2 of 32 tokens), in processes of their own: with the
plugin, without it (fallback), and of OpenVINO on the model as it came (its own process, extents as they are, latency). Each result was compared with the original on these inputs and,
with everything fused, on larger ones. *All fused*: nodes before and after where nothing is measured and every rule applies. *Changed again*: how many ops are others when
that result is written in standard ops, stripped of what is known of its values, and optimized once more. Models at 0.98x to 1.03x mostly stay as they came: nothing was faster.
*8 bits*: `--precision int8-dynamic` with its usual bound on accuracy (what costs more of it stays in float32), over the same stock ONNX Runtime in float32; so is how much of the bound it took.
*Calibrated*: `--precision int8`, calibrated on these inputs, which is what makes convolutions 8-bit. *None*: nothing became 8-bit, the result is that in float32.
*Of peak*: the operations of convolutions, products and recurrent layers per second, as a share of what the machine computes at most (measured on registers alone), stock -> with plugin:
no direct form of a model where stock has 70 % can be faster than 1.4x; shares above 100 % are convolutions by Winograd, which multiply less.

"""


def arguments():
    parser = argparse.ArgumentParser(prog="tools/exports", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder (tools/exports gives it)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where models and results go")
    parser.add_argument("--only", default="", help="architectures with one of these (comma) in their name")
    parser.add_argument("--exporter", default="dynamo", choices=["dynamo", "torchscript"])
    parser.add_argument("--threads", type=int, default=0, help="of every session (default: all cores)")
    parser.add_argument("--eight-bits", action="store_true", help="each once more with --precision int8-dynamic")
    parser.add_argument("--calibrated", action="store_true", help="each once more with --precision int8")
    parser.add_argument("--keep", action="store_true", help="models stay in the folder (they are large)")
    parser.add_argument("--openvino", type=pathlib.Path, help="a Python with OpenVINO, to be timed beside ONNX Runtime")
    parser.add_argument("--page", type=pathlib.Path, help="write the table as Markdown")
    parser.add_argument("--missing", action="store_true", help="only what no earlier run has measured")
    parser.add_argument("--prepare", action="store_true", help="export and count nodes, time nothing; models stay in the folder")
    parser.add_argument("--list", action="store_true", help="only print the names")
    return parser.parse_args()


def export(entry, file, exporter):
    if not file.exists() or not file.with_suffix(".1.npz").exists():
        run([sys.executable, HERE / "export.py", entry.name, file, exporter], EXPORT_SECONDS)


def left(report):
    """What was not fused: the three most frequent standard ops."""
    plain = sorted(((n, op) for op, n in report["after"]["ops"].items() if not op.startswith("modelflow.")), reverse=True)
    return ", ".join(f"{n} {op}" for n, op in plain[:3])


def optimized(options, file, result, *words):
    """The report of one run of `optimize`; exit 5, a RuntimeError, where the result is wrong."""
    command = [options.build / "optimize", file, "-o", result, "--json", "--threads", options.threads, *words]
    return json.loads(run(command, OPTIMIZE_SECONDS))


def changed_again(options, name, fused, report, feeds):
    """What optimizing a result in standard ops, of whose values nothing is said, makes of it at the same sizes: how many ops are others."""
    plain, again = options.out / f"{name}.plain.onnx", options.out / f"{name}.again.onnx"
    run([options.build / "optimize", "--inline", fused, "-o", plain], OPTIMIZE_SECONDS)
    forget_values(plain)
    before, after = (by_kind(each["after"]["ops"]) for each in (report, optimized(options, plain, again, "--no-measure", "--no-verify", "--inputs", feeds)))
    return sum(((before - after) + (after - before)).values())


def everything_fused(options, file, result):
    """The report of a run that measures nothing, and what it was verified on: the other sizes, where the exporter did not write the first ones into the model."""
    first, other = file.with_suffix(".0.npz"), file.with_suffix(".1.npz")
    try:
        return optimized(options, file, result, "--no-measure", "--inputs", other), other
    except RuntimeError as error:
        if "given data" not in str(error):  # what ONNX Runtime does not run the original on
            raise
    return optimized(options, file, result, "--no-measure", "--inputs", first), first


def lacks(options, row):
    """What of a row is to be done: all that was asked for or, with --missing, what no earlier run gave."""
    asked = ["nodes", "made_up"]
    if not options.prepare:
        asked += ["speed"] + ["eight_bits"] * options.eight_bits + ["calibrated"] * options.calibrated
    return [part for part in asked if not options.missing or part not in row]


def measure(options, entry, row):
    """The row of the table with what it lacks."""
    exporter = entry.exporter or options.exporter
    name = f"{entry.name.replace(' ', '-')}.{exporter}"
    file = options.out / f"{name}.onnx"
    wanted = lacks(options, row)
    try:
        try:
            export(entry, file, exporter)
        except RuntimeError as error:  # no fault of the optimizer's
            return {"why": str(error), "exported": False}
        if "nodes" in wanted:
            row = all_fused(options, name, file)
        if "made_up" in wanted:
            row["made_up"] = on_made_up_inputs(options, name, file)
        if "speed" in wanted:
            row |= in_float32(options, name, file)
        lower = options.out / f"{name}.lower.onnx"
        if "eight_bits" in wanted:
            row["eight_bits"] = in_eight_bits(options, file, lower, "int8-dynamic")
        if "calibrated" in wanted:
            row["calibrated"] = calibrated(options, file, lower)
    finally:
        for each in [] if options.keep else options.out.glob(f"{name}*.onnx*"):
            if not (options.prepare and each.name.startswith(file.name)):
                each.unlink()
    return row


def all_fused(options, name, file):
    """What needs no quiet machine: nodes with everything fused, what is left then, and what changes when that is optimized again."""
    other = options.out / f"{name}.other.onnx"
    report, feeds = everything_fused(options, file, other)
    return {"nodes": (report["before"]["nodes"], report["after"]["nodes"]), "left": left(report), "fused_verified": report["verified"],
            "again": changed_again(options, name, other, report, feeds)}


def on_made_up_inputs(options, name, file):
    """What users see who give no inputs: whether the result is verified, and what is blamed and left out."""
    report = optimized(options, file, options.out / f"{name}.other.onnx", "--no-measure")
    return {"verified": report["verified"], "blamed": [fault["what"] for fault in report["faults"]]}


def in_float32(options, name, file):
    """Speeds and seconds of the model optimized with its usual options."""
    fast, feeds = options.out / f"{name}.fast.onnx", file.with_suffix(".0.npz")
    start = time.monotonic()
    report = optimized(options, file, fast, "--inputs", feeds)
    seconds = time.monotonic() - start
    stock, speed, fallback = timed(options, file, fast, feeds, OPTIMIZE_SECONDS)
    return {"machine": report["machine"], "flops": report["before"]["flops"], "stock_ms": stock, "speed": speed, "fallback": fallback, "said": report["speedup"],
            "verified": report["verified"], "seconds": seconds, "unmeasured": sum("not measured" in region["reason"] for region in report["regions"]),
            "openvino": openvino_speed(options, file, feeds)}


def calibrated(options, file, result):
    """As in_eight_bits, calibrated on the inputs that are timed."""
    with tempfile.TemporaryDirectory() as samples:
        shutil.copy(file.with_suffix(".0.npz"), samples)
        return in_eight_bits(options, file, result, "int8", "--calibration", samples)


def in_eight_bits(options, file, result, *precision):
    """The part of the bound on accuracy that it takes, how many products became 8-bit and, where any did, the speed over stock ONNX Runtime in float32."""
    feeds = file.with_suffix(".0.npz")
    try:
        report = optimized(options, file, result, "--precision", *precision, "--inputs", feeds)
        lowered = report["quantization"] or {"drop": 0, "max_drop": 1, "ops": []}
        row = {"verified": report["verified"], "drop": (lowered["drop"] or 0) / lowered["max_drop"],
               "lowered": sum(op["precision"] != "float32" for op in lowered["ops"])}
        if row["lowered"]:
            row["speed"] = timed(options, file, result, feeds, OPTIMIZE_SECONDS)[1]
        return row
    except RuntimeError as error:
        return {"why": str(error)}


def openvino_speed(options, file, feeds):
    """Its speed over stock ONNX Runtime; 0 where it is not there or does not run the model."""
    if not options.openvino:
        return 0
    try:
        return float(run([options.openvino, HERE / "openvino_times.py", file, feeds, options.threads], OPTIMIZE_SECONDS))
    except RuntimeError:
        return 0


def share_of_peak(row):
    """Of stock ONNX Runtime; 0 where the row does not say."""
    peak = row["machine"]["peak"]["float32"]
    return row.get("flops", 0) / (row["stock_ms"] / 1e3 * peak) if peak else 0


def eight_bits_text(eight):
    """Of one of LOWER; nothing where it was not measured."""
    if eight is None or "why" in eight:
        return eight["why"] if eight else ""
    return f"{eight['speed']:.2f}x, {100 * eight['drop']:.0f} %" if eight["lowered"] else "none"


def row_text(entry, row):
    if "why" in row:
        return f"| {entry.name} | {row['why']} |" + " |" * 10
    before, after = row["nodes"]
    if "speed" not in row:
        return f"| {entry.name} | {before} -> {after} | {row['again'] or ''} | {row['left']} |"
    eight = " | ".join(eight_bits_text(row.get(part)) for part in LOWER)
    peer = f"{row['openvino']:.2f}x" if row["openvino"] else ""
    share = share_of_peak(row)
    of_peak = f"{100 * share:.0f} -> {100 * share * row['speed']:.0f} %" if share else ""
    return (f"| {entry.name} | {row['stock_ms']:.1f} ms | {row['speed']:.2f}x | {row['fallback']:.2f}x | {peer} | {of_peak} | {eight} | {row['seconds']:.0f} s | "
            f"{before} -> {after} | {row['again'] or ''} | {row['left']} |")


def machine(rows):
    """Words for where the newest rows were timed."""
    known = [row["machine"] for row in rows if "machine" in row]
    return "{cpu}, {isas}, {threads} thread{s}".format(**known[-1], s="" if known[-1]["threads"] == 1 else "s") if known else "an unknown machine"


def claims_text(results):
    """How far the speeds that `optimize` reported itself are from those measured in processes of their own."""
    apart = {entry.name: row["said"] / row["speed"] - 1 for entry, row in results if row.get("said")}  # 0 where it measured nothing
    if not apart:
        return []
    far = [each for each in apart.values() if abs(each) > APART]
    mean, most = sum(map(abs, apart.values())) / len(apart), max(apart, key=lambda name: abs(apart[name]))
    return [f"\nWhat `optimize` itself said of the whole model differs by more than {100 * APART:.0f} % from *with plugin* for {len(far)} of {len(apart)} "
            f"models ({sum(each > 0 for each in far)} times it said too much): by {100 * mean:.1f} % on average, at most by {100 * abs(apart[most]):.0f} % ({most})."]


def made_up_text(rows):
    """How many are right on inputs that `optimize` makes up."""
    known = [row["made_up"] for row in rows if "made_up" in row]
    blamed = [each for each in known if each["blamed"]]
    return [f"\nOn inputs that `optimize` makes up: {sum(each['verified'] for each in known)} of {len(known)} verified, something left out as wrong in {len(blamed)}."] if known else []


def page(results, file):
    heads = ["architecture", "stock", "with plugin", "fallback", "OpenVINO", "of peak", "8 bits", "calibrated", "optimized in", "all fused", "changed again", "most frequent left"]
    rows = [row for _, row in results if "speed" in row]
    lines = [HEAD.format(page=file, machine=machine(rows)) + "| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    results = [(entry, row) for entry, row in results if "speed" in row or "why" in row]
    lines += [row_text(entry, row) for entry, row in results]
    lines += [f"\n{len(results)} of the {len(MODELS)} architectures have been run."]
    lines += mean_text([row["speed"] for row in rows], "", len(results))
    both = [row for row in rows if row["openvino"]]
    ahead = sum(row["speed"] >= SLOWER * row["openvino"] for row in both)
    lines += mean_text([row["openvino"] for row in both], ", OpenVINO", len(results))
    counted = [row["unmeasured"] for row in rows if "unmeasured" in row]
    for part, words in LOWER.items():
        lower = [row for row in rows if "speed" in row.get(part, {})]
        lines += mean_text([row[part]["speed"] for row in lower], f", {words} where anything is", len(results))
        lines += mean_text([row[part]["speed"] / row["speed"] for row in lower], f", {words} over float32", len(results))
    lines += [f"\nAhead of OpenVINO or equal (2 %): {ahead} of {len(both)}. Models with parts that could not be timed alone: {sum(map(bool, counted))} of {len(counted)}."]
    lines += made_up_text(rows) + claims_text(results)
    return "\n".join(lines) + "\n"


def is_wrong(row):
    """Slower than stock ONNX Runtime, in 8 bits than in float32, not verified, something blamed, or exported and not optimized."""
    if "why" in row:
        return row.get("exported", True)
    if "made_up" in row and (row["made_up"]["blamed"] or not row["made_up"]["verified"]):
        return True
    if "speed" not in row:
        return not row["fused_verified"]
    lower = [row[part] for part in LOWER if part in row]
    right = row["verified"] and row["fused_verified"] and all(each.get("verified", False) for each in lower)
    return not right or row["speed"] < SLOWER or any(each.get("speed", row["speed"]) < SLOWER * row["speed"] for each in lower)


def main():
    options = arguments()
    wanted = [entry for entry in MODELS if any(part in entry.name for part in options.only.split(","))]
    if options.list:
        print("\n".join(entry.name for entry in wanted))
        return False
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / f"rows.{options.exporter}.json"  # of earlier runs, too: all of them take hours
    rows = json.loads(kept.read_text()) if kept.exists() else {}
    if options.missing:
        wanted = [entry for entry in wanted if lacks(options, rows.get(entry.name, {}))]
    for entry in wanted:
        try:
            row = measure(options, entry, rows.get(entry.name, {}))
        except RuntimeError as error:
            row = {"why": str(error)}
        rows[entry.name] = row
        kept.write_text(json.dumps(rows, indent=1))
        print(row_text(entry, row), flush=True)
    if options.page:
        options.page.write_text(page([(entry, rows[entry.name]) for entry in MODELS if entry.name in rows], options.page))
    missing = [entry.name for entry in wanted if not rows[entry.name].get("exported", True)]
    wrong = [entry.name for entry in wanted if is_wrong(rows[entry.name])]
    print(f"{len(wanted)} architectures; slower, not verified or failed: {', '.join(wrong) or 'none'}; not exported: {', '.join(missing) or 'none'}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
