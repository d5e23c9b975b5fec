"""The command `modelflow-bench`: what it reports, not how fast anything is."""
import json
import os
import re
import resource

import onnx
import pytest


def sides_of(done):
    assert done.code == 0, done.err
    return {side["name"]: side for side in json.loads(done.out)["sides"]}


def test_sides_and_latencies(cnn, bench, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    done = bench(tmp_path / "fast.onnx", "--vs", cnn, "--rounds", 2, "--block", 0.01, "--threads", 1, "--json")
    sides = sides_of(done)
    assert list(sides) == [str(cnn), "without plugin", "with plugin"]
    assert sides[str(cnn)]["speedup"] == 1
    for side in sides.values():
        assert 0 < side["p50_ms"] <= side["p90_ms"] <= side["p99_ms"]
        assert "nodes" not in side


def test_the_profile_counts_operations(cnn, bench, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    shapes = ["--input-shapes", "x:2,3,32,32"]
    quick = ["--rounds", 2, "--block", 0.01, "--threads", 1, "--profile"]
    done = bench(tmp_path / "fast.onnx", *shapes, *quick, "--json")
    peak = json.loads(done.out)["peak"]
    first = 2 * (2 * 16 * 16 * 16) * (3 * 3 * 3)  # multiply-adds: images x filters x pixels, by the window
    for side in sides_of(done).values():
        work = {node["operations"]: node for node in side["nodes"] if "operations" in node}
        assert first in work, side["name"]
        for node in work.values():
            assert abs(node["share_of_peak"] - node["operations"] / (node["ms"] * 1e-3) / peak["float32"]) < 1e-9
    text = bench(tmp_path / "fast.onnx", *shapes, *quick)
    assert text.code == 0 and "GOP/s" in text.out and "peak of this machine on 1 thread(s)" in text.out


def test_a_page_and_a_trace(cnn, bench, optimize, tmp_path):
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    done = bench(tmp_path / "fast.onnx", "--vs", cnn, "--rounds", 2, "--block", 0.01, "--threads", 1, "--report", tmp_path / "r.html", "--trace", tmp_path / "t.json")
    assert done.code == 0 and "time by op" not in done.out, done.err
    page = json.loads(re.search(r'id="report">(.*?)</script>', (tmp_path / "r.html").read_text(), re.S)[1])
    assert page["kind"] == "bench" and [side["name"] for side in page["sides"]] == [str(cnn), "without plugin", "with plugin"]
    assert all(side["nodes"] and side["ms"] > 0 and side["p99_ms"] > 0 for side in page["sides"])
    assert [graph["name"] for graph in page["graphs"]] == [str(cnn), str(tmp_path / "fast.onnx")] and any(node["sources"] for node in page["graphs"][1]["nodes"])
    trace = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in trace if event["ph"] == "M"] == [side["name"] for side in page["sides"]]
    for process in (1, 2, 3):
        spans = [event for event in trace if event["pid"] == process and event["ph"] == "X" and event["cat"] == "Node"]
        assert len(spans) > 20 and all({"name", "ts", "dur", "tid"} <= set(span) for span in spans)


def test_what_cannot_be_measured_is_one_line(cnn, bench, tmp_path):
    for arguments in ([tmp_path / "none.onnx"], [cnn, "--vs", tmp_path / "none.onnx"]):
        done = bench(*arguments)
        assert done.code == 3 and done.err.count("\n") == 1 and done.out == ""


def test_kernels_stand_beside_the_bodies_of_their_ops(cnn, bench, optimize, tmp_path):
    done = bench("--kernels", "--op", "Pool", "--block", 0.001, "--threads", 1, "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert {call["op"] for call in report["calls"]} == {"Pool"}
    for call in report["calls"]:
        assert call["times"][0] | {"speedup": 1} == call["times"][0] and call["times"][0]["kernel"] == "body"
        assert [time["kernel"] for time in call["times"][1:]] == ["cpu.pool"]
    assert optimize(cnn, "-o", tmp_path / "fast.onnx", "--no-measure").code == 0
    of_model = ["--kernels", tmp_path / "fast.onnx", "--op", "Conv", "--input-shapes", "x:2,3,32,32", "--block", 0.001]
    calls = json.loads(bench(*of_model, "--json").out)["calls"]
    assert any(call["operations"] == 2 * (2 * 16 * 16 * 16) * (3 * 3 * 3) for call in calls)
    assert "Conv cpu." in bench(*of_model).out
    done = bench("--kernels", "--op", "Nothing")
    assert done.code == 2 and done.err.count("\n") == 1
    assert bench("--block", 0.001).code == 2


def test_what_a_mode_would_ignore_is_refused(cnn, bench, tmp_path):
    page = tmp_path / "page.html"
    for wrong in (["--op", "Conv"], ["--predict-in", "fp16"], ["--kernels", "--report", page], ["--kernels", "--vs", cnn],
                  ["--predict", "cuda:sm_90", "--threads", 1], ["--predict", "cuda:sm_90", "--trace", page], ["--vs"]):
        done = bench(cnn, *wrong)
        assert done.code == 2 and done.err.count("\n") == 1 and done.err.startswith("modelflow-bench: ") and done.out == "", wrong
    assert not page.exists()


VICTIMS = {"the model": ([], "m.onnx"), "its weights": ([], "m.onnx.data"), "weights that it names": ([], "weights.bin"), "the other model": (["--vs", "other"], "other"),
           "inputs": (["--inputs", "data"], "data"), "the plugin": (["--plugin", "plugin"], "plugin"), "a library": (["--custom-ops", "ops"], "ops")}


@pytest.mark.parametrize("case", VICTIMS)
@pytest.mark.parametrize("option", ["--report", "--trace"])
def test_reports_replace_nothing_that_is_read(cnn, bench, tmp_path, option, case):
    given, victim = VICTIMS[case]
    onnx.save(onnx.load(cnn), tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "other").write_bytes(cnn.read_bytes())
    for name in ("m.onnx.data", "data", "plugin", "ops"):
        (tmp_path / name).write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    before = (tmp_path / victim).read_bytes()
    for name in (victim, "link"):
        done = bench("m.onnx", *given, option, name, cwd=tmp_path)
        assert done.code == 2 and done.err.count("\n") == 1 and f"{option} '{name}'" in done.err and not done.out, done.err
        assert (tmp_path / victim).read_bytes() == before
    done = bench("m.onnx", "--report", "one", "--trace", "./one", cwd=tmp_path)
    assert done.code == 2 and "'one'" in done.err and not (tmp_path / "one").exists(), done.err


@pytest.mark.parametrize("mode", [["--rounds", 1, "--block", 0.001, "--profile"], ["--streams", 1, "--rounds", 1, "--block", 0.001], ["--predict", "cuda:sm_90", "--input-shapes", "x:1,3,32,32"]])
def test_names_of_any_bytes(cnn, bench, tmp_path, mode):
    """JSON stays JSON, and text is harmless to a terminal."""
    model = onnx.load(cnn)
    for place, node in enumerate(model.graph.node):
        node.name = f"\x1b[31m{place}"
    for name in (b"\xe9.onnx", b"\x1b[32m.onnx"):
        path = os.fsdecode(name)
        onnx.save(model, tmp_path / path)
        done = bench(path, "--vs", path, *mode, "--json", cwd=tmp_path)
        assert done.code == 0 and not done.err, done.err
        assert json.loads(done.out)
        done = bench(path, "--vs", path, *mode, cwd=tmp_path)
        assert done.code == 0 and "\x1b" not in done.out and ".onnx" in done.out, done.out


def test_threads_that_cannot_be_made_are_a_limit(cnn, bench):
    """Stacks of 4 GiB in 16 GiB of addresses."""
    def narrow():
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    done = bench(cnn, "--streams", 8, "--threads", 1, "--block", 0.001, preexec_fn=narrow)
    assert done.code == 7 and done.err.count("\n") == 1 and "8 threads" in done.err and not done.out, (done.code, done.err)


def test_predictions_need_no_machine(cnn, bench, optimize, tmp_path):
    fast = tmp_path / "fast.onnx"
    assert optimize(cnn, "-o", fast, "--no-measure", "--target", "cuda:sm_90").code == 0
    arguments = [fast, "--vs", cnn, "--predict", "cuda:sm_90", "--input-shapes", "x:4,3,32,32"]
    ours, original = json.loads(bench(*arguments, "--json").out)["models"]
    assert 0 < ours["floor_seconds"] < ours["predicted_seconds"] < original["predicted_seconds"] and ours["unknown"] == 0
    half = json.loads(bench(*arguments, "--json", "--predict-in", "fp16").out)["models"]
    assert all(0 < a["floor_seconds"] < b["floor_seconds"] for a, b in zip(half, [ours, original]))
    assert "not measured" in bench(*arguments).out
    for wrong in (["--predict", "cuda:sm_1"], ["--predict", "cuda:sm_90", "--predict-in", "int3"]):
        done = bench(fast, *wrong)
        assert done.code == 2 and done.err.count("\n") == 1 and done.out == ""
