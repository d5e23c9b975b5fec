"""What a hostile file is here: who makes it, with which options it is optimized, and what may come of it."""
import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


@dataclasses.dataclass
class Case:
    make: Callable  # of Folders: writes the files; returns the model's path, or a ModelProto or bytes to write there
    codes: tuple = (3,)
    word: str = ""  # in the error line
    flags: tuple = ()
    seconds: float = 1  # of CPU time
    memory: int = 600  # MiB at most


@dataclasses.dataclass
class Folders:
    model: pathlib.Path  # where the model goes
    outside: pathlib.Path  # nothing in here may be opened; secret.bin lies there


def info(name, shape=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def floats(name, *shape):
    return numpy_helper.from_array(np.zeros(shape, np.float32), name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def number(name, value, dtype=np.int64):
    return numpy_helper.from_array(np.array(value, dtype), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def graph(nodes, constants=(), inputs=None, outputs=None, name="g", **more):
    inputs = [info("x", [2, 4])] if inputs is None else inputs
    outputs = [info("y")] if outputs is None else outputs
    return helper.make_graph(nodes, name, inputs, outputs, list(constants), **more)


def model(nodes, constants=(), inputs=None, outputs=None, functions=(), opset=17, domains=(), **more) -> ModelProto:
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    made = helper.make_model(graph(nodes, constants, inputs, outputs, **more), opset_imports=opsets, ir_version=8, producer_name="tests")
    made.functions.extend(functions)
    return made


def cases_of(made, **common):
    """Cases that share what they must come to: name -> ModelProto or function of Folders."""
    return {name: Case(made[name] if callable(made[name]) else (lambda folders, m=made[name]: m), **common) for name in made}
