"""Models for a GPU in float16: planned on any machine, run here by the bodies of their ops in stock ONNX Runtime."""
import json

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import PLUGIN, session
from onnx import TensorProto, helper, inliner, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

INFO = helper.make_tensor_value_info


def made(nodes, inputs, outputs, weights, opset=17):
    constants = [numpy_helper.from_array(v if v.dtype == np.int64 else v.astype(np.float32), k) for k, v in weights.items()]
    graph = helper.make_graph(nodes, "half", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="tests")


def convnet(width=32, blocks=3):
    """A stem, residual blocks, a pooled classifier."""
    rng, weights, nodes = np.random.default_rng(3), {}, []

    def conv(x, y, n, k, c, stride=1):
        weights[f"{y}_w"] = rng.standard_normal((n, c, k, k)) * (2 / (c * k * k)) ** 0.5
        weights[f"{y}_b"] = rng.standard_normal(n) * 0.1
        nodes.append(helper.make_node("Conv", [x, f"{y}_w", f"{y}_b"], [y], pads=[k // 2] * 4, strides=[stride] * 2))

    conv("x", "stem", width, 3, 3, 2)
    nodes.append(helper.make_node("Relu", ["stem"], ["h0"]))
    for i in range(blocks):
        conv(f"h{i}", f"a{i}", width, 3, width)
        nodes.append(helper.make_node("Relu", [f"a{i}"], [f"r{i}"]))
        conv(f"r{i}", f"c{i}", width, 3, width)
        nodes += [helper.make_node("Add", [f"c{i}", f"h{i}"], [f"s{i}"]), helper.make_node("Relu", [f"s{i}"], [f"h{i + 1}"])]
    weights["fc"], weights["fb"] = rng.standard_normal((width, 10)) / width**0.5, rng.standard_normal(10)
    nodes += [helper.make_node("GlobalAveragePool", [f"h{blocks}"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]),
              helper.make_node("Gemm", ["f", "fc", "fb"], ["y"])]
    return made(nodes, [INFO("x", TensorProto.FLOAT, ["N", 3, 32, 32])], [INFO("y", TensorProto.FLOAT, ["N", 10])], weights)


def transformer(width=64, heads=4, layers=2):
    """Token ids, a padding mask, two layers of BERT's kind."""
    rng, nodes = np.random.default_rng(4), []
    weights = {"table": rng.standard_normal((100, width)), "one": np.array(1.0), "low": np.array(np.finfo(np.float32).min),
               "axes": np.array([1, 2]), "split": np.array([0, 0, heads, width // heads]), "join": np.array([0, 0, width]),
               "scale": np.array((width // heads) ** -0.5), "sqrt2": np.array(2**0.5), "half": np.array(0.5)}

    def op(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def linear(x, y, n, k):
        weights[f"{y}_w"], weights[f"{y}_b"] = rng.standard_normal((k, n)) / k**0.5, rng.standard_normal(n) * 0.1
        return op("Add", [op("MatMul", [x, f"{y}_w"], f"{y}_m"), f"{y}_b"], y)

    def norm(x, y):
        weights[f"{y}_s"], weights[f"{y}_o"] = rng.uniform(0.5, 1.5, width), rng.standard_normal(width) * 0.1
        return op("LayerNormalization", [x, f"{y}_s", f"{y}_o"], y)

    def split(x, y, perm):
        return op("Transpose", [op("Reshape", [x, "split"], f"{y}_r")], y, perm=perm)

    h = norm(op("Gather", ["table", "ids"], "e"), "n")
    wide = op("Unsqueeze", [op("Cast", ["mask"], "floats", to=1), "axes"], "m4")
    bias = op("Mul", [op("Sub", ["one", wide], "hidden"), "low"], "bias")
    for i in range(layers):
        q, k, v = (split(linear(h, f"{p}{i}", width, width), f"{p}h{i}", [0, 2, 3, 1] if p == "k" else [0, 2, 1, 3]) for p in "qkv")
        scores = op("Mul", [op("MatMul", [q, k], f"qk{i}"), "scale"], f"scores{i}")
        p = op("Softmax", [op("Add", [scores, bias], f"masked{i}")], f"p{i}", axis=-1)
        c = op("Reshape", [op("Transpose", [op("MatMul", [p, v], f"pv{i}")], f"t{i}", perm=[0, 2, 1, 3]), "join"], f"c{i}")
        h = norm(op("Add", [linear(c, f"o{i}", width, width), h], f"a{i}"), f"na{i}")
        u = linear(h, f"u{i}", 4 * width, width)
        g = op("Add", [op("Erf", [op("Div", [u, "sqrt2"], f"d{i}")], f"erf{i}"), "one"], f"g{i}")
        g = op("Mul", [op("Mul", [u, g], f"ug{i}"), "half"], f"gelu{i}")
        h = norm(op("Add", [linear(g, f"w{i}", width, 4 * width), h], f"b{i}"), f"nb{i}")
    nodes.append(helper.make_node("Identity", [h], ["y"]))
    ids = [INFO(name, TensorProto.INT64, ["N", "S"]) for name in ("ids", "mask")]
    return made(nodes, ids, [INFO("y", TensorProto.FLOAT, ["N", "S", width])], weights)


def feeds(kind, rng=np.random.default_rng(5)):
    if kind == "convnet":
        return {"x": rng.standard_normal((2, 3, 32, 32), dtype=np.float32)}
    mask = np.ones((2, 11), np.int64)
    mask[1, 7:] = 0
    return {"ids": rng.integers(0, 100, (2, 11)), "mask": mask}


@pytest.fixture
def plan(optimize, tmp_path):
    def run(what, *arguments, target="cuda:sm_90"):
        source, out, report = tmp_path / "in.onnx", tmp_path / "out.onnx", tmp_path / "report.json"
        onnx.save(what, source)
        done = optimize(source, "-o", out, "--report", report, "--target", target, *arguments)
        assert (done.code, done.err) == (0, "")
        return source, out, json.loads(report.read_text())
    return run


def kinds(path):
    """How many values between nodes there are of each float type, and the Casts."""
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    types = [v.type.tensor_type.elem_type for v in model.graph.value_info]
    return types.count(TensorProto.FLOAT), types.count(TensorProto.FLOAT16), [n for n in model.graph.node if n.op_type == "Cast"]


@pytest.mark.parametrize("kind", ["convnet", "transformer"])
def test_float16_from_end_to_end(plan, kind):
    source, out, report = plan(convnet() if kind == "convnet" else transformer(), "--precision", "fp16")
    written = onnx.load(out)
    for before, after in zip(onnx.load(source).graph.input, written.graph.input):
        assert before == after
    assert [o.type.tensor_type.elem_type for o in written.graph.output] == [TensorProto.FLOAT]
    weights = [i for i in written.graph.initializer if i.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16) and np.prod(i.dims) > 1]
    assert weights and all(i.data_type == TensorProto.FLOAT16 for i in weights), [i.name for i in weights]
    singles, halves, casts = kinds(out)
    assert halves > singles and len(casts) <= (2 if kind == "convnet" else 3), casts
    given = feeds(kind)
    want, got = (session(path, optimized=optimized).run(None, given)[0] for path, optimized in ((source, False), (out, True)))
    assert 0 < np.abs(want - got).max() < 2e-3 * np.abs(want).max()
    assert report["quantization"]["precision"] == "fp16" and report["quantization"]["ops"]
    assert report["verified"] and report["target"].startswith("cuda:sm_90")


@pytest.mark.parametrize("precision, bits", [("int8-weights", 8), ("int4-weights", 4)])
def test_weights_in_few_bits(plan, precision, bits):
    """A row at a time waits for its weights: they are a scale for 32 of them and little more; all else is float16."""
    source, out, report = plan(transformer(), "--precision", precision)
    written = onnx.load(out)
    low = [n for n in written.graph.node if any(a.name == "precision" and a.s == b"weight-only" for a in n.attribute)]
    steps = [i for i in written.graph.initializer if i.data_type == TensorProto.UINT8]
    assert len(low) == len(steps) >= 8 and {i.dims[2] for i in steps} == {32 * bits // 8}
    assert report["quantization"]["precision"] == precision and report["verified"]
    assert {op["precision"] for op in report["quantization"]["ops"]} >= {precision, "fp16"}
    given = feeds("transformer")
    want, got = (session(path, optimized=optimized).run(None, given)[0] for path, optimized in ((source, False), (out, True)))
    # The largest of 32 normal weights lies within 3 deviations: a step is 3 / 2^(bits - 1), what is lost 1 / 12 ** 0.5 of
    # that, and the errors of the 12 products that follow each other add up as squares do.
    assert 1e-3 < np.linalg.norm(want - got) / np.linalg.norm(want) < 3 / 2 ** (bits - 1)


def test_many_rows_keep_their_weights_in_float16(plan):
    """They wait for arithmetic, and every tile of them would make floats of all weights again."""
    rng = np.random.default_rng(7)
    ports = [INFO("x", TensorProto.FLOAT, [4096, 256]), INFO("y", TensorProto.FLOAT, [4096, 256])]
    model = made([helper.make_node("MatMul", ["x", "w"], ["y"])], ports[:1], ports[1:], {"w": rng.standard_normal((256, 256)) / 16})
    _, out, _ = plan(model, "--precision", "int4-weights")
    assert not [i for i in onnx.load(out).graph.initializer if i.data_type == TensorProto.UINT8]


def tokens_between_convolutions(side=32, width=256):
    """Convolutions, a layer over all pixels as tokens, convolutions again: 8 bits, float16, 8 bits."""
    rng, nodes = np.random.default_rng(8), []
    weights = {"rows": np.array([0, width, -1]), "image": np.array([0, width, side, side])}

    def op(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def weight(name, shape, fan):
        weights[name] = rng.standard_normal(shape) / fan**0.5
        return name

    def conv(x, y, c):
        return op("Relu", [op("Conv", [x, weight(f"{y}_w", (width, c, 3, 3), 5 * c), weight(f"{y}_b", width, 9)], f"{y}_c", pads=[1] * 4)], y)

    h = conv(conv("x", "a", 64), "b", width)
    t = op("Transpose", [op("Reshape", [h, "rows"], "r")], "t", perm=[0, 2, 1])
    n = op("LayerNormalization", [t, weight("s", width, 1), weight("o", width, 9)], "n")
    u = op("Sigmoid", [op("MatMul", [n, weight("u_w", (width, 4 * width), width)], "u")], "g")
    m = op("MatMul", [u, weight("m_w", (4 * width, width), 4 * width)], "m")
    back = op("Reshape", [op("Transpose", [op("Add", [m, t], "sum")], "turned", perm=[0, 2, 1]), "image"], "again")
    nodes.append(helper.make_node("Identity", [conv(conv(back, "c", width), "d", width)], ["y"]))
    return made(nodes, [INFO("x", TensorProto.FLOAT, [4, 64, side, side])], [INFO("y", TensorProto.FLOAT, [4, width, side, side])], weights)


def test_eight_bits_have_float16_around_them(plan, tmp_path):
    """Sums of 8 bits take and give it, scales stay float32, and so does what is too small to pay for Casts."""
    rng, samples = np.random.default_rng(9), tmp_path / "samples"
    samples.mkdir()
    for i in range(4):
        np.savez(samples / f"{i}.npz", x=rng.standard_normal((4, 64, 32, 32), dtype=np.float32))
    source, out, report = plan(tokens_between_convolutions(), "--precision", "int8", "--calibration", samples, target="cuda:sm_80")
    written = onnx.load(out)
    used = {op["precision"] for op in report["quantization"]["ops"]}
    assert used >= {"int8", "fp16"} and report["verified"]
    products = [n for n in written.graph.node if n.op_type.startswith("MatMul") and any(a.s == b"int8" for a in n.attribute)]
    constants = {i.name: i.data_type for i in written.graph.initializer}
    types = {v.name: v.type.tensor_type.elem_type for v in written.graph.value_info}
    assert products and all([types[n.input[0]], constants[n.input[1]], constants[n.input[2]], types[n.output[0]]] ==
                            [TensorProto.FLOAT16, TensorProto.INT8, TensorProto.FLOAT, TensorProto.FLOAT16] for n in products)
    assert any(n.op_type.startswith("Quantize") and types.get(n.input[0]) == TensorProto.FLOAT16 for n in written.graph.node)
    given = dict(np.load(samples / "0.npz"))
    want = session(source, optimized=False).run(None, given)[0]
    for options in ({}, {"plugin": PLUGIN}):
        got = session(out, **options).run(None, given)[0]
        # Steps of 8 bits through six layers, as --max-drop allows them and no more.
        assert 1e-4 < np.linalg.norm(want - got) / np.linalg.norm(want) < 0.1


def test_the_same_bytes_every_time(plan):
    first = plan(transformer(), "--precision", "fp16")[1].read_bytes()
    assert plan(transformer(), "--precision", "fp16")[1].read_bytes() == first


def test_float32_is_planned_too(plan):
    source, out, report = plan(convnet())
    given = feeds("convnet")
    np.testing.assert_allclose(session(source, optimized=False).run(None, given)[0], session(out).run(None, given)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("arguments, why", [(["--precision", "fp16"], "float16 would not pay"),
                                            (["--precision", "int8-dynamic", "--target", "cuda:sm_90"], "a GPU takes fp16, bf16, int8, int8-weights and int4-weights"),
                                            (["--precision", "bf16", "--target", "cuda:sm_75"], "does not compute in bfloat16"),
                                            (["--precision", "int8", "--calibration", "SAMPLES", "--target", "cuda:sm_75"], "has no kernels for int8"),
                                            (["--target", "cuda"], "needs the kind of the device")])
def test_refusals(optimize, tmp_path, arguments, why):
    onnx.save(convnet(), tmp_path / "in.onnx")
    (tmp_path / "samples").mkdir()
    np.savez(tmp_path / "samples/0.npz", **feeds("convnet"))
    arguments = [tmp_path / "samples" if word == "SAMPLES" else word for word in arguments]
    done = optimize(tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", *arguments)
    assert done.code in (2, 4) and why in done.err and not (tmp_path / "out.onnx").exists()


def test_a_norm_that_is_written_out_goes_to_bfloat16(optimize, tmp_path):
    """Below opset 17: ONNX Runtime would make a LayerNormalization of two types of its body and the Casts around."""
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1]), helper.make_node("Sub", ["x", "m"], ["d"]),
             helper.make_node("Mul", ["d", "d"], ["q"]), helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1]),
             helper.make_node("Add", ["v", "e"], ["w"]), helper.make_node("Sqrt", ["w"], ["r"]), helper.make_node("Div", ["d", "r"], ["n"]),
             helper.make_node("Mul", ["n", "s"], ["t"]), helper.make_node("Add", ["t", "b"], ["y"])]
    ports = [INFO(name, TensorProto.FLOAT, ["N", 16]) for name in "xy"]
    weights = {"e": np.array(1e-5), "s": np.linspace(0.5, 1.5, 16), "b": np.linspace(-1, 1, 16)}
    onnx.save(made(nodes, ports[:1], ports[1:], weights, opset=13), tmp_path / "norm.onnx")
    done = optimize(tmp_path / "norm.onnx", "-o", tmp_path / "out.onnx", "--target", "cuda:sm_90", "--precision", "bf16", "--no-measure", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["after"]["ops"] == {"Cast": 2, "modelflow.LayerNorm": 1}


def test_a_model_in_float16_is_fused_and_stays_in_float16(optimize, tmp_path):
    rng = np.random.default_rng(6)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    constants = [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float16), name) for name, shape in {"w": (64, 64), "b": (64,)}.items()]
    ports = [INFO(name, TensorProto.FLOAT16, ["N", 64]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "half", ports[:1], ports[1:], constants), opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "half.onnx")
    done = optimize(tmp_path / "half.onnx", "-o", tmp_path / "out.onnx", "--target", "cuda:sm_90", "--precision", "fp16", "--no-measure", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["after"]["ops"] == {"modelflow.MatMul": 1} and said["verified"]
    x = rng.standard_normal((5, 64)).astype(np.float16)
    want, got = (session(tmp_path / name).run(None, {"x": x})[0].astype(np.float32) for name in ("half.onnx", "out.onnx"))
    assert np.abs(want - got).max() <= 4e-3 * np.abs(want).max()


def square_chain():
    """Ever larger numbers, up to 1e11, between two products."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Mul", ["b", "b"], ["c"]),
             helper.make_node("Mul", ["c", "c"], ["d"]), helper.make_node("MatMul", ["d", "w"], ["y"])]
    ports = [INFO(name, TensorProto.FLOAT, [4, 64]) for name in "xy"]
    return made(nodes, ports[:1], ports[1:], {"w": np.random.default_rng(7).standard_normal((64, 64))})


def product_chain():
    """Eight products, each of which makes numbers eight times as large."""
    names = ["x", *(f"h{i}" for i in range(7)), "y"]
    nodes = [helper.make_node("MatMul", [a, "w"], [b]) for a, b in zip(names, names[1:])]
    ports = [INFO(name, TensorProto.FLOAT, [4, 64]) for name in "xy"]
    return made(nodes, ports[:1], ports[1:], {"w": np.random.default_rng(8).standard_normal((64, 64))})


@pytest.mark.parametrize("chain", [square_chain, product_chain])
def test_what_leaves_the_range_of_float16_stays_in_float32(plan, chain):
    """ONNX Runtime's CPU computes float16 in float32 and would show no overflow: the roundings have to be spelled out."""
    source, out, report = plan(chain(), "--precision", "fp16", "--no-measure")
    said = report["quantization"]
    assert {op["precision"] for op in said["ops"]} == {"fp16", "float32"}, said["ops"]
    assert 0 < said["drop"] <= 1
    x = {"x": np.random.default_rng(9).standard_normal((4, 64)).astype(np.float32)}
    want = session(source, optimized=False).run(None, x)[0]
    got = ReferenceEvaluator(inliner.inline_local_functions(onnx.load(out))).run(None, x)[0]  # rounds where the types say so
    assert np.isfinite(got).all() and np.abs(want - got).max() <= 1e-2 * np.abs(want).max()


def test_float16_that_arrives_is_judged_in_float16(optimize, tmp_path):
    """Inputs, outputs, branches, loops and sequences of float16, where roundings are spelled out for a product that arrives in float32."""
    names = ("x", "q", "t", "e", "h", "g")
    x, q, t, e, h, g = (INFO(name, TensorProto.FLOAT16, ["N", 64]) for name in names)
    go, on = (INFO(name, TensorProto.BOOL, []) for name in ("go", "on"))
    then = helper.make_graph([helper.make_node("Mul", ["m", "m"], ["t"])], "then", [], [t])
    other = helper.make_graph([helper.make_node("Neg", ["m"], ["e"])], "else", [], [e])
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Add", ["h", "b"], ["g"])], "body",
                             [INFO("i", TensorProto.INT64, []), go, h], [on, g])
    nodes = [helper.make_node("Abs", ["x"], ["m"]), helper.make_node("If", ["which"], ["p"], then_branch=then, else_branch=other),
             helper.make_node("Loop", ["trips", "", "p"], ["l"], body=body), helper.make_node("SequenceConstruct", ["l", "m"], ["s"]),
             helper.make_node("SequenceAt", ["s", "zero"], ["q"]), helper.make_node("Cast", ["q"], ["r"], to=1), helper.make_node("MatMul", ["r", "w"], ["y"])]
    constants = [numpy_helper.from_array(v, k) for k, v in {"w": np.random.default_rng(6).standard_normal((64, 64)).astype(np.float32),
                                                            "b": np.full(64, 0.1, np.float16), "trips": np.array(3), "zero": np.array(0)}.items()]
    graph = helper.make_graph(nodes, "half", [x, INFO("which", TensorProto.BOOL, [])], [INFO("y", TensorProto.FLOAT, ["N", 64]), q], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "half.onnx")
    done = optimize(tmp_path / "half.onnx", "-o", tmp_path / "out.onnx", "--target", "cuda:sm_90", "--precision", "fp16", "--no-measure", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)["quantization"]
    assert [op["precision"] for op in said["ops"]] == ["fp16"] and 50 < said["outputs"][0]["sqnr_db"] < 80, said


def masked_attention(given):
    """Attention by heads, with a mask that is computed of flags, or given in float32."""
    weights = {"one": np.array(1.0), "low": np.array(np.finfo(np.float32).min), "s": np.array(32**-0.5)}
    heads = [INFO(name, TensorProto.FLOAT, ["B", 4, "S", 32]) for name in "qkvy"]
    nodes = [helper.make_node("Cast", ["keep"], ["m"], to=1), helper.make_node("Sub", ["one", "m"], ["n"]), helper.make_node("Mul", ["n", "low"], ["mask"])]
    nodes += [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["a"]),
              helper.make_node("Mul", ["a", "s"], ["b"]), helper.make_node("Add", ["b", "mask"], ["c"]),
              helper.make_node("Softmax", ["c"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"])]
    mask = INFO("mask", TensorProto.FLOAT, ["B", 1, 1, "S"]) if given else INFO("keep", TensorProto.INT64, ["B", 1, 1, "S"])
    return made(nodes[3:] if given else nodes, [*heads[:3], mask], heads[3:], {k: v for k, v in weights.items() if k == "s" or not given})


@pytest.mark.parametrize("given", [False, True])
def test_where_all_keys_are_hidden_numbers_stay_numbers(plan, given):
    """A row of infinities would be NaN; what float32 has as infinity stays that."""
    source, out, _ = plan(masked_attention(given), "--precision", "fp16", "--no-measure")
    assert "Attention" in "".join(n.op_type for n in onnx.load(out).graph.node)
    x = dict(zip("qkv", np.random.default_rng(3).standard_normal((3, 3, 4, 8, 32)).astype(np.float32)))
    keep = np.ones((3, 1, 1, 8), np.int64)
    keep[0, ..., :3], keep[1] = 0, 0
    low = np.where(keep == 0, np.finfo(np.float32).min, 0).astype(np.float32)
    if given:
        low[2] = -np.inf
    x |= {"mask": low} if given else {"keep": keep}
    want = session(source, optimized=False).run(None, x)[0]
    got = ReferenceEvaluator(inliner.inline_local_functions(onnx.load(out))).run(None, x)[0]
    np.testing.assert_allclose(got[0], want[0], atol=5e-3)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    assert np.isfinite(session(out).run(None, x)[0][:2]).all()


def loads_anywhere(path):
    """The model is ONNX with its bodies written out, and stock ONNX Runtime takes it, as far as a CPU has kernels."""
    plain = inliner.inline_local_functions(onnx.load(path))
    onnx.checker.check_model(plain, full_check=True)
    try:
        onnxruntime.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"])
    except NoKernel as error:
        assert "MatMul" in str(error)  # in bfloat16


@pytest.mark.parametrize("activation", ["Relu", "Elu", "HardSwish"])
@pytest.mark.parametrize("opset", [14, 17, 20, 22])
def test_bfloat16_is_for_opsets_that_do_not_have_it_too(plan, opset, activation):
    """Conv is of bfloat16 from opset 22 on: before, the body computes it in float32."""
    rng = np.random.default_rng(2)
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node(activation, ["c"], ["d"]),
             helper.make_node("Conv", ["d", "w"], ["y"], pads=[1] * 4)]
    ports = [INFO(name, TensorProto.FLOAT, [1, 32, 16, 16]) for name in "xy"]
    source, out, report = plan(made(nodes, ports[:1], ports[1:], {"w": rng.standard_normal((32, 32, 3, 3)) / 17}, opset), "--precision", "bf16", "--no-measure")
    assert {op["precision"] for op in report["quantization"]["ops"]} == {"bf16"}
    if opset < 22:  # then there is nothing that a CPU has no kernel for
        loads_anywhere(out)


MOVES = {"Compress": (17, ["a", "which"], {"axis": 1}), "ReverseSequence": (17, ["a", "lengths"], {"batch_axis": 1, "time_axis": 0}),
         "Pow": (13, ["a", "two"], {}), "Mul": (17, ["a", "filled"], {})}


@pytest.mark.parametrize("op", MOVES)
@pytest.mark.parametrize("half", ["fp16", "bf16"])
def test_what_onnx_does_not_have_in_the_type_stays_in_float32(plan, op, half):
    """ONNX Runtime has kernels for types that the operators do not have: such a model is refused when it is loaded."""
    opset, inputs, attributes = MOVES[op]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node(op, inputs, ["r"], **attributes), helper.make_node("MatMul", ["r", "w"], ["y"])]
    if op == "Mul":
        nodes[1:1] = [helper.make_node("Shape", ["a"], ["s"]), helper.make_node("ConstantOfShape", ["s"], ["filled"], value=numpy_helper.from_array(np.ones(1, np.float32)))]
    weights = {"w": np.random.default_rng(1).standard_normal((64, 64)) / 8, "lengths": np.array([4, 3, 2, 1]), "two": np.array(2.0)}
    ports = [INFO(name, TensorProto.FLOAT, [4, "B", 64]) for name in "xy"]
    keep = [INFO("which", TensorProto.BOOL, [4])] if op == "Compress" else []
    used = {name for node in nodes for name in node.input}
    model = made(nodes, ports[:1] + keep, ports[1:], {k: v for k, v in weights.items() if k in used}, opset)
    if op in ("Compress", "ReverseSequence"):
        for port in (*model.graph.input, *model.graph.output):
            if port.name in "xy":
                port.type.tensor_type.shape.dim[1].dim_value = 4
    if op == "Compress":
        model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "K"
    out = plan(model, "--precision", half, "--no-measure")[1]
    loads_anywhere(out)


def test_a_resize_of_opset_10_has_its_scales_elsewhere(plan):
    """They are float32 like the second input of later ones."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Resize", ["a", "scales"], ["r"], mode="linear"), helper.make_node("Conv", ["r", "v"], ["y"])]
    weights = {"w": rng.standard_normal((32, 64, 1, 1)) / 8, "v": rng.standard_normal((16, 32, 1, 1)) / 6, "scales": np.array([1, 1, 2, 2.0])}
    model = made(nodes, [INFO("x", TensorProto.FLOAT, [1, 64, 4, 4])], [INFO("y", TensorProto.FLOAT, [1, 16, 8, 8])], weights, 10)
    out, report = plan(model, "--precision", "fp16", "--no-measure")[1:]
    assert [op["precision"] for op in report["quantization"]["ops"]] == ["fp16", "fp16"]
    loads_anywhere(out)
