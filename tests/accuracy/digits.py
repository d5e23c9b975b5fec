"""Two small networks for scikit-learn's handwritten digits: written once, trained here in seconds, exported to ONNX."""
import numpy as np
import onnx
from autodiff import Adam, Tensor
from onnx import TensorProto
from onnx_writer import Writer

WIDTH, HEADS, DEPTH = 32, 4, 2


def convolutional(x, p):
    """Three convolutions, one of them residual, one with stride; global pooling; a classifier."""
    x = x.conv(p["w0"], p["b0"], pad=1).relu()
    x = (x.conv(p["w1"], p["b1"], pad=1) + x).relu()
    x = x.conv(p["w2"], p["b2"], stride=2, pad=1).relu()
    x = (x.conv(p["w3"], p["b3"], pad=1) + x).relu()
    return x.mean(2, 3) @ p["w4"] + p["b4"]


def attention(x, p, layer):
    """Heads side by side; tokens are the 16 patches."""
    def heads(name, *axes):
        product = x @ p[f"{name}{layer}"] + p[f"{name}{layer}b"]
        return product.reshape(-1, 16, HEADS, WIDTH // HEADS).transpose(*axes)

    q, k, v = heads("q", 0, 2, 1, 3), heads("k", 0, 2, 3, 1), heads("v", 0, 2, 1, 3)
    mixed = (q @ k * float(1 / np.sqrt(WIDTH // HEADS))).softmax() @ v
    return mixed.transpose(0, 2, 1, 3).reshape(-1, 16, WIDTH) @ p[f"o{layer}"] + p[f"o{layer}b"]


def transformer(x, p):
    """A convolution, patches of 2x2, blocks with the norm in front, mean over the tokens."""
    x = x.conv(p["stem"], p["stemb"], pad=1).relu()
    x = x.conv(p["patch"], p["patchb"], stride=2).reshape(-1, WIDTH, 16).transpose(0, 2, 1) + p["places"]
    for i in range(DEPTH):
        x = x + attention(x.layer_norm(p[f"n{i}s"], p[f"n{i}b"]), p, i)
        hidden = (x.layer_norm(p[f"m{i}s"], p[f"m{i}b"]) @ p[f"up{i}"] + p[f"up{i}b"]).gelu()
        x = x + (hidden @ p[f"down{i}"] + p[f"down{i}b"])
    return x.layer_norm(p["ns"], p["nb"]).mean(1) @ p["head"] + p["headb"]


def parameters(net):
    rng = np.random.default_rng(3)

    def normal(*shape, fan):
        return (rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)

    def zeros(n):
        return np.zeros(n, np.float32)

    if net is convolutional:
        channels = (1, 16, 16, 32, 32)
        p = {"w4": normal(32, 10, fan=64), "b4": zeros(10)}
        for i in range(4):
            p |= {f"w{i}": normal(channels[i + 1], channels[i], 3, 3, fan=9 * channels[i]),
                  f"b{i}": zeros(channels[i + 1])}
        return p
    p = {"stem": normal(16, 1, 3, 3, fan=9), "stemb": zeros(16), "patch": normal(WIDTH, 16, 2, 2, fan=64),
         "patchb": zeros(WIDTH), "places": normal(1, 16, WIDTH, fan=200), "ns": zeros(WIDTH) + 1, "nb": zeros(WIDTH),
         "head": normal(WIDTH, 10, fan=64), "headb": zeros(10)}
    for i in range(DEPTH):
        for name in "qkvo":
            p |= {f"{name}{i}": normal(WIDTH, WIDTH, fan=2 * WIDTH), f"{name}{i}b": zeros(WIDTH)}
        p |= {f"up{i}": normal(WIDTH, 2 * WIDTH, fan=2 * WIDTH), f"up{i}b": zeros(2 * WIDTH)}
        p |= {f"down{i}": normal(2 * WIDTH, WIDTH, fan=4 * WIDTH), f"down{i}b": zeros(WIDTH)}
        for name in "nm":
            p |= {f"{name}{i}s": zeros(WIDTH) + 1, f"{name}{i}b": zeros(WIDTH)}
    return p


def data():
    """(images, labels) of 1097 digits to learn from and of 700 to test with; pixels in 0..1, [N, 1, 8, 8]."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(5).permutation(len(digits.target))
    images, labels = (digits.images[order, None] / 16).astype(np.float32), digits.target[order]
    return (images[:1097], labels[:1097]), (images[1097:], labels[1097:])


def train(net, images, labels, epochs=14, batch=32, rate=0.01):
    p = parameters(net)
    adam, rng = Adam(p, rate), np.random.default_rng(7)
    steps = epochs * (len(images) // batch)
    for step in range(steps):
        pick = rng.choice(len(images), batch, replace=False)
        tensors = {name: Tensor(value) for name, value in p.items()}
        net(Tensor(images[pick]), tensors).cross_entropy(labels[pick])
        adam.update(tensors, 1 - step / steps)
    return p


def export(net, p, path):
    writer = Writer()
    output = net(writer.input("image"), {name: writer.constant(value, name) for name, value in p.items()})
    onnx.save(writer.model({"image": (TensorProto.FLOAT, ["batch", 1, 8, 8])}, (output, ["batch", 10])), path)
    return path
