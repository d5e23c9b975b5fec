"""The results as text for the terminal and as a page for docs/."""

HEAD = """# Accuracy

What low precision costs on trained models, measured on data that calibration has not seen. Written by `tools/accuracy`;
the data is rendered, synthesized or made up by the code in tests/accuracy, the same on every machine. Every row runs the same
data: the original in ONNX Runtime, our result in ONNX Runtime with the plugin, and what other tools make of the model with
their defaults and the same calibration data ({peers}).

A bound is what our rows must keep; a value that misses it is marked with a cross.
"""


def number(metric, value):
    return f"{value:.{metric['digits']}f}{' ' + metric['unit'] if metric['unit'] else ''}"


def cell(metric, row):
    if metric["name"] not in row["values"]:
        return "-"
    return number(metric, row["values"][metric["name"]]) + ("" if row["holds"].get(metric["name"], True) else " ✗")


def table(result):
    metrics = result["metrics"]
    lines = [["", *(m["name"] for m in metrics), "note"]]
    lines += [[row["variant"], *(cell(m, row) for m in metrics), row.get("note", "")] for row in result["rows"]]
    lines.append(["*bound*", *(m["bound"] for m in metrics), ""])
    return lines


def plain(result):
    """For the terminal: columns of equal width."""
    lines = table(result)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
                     for line in lines)


def markdown(result):
    lines = table(result)
    if not any(line[-1] for line in lines[1:]):
        lines = [line[:-1] for line in lines]
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])


def page(results):
    peers = ", ".join(f"{name} {version}" for name, version in sorted(results["versions"].items()))
    parts = [HEAD.format(peers=peers)]
    if results["share"] < 1:
        parts.append(f"**A quick look at {100 * results['share']:.0f} % of the data.**\n")
    for result in results["tasks"].values():
        parts.append(f"## {result['title']}\n")
        parts.append((f"Not measured: {result['missing']}." if "missing" in result else markdown(result)) + "\n")
    parts.append("Reproduce with `tools/accuracy --page docs/accuracy.md`; one task alone with `--tasks`, "
                 "a quick look with `--share 0.1`.\n")
    return "\n".join(parts)
