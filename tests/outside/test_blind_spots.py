"""Places where a wrong kernel could hide from verification: behind flags, counts, large numbers, in small parts of an output,
in sequences and maps. The kernels of tests/wrong_plugin, whose products are 1.001 times too large, must be found in each."""
import json
import os

import numpy as np
import onnx
import onnx.parser
import pytest
from conftest import BUILD

WRONG = next(iter(BUILD.glob("**/libwrong_plugin.so")), None)
W = "float[8,8] w = {" + ", ".join(f"{i * 7919 % 1000 / 1000 - 0.5:.3f}" for i in range(64)) + "}"
PRODUCT = "a = Sin(x)  m = MatMul(a, w)"
#: Of a result that is 1.001 times too large: far above 0; of the right one: 0 or below.
SWITCH = ("q = ReduceSum<keepdims=0>(m)  s = Abs(q)  at = Transpose<perm=[1,0]>(a)  p = Mul(at, w)  s2 = ReduceSum<keepdims=0>(p)"
          "  q2 = Abs(s2)  q3 = Mul(q2, k)  d = Sub(s, q3)  d2 = Mul(d, big)")
SWITCHED = W + ", float k = {1.0005}, float big = {100000.0}"


def model(tmp_path, text, opset=17, extra="", ir=8):
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}{extra}]>\n' + text), path)
    return path


def branch(name, product, rows="4"):
    other = f"float[{rows},8]"
    wrong = f"wrong () => ({other} yt) {{ m = MatMul(a, w)  yt = Neg(m) }}"
    right = f"right () => ({other} ye) {{ ye = Neg(a) }}"
    then, alternative = (wrong, right) if product == "then" else (right, wrong)
    return (f"g (float[{rows},8] x, bool {name}) => (float[{rows},8] y) <{W}> "
            f"{{ a = Sin(x)  y = If({name}) <then_branch = {then}, else_branch = {alternative}> }}")


def hidden(condition, constants, inputs="float[4,8] x"):
    """The product is read where the condition holds."""
    return f"g ({inputs}) => (float[4,8] y) <{W}, {constants}> {{ {PRODUCT}  {condition}  y = Where(c, m, a) }}"


SPOTS = {
    "sequence": f"g (float[4,8] x) => (seq(float[4,8]) y) <{W}> {{ {PRODUCT}  y = SequenceConstruct(m) }}",
    "count": hidden("c = Greater(n, most)", "int64 most = {1}", "float[4,8] x, int64 n"),
    "rate": hidden("c = Less(sr, most)", "int64 most = {16000}", "float[4,8] x, int64 sr"),
    "temperature": hidden("e = Equal(temperature, one)  c = Not(e)", "float[1] one = {1.0}", "float[4,8] x, float[1] temperature"),
    "negative": hidden("l = Less(n, low)  c = Reshape(l, column)", "int64 low = {0}, int64[2] column = {4, 1}",
                       "float[4,8] x, int64[4] n"),
    "many": hidden("l = Greater(n, high)  c = Reshape(l, column)", "int64 high = {99}, int64[2] column = {4, 1}",
                   "float[4,8] x, int64[4] n"),
    "large": hidden("b = Abs(x)  c = Greater(b, six)", "float six = {6.0}"),
    "lengths": f'g (float["N - 8",8] x) => (float[m,8] y) <{W}> {{ {PRODUCT}  y = Neg(m) }}',
    "label": (f"g (float[1,8] x) => (uint8[1] y) <{SWITCHED}, float z = {{0.0}}, int64[1] one = {{1}}> {{ {PRODUCT}  {SWITCH}"
              "  g = Greater(d2, z)  c = Cast<to=2>(g)  y = Reshape(c, one) }"),
    "scores beside boxes": (f"g (float[1,8] x) => (float[1,9] y) <{SWITCHED}, float far = {{640.0}}, float near = {{0.03}}, "
                            f"int64[2] one = {{1, 1}}> {{ {PRODUCT}  {SWITCH}  sx = Sigmoid(x)  b = Mul(sx, far)  sd = Sigmoid(d2)"
                            "  sn = Mul(sd, near)  sr = Reshape(sn, one)  y = Concat<axis=1>(b, sr) }"),
    "small probabilities": (f"g (float[1,8] x) => (float[1,1025] y) <{SWITCHED}, float far = {{1.5}}, int64[2] one = {{1, 1}}, "
                            f"float[1,1024] others = {{{', '.join(['0.0'] * 1024)}}}> {{ {PRODUCT}  {SWITCH}  t = Tanh(d2)  tf = Mul(t, far)"
                            "  l = Reshape(tf, one)  v = Concat<axis=1>(others, l)  sm = Softmax(v)  p2 = Mul(sm, sm)  y = Mul(p2, p2) }"),
}


@pytest.mark.parametrize("spot", SPOTS)
def test_a_wrong_product_is_found(spot, optimize, tmp_path):
    done = optimize(model(tmp_path, SPOTS[spot]), "-o", tmp_path / "o.onnx", "--no-measure", "--json",
                    env={**os.environ, "MODELFLOW_PLUGIN": str(WRONG)})
    report = json.loads(done.out)
    assert report["faults"] and "matmul" in report["faults"][0]["kernel"], report["notes"]


@pytest.mark.parametrize("dtype, read", [("float8e4m3fn", "Cast<to=1>(x)"), ("float8e5m2", "Cast<to=1>(x)"), ("int4", "DequantizeLinear(x, k)"),
                                         ("uint4", "DequantizeLinear(x, k)")])
def test_a_wrong_product_of_few_bits_is_found(dtype, read, optimize, tmp_path):
    text = f"g ({dtype}[N,8] x) => (float[N,8] y) <{W}, float k = {{0.1}}> {{ f = {read}  m = MatMul(f, w)  y = Relu(m) }}"
    done = optimize(model(tmp_path, text, opset=21, ir=10), "-o", tmp_path / "o.onnx", "--no-measure", "--json",
                    env={**os.environ, "MODELFLOW_PLUGIN": str(WRONG)})
    report = json.loads(done.out)
    assert report["faults"] and "matmul" in report["faults"][0]["kernel"], report["notes"]


@pytest.mark.parametrize("product", ["then", "else"])
@pytest.mark.parametrize("name", ["b0", "use_cache_branch", "training"])
@pytest.mark.parametrize("rows", ["4", "N"])
def test_both_branches_run(name, product, rows, optimize, tmp_path):
    done = optimize(model(tmp_path, branch(name, product, rows)), "-o", tmp_path / "o.onnx", "--no-measure", "--json",
                    env={**os.environ, "MODELFLOW_PLUGIN": str(WRONG)})
    assert json.loads(done.out)["faults"]


def test_probabilities_of_classes_by_name(optimize, tmp_path):
    text = (f"g (float[4,8] x) => (seq(map(int64, float)) y) <{W}> {{ {PRODUCT}  p = Softmax(m)"
            "  y = ai.onnx.ml.ZipMap <classlabels_int64s = [0, 1, 2, 3, 4, 5, 6, 7]> (p) }")
    done = optimize(model(tmp_path, text, extra=', "ai.onnx.ml" : 3'), "-o", tmp_path / "o.onnx", "--no-measure", "--json",
                    env={**os.environ, "MODELFLOW_PLUGIN": str(WRONG)})
    assert json.loads(done.out)["faults"], done.out


@pytest.mark.parametrize("why, text", [
    ("random", f"g (float[4,8] x) => (float[4,8] y) <{W}> {{ {PRODUCT}  r = RandomNormalLike(m)  y = Add(m, r) }}"),
    ("no element", f"g (float[4,8] x) => (float[k,8] y) <{W}, float most = {{1000.0}}> {{ {PRODUCT}"
                   "  s = ReduceMax<axes=[1], keepdims=0>(x)  c = Greater(s, most)  y = Compress<axis=0>(m, c) }"),
])
def test_what_cannot_be_compared_is_not_called_verified(why, text, optimize, tmp_path):
    report = json.loads(optimize(model(tmp_path, text), "-o", tmp_path / "o.onnx", "--no-measure", "--json").out)
    assert not report["verified"] and report["verification"] == []
    assert any(why in note and "'y'" in note for note in report["notes"]), report["notes"]


def test_a_loop_that_does_not_end_on_made_up_values(optimize, tmp_path):
    text = ("g (float[4] x) => (float[4] y) <bool t = {1}, float two = {2.0}, float most = {100.0}> { a = Abs(x)  "
            "y = Loop(, t, a) <body = b (int64 i, bool ci, float[4] s) => (bool co, float[4] so) "
            "{ so = Mul(s, two)  mx = ReduceMax<keepdims=0>(so)  co = Less(mx, most) }> }")
    done = optimize(model(tmp_path, text), "-o", tmp_path / "o.onnx", "--no-measure", "--json", "--verify-seconds", "0.5",
                    "--timeout", "60")
    report = json.loads(done.out)
    zeros, = (feed for feed in report["feeds"] if feed["name"] == "zeros")
    assert "longer" in zeros["dropped"] and report["verified"]


def test_a_recurrent_layer_beside_an_empty_list(optimize, tmp_path):
    text = ("g (float[5,2,3] x) => (float[10,4] y) <float[1,16,3] w = {" + ", ".join(["0.1"] * 48) + "}, float[1,16,4] r = {"
            + ", ".join(["0.2"] * 64) + "}, int64[1] from = {3}, int64[1] to = {9}, int64[1] any = {-1}, int64[1] four = {4}> "
            "{ h, hn = LSTM <hidden_size = 4> (x, w, r)  s = Shape(x)  e = Slice(s, from, to)  c = Concat <axis = 0> (any, e, four)"
            "  y = Reshape(h, c) }")
    report = json.loads(optimize(model(tmp_path, text), "-o", tmp_path / "o.onnx", "--no-measure", "--json").out)
    assert report["verified"], report["notes"]


@pytest.mark.parametrize("text", [
    "g (float[1,3,16,16] x, int64[4] n) => (float[?,?,?,?] y) { t = Relu(x)  y = Tile(t, n) }",
    "g (float[2,9] x, int64[1] k) => (float[?,?] y, int64[?,?] i) { t = Relu(x)  y, i = TopK(t, k) }",
    "g (float[4,3] x, int64[3] lens) => (float[4,3] y) { t = Relu(x)  y = ReverseSequence <batch_axis = 1, time_axis = 0> (t, lens) }",
])
def test_counts_that_a_model_takes(text, optimize, tmp_path):
    report = json.loads(optimize(model(tmp_path, text), "-o", tmp_path / "o.onnx", "--no-measure", "--json").out)
    assert report["verified"], report["notes"]


@pytest.mark.parametrize("samples", [np.full((8, 2, 64), np.nan, np.float32), np.zeros((8, 0, 64), np.float32)], ids=["NaN", "batch 0"])
def test_samples_without_a_number_judge_nothing(samples, optimize, tmp_path):
    for i, sample in enumerate(samples):
        np.savez(tmp_path / f"{i}.npz", x=sample)
    weights = "float[64,64] w = {" + ", ".join(f"{i * 7919 % 1000 / 1000 - 0.5:.3f}" for i in range(4096)) + "}"
    path = model(tmp_path, f"g (float[n,64] x) => (float[n,64] y) <{weights}> {{ h = MatMul(x, w)  r = Relu(h)  y = MatMul(r, w) }}")
    done = optimize(path, "-o", tmp_path / "o.onnx", "--no-measure", "--json", "--precision", "int4-weights", "--inputs", tmp_path)
    assert any("finite number" in note for note in json.loads(done.out)["notes"]), done.out
