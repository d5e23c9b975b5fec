"""Models that ONNX itself calls wrong: the node is named and nothing is written. What only this runtime does not know is no
error."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


def save(path, nodes, constants=(), domains=("",)):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], list(constants))
    opsets = [helper.make_opsetid(d, 17 if d == "" else 1) for d in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


WRONG = {
    "perm": (helper.make_node("Transpose", ["x"], ["y"], name="bad", perm=[0, 9]), []),
    "axis": (helper.make_node("Softmax", ["x"], ["y"], name="bad", axis=99), []),
    "two unknowns": (helper.make_node("Reshape", ["x", "s"], ["y"], name="bad"), [ints("s", -1, -1)]),
    "equation": (helper.make_node("Einsum", ["x"], ["y"], name="bad", equation="abcdefg->z"), []),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("flags", [(), ("--portable",)])
def test_a_node_that_cannot_be(optimize, tmp_path, case, flags):
    node, constants = WRONG[case]
    save(tmp_path / "m.onnx", [node], constants)
    done = optimize(tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--no-measure", *flags)
    assert (done.code, done.err.count("\n")) == (3, 1) and "'bad'" in done.err, done.err
    assert not (tmp_path / "out.onnx").exists()


def test_a_tensor_of_no_type(optimize, tmp_path):
    strange = TensorProto(name="w", data_type=99, dims=[4], raw_data=bytes(16))
    save(tmp_path / "m.onnx", [helper.make_node("Add", ["x", "w"], ["y"])], [strange])
    done = optimize(tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--no-measure")
    assert (done.code, done.err.count("\n")) == (3, 1) and "'w'" in done.err and "99" in done.err
    assert not (tmp_path / "out.onnx").exists()


def test_an_operator_that_nobody_knows_here(optimize, tmp_path):
    nodes = [helper.make_node("Strange", ["x"], ["s"], domain="somewhere"), helper.make_node("Identity", ["s"], ["i"]),
             helper.make_node("Relu", ["i"], ["y"])]
    save(tmp_path / "m.onnx", nodes, domains=("", "somewhere"))
    done = optimize(tmp_path / "m.onnx", "-o", tmp_path / "out.onnx", "--no-measure")
    assert done.code == 0, done.err
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node] == ["Strange", "Relu"]
