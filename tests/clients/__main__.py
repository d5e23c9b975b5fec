"""Clients of models against one model that does what they do. Called by tools/demo-clients."""
import argparse
import json
import pathlib
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")  # a client that asks for CUDA
import numpy as np  # noqa: E402
from case import apart  # noqa: E402
from pictures import Orientation, Text  # noqa: E402
from quality import Echo, Listeners, Losses, Quality  # noqa: E402
from wakewords import Voice, Wakewords  # noqa: E402

CASES = {case.name: case for case in (Wakewords(), Voice(), Listeners(), Quality(), Echo(), Losses(), Text(), Orientation())}


def arguments():
    parser = argparse.ArgumentParser(prog="tools/demo-clients", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder (tools/demo-clients gives it)")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where models go")
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--seconds", type=float, default=4, help="of load for requests per second")
    parser.add_argument("--page", type=pathlib.Path, help="write the table as Markdown")
    parser.add_argument("--load", nargs=2, help=argparse.SUPPRESS)  # a case and a side, in a process of its own
    return parser.parse_args()


def runner(case, side, given):
    plugin = given.build / "libmodelflow_ort.so" if side == "merged" else None
    return case.client() if side == "client" else case.merged(given.out / f"{case.name}.onnx", plugin)


def load(given):
    """Prints how many requests this process answered; the first are not counted."""
    case, side = CASES[given.load[0]], given.load[1]
    requests, answer = case.requests(), runner(case, side, given)
    for request in requests[:3]:
        answer(request)
    print("ready", flush=True)
    sys.stdin.readline()
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < given.seconds:
        answer(requests[count % len(requests)])
        count += 1
    print(count / (time.perf_counter() - begin))


def per_second(case, side, given, processes=2):
    """All processes begin when all are ready."""
    command = [sys.executable, str(pathlib.Path(__file__).parent), "--build", str(given.build), "--out", str(given.out), "--seconds", str(given.seconds)]
    running = [subprocess.Popen([*command, "--load", case.name, side], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    for process in running:
        process.stdout.readline()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in running)


def latency(case, given, rounds=5):
    """Milliseconds of a request, the median; a side at a time, since idle threads of a runtime go on spinning."""
    requests, times = case.requests(), {}
    for _ in range(rounds):
        for side in ("client", "stock", "merged"):
            answer = runner(case, side, given)
            for request in requests[:3]:
                answer(request)
            time.sleep(0.2)
            for request in requests[:40]:
                begin = time.perf_counter()
                answer(request)
                times.setdefault(side, []).append(time.perf_counter() - begin)
    return {side: float(np.median(all_times)) * 1e3 for side, all_times in times.items()}


def difference(case, given):
    """The largest difference of any score over the whole sound."""
    client, merged, worst = runner(case, "client", given), runner(case, "merged", given), 0.0
    for number, request in enumerate(case.requests()):
        off = apart(merged(request), client(request))
        if number >= case.settles:
            worst = max(worst, off)
    return worst


def row(case, given):
    report = json.loads(subprocess.run([given.build / "optimize", *map(str, case.arguments(given.out)), "-o", given.out / f"{case.name}.onnx", "--json"],
                                       check=True, capture_output=True, text=True).stdout)
    worst, times = difference(case, given), latency(case, given)
    rates = {side: per_second(case, side, given) for side in ("client", "merged")}
    return {"case": case.title, "sessions": case.sessions, "nodes": f"{report['before']['nodes']} -> {report['after']['nodes']}", "worst": worst,
            **times, "requests": rates["merged"] / rates["client"], "ok": worst <= case.tolerance}


def main():
    given = arguments()
    if given.load:
        return load(given)
    given.out.mkdir(parents=True, exist_ok=True)
    lines = ["| client | sessions | nodes | largest difference of a score | client | one model in stock ONNX Runtime | one model with the plugin | latency | requests per second |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    wanted = [case for name, case in CASES.items() if given.only in name]
    if not wanted:
        sys.exit(f"no case has '{given.only}' in its name: {', '.join(CASES)}")
    rows = [row(case, given) for case in wanted]
    for each in rows:
        lines.append(f"| {each['case']} | {each['sessions']} | {each['nodes']} | {each['worst']:.0e} | {each['client']:.2f} ms | {each['stock']:.2f} ms | "
                     f"{each['merged']:.2f} ms | {100 * (each['merged'] / each['client'] - 1):+.0f} % | {each['requests']:.2f}x |")
    print("\n".join(lines))
    if given.page:
        given.page.write_text("\n".join(lines) + "\n")
    return 0 if all(each["ok"] for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
