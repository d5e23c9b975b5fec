"""modelflow.torch.export beside torch itself: both exporters, sizes left open, modules in every state, and what is refused.
It runs where torch is installed (tools/test-torch makes such a place)."""
import importlib.util
import os
import re
import sys
import warnings

import numpy as np
import onnx
import pytest
from conftest import run
from test_python import ROOT, modelflow

torch = pytest.importorskip("torch", reason="torch is not installed: tools/test-torch runs these tests")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
QUICK = {"measure": False, "threads": 1}
BOTH = pytest.mark.parametrize("dynamo", [True, False])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.conv, self.norm, self.drop, self.linear = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.Dropout(0.5), nn.Linear(16, 10)

    def forward(self, x, scale=None):
        h = torch.relu(self.norm(self.conv(x)))
        h = self.drop((h if scale is None else h * scale["s"]).mean((2, 3)))
        return {"logits": self.linear(h), "more": (h, None)}


def images(batch=2):
    return torch.from_numpy(np.random.default_rng(0).standard_normal((batch, 3, 16, 16), dtype=np.float32))


def sizes_of(result):
    return {one.sizes for one in result.compared if one.model == "optimized"}


@BOTH
def test_a_module_in_training_mode_with_several_outputs(tmp_path, dynamo):
    module = Net()
    module.norm.eval()
    path = tmp_path / "fast net ü.onnx"
    with pytest.warns(UserWarning, match="training mode"):
        result = modelflow.torch.export(module, images(), path, dynamic_shapes=({0: "batch"},), dynamo=dynamo, **QUICK)
    assert module.training and module.drop.training and not module.norm.training
    assert result.model == path and "training" in result.notes[0] and "from the module" in repr(result) and "at batch=3" in result._repr_html_()
    assert sizes_of(result) == {"as given", "at batch=3", "at batch=1"} and all(one.ok and one.relative < 1e-5 for one in result.compared)
    assert any(node.domain == "modelflow" for node in onnx.load(path).graph.node)
    with torch.no_grad():
        expected = module.eval()(images(5))
    found = modelflow.session(path).run(None, {modelflow.session(path).get_inputs()[0].name: images(5).numpy()})
    assert len(found) == 2 and np.allclose(expected["logits"], found[0], atol=1e-5) and np.allclose(expected["more"][0], found[1], atol=1e-5)


def test_ranges_of_dims_and_arguments_by_name():
    batch = torch.export.Dim("batch", min=2, max=5)
    result = modelflow.torch.export(Net().eval(), (images(),), kwargs={"scale": {"s": torch.ones(2, 1, 1, 1)}}, dynamo=True,
                                    dynamic_shapes={"x": {0: batch}, "scale": {"s": {0: batch}}}, **QUICK)
    assert sizes_of(result) == {"as given", "at batch=3"} and not result.notes  # the least is what was given


class Half(nn.Module):
    def forward(self, x):
        return x.reshape(-1, 2, 3).sum(1)


def test_extents_that_belong_together():
    result = modelflow.torch.export(Half().eval(), torch.ones(4, 3), dynamic_shapes=({0: 2 * torch.export.Dim("half")},), dynamo=True, **QUICK)
    assert sizes_of(result) == {"as given", "at half=3", "at half=1"}


class Scaled(nn.Module):
    def forward(self, x, k):
        h = torch.relu(x) * k
        return h, h.sum(-1), k + 1


# What is chosen, and what of the module is compared then.
CHOSEN = {"one is dropped": ({"drop_outputs": "h"}, {"sum", "next"}), "one is kept, its inputs go": ({"outputs": ["next"]}, {"next"}),
          "as given": ({"bind": {"k": torch.full((1, 4), 2.0)}}, {"h", "sum", "next"}), "other numbers": ({"bind": {"k": 3}}, {"h", "sum", "next"}),
          "an array and an output": ({"bind": {"k": np.full((1, 4), 5, np.float32)}, "outputs": "sum"}, {"sum"}),
          "a weight": ({"bind": {"k": nn.Parameter(torch.full((1, 4), 7.0))}}, {"h", "sum", "next"})}


@BOTH
@pytest.mark.parametrize("case", CHOSEN)
def test_parts_of_a_module(case, dynamo):
    options, outputs = CHOSEN[case]
    x = torch.arange(-4.0, 4).reshape(2, 4)
    result = modelflow.torch.export(Scaled().eval(), (x, torch.full((1, 4), 2.0)), dynamic_shapes=({0: "batch"}, None), input_names=["x", "k"],
                                    output_names=["h", "sum", "next"], dynamo=dynamo, **options, **QUICK)
    assert sizes_of(result) == {"as given", "at batch=3", "at batch=1"} and all(one.ok for one in result.compared) and not result.notes
    assert {one.output for one in result.compared if one.model == "optimized"} == outputs
    assert {one.output for one in result.compared if one.model == "exported"} == {"h", "sum", "next"}
    k = options.get("bind", {}).get("k", 2)
    session = modelflow.session(result)
    found = dict(zip((each.name for each in session.get_outputs()),
                     session.run(None, {each.name: {"x": x, "k": torch.full((1, 4), 2.0)}[each.name].numpy() for each in session.get_inputs()})))
    with torch.no_grad():
        expected = dict(zip(("h", "sum", "next"), Scaled()(x, torch.full((1, 4), float(torch.as_tensor(k).max())))))
    assert set(found) == outputs and all(np.allclose(expected[name], found[name]) for name in outputs)
    assert ("k" in {each.name for each in session.get_inputs()}) == ("bind" not in options)


def test_what_the_module_does_not_give_is_not_compared():
    given = dict(output_names=["h", "sum", "next"], dynamo=False, **QUICK)
    arguments = torch.ones(2, 4), torch.ones(1, 4)
    plain = modelflow.torch.export(Scaled().eval(), arguments, **given)
    inner = next(node.output[0] for node in onnx.load(plain.original).graph.node if node.op_type == "Relu")
    result = modelflow.torch.export(Scaled().eval(), arguments, outputs=[inner, "sum"], **given)
    assert {one.output for one in result.compared if one.model == "optimized"} == {"sum"} and len(result.notes) == 1 and inner in result.notes[0]


def test_arrays_are_bound_to_arguments_of_their_shape():
    with pytest.raises(modelflow.UsageError, match=r"'k' has the shape \[4\], the argument \[1, 4\]"):
        modelflow.torch.export(Scaled().eval(), (torch.ones(2, 4), torch.ones(1, 4)), input_names=["x", "k"], dynamo=False, bind={"k": torch.ones(4)}, **QUICK)


@pytest.mark.parametrize("external_data, files", [("never", {"fast.onnx"}), (None, {"fast.onnx", "fast.onnx.data"})])
def test_weights_lie_where_they_are_wanted(tmp_path, external_data, files):
    modelflow.torch.export(nn.Linear(1024, 512).eval(), torch.ones(1, 1024), tmp_path / "fast.onnx", external_data=external_data, **QUICK)
    assert {path.name for path in tmp_path.iterdir()} == files


def test_samples_in_bfloat16(tmp_path):
    ends = [onnx.helper.make_tensor_value_info(name, kind, [4]) for name, kind in (("x", onnx.TensorProto.BFLOAT16), ("y", onnx.TensorProto.FLOAT))]
    node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ends[:1], ends[1:]), opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    report = modelflow.optimize(model, inputs=[{"x": torch.arange(8, dtype=torch.bfloat16)[::2]}], **QUICK).report
    assert report.verified and [feed.shapes for feed in report.feeds] == [{"x": "bfloat16[4]"}]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids, unused, times: int):
        h = self.embed(ids) * times
        return self.out(h), h, h, ids


@BOTH
def test_shared_weights_aliases_and_unused_arguments(dynamo):
    result = modelflow.torch.export(Tied().eval(), (torch.ones(2, 4, dtype=torch.int64), torch.ones(3), 2), dynamo=dynamo, **QUICK)
    assert len([one for one in result.compared if one.model == "optimized"]) == 4
    if dynamo:
        files = [path for path in result.original.parent.iterdir() if path.name.startswith("exported")]
        assert sum(path.stat().st_size for path in files) < 1.5 * 4 * 64000, "the weight is there once"


class Fixed(nn.Module):
    def forward(self, x):
        return x * float(x.sum())


class Random(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


def test_what_differs_is_not_written(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(modelflow.ExportError, match="batch=.*the exporter wrote it so") as caught:
            modelflow.torch.export(Fixed(), images(), tmp_path / "fast.onnx", dynamic_shapes=({0: "batch"},), dynamo=False, **QUICK)
        assert isinstance(caught.value, modelflow.VerificationError) and any(not one.ok for one in caught.value.compared)
    with pytest.raises(modelflow.ExportError, match="differs from itself"):
        modelflow.torch.export(Random().eval(), images(), tmp_path / "fast.onnx", **QUICK)
    with pytest.raises(modelflow.ExportError, match="allowed 1.0e-12"):
        modelflow.torch.export(Net().eval(), images(), tmp_path / "fast.onnx", max_difference=1e-12, **QUICK)
    assert not list(tmp_path.iterdir())


class Sharp(nn.Module):
    """Rounding in front of a difference of large numbers moves the result by far more than 1e-4."""

    def forward(self, x):
        return ((x * 1e5 + 0.3).softmax(-1) * 1e6).sum(-1) - 1e6


def test_rounding_of_the_module_itself_is_no_difference():
    compared = modelflow.torch.export(Sharp().eval(), images(), **QUICK).compared
    assert all(one.ok for one in compared)


class Square(nn.Module):
    def forward(self, x):
        if x.shape[0] != 2:
            raise RuntimeError("two only")
        return x * 2


def test_sizes_that_the_module_does_not_take_are_said():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = modelflow.torch.export(Square().eval(), images(), dynamic_shapes=({0: "batch"},), dynamo=False, **QUICK)
    assert sizes_of(result) == {"as given"} and len(result.notes) == 2 and all("RuntimeError" in note for note in result.notes)


def test_lower_precision_says_what_it_loses():
    data = [(images(4),) for _ in range(4)]
    result = modelflow.torch.export(Net().eval(), images(4), precision="int8", calibration=data, max_drop=100, **QUICK)
    assert {one.allowed for one in result.compared if one.model == "optimized"} == {None}
    assert {one.allowed for one in result.compared if one.model == "exported"} == {1e-4}


@pytest.mark.parametrize("module, output, options, kind, said", [
    (3, None, {}, modelflow.UsageError, "no module: int"),
    (nn.Linear(3, 3), "nowhere/fast.onnx", {}, modelflow.OutputError, "nowhere"),
    (nn.Linear(3, 3), None, {"nonsense": 3}, TypeError, "nonsense"),
    (nn.Linear(3, 3), None, {"max_drop": 3}, modelflow.UsageError, "precision"),
    (nn.Linear(3, 3), None, {"bind": {"x": "a"}}, modelflow.UsageError, "bind: 'x'"),
    (nn.Linear(3, 3, device="meta"), None, {}, modelflow.UsageError, "meta")])
def test_refused_before_anything_is_exported(tmp_path, monkeypatch, module, output, options, kind, said):
    monkeypatch.setattr(torch.onnx, "export", lambda *_, **__: pytest.fail("exported"))
    with pytest.raises(kind, match=said):
        modelflow.torch.export(module, torch.ones(2, 3), output and tmp_path / output, **options)


def test_modules_are_pointed_here():
    with pytest.raises(modelflow.UsageError, match="modelflow.torch.export"):
        modelflow.optimize(nn.Linear(3, 3))


def test_exceptions_of_scores_come_out_as_they_are():
    def score(session):
        raise KeyError("mine")

    module = Net().eval()
    with pytest.raises(KeyError, match="mine"):
        modelflow.torch.export(module, images(), precision="int8", calibration=[(images(),)], score=score, **QUICK)
    assert not module.training


def test_the_example_trains_and_int8_is_faster_within_its_bound(tmp_path):
    pytest.importorskip("sklearn")
    done = run(sys.executable, ROOT / "examples/train_export/train_export.py", tmp_path, env={**os.environ, "OMP_NUM_THREADS": "2"})
    assert done.code == 0, done.out + done.err[-2000:]
    print(done.out)
    assert done.out.count("as fast as float32") == 2 and len(list(tmp_path.glob("*.onnx"))) == 4


def blocks_of(section):
    page = (ROOT / "docs/python.md").read_text().split(f"## {section}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", page, re.S)


@pytest.mark.parametrize("section, which, needs, said", [
    ("From a training script", 0, "torch", "from the module"), ("From transformers, optimum, Keras and scikit-learn", 0, "transformers", "from the module"),
    ("From transformers, optimum, Keras and scikit-learn", 1, "optimum", "verified"), ("From transformers, optimum, Keras and scikit-learn", 2, "keras", "verified"),
    ("From transformers, optimum, Keras and scikit-learn", 3, "skl2onnx", "1.0 agree")])
def test_the_blocks_of_the_page(tmp_path, section, which, needs, said):
    """What docs/python.md says about torch and other places where models come from, as written."""
    if importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed: tools/test-torch runs this")
    blocks = blocks_of(section)
    assert len(blocks) == (1 if section == "From a training script" else 4)
    (tmp_path / "page.py").write_text(blocks[which])
    done = run(sys.executable, "page.py", cwd=tmp_path, timeout=900)
    assert done.code == 0 and said in done.out, done.out + done.err[-2000:]
