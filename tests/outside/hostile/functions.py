"""Local functions that call themselves or grow without end, graphs in graphs in graphs, and graphs that are none."""
from onnx import AttributeProto, FunctionProto, TensorProto, helper

from .case import Case, cases_of, floats, graph, info, model, node, number

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]


def function(name, *nodes, inputs=("a",), outputs=("b",)) -> FunctionProto:
    return helper.make_function("local", name, list(inputs), list(outputs), list(nodes), OPSETS)


def call(name, x="a", y="b"):
    return node(name, [x], [y], domain="local")


def using(*functions, name=None):
    return model([call(name or functions[-1].name, "x", "y")], functions=functions, domains=["local"])


def chain(length, order=1):
    made = [function("F0", node("Relu", ["a"], ["b"]))] + [function(f"F{i}", call(f"F{i - 1}")) for i in range(1, length)]
    return using(*made[::order], name=f"F{length - 1}")


def laughs(levels, times):
    """Each function calls the one before it so many times."""
    def calls(i):
        names = ["a"] + [f"t{j}" for j in range(times - 1)] + ["b"]
        return function(f"F{i}", *[call(f"F{i - 1}", names[j], names[j + 1]) for j in range(times)])
    return using(function("F0", node("Relu", ["a"], ["b"])), *[calls(i) for i in range(1, levels)])


def inside_a_branch():
    branch = graph([call("F", "a", "t")], inputs=[], outputs=[info("t")])
    body = function("F", node("Constant", [], ["c"], value=number("", True, bool)), node("If", ["c"], ["b"], then_branch=branch, else_branch=branch))
    return using(body)


RECURSIVE = {
    "itself": using(function("F", call("F"))),
    "each other": using(function("F", call("G")), function("G", call("F"))),
    "in a ring of 50": using(*[function(f"F{i}", call(f"F{(i + 1) % 50}")) for i in range(50)]),
    "itself, uncalled": model([node("Relu", ["x"], ["y"])], functions=[function("F", call("F"))], domains=["local"]),
    "itself from a branch": inside_a_branch(),
    "itself, many times": using(function("F", *[call("F", "a", "b" if i == 999 else f"t{i}") for i in range(1000)])),
}
TOO_MUCH = {
    "10001 functions": model([node("Relu", ["x"], ["y"])], functions=[function(f"F{i}", node("Relu", ["a"], ["b"])) for i in range(10_001)], domains=["local"]),
    "calls 200 deep, leaves first": chain(200),
    "calls 200 deep, leaves last": chain(200, -1),
    "calls 5000 deep": chain(5000),
    "ten to the sixteen nodes": laughs(17, 10),
    "two to the ninety nodes": laughs(91, 2),
}
ODD = {
    "the same function twice": using(function("F", node("Relu", ["a"], ["b"])), function("F", node("Tanh", ["a"], ["b"]))),
    "a function's output undefined": using(function("F", node("Relu", ["a"], ["c"]))),
    "a function's input undefined": using(function("F", node("Relu", ["c"], ["b"]))),
    "a function's inputs of one name": using(function("F", node("Add", ["a", "a"], ["b"]), inputs=("a", "a"))),
    "a call of more inputs": model([node("F", ["x"] * 9, ["y"], domain="local")], functions=[function("F", node("Relu", ["a"], ["b"]))], domains=["local"]),
    "a call of more outputs": model([node("F", ["x"], ["y", "z"], domain="local")], functions=[function("F", node("Relu", ["a"], ["b"]))], domains=["local"]),
    "a call without its input": model([node("F", [], ["y"], domain="local")], functions=[function("F", node("Relu", ["a"], ["b"]))], domains=["local"]),
    "a function with a cycle": using(function("F", node("Add", ["a", "c"], ["d"]), node("Relu", ["d"], ["c"]), node("Relu", ["c"], ["b"]))),
}
FINE = {
    "calls 90 deep": chain(90),
    "ten thousand functions, none called": model([node("Relu", ["x"], ["y"])], functions=[function(f"F{i}", node("Relu", ["a"], ["b"])) for i in range(10_000)], domains=["local"]),
    "a reference to no attribute": using(function("F", helper.make_node("Constant", [], ["c"], value_float=1.0), node("Add", ["a", "c"], ["b"]))),
}
FINE["a reference to no attribute"].functions[0].node[0].attribute[0].CopyFrom(AttributeProto(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="none"))


def field(number, content):
    length, value = b"", len(content)
    while value >= 0x80:
        length, value = length + bytes([0x80 | value & 0x7f]), value >> 7
    return bytes([number << 3 | 2]) + length + bytes([value]) + content


def nested(levels):
    """If in If, written by hand: no library writes so deep."""
    inner = field(1, node("Identity", ["x"], ["t"]).SerializeToString()) + field(12, info("t").SerializeToString())
    for _ in range(levels):
        attribute = field(1, b"then_branch") + field(6, inner) + b"\xa0\x01\x05"
        other = field(1, b"else_branch") + field(6, inner if _ == 0 else field(1, node("Identity", ["x"], ["t"]).SerializeToString()) + field(12, info("t").SerializeToString())) + b"\xa0\x01\x05"
        branching = field(1, b"c") + field(2, b"t") + field(4, b"If") + field(5, attribute) + field(5, other)
        inner = field(1, branching) + field(12, info("t").SerializeToString())
    made = model([], inputs=[info("x", [2, 4]), info("c", [1], TensorProto.BOOL)], outputs=[info("t")])
    head = made.SerializeToString()
    whole = inner[:-len(field(12, info("t").SerializeToString()))] + made.graph.SerializeToString()
    made.ClearField("graph")
    return made.SerializeToString() + field(7, whole) if head else b""


def two(y="y", a="a"):
    return [node("Relu", ["x"], [a]), node("Relu", [a], [y])]


def shadowing():
    branch = graph([node("Relu", ["x"], ["a"]), node("Relu", ["a"], ["t"])], inputs=[], outputs=[info("t")])
    return model([node("Relu", ["x"], ["a"]), node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)], inputs=[info("x", [2, 4]), info("c", [1], TensorProto.BOOL)])


BROKEN = {
    "cycle": model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
    "a node that reads itself": model([node("Add", ["x", "y"], ["y"])]),
    "a cycle through a branch": model([node("If", ["c"], ["a"], then_branch=graph([node("Relu", ["b"], ["t"])], inputs=[], outputs=[info("t")]),
                                            else_branch=graph([node("Relu", ["b"], ["e"])], inputs=[], outputs=[info("e")])),
                                       node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])], inputs=[info("c", [1], TensorProto.BOOL)]),
    "assigned twice": model([node("Relu", ["x"], ["y"]), node("Tanh", ["x"], ["y"])]),
    "one node, one name twice": model([node("Split", ["x"], ["y", "y"])], opset=13),
    "assigned over an input": model([node("Relu", ["x"], ["x"])], outputs=[info("x")]),
    "assigned over a constant": model([node("Relu", ["x"], ["w"]), node("Relu", ["w"], ["y"])], [floats("w", 4)]),
    "undefined input": model([node("Relu", ["nowhere"], ["y"])]),
    "undefined output": model([node("Relu", ["x"], ["a"])]),
    "two inputs of one name": model(two(), inputs=[info("x", [2, 4]), info("x", [2, 4])]),
    "two constants of one name": model(two(), [floats("w", 4), floats("w", 4)]),
    "a constant without a name": model(two(), [floats("", 4)]),
    "an input without a name": model(two(), inputs=[info("x", [2, 4]), info("", [2])]),
    "no operator": model([node("", ["x"], ["y"])]),
    "an outer value as a result": model([node("If", ["c"], ["y"], then_branch=graph([], inputs=[], outputs=[info("x")]), else_branch=graph([], inputs=[], outputs=[info("x")]))],
                                        inputs=[info("x", [2, 4]), info("c", [1], TensorProto.BOOL)]),
    "If without branches": model([node("If", ["c"], ["y"])], inputs=[info("c", [1], TensorProto.BOOL)]),
    "Loop without a body": model([node("Loop", ["", "", "x"], ["y"])]),
    "no opset": model(two()),
    "an opset of two versions": model(two(), domains=["", "a", "a"]),
    "no graph": model(two()),
}
BROKEN["no opset"].ClearField("opset_import")
BROKEN["an opset of two versions"].opset_import[1].version = 12
BROKEN["no graph"].ClearField("graph")
NESTED = {
    "30 Ifs deep": Case(lambda f: nested(30), codes=(0,)),
    "60 Ifs deep": Case(lambda f: nested(60), word="nested"),
    "3000 Ifs deep": Case(lambda f: nested(3000)),
    "30 Ifs deep, 20 allowed": Case(lambda f: nested(30), codes=(7,), word="max_depth", flags=("--max-depth", "20")),
    "more nodes than allowed": Case(lambda f: model([node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(200)], inputs=[info("t0", [4])], outputs=[info("t200")]),
                                    codes=(7,), word="max_nodes", flags=("--max-nodes", "100")),
    "more nodes than allowed, in calls": Case(lambda f: laughs(5, 6), codes=(7,), word="max_nodes", flags=("--max-nodes", "1000")),
    "calls deeper than allowed": Case(lambda f: chain(12), codes=(7,), word="max_depth", flags=("--max-depth", "10")),
}

CASES = {f"function calls {name}": case for name, case in cases_of(RECURSIVE, word="calls itself").items()}
CASES |= {f"functions: {name}": case for name, case in cases_of(TOO_MUCH, codes=(7,)).items()}
CASES |= {f"functions: {name}": case for name, case in cases_of(ODD).items()}
CASES |= {f"functions: {name}": case for name, case in cases_of(FINE, codes=(0,)).items()}
CASES["functions: a reference to no attribute"].codes = (3,)
CASES |= {f"graph: {name}": case for name, case in cases_of(BROKEN).items()}
CASES |= {f"nested: {name}": case for name, case in NESTED.items()}
CASES |= {"graph: a branch that shadows": Case(lambda f: shadowing(), codes=(0, 3))}
