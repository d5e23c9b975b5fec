"""The constructs as Paddle layers, through paddle2onnx: python paddle_models.py FOLDER (paddlepaddle, paddle2onnx)."""
import pathlib
import sys
import tempfile

import numpy as np
import paddle
import paddle2onnx
from paddle import nn
from paddle.nn import functional as F

B, S, H, D, E = 2, 5, 2, 8, 16
OPSETS = (13, 16)
IMAGE, TOKENS = [-1, 8, 9, 9], [-1, S, E]


def linear(activation):
    class Linear(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(E, 24)

        def forward(self, x):
            return activation(self.fc(x))

    return Linear, TOKENS


def conv(activation, **options):
    class Convolution(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2D(8, 8, 3, padding=1, bias_attr=False, **options), nn.BatchNorm2D(8)

        def forward(self, x):
            return activation(self.norm(self.conv(x)))

    return Convolution, IMAGE


class Residual(nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Conv2D(8, 8, 3, padding=1, bias_attr=False) for _ in range(2))
        self.na, self.nb = nn.BatchNorm2D(8), nn.BatchNorm2D(8)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


class Excite(nn.Layer):
    def __init__(self):
        super().__init__()
        self.pool, self.squeeze, self.expand = nn.AdaptiveAvgPool2D(1), nn.Conv2D(8, 4, 1), nn.Conv2D(4, 8, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.expand(F.relu(self.squeeze(self.pool(x)))))


class Attention(nn.Layer):
    """The SVTR block of PP-OCR."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x):
        qkv = self.qkv(x).reshape((0, -1, 3, H, D)).transpose((2, 0, 3, 1, 4))
        q, k, v = qkv[0] * D**-0.5, qkv[1], qkv[2]
        return self.o((F.softmax(q.matmul(k.transpose((0, 1, 3, 2))), axis=-1).matmul(v)).transpose((0, 2, 1, 3)).reshape((0, -1, E)))


class Norm(nn.LayerNorm):
    def __init__(self):
        super().__init__(E)


class Group(nn.GroupNorm):
    def __init__(self):
        super().__init__(2, 8)


class Mlp(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(E, 32), nn.Linear(32, E)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


MODELS = {
    "linear_gelu": linear(F.gelu),
    "linear_gelu_tanh": linear(lambda x: F.gelu(x, approximate=True)),
    "linear_silu": linear(F.silu),
    "linear_hardswish": linear(F.hardswish),
    "linear_leaky_relu": linear(F.leaky_relu),
    "mlp": (Mlp, TOKENS),
    "conv_bn_relu": conv(F.relu),
    "conv_bn_relu6": conv(F.relu6),
    "conv_bn_hardswish": conv(F.hardswish),
    "conv_bn_silu": conv(F.silu),
    "conv_bn_mish": conv(F.mish),
    "depthwise_bn_relu": conv(F.relu, groups=8),
    "residual_block": (Residual, IMAGE),
    "squeeze_excite_mobilenet": (Excite, IMAGE),
    "packed_qkv_eager": (Attention, TOKENS),
    "layer_norm": (Norm, TOKENS),
    "group_norm": (Group, IMAGE),
}


def main(folder):
    for name, (make, shape) in MODELS.items():
        layer, rng = make(), np.random.default_rng(1)
        for key, value in layer.state_dict().items():
            rounded = (rng.integers(-4, 5, value.shape) / 8).astype("float32")
            value.set_value(np.abs(rounded) + np.float32(0.5) if "variance" in key else rounded)
        layer.eval()
        for opset in OPSETS:
            target = folder / name / f"paddle-{opset}.onnx"
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as temporary:
                try:
                    spec = [paddle.static.InputSpec(shape, "float32", "x")]
                    paddle.jit.save(layer, temporary + "/m", spec)
                    program = next(p for p in (temporary + "/m.json", temporary + "/m.pdmodel") if pathlib.Path(p).exists())
                    paddle2onnx.export(program, temporary + "/m.pdiparams", str(target), opset_version=opset, enable_onnx_checker=False)
                except Exception as error:
                    print(f"{name}/paddle-{opset}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:150]}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
