"""Shapes, tensors and constants that ask for more than there is, or hold something else than they say."""
import numpy as np
from onnx import AttributeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from .case import Case, cases_of, floats, info, ints, model, node, number

HUGE = 2**62


def raw(name="w", dims=(4,), dtype=TensorProto.FLOAT, data=b"", **more):
    return TensorProto(name=name, data_type=dtype, dims=dims, raw_data=data, **more)


def adding(tensor):
    return model([node("Add", ["x", "w"], ["y"])], [tensor])


def typed(dtype, dims=(4,), **fields):
    return TensorProto(name="w", data_type=dtype, dims=dims, **fields)


def casting(tensor):
    return model([node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [tensor], opset=21)


T = TensorProto
WRONG = {
    "negative dims": adding(raw(dims=(-4,), data=bytes(16))),
    "two negative dims": adding(raw(dims=(-2, -2), data=bytes(16))),
    "dims of 2^63": adding(raw(dims=(2**62, 2), data=bytes(16))),
    "dims that wrap to 4": adding(raw(dims=(2**32, 2**32, 4), data=bytes(16))),
    "dims that wrap to 0": adding(raw(dims=(2**32, 2**32), data=b"")),
    "bytes that wrap": adding(raw(dims=(2**62,), data=b"")),
    "fewer bytes": adding(raw(data=bytes(15))),
    "more bytes": adding(raw(data=bytes(17))),
    "no data": adding(typed(T.FLOAT)),
    "fewer numbers": adding(typed(T.FLOAT, float_data=[1, 2, 3])),
    "more numbers": adding(typed(T.FLOAT, float_data=[1] * 5)),
    "numbers in another field": adding(typed(T.FLOAT, int64_data=[1, 2, 3, 4])),
    "a terabyte claimed": adding(raw(dims=(2**38,), data=bytes(64))),
    "strings in bytes": casting(raw(dtype=T.STRING, data=b"abcd")),
    "fewer strings": casting(typed(T.STRING, string_data=[b"a"])),
    "int4, a byte for each": casting(raw(dtype=T.INT4, dims=(5,), data=bytes(5))),
    "int4, a byte short": casting(raw(dtype=T.INT4, dims=(5,), data=bytes(2))),
    "int4, numbers of bytes": casting(typed(T.INT4, dims=(5,), int32_data=[1] * 5)),
    "uint2, a byte short": casting(raw(dtype=25, dims=(5,), data=bytes(1))),
    "a segment": adding(raw(data=bytes(16), segment=TensorProto.Segment(begin=0, end=4))),
}
WRONG_CODES = {"a segment": (3, 4)}


def shaped(*dims):
    made = model([node("Relu", ["x"], ["y"])], inputs=[info("x", None)])
    shape = made.graph.input[0].type.tensor_type.shape
    for dim in dims:
        entry = shape.dim.add()
        if isinstance(dim, int):
            entry.dim_value = dim
        else:
            entry.dim_param = dim
    return made


def lying():
    """value_info that contradicts what the nodes compute."""
    made = model([node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["y"])])
    made.graph.value_info.extend([info("a", [7, 2**40, 3]), info("a", [2], T.STRING), info("none", [1])])
    return made


def of_rank(rank):
    return model([node("Add", ["x", "w"], ["y"])], [raw(dims=[1] * rank, data=bytes(4))], inputs=[info("x", [1] * rank)])


ODD = {
    "no elements, huge dims": adding(raw(dims=(0, HUGE, HUGE), data=b"")),
    "input of 2^62": shaped(HUGE), "input of 2^124": shaped(HUGE, HUGE), "input of negative dims": shaped(-4, -1),
    "input of 2^40": shaped(2**20, 2**20), "dims of one long name": shaped("n" * 1_000_000), "dims of brackets": shaped("(" * 100_000),
    "dims of stars": shaped("*".join("a" * 50_000)), "dims of sums": shaped(" + ".join(f"a{i}" for i in range(20_000))),
    "dims of minus signs": shaped(" - ".join("a" * 20_000)), "dims like a number": shaped("9" * 30, "-1", "0x10"),
    "dims of control characters": shaped("\x1b[31m", "\n", "a\0b"), "the empty name": shaped(""),
    "rank 100": of_rank(100), "value_info that lies": lying(),
    "16 bits out of range": adding(typed(T.FLOAT16, int32_data=[-1, 2**31 - 1, -2**31, 70000])),
    "bools of 300": casting(typed(T.BOOL, int32_data=[300, -1, 2, 0])),
}
SPARSE = {name: model([node("Identity", ["x"], ["y"])], sparse_initializer=[SparseTensorProto(values=values, indices=indices, dims=dims)]) for name, values, indices, dims in (
    ("places beyond the end", floats("w", 2), ints("", 1, 99), [8]), ("negative places", floats("w", 2), ints("", -5, -1), [8]),
    ("places in any order", floats("w", 2), ints("", 5, 1), [8]), ("fewer places", floats("w", 4), ints("", 1), [8]),
    ("places of floats", floats("w", 2), floats("", 2), [8]), ("huge dims", floats("w", 1), ints("", 1), [HUGE, HUGE]),
    ("negative dims", floats("w", 1), ints("", 1), [-8]), ("no dims", floats("w", 1), ints("", 1), []))}


def attribute(op="Softmax", name="axis", inputs=("x",), **fields):
    made = node(op, list(inputs), ["y"])
    made.attribute.append(AttributeProto(name=name, **fields))
    return model([made], [floats("w", 4, 4, 3, 3)])


def twice():
    made = attribute(type=AttributeProto.INT, i=0)
    made.graph.node[0].attribute.append(made.graph.node[0].attribute[0])
    return made


A = AttributeProto
ATTRIBUTES = {
    "a text for a number": attribute(type=A.STRING, s=b"1"), "numbers for a number": attribute(type=A.INTS, ints=[1]),
    "a float for a number": attribute(type=A.FLOAT, f=1.0), "a graph for a number": attribute(type=A.GRAPH),
    "a type of another field": attribute(type=A.STRING, i=1), "no operator's attribute": attribute(name="colour", type=A.INT, i=1),
    "the same one twice": twice(), "a text for numbers": attribute("Transpose", "perm", type=A.STRING, s=b"10"),
    "Conv of a text": attribute("Conv", "kernel_shape", ("x", "w"), type=A.STRING, s=b"33"),
    "Conv of zero strides": attribute("Conv", "strides", ("x", "w"), type=A.INTS, ints=[0, 0]),
    "Conv of no groups": attribute("Conv", "group", ("x", "w"), type=A.INT, i=0),
    "Conv of huge groups": attribute("Conv", "group", ("x", "w"), type=A.INT, i=2**40),
    "Constant of nothing": model([node("Constant", [], ["y"])]), "Constant of two": model([node("Constant", [], ["y"], value_int=1, value_float=1.0)]),
    "If of a number": model([node("If", ["x"], ["y"], then_branch=1, else_branch=2)]),
}


def named(name):
    return model([node("Transpose", ["x"], ["y"], name=name, perm=[0, 9])])


def raw_named(name):
    made = named("PLACE" * 4).SerializeToString()
    assert len(name) == 20
    return made.replace(b"PLACE" * 4, name)


NAMES = {
    "escape sequences": named("\x1b[2J\x1b[31mall is well\x07"), "line ends": named("a\noptimize: all is well\r\nb"),
    "zero bytes": named("a\0b"), "of a million letters": named("n" * 1_000_000), "marks of direction": named("\u202eslla si lla"),
    "C1 controls": named("\x9b31m red \x85 next"), "no UTF-8": raw_named(b"\xff\xfe\x80\xc0\xaf\xed\xa0\x80" + b"z" * 12), "half a character": raw_named(b"z" * 17 + b"\xf0\x9f\x92"),
}


def fills(dims, op="ReduceSum", **more):
    """ConstantOfShape of these dims, and a sum that makes little of it."""
    return model([node("ConstantOfShape", ["d"], ["big"]), node(op, ["big"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])], [ints("d", *dims)], **more)


def growing(op, constants, *inputs, **attributes):
    """An operator that makes much of little, all of it constant."""
    return model([node(op, list(inputs), ["big"], **attributes), node("Cast", ["big"], ["f"], to=T.FLOAT), node("ReduceMax", ["f"], ["s"], keepdims=0),
                  node("Add", ["x", "s"], ["y"])], constants, opset=13)


def doublings(times):
    nodes = [node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(times)]
    return model([*nodes, node("ReduceMax", [f"c{times}"], ["s"], keepdims=0), node("Add", ["x", "s"], ["y"])], [floats("c0", 1024)])


def many_large(count, elements):
    nodes = [n for i in range(count) for n in (node("ConstantOfShape", ["d"], [f"b{i}"]), node("ReduceSum", [f"b{i}"], [f"s{i}"], keepdims=0))]
    return model([*nodes, node("Sum", ["x", *[f"s{i}" for i in range(count)]], ["y"])], [ints("d", elements)])


def loop(trips, condition=True):
    body = helper.make_graph([node("Identity", ["more"], ["on"]), node("Relu", ["a"], ["b"])], "body", [info("i", [], T.INT64), info("more", [], T.BOOL), info("a", [2, 4])],
                             [info("on", [], T.BOOL), info("b", [2, 4])])
    return model([node("Loop", ["n" if trips is not None else "", "c", "x"], ["y"], body=body)], [number("n", trips or 0), number("c", condition, bool)])


BOMBS = {
    "ConstantOfShape 2^40": fills([2**40]), "ConstantOfShape 2^62": fills([2**62]), "ConstantOfShape 2^124": fills([2**62, 2**62]),
    "ConstantOfShape of negative dims": fills([-4, 4]), "ConstantOfShape of 50 axes": fills([4] * 50),
    "Expand": growing("Expand", [floats("v", 1), ints("d", 2**20, 2**20)], "v", "d"),
    "Tile": growing("Tile", [floats("v", 2**10), ints("d", 2**40)], "v", "d"),
    "Tile that wraps": growing("Tile", [floats("v", 2**10), ints("d", 2**62)], "v", "d"),
    "Range": growing("Range", [number("a", 0), number("b", 2**40), number("c", 1)], "a", "b", "c"),
    "Range of step 0": growing("Range", [number("a", 0), number("b", 9), number("c", 0)], "a", "b", "c"),
    "Range of NaN": growing("Range", [number("a", np.nan, np.float32), number("b", 9, np.float32), number("c", 1e-30, np.float32)], "a", "b", "c"),
    "Pad": growing("Pad", [floats("v", 2), ints("p", 2**40, 2**40)], "v", "p"),
    "Pad by less than nothing": growing("Pad", [floats("v", 2), ints("p", -2**62, -2**62)], "v", "p"),
    "Resize": growing("Resize", [floats("v", 1, 1, 8, 8), numpy_helper.from_array(np.array([1, 1, 2**20, 2**20], np.float32), "s")], "v", "", "s"),
    "Resize of sizes": growing("Resize", [floats("v", 1, 1, 8, 8), ints("s", 1, 1, 2**31, 2**31)], "v", "", "", "s"),
    "OneHot": growing("OneHot", [ints("i", 1), number("d", 2**40), floats("v", 2)], "i", "d", "v"),
}


CASES = {f"tensor: {name}": Case(lambda f, m=made: m, codes=WRONG_CODES.get(name, (3,))) for name, made in WRONG.items()}
CASES |= {f"tensor: {name}": case for name, case in cases_of(ODD, codes=(0, 3)).items()}
CASES |= {f"sparse: {name}": case for name, case in cases_of(SPARSE, codes=(0, 3)).items()}
CASES |= {f"attribute: {name}": case for name, case in cases_of(ATTRIBUTES).items()}
CASES |= {f"name: {name}": case for name, case in cases_of(NAMES, word="node '").items()}
CASES["attribute: Constant of two"].codes = (0, 3)
CASES |= {f"bomb: {name}": case for name, case in cases_of(BOMBS, codes=(0, 3)).items()}
CASES |= {
    "tensor: rank 100000": Case(lambda f: of_rank(100_000), codes=(7,), word="100000 axes"),
    "tensor: constant of rank 5000": Case(lambda f: model([node("Relu", ["w"], ["y"])], [raw(dims=[1] * 5000, data=bytes(4))]), codes=(7,), word="5000 axes"),
    "bomb: 40 doublings": Case(lambda f: doublings(40), codes=(0, 7), flags=("--max-memory", "500M"), memory=1500, seconds=3),
    "bomb: Einsum": Case(lambda f: growing("Einsum", [floats("v", 2**10)], *["v"] * 5, equation="a,b,c,d,e->abcde"), codes=(0, 7),
                         flags=("--max-memory", "500M"), memory=1500, seconds=3),
    "bomb: 34 GB": Case(lambda f: fills([2**33]), codes=(0, 7), flags=("--max-memory", "500M"), memory=1500, seconds=3),
    "bomb: twenty of 60 MB": Case(lambda f: many_large(20, 15_000_000), codes=(0,), memory=900, seconds=6),
    "bomb: Loop of 2^40": Case(lambda f: loop(2**40), codes=(7,), word="--timeout", flags=("--timeout", "1"), seconds=3),
    "bomb: Loop without end": Case(lambda f: loop(None), codes=(7,), word="--timeout", flags=("--timeout", "1"), seconds=3),
    "bomb: Loop of 2^63-1, not run": Case(lambda f: loop(2**63 - 1), codes=(0,), flags=("--no-verify",)),
    "bomb: little memory": Case(lambda f: fills([2**27]), codes=(0, 7), flags=("--max-memory", "200M"), memory=600, seconds=3),
}
