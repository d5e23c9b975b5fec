"""Reverse-mode differentiation over NumPy, as much as two small networks need.

A Tensor remembers what it was made from and how to send a gradient back there. onnx_writer.Symbol has the same methods,
so that a network is written once and both trained and exported.
"""
import numpy as np


def unbroadcast(gradient, shape):
    """Sums over the axes along which an operand was repeated."""
    gradient = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    return gradient.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1 and gradient.shape[i] != 1), keepdims=True)


class Tensor:
    def __init__(self, value, parents=()):
        self.value, self.gradient = np.asarray(value, np.float32), None
        self.parents = parents  # pairs of a tensor and what maps our gradient to its share

    def __add__(self, other):
        return Tensor(self.value + other.value, ((self, lambda g: unbroadcast(g, self.value.shape)),
                                                 (other, lambda g: unbroadcast(g, other.value.shape))))

    def __mul__(self, other):
        if isinstance(other, float):
            return Tensor(self.value * other, ((self, lambda g: g * other),))
        return Tensor(self.value * other.value, ((self, lambda g: unbroadcast(g * other.value, self.value.shape)),
                                                 (other, lambda g: unbroadcast(g * self.value, other.value.shape))))

    def __matmul__(self, other):
        a, b = self.value, other.value
        return Tensor(a @ b, ((self, lambda g: unbroadcast(g @ b.swapaxes(-1, -2), a.shape)),
                              (other, lambda g: unbroadcast(a.swapaxes(-1, -2) @ g, b.shape))))

    def relu(self):
        return Tensor(np.maximum(self.value, 0), ((self, lambda g: g * (self.value > 0)),))

    def gelu(self):
        """The tanh form."""
        x, c = self.value, np.float32(np.sqrt(2 / np.pi))
        t = np.tanh(c * (x + 0.044715 * x**3))
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)
        return Tensor(0.5 * x * (1 + t), ((self, lambda g: g * slope),))

    def softmax(self):
        e = np.exp(self.value - self.value.max(-1, keepdims=True))
        y = e / e.sum(-1, keepdims=True)
        return Tensor(y, ((self, lambda g: y * (g - (g * y).sum(-1, keepdims=True))),))

    def layer_norm(self, scale, shift):
        x = self.value - self.value.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        y = x * inverse
        normed = Tensor(y, ((self, lambda g: inverse * (g - g.mean(-1, keepdims=True)
                                                        - y * (g * y).mean(-1, keepdims=True))),))
        return normed * scale + shift

    def reshape(self, *shape):
        return Tensor(self.value.reshape(shape), ((self, lambda g: g.reshape(self.value.shape)),))

    def transpose(self, *axes):
        return Tensor(self.value.transpose(axes), ((self, lambda g: g.transpose(np.argsort(axes))),))

    def mean(self, *axes):
        count = np.prod([self.value.shape[a] for a in axes])
        return Tensor(self.value.mean(axes), ((self, lambda g: np.broadcast_to(
            np.expand_dims(g, axes) / count, self.value.shape)),))

    def conv(self, weight, bias, stride=1, pad=0):
        """[N, C, H, W] with [M, C, k, k]: patches laid out as columns, then one product."""
        x, w = np.pad(self.value, ((0, 0), (0, 0), (pad, pad), (pad, pad))), weight.value
        m, c, k, _ = w.shape
        out = (x.shape[2] - k) // stride + 1
        taps = [(slice(None), slice(None), slice(i, i + stride * (out - 1) + 1, stride),
                 slice(j, j + stride * (out - 1) + 1, stride)) for i in range(k) for j in range(k)]
        columns = np.stack([x[tap] for tap in taps], axis=2).reshape(len(x), c * k * k, out * out)
        flat = w.reshape(m, -1)
        y = (flat @ columns).reshape(len(x), m, out, out) + bias.value[:, None, None]

        def back_x(g):
            parts = (flat.T @ g.reshape(len(x), m, -1)).reshape(len(x), c, k * k, out, out)
            full = np.zeros_like(x)
            for i, tap in enumerate(taps):
                full[tap] += parts[:, :, i]
            return full[:, :, pad:x.shape[2] - pad, pad:x.shape[3] - pad]

        def back_w(g):
            return np.einsum("nmp,nkp->mk", g.reshape(len(x), m, -1), columns, optimize=True).reshape(w.shape)

        return Tensor(y, ((self, back_x), (weight, back_w), (bias, lambda g: g.sum((0, 2, 3)))))

    def cross_entropy(self, labels):
        """Mean over the batch; the gradient of everything that led here is set."""
        rows = np.arange(len(labels))
        e = np.exp(self.value - self.value.max(-1, keepdims=True))
        p = e / e.sum(-1, keepdims=True)
        self.backward((p - np.eye(p.shape[1], dtype=np.float32)[labels]) / len(labels))
        return float(-np.log(p[rows, labels] + 1e-12).mean())

    def backward(self, gradient):
        order, seen = [], set()

        def visit(tensor):
            if id(tensor) not in seen:
                seen.add(id(tensor))
                for parent, _ in tensor.parents:
                    visit(parent)
                order.append(tensor)

        visit(self)
        self.gradient = gradient
        for tensor in reversed(order):
            for parent, share in tensor.parents:
                g = share(tensor.gradient)
                parent.gradient = g if parent.gradient is None else parent.gradient + g


class Adam:
    def __init__(self, parameters, rate):
        self.parameters, self.rate, self.step = parameters, rate, 0
        self.moments = {name: (np.zeros_like(v), np.zeros_like(v)) for name, v in parameters.items()}

    def update(self, tensors, rate):
        self.step += 1
        for name, (m, v) in self.moments.items():
            g = tensors[name].gradient
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            unbiased = m / (1 - 0.9**self.step), v / (1 - 0.999**self.step)
            self.parameters[name] -= self.rate * rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
