"""What tools/models and tools/exports have alike: commands run, models timed beside stock ONNX Runtime, means of speed."""
import json
import math
import subprocess

SLOWER = 0.98  # what a fair comparison of two equal things may show


def run(words, seconds=None):
    """Standard output, or a RuntimeError with the last line of the other."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"not done in {seconds} s") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise RuntimeError(f"exit {done.returncode}: {lines[-1][:100] if lines else 'no message'}")
    return done.stdout


def timed(options, model, fast, feeds, seconds=None):
    """Milliseconds of stock ONNX Runtime, and speed over it with the plugin and without, in processes of their own."""
    told = json.loads(run([options.build / "modelflow-bench", fast, "--vs", model, "--inputs", feeds, "--json",
                           "--threads", options.threads], seconds))
    sides = {side["name"]: side for side in told["sides"]}
    ours = sides.get("with plugin", sides["without plugin"])
    stock = next(side for name, side in sides.items() if name not in ("with plugin", "without plugin"))
    return stock["p50_ms"], ours["speedup"] / stock["speedup"], sides["without plugin"]["speedup"] / stock["speedup"]


def mean_text(speeds, of, total):
    """A line below a table; nothing where there is no speed."""
    if not speeds:
        return []
    mean = math.exp(sum(map(math.log, speeds)) / len(speeds))
    return [f"\nGeometric mean{of}: {mean:.2f}x over {len(speeds)} of {total}, the slowest {min(speeds):.2f}x."]
