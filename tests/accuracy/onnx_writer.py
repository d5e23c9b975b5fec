"""The methods of autodiff.Tensor once more, writing ONNX nodes in the spelling of common exporters."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Writer:
    def __init__(self):
        self.nodes, self.weights = [], {}

    def node(self, op, *inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, [i.name for i in inputs], [name], name=name, **attributes))
        return Symbol(self, name)

    def input(self, name):
        return Symbol(self, name)

    def constant(self, value, name=None):
        name = name or f"constant_{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return Symbol(self, name)

    def model(self, inputs, output, opset=17):
        """`inputs`: name -> (element type, shape); `output`: the symbol and its shape."""
        symbol, shape = output
        self.nodes[-1].output[0] = "output"
        assert self.nodes[-1].name == symbol.name
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, shape)],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


class Symbol:
    def __init__(self, writer, name):
        self.writer, self.name = writer, name

    def number(self, value):
        return self.writer.constant(np.float32(value))

    def __add__(self, other):
        return self.writer.node("Add", self, other)

    def __mul__(self, other):
        return self.writer.node("Mul", self, self.number(other) if isinstance(other, float) else other)

    def __matmul__(self, other):
        return self.writer.node("MatMul", self, other)

    def relu(self):
        return self.writer.node("Relu", self)

    def gelu(self):
        node = self.writer.node
        cubed = node("Mul", node("Pow", self, self.number(3)), self.number(0.044715))
        inner = node("Mul", node("Add", self, cubed), self.number(np.sqrt(2 / np.pi)))
        gate = node("Add", node("Tanh", inner), self.number(1))
        return node("Mul", node("Mul", self, self.number(0.5)), gate)

    def gelu_erf(self):
        node = self.writer.node
        gate = node("Add", node("Erf", node("Div", self, self.number(np.sqrt(2)))), self.number(1))
        return node("Mul", node("Mul", self, gate), self.number(0.5))

    def softmax(self):
        return self.writer.node("Softmax", self, axis=-1)

    def layer_norm(self, scale, shift, epsilon=1e-5):
        return self.writer.node("LayerNormalization", self, scale, shift, axis=-1, epsilon=epsilon)

    def reshape(self, *shape):
        return self.writer.node("Reshape", self, self.writer.constant(np.array(shape, np.int64)))

    def transpose(self, *axes):
        return self.writer.node("Transpose", self, perm=axes)

    def mean(self, *axes):
        return self.writer.node("ReduceMean", self, axes=axes, keepdims=0)

    def conv(self, weight, bias, stride=1, pad=0):
        return self.writer.node("Conv", self, weight, bias, strides=[stride] * 2, pads=[pad] * 4)
