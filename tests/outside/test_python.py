"""The Python package: kinds of models, data and scores from Python, errors, Ctrl-C and threads. It is the installed one, or
this checkout's on the library that was built."""
import gc
import html
import importlib.util
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import BUILD, PLUGIN, close, session, small_cnn

ROOT = pathlib.Path(__file__).resolve().parents[2]
if importlib.util.find_spec("modelflow") is None:
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    os.environ["MODELFLOW_LIBRARY"] = str(BUILD / "libmodelflow.so")
import modelflow  # noqa: E402
from modelflow import _kinds  # noqa: E402

_library = sys.modules["modelflow._library"]  # the package has a function of that name

QUICK = {"measure": False, "threads": 1}


def batches(count=6, batch=2):
    return [np.random.default_rng(i).standard_normal((batch, 3, 32, 32), dtype=np.float32) for i in range(count)]


def is_fused(model):
    return any(node.domain == "modelflow" for node in model.graph.node)


def test_path_to_path(cnn, tmp_path):
    result = modelflow.optimize(cnn, tmp_path / "fast.onnx", threads=2, max_seconds=5)
    assert result.model == tmp_path / "fast.onnx" and result.report.verified and result.report.speedup > 0
    feeds = {"x": batches(1)[0]}
    close(session(cnn).run(None, feeds), modelflow.session(result.model).run(None, feeds))


def test_a_path_without_output_lives_with_the_result(cnn):
    result = modelflow.optimize(str(cnn), **QUICK)
    path = result.model
    assert is_fused(onnx.load(path))
    del result
    gc.collect()
    assert not path.exists()


def test_bytes_and_protos_come_out_as_they_went_in(cnn, tmp_path):
    proto = small_cnn()
    before = proto.SerializeToString()
    from_bytes = modelflow.optimize(before, **QUICK)
    from_proto = modelflow.optimize(proto, tmp_path / "fast.onnx", **QUICK)
    assert type(from_bytes.model) is bytes and type(from_proto.model) is onnx.ModelProto
    assert proto.SerializeToString() == before, "the argument changed"
    assert onnx.load_model_from_string(from_bytes.model) == from_proto.model and is_fused(from_proto.model)
    saved = from_bytes.save(tmp_path / "again.onnx")
    feeds = {"x": batches(1)[0]}
    expected = session(cnn).run(None, feeds)
    for model in (from_bytes, from_bytes.model, from_proto, from_proto.model, saved, tmp_path / "fast.onnx"):
        close(expected, modelflow.session(model, threads=1).run(None, feeds))


def test_large_protos_go_through_files(monkeypatch):
    proto = small_cnn()
    before = proto.SerializeToString()
    monkeypatch.setattr(_kinds, "MOST_BYTES", 100)
    result = modelflow.optimize(proto, **QUICK)
    assert proto.SerializeToString() == before
    monkeypatch.undo()
    feeds = {"x": batches(1)[0]}
    close(modelflow.session(proto).run(None, feeds), modelflow.session(result).run(None, feeds))
    assert not any(w.data_location == onnx.TensorProto.EXTERNAL for w in result.model.graph.initializer)


def test_external_data_goes_by_path(tmp_path):
    onnx.save_model(small_cnn(), str(tmp_path / "model.onnx"), save_as_external_data=True, location="weights", size_threshold=0)
    result = modelflow.optimize(tmp_path / "model.onnx", **QUICK)
    saved = result.save(tmp_path / "elsewhere.onnx")
    del result
    gc.collect()
    feeds = {"x": batches(1)[0]}
    close(session(tmp_path / "model.onnx").run(None, feeds), modelflow.session(saved).run(None, feeds))
    with pytest.raises(modelflow.InvalidInputError):
        modelflow.optimize((tmp_path / "model.onnx").read_bytes(), **QUICK)


def test_onnx_ir(cnn):
    ir = pytest.importorskip("onnx_ir")
    result = modelflow.optimize(ir.load(cnn), **QUICK)
    assert isinstance(result.model, ir.Model) and is_fused(ir.to_proto(result.model))


def test_programs_of_torch(cnn, monkeypatch):
    """With a stand-in of torch's class: a model of onnx_ir and where it came from."""
    ir = pytest.importorskip("onnx_ir")

    class ONNXProgram:
        def __init__(self, model, exported_program):
            self.model, self.exported_program = model, exported_program

    monkeypatch.setitem(sys.modules, "torch.onnx", types.SimpleNamespace(ONNXProgram=ONNXProgram))
    program = modelflow.optimize(ONNXProgram(ir.load(cnn), "origin"), **QUICK).model
    assert type(program) is ONNXProgram and program.exported_program == "origin" and is_fused(ir.to_proto(program.model))


def small(op, names, dtype=onnx.TensorProto.FLOAT, shape=(2,)):
    """One op from all of the names but the last to that."""
    ends = [onnx.helper.make_tensor_value_info(name, dtype, shape) for name in names]
    graph = onnx.helper.make_graph([onnx.helper.make_node(op, names[:-1], names[-1:])], "g", ends[:-1], ends[-1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("kind", [pathlib.Path, pathlib.Path.read_bytes, onnx.load])
def test_what_a_function_gave_is_a_model(cnn, tmp_path, kind):
    """Also where nobody but the call holds on to the file that it may lie in."""
    onnx.save(small("Relu", ["y", "z"], shape=("batch", 10)), tmp_path / "tail.onnx")

    def fast():
        return modelflow.optimize(kind(cnn), **QUICK)

    def merged():
        return modelflow.merge({"net": fast(), "tail": kind(tmp_path / "tail.onnx")}, {"tail.y": "net.y"})

    feeds = {"x": batches(1)[0]}
    y = session(cnn).run(None, feeds)[0]
    close([y], modelflow.session(fast(), threads=1).run(None, feeds))
    close([np.maximum(y, 0)], modelflow.session(merged(), threads=1).run(["z"], feeds))
    for model, output in ((fast(), tmp_path / "again.onnx"), (merged(), tmp_path / "whole.onnx")):
        given = modelflow.optimize(model, output, **QUICK).model
        assert type(given) is type(model.model) is type(kind(cnn)) and output.exists() and (kind is not pathlib.Path or given == output)
        close(modelflow.session(model).run(None, feeds), modelflow.session(output).run(None, feeds))
    sides = modelflow.bench(fast(), merged(), rounds=1, block=0.01, warmup=0.01, threads=1).sides
    assert len(sides) == 3 and all(side.p50_ms > 0 for side in sides)


class Reader:
    """ONNX Runtime's CalibrationDataReader, as users write it: once through."""

    def __init__(self, samples):
        self._samples = iter(samples)

    def get_next(self):
        return next(self._samples, None)


class Loader:
    """As a DataLoader: iterable again and again, of (image, label)."""

    def __init__(self, samples, shuffle=False):
        self._samples, self._shuffle, self._times = samples, shuffle, 0

    def __iter__(self):
        self._times += 1
        start = self._times if self._shuffle else 0
        return iter([(x, np.zeros(len(x))) for x in self._samples[start:] + self._samples[:start]])


def test_every_kind_of_calibration_gives_the_same(cnn):
    samples = batches()
    kinds = [[{"x": x} for x in samples], [(x,) for x in samples], samples, (x for x in samples), Reader([{"x": x} for x in samples]),
             Loader(samples)]
    models = [modelflow.optimize(cnn.read_bytes(), precision="int8", calibration=kind, max_drop=100, **QUICK) for kind in kinds]
    assert models[0].report.quantization.samples > 0 and any(op.precision == "int8" for op in models[0].report.quantization.ops)
    assert all(model.model == models[0].model for model in models)


def test_data_in_another_order_are_refused(cnn):
    with pytest.raises(ValueError, match="shuffle"):
        modelflow.optimize(cnn, precision="int8", calibration=Loader(batches(), shuffle=True), **QUICK)


def test_inputs_are_what_is_verified_on(cnn):
    report = modelflow.optimize(cnn, inputs=[{"x": batches(1, batch=5)[0]}], **QUICK).report
    assert [feed.shapes for feed in report.feeds] == [{"x": "float32[5,3,32,32]"}]
    with pytest.raises(modelflow.UsageError):
        modelflow.optimize(cnn, inputs=[{"y": np.zeros(3, np.float32)}], precision="int8", calibration=[{"y": np.zeros(3)}], **QUICK)
    with pytest.raises(TypeError, match="datetime64"):
        modelflow.optimize(cnn, inputs={"x": np.array(["2026-01-01"], "datetime64[D]")}, **QUICK)


@pytest.mark.parametrize("texts", [["gr\u00fcn", "red"], np.array(["gr\u00fcn", "red"], object), np.array(["gr\u00fcn".encode(), b"red"])], ids=["list", "objects", "bytes"])
def test_texts_are_inputs(tmp_path, optimize, texts):
    labels = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]> g (string[N] x) => (float[N] y) '
                                     '{ l = ai.onnx.ml.LabelEncoder <keys_strings = ["gr\u00fcn"], values_floats = [2.0]> (x)  y = Relu(l) }')
    report = modelflow.optimize(labels, inputs=[{"x": texts}], **QUICK).report
    assert report.verified and [feed.shapes for feed in report.feeds] == [{"x": "string[2]"}]
    modelflow.optimize(labels, bind={"x": texts}, **QUICK)
    if isinstance(texts, list):
        onnx.save(labels, tmp_path / "m.onnx")
        np.savez(tmp_path / "t.npz", x=np.array(texts))
        done = optimize(tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--no-measure", "--inputs", tmp_path / "t.npz")
        assert done.code == 0 and "string[2]" in done.out, done.out + done.err
        assert optimize(tmp_path / "m.onnx", "-o", tmp_path / "o.onnx", "--no-measure", "--bind", tmp_path / "t.npz").code == 0


@pytest.mark.parametrize("lowered", [1.0, 0.5])
def test_a_score_bounds_the_loss(cnn, lowered):
    scores = []

    def score(candidate):
        scores.append(candidate.run(None, {"x": batches(1)[0]})[0].shape)
        return 1.0 if len(scores) == 1 else lowered  # the original first

    report = modelflow.optimize(cnn, precision="int8", calibration=batches(), score=score, max_drop=1, **QUICK).report
    assert len(scores) > 1 and set(scores) == {(2, 10)}
    assert any(op.precision == "int8" for op in report.quantization.ops) == (lowered == 1)


def test_progress_and_report(cnn):
    steps = []
    where = set()
    result = modelflow.optimize(cnn, progress=lambda step, done: (steps.append((step, done)), where.add(threading.get_ident())), **QUICK)
    assert len(steps) > 5 and all(step and 0 <= done <= 1 for step, done in steps)
    assert where == {threading.get_ident()}, "callbacks run where the user called"
    report = result.report
    assert report.fused and report.summary in repr(result) and report == modelflow.Report.from_json(report.to_json())
    page = report._repr_html_()
    assert f"srcdoc='{html.escape(_library.page(report.to_json()))}'" in page, "the page of save_html in a frame"
    assert report.fused[0].kernel in page and page.count("<table>") == page.count("</table>") >= 3
    with pytest.raises(AttributeError):
        report.verified = False


@pytest.mark.parametrize("largest, said", [(3e-7, "largest difference 3.0e-07"), (None, "largest difference inf")], ids=str)
def test_an_output_that_is_zero_has_no_relative_difference(cnn, largest, said):
    """Of one that is 0 throughout any difference is infinitely much, for which JSON has null."""
    data = json.loads(modelflow.optimize(cnn, **QUICK).report.to_json())
    usual = data["verification"][0]
    data["verification"] = [{**usual, "max_abs": 1e-9, "max_rel": 1e-6}, {**usual, "output": "zero", "max_abs": largest, "max_rel": None}]
    report = modelflow.Report.from_json(json.dumps(data))
    assert report.verification[1].max_rel == math.inf and said in report.summary and said in str(report)
    assert "<td>inf</td>" in report._repr_html_()


def test_explain_says_why_not(cnn):
    misses = modelflow.explain(cnn)
    assert misses and all(miss.rule and miss.reason for miss in misses)


class Own(Exception):
    pass


@pytest.mark.parametrize("callback", ["progress", "score", "calibration", "inputs"])
def test_exceptions_of_callbacks_come_out(cnn, callback):
    raised = Own("mine")

    def broken(*_):
        raise raised

    def samples():
        yield batches(1)[0]
        raise raised

    class Again:
        __iter__ = staticmethod(samples)

    given = {"progress": broken} if callback == "progress" else {"precision": "int8", "calibration": batches()}
    given.update({"score": broken} if callback == "score" else {callback: Again()} if callback in ("calibration", "inputs") else {})
    with pytest.raises(Own) as caught:
        modelflow.optimize(cnn, **given, **QUICK)
    assert caught.value is raised
    modelflow.optimize(cnn, **QUICK)  # and nothing stays behind that hinders


def test_errors_have_classes(cnn, tmp_path, monkeypatch):
    cases = [(modelflow.UsageError, dict(level="O7")), (modelflow.UsageError, dict(precision="int7")), (modelflow.UsageError, dict(score=len)),
             (modelflow.UsageError, dict(precision="int8")), (modelflow.UsageError, dict(precision="int8-dynamic", calibration=batches())),
             (modelflow.UsageError, dict(disable="nothing")), (modelflow.UnsupportedError, dict(target="cuda:sm_90", precision="int8-dynamic")),
             (modelflow.LimitError, dict(max_nodes=2)), (modelflow.OutputError, dict(output=tmp_path / "no/folder/fast.onnx"))]
    for kind, options in cases:
        with pytest.raises(kind) as caught:
            modelflow.optimize(cnn, **{**QUICK, **options})
        assert type(caught.value) is kind and "\n" not in str(caught.value)
    for model in (b"nonsense", tmp_path / "nothing.onnx"):
        with pytest.raises(modelflow.InvalidInputError):
            modelflow.optimize(model, **QUICK)
    with pytest.raises(modelflow.UsageError, match="list"):
        modelflow.optimize([1], **QUICK)
    assert {kind.code for kind in modelflow.Error.__subclasses__()} == set(range(1, 8))


@pytest.mark.parametrize("kind", [str, bytes])
@pytest.mark.parametrize("where", [{"output": "none/fast.onnx"}, {"output": "folder"}, {"output": "file/fast.onnx"}, {"reproducer": "file/folder"}], ids=str)
def test_what_cannot_be_written_is_known_before_the_work(cnn, tmp_path, monkeypatch, kind, where):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("precious")
    steps = []
    with pytest.raises(modelflow.OutputError, match=next(iter(where.values())).split("/")[0]):
        modelflow.optimize(str(cnn) if kind is str else cnn.read_bytes(), progress=lambda step, done: steps.append(step), **where, **QUICK)
    assert not steps and sorted(path.name for path in tmp_path.iterdir()) == ["cnn.onnx", "file", "folder"]


WRONG = {"a zero byte": dict(output="out.onnx\0junk"), "no flag": dict(verify="no"), "nothing as flag": dict(measure=None), "no names": dict(outputs=None),
         "half an extent": dict(input_shapes={"x": (1.5, 3, 32, 32)}), "no extents": dict(input_shapes={"x": None}), "nothing bound": dict(bind={"x": None}),
         "no number bound": dict(bind={"x": "a"}), "no samples": dict(inputs=[]), "no sample": dict(inputs=[None]), "none behind one": dict(inputs=[{"x": batches(1)[0]}, None]),
         "no samples once through": dict(inputs=iter([])), "a library that is not there": dict(custom_ops="/no/lib.so")}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(cnn, tmp_path, case, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(modelflow.Error) as caught:
        modelflow.optimize(cnn, **{**QUICK, **WRONG[case]})
    assert type(caught.value) in (modelflow.UsageError, modelflow.InvalidInputError, modelflow.UnsupportedError)
    assert case != "a library that is not there" or "/no/lib.so" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["cnn.onnx"]


def test_names_of_files_are_what_the_system_has(cnn, tmp_path):
    odd = tmp_path / os.fsdecode(b"odd\xff.onnx")
    cnn.rename(odd)
    result = modelflow.optimize(odd, tmp_path / os.fsdecode(b"fast\xff.onnx"), **QUICK)
    assert is_fused(onnx.load_model_from_string(result.model.read_bytes()))


def test_numbers_of_numpy_are_bound_as_numbers():
    model = small("Add", ["x", "k", "y"])
    for number in (np.float32(2), np.float64(2), np.int8(2), 2):
        bound = modelflow.optimize(model, bind={"k": number}, **QUICK).model
        assert [value.name for value in bound.graph.input] == ["x"]
    with pytest.raises(modelflow.UsageError):
        modelflow.optimize(model, bind={"k": 10**400}, **QUICK)


class Parameter:
    """As torch.nn.Parameter: its numbers are read behind detach() only, and may lie on another device."""

    dtype = "torch.float32"

    def __init__(self, numbers):
        self._numbers, self._detached, self._here = numbers, False, False

    def detach(self):
        self._detached = True
        return self

    def cpu(self):
        self._here = True
        return self

    def numpy(self):
        assert self._detached and self._here
        return self._numbers

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_arrays_of_all_kinds_are_bound(tmp_path):
    k = np.arange(6, dtype=np.float32).reshape(2, 3)
    for given in (k, np.asfortranarray(k), k.T.copy().T, Parameter(k)):
        bound = modelflow.optimize(small("Add", ["x", "k", "y"], shape=(2, 3)), bind={"k": given}, **QUICK).model
        assert np.array_equal(modelflow.session(bound).run(None, {"x": np.ones_like(k)})[0], k + 1)


@pytest.mark.parametrize("given", [np.zeros(2, "V4"), np.zeros(2, [("a", "f4")]), np.zeros(2, "M8[s]"), "bfloat16"])
def test_arrays_that_no_npz_holds_are_refused(cnn, given):
    if isinstance(given, str):
        given = np.ones(2, getattr(pytest.importorskip("ml_dtypes"), given))
    with pytest.raises(modelflow.UsageError, match="bind: 'k' takes numbers"):
        modelflow.optimize(small("Add", ["x", "k", "y"]), bind={"k": given}, **QUICK)
    with pytest.raises(modelflow.UsageError, match="inputs: 'x' takes numbers"):
        modelflow.bench(cnn, inputs={"x": given})


def test_texts_are_bound_to_texts_alone():
    with pytest.raises(modelflow.UsageError, match="string.2. cannot be bound"):
        modelflow.optimize(small("Add", ["x", "k", "y"]), bind={"k": np.array(["a", "b"])}, **QUICK)


@pytest.mark.parametrize("kind", [str, onnx.load])
def test_external_data_is_for_what_is_written(tmp_path, kind):
    weight = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((600, 600), dtype=np.float32), "w")
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 600]) for name in "xy"]
    nodes = [onnx.helper.make_node("MatMul", ["x", "w"], ["h"]), onnx.helper.make_node("Relu", ["h"], ["y"])]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    result = modelflow.optimize(kind(str(tmp_path / "m.onnx")), tmp_path / "never.onnx", external_data="never", **QUICK)
    result.save(tmp_path / "always.onnx", external_data="always")
    result.save(tmp_path / "also.onnx", external_data="never")
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "never.onnx", "always.onnx", "always.onnx.data", "also.onnx"}


def test_limits_are_those_of_saving_too(cnn, tmp_path):
    result = modelflow.optimize(cnn.read_bytes(), max_nodes=500, **QUICK)
    result._limits = {"max_nodes": 2}
    with pytest.raises(modelflow.LimitError):
        result.save(tmp_path / "fast.onnx")


# Says when it is at a step, and goes on.
INTERRUPTED = """
import sys, time
import modelflow
def progress(step, done):
    if step == sys.argv[2]:
        print("there", flush=True)
try:
    modelflow.optimize(sys.argv[1], progress=progress)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise
"""


def slow():
    """80 large products, one after the other: one run of the model takes seconds."""
    size = 2048
    weight = onnx.numpy_helper.from_array(np.full((size, size), 1e-3, np.float32), "w")
    nodes = [onnx.helper.make_node("MatMul", [f"x{i}", "w"], [f"x{i + 1}"]) for i in range(80)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [size, size]) for name in ("x0", "x80")]
    graph = onnx.helper.make_graph(nodes, "slow", ends[:1], ends[1:], [weight])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("step", ["run the original", "select", "run the original: typical"])
def test_ctrl_c_ends_it_within_a_second(cnn, step):
    if step.endswith("typical"):  # in the middle of a step
        onnx.save(slow(), cnn)
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, str(cnn), step], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "there\n", process.stderr.read()
    time.sleep(0.3 if step.endswith("typical") else 0)
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    lines = iter(process.stdout.readline, "")
    assert "interrupted\n" in lines
    seconds = time.monotonic() - start
    _, err = process.communicate(timeout=60)
    assert seconds < 1 and process.returncode == -signal.SIGINT and "KeyboardInterrupt" in err, (seconds, process.returncode, err)


def test_two_threads_at_once(cnn):
    alone = modelflow.optimize(cnn.read_bytes(), **QUICK).model
    results = {}

    def work(name):
        seen = []
        results[name] = modelflow.optimize(cnn.read_bytes(), progress=lambda *_: seen.append(threading.get_ident()), **QUICK).model, set(seen)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert [results[i] for i in range(2)] == [(alone, {t.ident}) for t in threads]


def test_bench(cnn):
    fast = modelflow.optimize(small_cnn(), **QUICK)
    measured = modelflow.bench(fast.model, cnn, threads=1, rounds=2, block=0.02, warmup=0.02, inputs={"x": batches(1)[0], "file": [1]})
    assert [side.plugin for side in measured.sides] == [False, False, True] and measured.sides[0].speedup == 1
    assert all(side.p50_ms > 0 for side in measured.sides) and "with plugin" in str(measured)
    with pytest.raises(modelflow.InvalidInputError):
        modelflow.bench(b"nonsense")


PLUGGED_IN = """
import sys
import onnxruntime
from onnxruntime import InferenceSession  # as a package has it that was imported before
import modelflow
modelflow.plug_in(), modelflow.plug_in()
options = onnxruntime.SessionOptions()
options.add_session_config_entry("modelflow.kernels", sys.argv[2])
cpu = [("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})]
made = [lambda: InferenceSession(sys.argv[1]), lambda: InferenceSession(sys.argv[1], options, cpu), lambda: InferenceSession(sys.argv[1], sess_options=options)]
for make in made:
    try:
        print("made", make().get_inputs()[0].name)
    except Exception as error:
        print("refused", "no kernel" in str(error) or sys.argv[2] in str(error))
"""


def test_every_session_has_the_plugin(cnn, tmp_path):
    """Shown by asking for a kernel that the ops do not have: a session without the plugin would not mind."""
    modelflow.optimize(cnn, tmp_path / "fast.onnx", **QUICK)
    for kernel, said in (("", ["made x"] * 3), ("cpu.nothing", ["made x", "refused True", "refused True"])):
        done = subprocess.run([sys.executable, "-c", PLUGGED_IN, tmp_path / "fast.onnx", kernel], capture_output=True, text=True)
        assert done.stdout.splitlines() == said, done.stdout + done.stderr


@pytest.mark.parametrize("own", ["", "cpu.onednn_conv"])
def test_sessions_of_the_cpu_say_so(cnn, own):
    """The plugin registers nothing by itself where there is a GPU and no library of kernels for it."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    if own:
        options.add_session_config_entry("modelflow.kernels", own)
    modelflow.session(cnn, options=options)
    assert options.get_session_config_entry("modelflow.kernels") == (own or "on")


def test_custom_ops_reach_every_session(cnn, tmp_path):
    """Shown by a library that is not there."""
    fast = modelflow.optimize(cnn, tmp_path / "fast.onnx", **QUICK)
    missing = tmp_path / "ops.so"
    with pytest.raises(Exception, match="ops.so"):
        modelflow.session(fast, custom_ops=[missing])
    with pytest.raises(modelflow.Error, match="ops.so"):
        modelflow.bench(fast.model, custom_ops=missing, rounds=1, block=0.001)
    with pytest.raises(modelflow.Error, match="ops.so"):
        modelflow.merge({"a": cnn, "b": cnn}, {"b.x": "a.x"}, custom_ops=missing)
    needs = onnx.load(fast.model)
    del needs.functions[:]  # what its operators mean only the plugin knows
    for custom_ops, said in (((), "was not compared"), (PLUGIN, "gives what its parts give in turn")):
        assert said in modelflow.merge({"a": needs, "b": cnn}, {"b.x": "a.x"}, custom_ops=custom_ops).signature


def test_version():
    assert modelflow.__version__ == modelflow.optimize(small_cnn(), level=0).report.version
