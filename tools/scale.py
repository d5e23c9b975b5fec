"""Times `optimize` on chains of mixed ops: products, biases, activations, views. See tools/scale."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LEVELS = {"O1": ["--level", "O1"], "O2": ["--level", "O2", "--no-measure"]}
MOST_MICROSECONDS = {"O1": 50, "O2": 150}  # of CPU time per node
SHAPE = [1, 16, 16]


class Chain:
    """A graph in which every node reads the one before it."""

    def __init__(self, count):
        self.random = np.random.default_rng(0)
        self.nodes, self.constants, self.last = [], [], "x"
        product = self.constant(self.normal(16, 16) / 4)
        four = self.constant(np.array([1, 4, 4, 16], np.int64))
        three = self.constant(np.array(SHAPE, np.int64))
        while len(self.nodes) < count:
            self.add("MatMul", product)
            self.add("Add", self.constant(self.normal(16)))
            self.add("Relu")
            self.add("Reshape", four)
            self.add("Transpose", perm=[0, 2, 1, 3])
            self.add("Reshape", three)
            self.add("Sigmoid")
            self.add("Softmax", axis=-1)
            self.add("Tanh")
            self.add("Mul", self.constant(self.normal(16)))

    def normal(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op, *others, **attributes):
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [self.last, *others], [result], **attributes))
        self.last = result

    def save(self, path):
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in ("x", self.last)]
        graph = helper.make_graph(self.nodes, "chain", ends[:1], ends[1:], self.constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def cpu_seconds(command):
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimize", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", default="20000,200000")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--make", type=pathlib.Path)
    options = parser.parse_args()
    sizes = [int(size) for size in options.nodes.split(",")]
    if options.make:
        Chain(sizes[0]).save(options.make)
        return 0
    slow = False
    print("| nodes | O1 | O2 `--no-measure` |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        model, out = pathlib.Path(folder) / "chain.onnx", pathlib.Path(folder) / "out.onnx"
        for size in sizes:
            Chain(size).save(model)
            row = []
            for level, how in LEVELS.items():
                command = [options.optimize, model, "-o", out, "-q", "--no-verify", *how]
                seconds = min(cpu_seconds(command) for _ in range(options.runs))
                slow |= seconds > size * MOST_MICROSECONDS[level] * 1e-6
                row.append(f"{seconds:.2f} s")
            print(f"| {size} | {' | '.join(row)} |", flush=True)
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
