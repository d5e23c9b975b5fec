"""Models that become one by the command and from Python, inputs that are bound, outputs that are chosen."""
import json
import re

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import PLUGIN, close, session
from test_python import ROOT, modelflow

QUICK = {"measure": False, "threads": 1}


def model(path, text, opset=17):
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}'), path)
    return path


@pytest.fixture
def parts(tmp_path):
    return (model(tmp_path / "encoder.onnx", "(float[N,4] x, bool flip) => (float[N,4] hidden) { h = If(flip) <then_branch = t () => (float[N,4] r) "
                  "{ r = Neg(x) }, else_branch = e () => (float[N,4] r) { r = Relu(x) }> hidden = Clip<min = -2.0>(h) }", 10),
            model(tmp_path / "decoder.onnx", "(float[M,4] memory) => (float[M,4] y, float[M,4] z) { y = Gelu(memory) z = Exp(memory) }", 20))


def in_turn(parts, x, flip):
    hidden, = session(parts[0]).run(None, {"x": x, "flip": np.array(flip)})
    return session(parts[1]).run(None, {"memory": hidden})


def test_the_command_merges_binds_and_chooses(optimize, parts, tmp_path):
    out = tmp_path / "both.onnx"
    done = optimize("--merge", *parts, "-o", out, "--map", "encoder.hidden=decoder.memory", "--bind", "flip=true", "--outputs", "z,y", "--explain", "--no-measure")
    assert done.code == 0, done.err
    assert done.out.startswith("input   x float32[N,4] -> encoder.x\ninput   flip bool -> encoder.flip\ninside  hidden float32[N,4] = encoder.hidden -> decoder.memory\n")
    assert "'encoder' raised from opset 10 to 20" in done.out and "gives what its parts give in turn" in done.out and "no inputs any more: flip" in done.out
    x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
    y, z = in_turn(parts, x, True)
    close([z, y], session(out).run(None, {"x": x}))
    assert not any(node.op_type == "If" for node in onnx.load(out).graph.node)


def test_the_report_of_a_merged_model(optimize, parts, tmp_path):
    done = optimize("--merge", f"one={parts[0]}", f"two={parts[1]}", "-o", tmp_path / "o.onnx", "--map", "one.hidden=two.memory", "--json", "--no-measure")
    report = json.loads(done.out)
    assert report["verified"] and "encoder.onnx + two=" in report["input"], report["input"]


WRONG = {"no edge": (["--map", "encoder.hidden"], "MODEL.OUTPUT=MODEL.INPUT"),
         "another model": (["--map", "coder.hidden=decoder.memory"], "did you mean 'encoder'?"),
         "another input": (["--map", "encoder.hidden=decoder.memry"], "did you mean 'memory'?"),
         "itself": (["--map", "encoder.hidden=encoder.x"], "does not feed itself"),
         "another type": (["--map", "encoder.hidden=encoder.flip"], "encoder.flip"),
         "no such input to bind": (["--map", "encoder.hidden=decoder.memory", "--bind", "flop=1"], "it has x and flip"),
         "bound twice": (["--map", "encoder.hidden=decoder.memory", "--bind", "flip=true", "--bind", "flip=false"], "'flip' is given twice"),
         "no such output": (["--map", "encoder.hidden=decoder.memory", "--outputs", "q"], "'q'"),
         "both ways": (["--map", "encoder.hidden=decoder.memory", "--outputs", "y", "--drop-outputs", "z"], "one or the other")}


@pytest.mark.parametrize("case", WRONG)
def test_one_line_says_what_does_not_fit(optimize, parts, tmp_path, case):
    arguments, words = WRONG[case]
    done = optimize("--merge", *parts, "-o", tmp_path / "o.onnx", *arguments)
    assert done.code == 2 and done.err.count("\n") == 1 and words in done.err, (done.code, done.err)
    assert not (tmp_path / "o.onnx").exists()


def test_what_belongs_to_merging(optimize, parts, tmp_path):
    for arguments in (["--map", "encoder.hidden=decoder.memory"], ["--merge", tmp_path], ["--merge"]):
        done = optimize(*arguments, parts[0], "-o", tmp_path / "o.onnx")
        assert done.code in (2, 3) and done.err.count("\n") == 1, (arguments, done.code, done.err)


def test_output_of_a_model_that_is_merged(optimize, parts, tmp_path):
    done = optimize("--merge", *parts, "-o", tmp_path / "o.onnx", "--map", "encoder.hidden=decoder.memory", "--report", parts[1], "--no-measure")
    assert done.code == 2 and "--report" in done.err, done.err


def test_python_merges_what_comes_in(parts, tmp_path):
    edges = {"b.memory": "a.hidden"}
    by_path = modelflow.merge({"a": parts[0], "b": parts[1]}, edges)
    protos = modelflow.merge({"a": onnx.load(parts[0]), "b": onnx.load(parts[1])}, edges)
    whole = modelflow.merge({"a": parts[0].read_bytes(), "b": parts[1].read_bytes()}, ["a.hidden=b.memory"], tmp_path / "m.onnx")
    assert isinstance(protos.model, onnx.ModelProto) and isinstance(whole.model, bytes) and (tmp_path / "m.onnx").exists()
    assert "inside  hidden" in by_path.signature == repr(by_path) and "gives what its parts give in turn" in by_path.signature
    unchecked = modelflow.merge({"a": parts[0], "b": parts[1]}, edges, verify=False)
    assert "parts" not in unchecked.signature
    x = np.random.default_rng(0).standard_normal((2, 4), dtype=np.float32)
    fast = modelflow.optimize(by_path.model, tmp_path / "fast.onnx", bind={"flip": False}, outputs=["y"], **QUICK)
    close(in_turn(parts, x, False)[:1], session(fast.model).run(None, {"x": x}))
    with pytest.raises(modelflow.UsageError, match="ranks|fits|types"):
        modelflow.merge({"a": parts[0], "b": parts[1]}, {"a.flip": "b.y"})
    with pytest.raises(modelflow.UsageError, match="same name"):
        modelflow.merge([parts[0], parts[0]])


def test_what_only_the_parts_run_is_refused(optimize, tmp_path):
    """ONNX Runtime has GlobalLpPool of opset 17 and none of opset 22, to which the whole is brought."""
    a = model(tmp_path / "a.onnx", "(float[1,2,4,4] x) => (float[1,2,1,1] h) { h = GlobalLpPool(x) }", 17)
    b = model(tmp_path / "b.onnx", "(float[1,2,1,1] h) => (float[1,2,1,1] y) { y = Relu(h) }", 22)
    out = tmp_path / "o.onnx"
    done = optimize("--merge", a, b, "-o", out, "--no-measure")
    assert done.code == 5 and "what was merged from them does not" in done.err and "GlobalLpPool" in done.err, done.err
    with pytest.raises(modelflow.VerificationError, match="GlobalLpPool"):
        modelflow.merge([a, b], output=out)
    assert not out.exists()


def test_python_hands_options_on(parts, tmp_path):
    edges, rng = {"b.memory": "a.hidden"}, np.random.default_rng(0)
    inputs = [{"x": rng.standard_normal((2, 4), dtype=np.float32), "flip": np.array(flip)} for flip in (True, False)]
    steps = []
    merged = modelflow.merge({"a": parts[0], "b": parts[1]}, edges, inputs=inputs, threads=1, progress=lambda step, done: steps.append(step))
    assert "on 2 sets of inputs" in merged.signature and steps
    for wrong in (dict(verify="no"), dict(external_data="maybe"), dict(input_shapes={"z": (1,)}), dict(max_nodes=0)):
        with pytest.raises(modelflow.UsageError):
            modelflow.merge({"a": parts[0], "b": parts[1]}, edges, **wrong)


def test_weights_outside_are_not_lost_to_bytes(parts, tmp_path):
    outside = onnx.load(model(tmp_path / "b.onnx", "(float[M,4] memory, float[4,512] w) => (float[M,512] y) { y = MatMul(memory, w) }", 10))
    outside.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 512), np.float32), "w"))
    del outside.graph.input[1]
    onnx.save(outside, tmp_path / "b.onnx", save_as_external_data=True, location="b.bin", size_threshold=0)
    merged = modelflow.merge({"a": parts[0].read_bytes(), "b": tmp_path / "b.onnx"}, {"b.memory": "a.hidden"})
    assert modelflow.optimize(merged.model, tmp_path / "fast.onnx", **QUICK).report.verified


def test_python_binds_arrays(parts, tmp_path):
    bound = modelflow.optimize(parts[0], tmp_path / "o.onnx", bind={"x": np.ones((2, 4), np.float32), "flip": True}, **QUICK)
    assert not onnx.load(bound.model).graph.input
    close([-np.ones((2, 4), np.float32)], session(bound.model).run(None, {}))


def forms(schema):
    """What a node of an operator may have: defaults of its attributes, which of its inputs may be left out, its outputs."""
    defaults = {name: (a.required, onnx.helper.get_attribute_value(a.default_value) if a.default_value.type else None) for name, a in schema.attributes.items()}
    return defaults, [str(each.option) for each in schema.inputs], [str(each.option) for each in schema.outputs]


def test_every_change_between_opsets_has_its_line():
    """An operator whose older form does not hold in a newer opset stands in the table of raise_changes.cpp."""
    table = {(op, int(opset)) for op, opset in re.findall(r'{"(\w+)", (\d+), \w+}', (ROOT / "src/compose/raise_changes.cpp").read_text())}
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    changed = set()
    for name, schemas in history.items():
        schemas.sort(key=lambda schema: schema.since_version)
        for old, new in zip(schemas, schemas[1:]):
            (attributes, inputs, outputs), (newer, more, results) = forms(old), forms(new)
            lost = any(key not in newer or (newer[key] != value and not (value[0] and not newer[key][0])) for key, value in attributes.items())
            required = any(value[0] for key, value in newer.items() if key not in attributes)
            moved = any(before != now and now != "FormalParameterOption.Optional" for before, now in zip(inputs, more)) or len(more) < len(inputs)
            needed = any(now == "FormalParameterOption.Single" for now in more[len(inputs):])
            if new.since_version > 7 and (lost or required or moved or needed or len(results) < len(outputs) or new.deprecated):
                changed.add((name, new.since_version))
    assert table and changed - table == set()
    assert len(changed) > 25


@pytest.mark.parametrize("scale, left", [(0.1, 1), (0.2, 2)])
def test_rounding_at_the_border_is_done_once_where_scales_agree(optimize, tmp_path, scale, left):
    rounded = "(float[N,4] {0}) => (float[N,4] {1}) <float s = {{{2}}}, int8 z = {{3}}> {{ {1}q = QuantizeLinear({0}, s, z) {1} = DequantizeLinear({1}q, s, z) }}"
    a, b = model(tmp_path / "a.onnx", rounded.format("x", "h", 0.1)), model(tmp_path / "b.onnx", rounded.format("h", "y", scale))
    for level in ("O1", "O2"):
        out = tmp_path / "m.onnx"
        assert optimize("--merge", a, b, "-o", out, "--level", level, "--no-measure").code == 0
        x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
        first, = session(a).run(None, {"x": x})
        expected, = session(b).run(None, {"h": first})
        got, = session(out, PLUGIN, optimized=False).run(None, {"x": x})  # ONNX Runtime's own optimizations round once
        assert np.array_equal(got, expected)
        ops = [node.op_type for node in onnx.load(out).graph.node]
        assert ops.count("QuantizeLinear") == left or level == "O2" and "QuantizeLinear" not in ops, ops
