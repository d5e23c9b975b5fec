"""What the corpus holds: each construct as torch code, its inputs, and what must fuse.

A construct is `(module, inputs, fused, left)`: `fused` counts modelflow ops, `left` names standard ops that may remain
beside views and shape arithmetic. The first extent of every input is dynamic, and `seq` where a name says so.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

B, S, H, D, E = 2, 5, 2, 8, 16  # batch, sequence, heads, size of a head, H * D
CONSTRUCTS = {}


def construct(fused, left=(), f16=False, **shapes):
    """Registers a module class (or a function of tensors) under its own name."""

    def register(thing):
        CONSTRUCTS[thing.__name__.lower()] = (thing, shapes or {"x": (B, S, E)}, fused, left, f16)
        return thing

    return register


def act(fn):
    """A linear layer with the activation behind it: one node when the spelling is known."""

    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(E, 24)

        def forward(self, x):
            return fn(self.fc(x))

    return Linear


def conv(fn, norm=True, **options):
    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(8, 8, 3, padding=1, bias=not norm, **options)
            self.norm = nn.BatchNorm2d(8) if norm else nn.Identity()

        def forward(self, x):
            return fn(self.norm(self.conv(x)))

    return Convolution


def named(name, thing):
    thing.__name__ = name
    return thing


IMAGE = {"x": (B, 8, 9, 9)}
ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_python": lambda x: x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu_new": lambda x: 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0)))),
    "gelu_fast": lambda x: 0.5 * x * (1.0 + torch.tanh(x * 0.7978845608 * (1.0 + 0.044715 * x * x))),
    "gelu_quick": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": F.silu,
    "mish": F.mish,
    "hardswish": F.hardswish,
    "relu6_swish": lambda x: x * F.relu6(x + 3) / 6,
    "relu6_swish_scaled": lambda x: x * (F.relu6(x + 3) * (1 / 6)),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "relu6": F.relu6,
}
for key, fn in ACTIVATIONS.items():
    half = key in ("gelu", "gelu_tanh", "silu")
    construct({"MatMul": 1}, f16=half)(named("linear_" + key, act(fn)))
for key in ("gelu", "silu", "mish", "hardswish", "relu6_swish", "leaky_relu", "relu6"):
    construct({"Conv": 1}, f16=key in ("silu", "hardswish"), **IMAGE)(named("conv_bn_" + key, conv(ACTIVATIONS[key])))
construct({"Conv": 1}, f16=True, **IMAGE)(named("conv_bn_relu", conv(F.relu)))
construct({"Conv": 1}, **IMAGE)(named("depthwise_bn_relu", conv(F.relu, groups=8)))
construct({"Conv": 1}, **IMAGE)(named("conv_strided", conv(F.relu, norm=False, stride=2)))


@construct({"MatMul": 1}, x=(B, E))
class Linear_2d(nn.Linear):
    def __init__(self):
        super().__init__(E, 24)


@construct({"MatMul": 2}, f16=True)
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(E, 32), nn.Linear(32, E)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


@construct({"MatMul": 3})
class Swiglu(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((E, 24), (E, 24), (24, E)))

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


@construct({"Conv": 2}, f16=True, **IMAGE)
class Residual_block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.na, self.nb = nn.BatchNorm2d(8), nn.BatchNorm2d(8)

    def forward(self, x):
        return F.relu(x + self.nb(self.b(F.relu(self.na(self.a(x))))))


@construct({"Conv": 3}, **IMAGE)
class Inverted_residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6(),
                                  nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU6(),
                                  nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8))

    def forward(self, x):
        return x + self.body(x)


class StateSpace(nn.Module):
    """What a selective state space model takes from its input: u, the size of its steps, what goes in and what comes out."""

    def __init__(self):
        super().__init__()
        self.rates, self.through = nn.Parameter(torch.ones(E, 4)), nn.Parameter(torch.ones(E))
        self.parts, self.steps = nn.Linear(E, 3 + 4 + 4), nn.Linear(3, E)

    def operands(self, x):
        time, into, out = self.parts(x).split([3, 4, 4], dim=-1)
        return F.softplus(self.steps(time)), -torch.exp(self.rates), into, out


@construct({"MatMul": 2, "SelectiveScan": 1, "Pointwise": 1}, x=(B, 6, E))
class Selective_scan(StateSpace):
    """The reference of mamba-ssm: channels in front of time, products by einsum."""

    def forward(self, x):
        delta, a, b, c = (t.transpose(1, 2) if t.dim() == 3 else t for t in self.operands(x))
        u = x.transpose(1, 2)
        decay = torch.exp(torch.einsum("bdl,dn->bdln", delta, a))
        added = torch.einsum("bdl,bnl,bdl->bdln", delta, b, u)
        h, ys = torch.zeros_like(added[:, :, 0]), []
        for i in range(6):
            h = decay[:, :, i] * h + added[:, :, i]
            ys.append(torch.einsum("bdn,bn->bd", h, c[:, :, i]))
        return (torch.stack(ys, dim=2) + u * self.through[:, None]).transpose(1, 2)


@construct({"MatMul": 2, "SelectiveScan": 1, "Pointwise": 1}, x=(B, 6, E))
class Selective_scan_sequential(StateSpace):
    """The slow form of transformers, where its kernels are missing."""

    def forward(self, x):
        delta, a, b, c = self.operands(x)
        delta, u = delta.transpose(1, 2), x.transpose(1, 2)
        decay = torch.exp(a[None, :, None, :] * delta[:, :, :, None])
        added = delta[:, :, :, None] * b[:, None, :, :] * u[:, :, :, None]
        h, ys = torch.zeros(x.shape[0], E, 4), []
        for i in range(6):
            h = decay[:, :, i, :] * h + added[:, :, i, :]
            ys.append(torch.matmul(h, c[:, i, :].unsqueeze(-1))[:, :, 0])
        return (torch.stack(ys, dim=-1) + u * self.through[None, :, None]).transpose(1, 2)


@construct({"MatMul": 4, "PointwiseScan": 1}, x=(B, 6, E))
class Rwkv_attention(nn.Module):
    """RWKV without its kernel, as transformers writes it: an average that fades, over the exponential of the largest key."""

    def __init__(self):
        super().__init__()
        self.key, self.value, self.receptance, self.output = (nn.Linear(E, E, bias=False) for _ in range(4))
        self.time_first, self.time_decay = nn.Parameter(torch.ones(E)), nn.Parameter(torch.ones(E))

    def forward(self, x):
        key, value, gate = self.key(x), self.value(x), torch.sigmoid(self.receptance(x))
        output, decay = torch.zeros_like(key), -torch.exp(self.time_decay)
        num = torch.zeros_like(key[:, 0])
        den, most = torch.zeros_like(num), torch.zeros_like(num) - 1e38
        for i in range(6):
            k, v = key[:, i], value[:, i]
            now = torch.maximum(most, k + self.time_first)
            kept, new = torch.exp(most - now), torch.exp(k + self.time_first - now)
            output[:, i] = (kept * num + new * v) / (kept * den + new)
            now = torch.maximum(most + decay, k)
            kept, new = torch.exp(most + decay - now), torch.exp(k - now)
            num, den, most = kept * num + new * v, kept * den + new, now
        return self.output(gate * output)


@construct({"MatMul": 1, "Pointwise": 1, "PointwiseScan": 1}, ["Mul", "Sigmoid", "Tanh"], x=(B, 6, E))
class Forget_mult(nn.Module):
    """QRNN's pooling (arXiv 1611.01576) with an output gate; the first step has no state."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(E, 3 * E)

    def forward(self, x):
        z, f, o = self.parts(x).chunk(3, dim=-1)
        z, f, o = torch.tanh(z), torch.sigmoid(f), torch.sigmoid(o)
        c, hs = (1 - f[:, 0]) * z[:, 0], []
        hs.append(o[:, 0] * c)
        for i in range(1, 6):
            c = f[:, i] * c + (1 - f[:, i]) * z[:, i]
            hs.append(o[:, i] * c)
        return torch.stack(hs, dim=1)


@construct({"MatMul": 1, "PointwiseScan": 1}, x=(B, 6, E), c=(B, E))
class Simple_recurrent_unit(nn.Module):
    """SRU (arXiv 1709.02755), time in front, with a first and a last state."""

    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(E, 3 * E)
        self.of_forget, self.of_reset = nn.Parameter(torch.ones(E)), nn.Parameter(torch.ones(E))

    def forward(self, x, c):
        x = x.transpose(0, 1)
        u, f, r = self.parts(x).split(E, dim=-1)
        hs = []
        for t in range(6):
            forget, reset = torch.sigmoid(f[t] + self.of_forget * c), torch.sigmoid(r[t] + self.of_reset * c)
            c = forget * c + (1 - forget) * u[t]
            hs.append(reset * torch.tanh(c) + (1 - reset) * x[t])
        return torch.stack(hs), c


@construct({"Conv": 5}, **IMAGE)
class Gated_convolutions(nn.Module):
    """StarNet's product of two convolutions, and what a large kernel saw as the factor of what it read (VAN, SegNeXt)."""

    def __init__(self):
        super().__init__()
        self.gate, self.value, self.down = nn.Conv2d(8, 24, 1), nn.Conv2d(8, 24, 1), nn.Conv2d(24, 8, 1)
        self.wide, self.mix = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        x = self.down(F.relu6(self.gate(x)) * self.value(x))
        return x * self.mix(self.wide(x))


@construct({"Conv": 2}, **IMAGE)
class Conv_beside_its_input(nn.Module):
    """RepViT as it is trained: two depthwise windows and the input itself, normalized together."""

    def __init__(self):
        super().__init__()
        self.wide, self.point = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 8, 1, groups=8)
        self.norm, self.mix = nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        return self.mix(self.norm(self.wide(x) + self.point(x) + x))


@construct({"Concat": 1, "Conv": 3}, **IMAGE)
class Mixed_convolution(nn.Module):
    """MixNet: windows of unlike sizes for some of the channels each, normalized together."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(4, 4, k, padding=k // 2, groups=4, bias=False) for k in (3, 5))
        self.norm, self.mix = nn.BatchNorm2d(8), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        return self.mix(F.silu(self.norm(torch.cat([f(part) for f, part in zip(self.parts, torch.split(x, [4, 4], 1))], 1))))


@construct({"Conv": 5, "Pool": 1, "Pointwise": 1}, ["Add", "Softmax", "Split"], **IMAGE)
class Selective_kernels(nn.Module):
    """SKNet: a softmax says how much of two branches each channel takes."""

    def __init__(self):
        super().__init__()
        self.near, self.far = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.reduce, self.select, self.mix = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 16, 1), nn.Conv2d(8, 8, 1)

    def forward(self, x):
        x = torch.stack([F.relu(self.near(x)), F.relu(self.far(x))], dim=1)
        weights = self.select(F.relu(self.reduce(x.sum(1).mean((2, 3), keepdim=True))))
        return self.mix((x * torch.softmax(weights.view(-1, 2, 8, 1, 1), dim=1)).sum(1))


@construct({"Conv": 2}, **IMAGE)
class Weighted_features(nn.Module):
    """EfficientDet (timm): features of a pyramid, stacked with a weight for each and summed; of two that convolutions
    make of one image, one convolution."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(8, 8, 1) for _ in range(3))
        self.weights = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, x):
        weights = F.relu(self.weights)
        nodes = torch.stack([conv(x) for conv in self.convs[:2]], dim=-1)
        return self.convs[2](F.silu((nodes * (weights / (weights.sum() + 1e-4))).sum(-1)))


@construct({"Conv": 2, "LayerNorm": 2}, ["Relu"], x=(B, 8, 64))
class Normalized_speech(nn.Module):
    """data2vec and the large wav2vec 2.0: channels are normalized behind each convolution of a signal."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv1d(8, 8, 3, stride=2) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(2))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x).transpose(-2, -1)).transpose(-2, -1))
        return x.transpose(1, 2)


@construct({"MatMul": 2}, ["Concat", "Pad", "Slice"])
class Unfolded_tokens(nn.Module):
    """ConvBERT: each token beside its neighbours."""

    def __init__(self):
        super().__init__()
        self.before, self.behind = nn.Linear(E, E), nn.Linear(3 * E, E)

    def forward(self, x):
        x = F.unfold(self.before(x).transpose(1, 2).unsqueeze(-1), [3, 1], padding=[1, 0])
        return self.behind(x.transpose(1, 2))


@construct({"MatMul": 1}, c=(B, S, H, D), b=(B, S, H, D))
class Sum_of_products(nn.Module):
    """Mamba-2 (transformers): a matrix product as a sum over the products of two broadcasts."""

    def forward(self, c, b):
        return (c[:, :, None] * b[:, None]).sum(-1)


@construct({"Conv": 1, "Pool": 1, "MatMul": 1}, **IMAGE)
class Mean_of_image(nn.Module):
    """timm: the mean over the image leaves its axes."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(F.relu(self.conv(x)).mean((2, 3)))


def squeeze_excite(name, inner, gate, mean):
    @construct({"SqueezeExcite": 1}, **IMAGE)
    class Excite(nn.Module):
        def __init__(self):
            super().__init__()
            self.squeeze, self.expand = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)

        def forward(self, x):
            return x * gate(self.expand(inner(self.squeeze(mean(x)))))

    CONSTRUCTS["squeeze_excite_" + name] = CONSTRUCTS.pop("excite")


squeeze_excite("mobilenet", F.relu, F.hardsigmoid, lambda x: F.adaptive_avg_pool2d(x, 1))
squeeze_excite("efficientnet", F.silu, torch.sigmoid, lambda x: F.adaptive_avg_pool2d(x, 1))
squeeze_excite("timm", F.silu, torch.sigmoid, lambda x: x.mean((2, 3), keepdim=True))


@construct({"Conv": 1, "ConvTranspose": 1}, **IMAGE)
class Conv_transpose_bn_relu(nn.Module):
    """The head of a text detector; a transposed convolution alone stays as it is."""

    def __init__(self):
        super().__init__()
        self.conv, self.up, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.ConvTranspose2d(8, 8, 2, 2), nn.BatchNorm2d(8)

    def forward(self, x):
        return F.relu(self.norm(self.up(F.relu(self.conv(x)))))


@construct({"Conv": 1}, ["DepthToSpace"], **IMAGE)
class Pixel_shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 16, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.conv(x), 2)


@construct({"Conv": 1}, x=(B, 3, 8, 8))
class Focus(nn.Module):
    """The first layer of YOLOv5: space to depth, then a convolution."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(12, 8, 3, padding=1)

    def forward(self, x):
        return F.silu(self.conv(torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)))


@construct({"Conv": 2, "Concat": 1}, x=(B, 8, 8, 8), skip=(B, 8, 16, 16))
class Pyramid(nn.Module):
    """A step of a feature pyramid: upsample, concatenate, convolve."""

    def __init__(self):
        super().__init__()
        self.lateral, self.merge = nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 3, padding=1)

    def forward(self, x, skip):
        up = F.interpolate(F.silu(self.lateral(x)), scale_factor=2.0, mode="nearest")
        return F.silu(self.merge(torch.cat([up, skip], 1)))


@construct({"LSTM": 1})
class Lstm(nn.LSTM):
    def __init__(self):
        super().__init__(E, 8, bidirectional=True, batch_first=True)

    def forward(self, x):
        return super().forward(x)[0]


@construct({"GRU": 1})
class Gru(nn.GRU):
    def __init__(self):
        super().__init__(E, 8, batch_first=True)

    def forward(self, x):
        return super().forward(x)[0]


# Norms


@construct({"LayerNorm": 1}, f16=True)
class Layer_norm(nn.LayerNorm):
    def __init__(self):
        super().__init__(E)


@construct({"LayerNorm": 1})
class Layer_norm_plain(nn.LayerNorm):
    def __init__(self):
        super().__init__(E, elementwise_affine=False)


@construct({"LayerNorm": 1})
class Layer_norm_written_out(nn.LayerNorm):
    def __init__(self):
        super().__init__(E)

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(var + 1e-6) + self.bias


@construct({"LayerNorm": 1}, x=(B, S, E), r=(B, S, E))
class Add_layer_norm(nn.LayerNorm):
    def __init__(self):
        super().__init__(E)

    def forward(self, x, r):
        return super().forward(x + r)


@construct({"MatMul": 1, "LayerNorm": 1}, x=(B, S, E), r=(B, S, E))
class Linear_add_layer_norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(E, E), nn.LayerNorm(E)

    def forward(self, x, r):
        return self.norm(self.fc(x) + r)


@construct({"LayerNorm": 1}, **IMAGE)
class Layer_norm_channels_first(nn.LayerNorm):
    """ConvNeXt and Segformer: the norm runs over axis 1, between two Transposes."""

    def __init__(self):
        super().__init__(8)

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@construct({"LayerNorm": 1}, f16=True)
class Rms_norm_torch(nn.RMSNorm):
    def __init__(self):
        super().__init__(E, eps=1e-6)


@construct({"LayerNorm": 1}, f16=True)
class Rms_norm_llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(E))

    def forward(self, x):
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * h.to(x.dtype)


@construct({"LayerNorm": 1})
class Rms_norm_gemma(Rms_norm_llama):
    def forward(self, x):
        h = x.float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.weight.float())).type_as(x)


@construct({"GroupNorm": 1}, **IMAGE)
class Group_norm(nn.GroupNorm):
    def __init__(self):
        super().__init__(2, 8)


@construct({"GroupNorm": 1}, f16=True, **IMAGE)
class Group_norm_silu(nn.GroupNorm):
    def __init__(self):
        super().__init__(2, 8)

    def forward(self, x):
        return F.silu(super().forward(x))


@construct({"GroupNorm": 1}, **IMAGE)
class Instance_norm(nn.InstanceNorm2d):
    def __init__(self):
        super().__init__(8, affine=True)


@construct({"Embedding": 1}, ids=(B, S))
class Embedding_layer_norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(20, E), nn.Embedding(32, E), nn.LayerNorm(E)

    def forward(self, ids):
        return self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))


def function(fused, name, fn, **shapes):
    """A construct without weights."""

    class Function(nn.Module):
        def forward(self, *inputs):
            return fn(*inputs)

    construct(fused, **shapes)(named(name, Function))


# Where each row belongs, of 20 places; as torch_geometric sums what comes along edges. No cells of TorchScript, which declares a shape of the
# result that it has not: ONNX Runtime does not run these.
EDGES = {"ids": (6,), "x": (6, E)}
function({"ScatterAdd": 1}, "neighbour_sum",
         lambda ids, x: x.new_zeros(20, E).scatter_reduce(0, ids.view(-1, 1).expand_as(x), x, "sum"), **EDGES)
function({"ScatterAdd": 1}, "neighbour_sum_of_width",
         lambda ids, x: x.new_zeros(20, E).scatter_reduce(0, ids.unsqueeze(-1).expand(-1, E), x, "sum"), **EDGES)


class Features(nn.Module):
    """Categorical features of a table, each with an embedding of its own."""

    def __init__(self, widths):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, width) for width in widths)


@construct({"ColumnEmbedding": 1}, ids=(B, 3))
class Column_embedding(Features):
    def __init__(self):
        super().__init__([3, 8, 5])

    def forward(self, ids):
        return torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)


@construct({"ColumnEmbedding": 1}, ids=(B, 3))
class Column_embedding_stack(Features):
    """DLRM: what its interactions multiply."""

    def __init__(self):
        super().__init__([8, 8, 8])

    def forward(self, ids):
        return torch.stack([table(column) for table, column in zip(self.tables, ids.unbind(1))], 1)


@construct({"ColumnEmbedding": 1}, ids=(B, 3))
class Column_embedding_split(Features):
    def __init__(self):
        super().__init__([3, 8, 5])

    def forward(self, ids):
        return torch.cat([table(column) for table, column in zip(self.tables, ids.split(1, 1))], -1).squeeze(1)


@construct({"ColumnEmbedding": 1}, ids=(B, 5))
class Column_embedding_of_floats(Features):
    """TabNet: ids among numbers."""

    def __init__(self):
        super().__init__([3, 8, 5])

    def forward(self, ids):
        x = ids.float()
        return torch.cat([table(x[:, i + 1].long()) for i, table in enumerate(self.tables)] + [x[:, 4:]], 1)


def mean_pooling(x, keep):
    mask = keep.unsqueeze(-1).to(x.dtype)
    return (x * mask).sum(1) / mask.sum(1).clamp(min=1e-9)


@construct({"Conv": 2, "MatMul": 1, "Pointwise": 1, "Pool": 1, "Reduce": 2}, ["Softmax"], x=(B, 8, 9))
class Statistics_pooling(nn.Module):
    """ECAPA-TDNN: attention over frames that sees their mean and deviation beside each frame."""

    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Conv1d(24, 8, 1), nn.Conv1d(8, 8, 1)

    def forward(self, x):
        mean = x.mean(2, keepdim=True)
        deviation = (x - mean).pow(2).mean(2, keepdim=True).clamp(min=1e-9).sqrt()
        seen = torch.cat([x, mean.expand(-1, -1, x.shape[2]), deviation.expand(-1, -1, x.shape[2])], 1)
        return (torch.softmax(self.outer(torch.tanh(self.inner(seen))), 2) * x).sum(2)


@construct({"Conv": 1, "Pointwise": 1}, x=(B, 8, 9))
class Snake(nn.Module):
    """Audio codecs and vocoders (DAC, BigVGAN, Kokoro): x + sin(a x)^2 / a in front of a convolution."""

    def __init__(self):
        super().__init__()
        self.alpha, self.conv = nn.Parameter(torch.ones(1, 8, 1)), nn.Conv1d(8, 8, 3, padding=1)

    def forward(self, x):
        return self.conv(x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).pow(2))


@construct({"MatMul": 2, "Pointwise": 1, "Reduce": 1})
class Global_feature(nn.Module):
    """PointNet: the largest of all points beside each of them."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2 * E, E)

    def forward(self, x):
        return F.relu(self.fc(torch.cat([x, x.amax(1, keepdim=True).repeat(1, x.shape[1], 1)], -1)))


SCORES = {"x": (B, H, S, S)}
function({"Softmax": 1}, "softmax_scaled", lambda x: torch.softmax(x / math.sqrt(D), -1), **SCORES)
function({"Softmax": 1}, "softmax_masked", lambda x, mask: torch.softmax(x * D**-0.5 + mask, -1), **SCORES, mask=(B, 1, 1, S))
function({"Softmax": 1}, "softmax_filled", lambda x, bool_mask: torch.softmax(x.masked_fill(~bool_mask, -1e9), -1), **SCORES,
         bool_mask=(B, 1, S, S))
function({"Softmax": 1}, "softmax_of_channels", lambda x: torch.softmax(x, 1), **IMAGE)
function({"Softmax": 1}, "log_softmax_of_channels", lambda x: torch.log_softmax(x, 1), **IMAGE)
function({"Reduce": 1}, "l2_normalize", lambda x: F.normalize(x, dim=-1))
function({"Reduce": 1}, "l2_normalize_written_out", lambda x: x / x.pow(2).sum(-1, keepdim=True).sqrt())
function({"Reduce": 2}, "mean_pooling", mean_pooling, x=(B, S, E), keep=(B, S))


@construct({"Conv": 1, "LayerNorm": 1, "MatMul": 2}, **IMAGE)
class Convnext_block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, 7, padding=3, groups=8), nn.LayerNorm(8)
        self.up, self.down, self.scale = nn.Linear(8, 32), nn.Linear(32, 8), nn.Parameter(torch.ones(8))

    def forward(self, x):
        y = self.down(F.gelu(self.up(self.norm(self.conv(x).permute(0, 2, 3, 1)))))
        return x + (y * self.scale).permute(0, 3, 1, 2)


class Resized(nn.Module):
    """A convolution in front of an image of another size and one behind it."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(4, 6, 1), nn.Conv2d(6, 4, 1)


@construct({"Conv": 2, "Upsample": 1}, x=(B, 4, 5, 7), skip=(B, 4, 11, 9))
class Resize_like(Resized):
    """Segmentation heads and pyramids: as large as another image."""

    def forward(self, x, skip):
        return self.after(F.interpolate(self.before(x), size=skip.shape[-2:], mode="bilinear", align_corners=False)) + skip


@construct({"Conv": 2, "Upsample": 1}, x=(B, 4, 5, 7))
class Resize_corners(Resized):
    """DPT: twice as large, the corners where they were."""

    def forward(self, x):
        return self.after(F.interpolate(self.before(x), scale_factor=2, mode="bilinear", align_corners=True))


@construct({"Conv": 2, "Upsample": 1}, x=(B, 4, 5, 7))
class Resize_cubic(Resized):
    """Super resolution."""

    def forward(self, x):
        return self.after(F.interpolate(self.before(x), size=(12, 15), mode="bicubic", align_corners=False))


class Packed_gate(nn.Module):
    """Gate and value of one layer (GLU, arXiv 2002.05202)."""

    def __init__(self):
        super().__init__()
        self.both, self.down = nn.Linear(E, 128), nn.Linear(64, E)

    def forward(self, x):
        first, second = self.both(x).chunk(2, -1)
        return self.down(self.gated(first, second))


@construct({"MatMul": 3})
class Swiglu_packed(Packed_gate):
    """Phi 3, EVA 02, DINOv2."""

    def gated(self, gate, value):
        return F.silu(gate) * value


@construct({"MatMul": 3})
class Geglu_packed(Packed_gate):
    """Feed-forward layers of diffusers, ModernBERT."""

    def gated(self, value, gate):
        return value * F.gelu(gate)


@construct({"Conv": 3, "Pointwise": 1, "Reduce": 2}, **IMAGE)
class Global_response_norm(nn.Module):
    """ConvNeXt V2."""

    def __init__(self):
        super().__init__()
        self.first, self.up, self.down = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 32, 1), nn.Conv2d(32, 8, 1)
        self.weight, self.bias = nn.Parameter(torch.ones(32)), nn.Parameter(torch.ones(32))

    def forward(self, x):
        y = F.gelu(self.up(self.first(x)))
        g = y.norm(p=2, dim=(2, 3), keepdim=True)
        n = g / (g.mean(dim=1, keepdim=True) + 1e-6)
        return self.down(y + torch.addcmul(self.bias.view(1, -1, 1, 1), self.weight.view(1, -1, 1, 1), y * n))


@construct({"LayerNorm": 1, "MatMul": 4}, x=(B, 6, E))
class Spatial_gate(nn.Module):
    """gMLP: half of the channels are mixed over the tokens and gate the others."""

    def __init__(self):
        super().__init__()
        self.up, self.norm, self.tokens, self.down = nn.Linear(E, 128), nn.LayerNorm(64), nn.Linear(6, 6), nn.Linear(64, E)

    def forward(self, x):
        u, v = F.gelu(self.up(x)).chunk(2, dim=-1)
        return x + self.down(u * self.tokens(self.norm(v).transpose(-1, -2)).transpose(-1, -2))


@construct({"MatMul": 1, "Pointwise": 2}, x=(B, 6, 64))
class Token_layer(nn.Module):
    """ResMLP: one layer over the tokens, between a scale and a shift of the channels and a scale of them."""

    def __init__(self):
        super().__init__()
        self.alpha, self.beta, self.scale = (nn.Parameter(torch.ones(*s)) for s in ((1, 1, 64), (1, 1, 64), (64,)))
        self.tokens = nn.Linear(6, 6)

    def forward(self, x):
        mixed = self.tokens(torch.addcmul(self.beta, self.alpha, x).transpose(1, 2)).transpose(1, 2)
        return x + self.scale * mixed
