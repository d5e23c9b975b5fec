"""Attention as models write it; registered beside the other constructs. Q, K and V of one input are one product."""
import math

import torch
import torch.nn.functional as F
from constructs import B, D, E, H, S, construct
from torch import nn

HEADS = {"q": (B, H, S, D), "k": (B, H, S, D), "v": (B, H, S, D)}


@construct({"Attention": 1}, f16=True, **HEADS)
class Sdpa(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


@construct({"Attention": 1}, **HEADS)
class Sdpa_causal(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@construct({"Attention": 1}, f16=True, **HEADS, mask=(B, 1, S, S))
class Sdpa_mask(nn.Module):
    def forward(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@construct({"Attention": 1}, **HEADS, bool_mask=(B, 1, S, S))
class Sdpa_bool_mask(nn.Module):
    def forward(self, q, k, v, bool_mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bool_mask)


@construct({"Attention": 1}, **HEADS)
class Sdpa_scale(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, scale=0.25)


@construct({"Attention": 1}, **HEADS)
class Eager(nn.Module):
    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(D), -1) @ v


@construct({"Attention": 1}, **HEADS, mask=(B, 1, 1, S))
class Eager_mask(nn.Module):
    """BERT: scaled scores, an additive mask over the keys."""

    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, k.transpose(2, 3)) * (D**-0.5) + mask
        return torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)


@construct({"Attention": 1, "Pointwise": 1}, **HEADS, keep=(B, S))
class Eager_mask_ids(nn.Module):
    """The mask made inside from ones and zeros, as BERT exports do."""

    def forward(self, q, k, v, keep):
        mask = (1.0 - keep[:, None, None, :].to(q.dtype)) * -10000.0
        return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D) + mask, -1) @ v


@construct({"Attention": 1}, **HEADS, bool_mask=(B, 1, 1, S))
class Eager_masked_fill(nn.Module):
    """DistilBERT: scaled queries, scores overwritten where the mask says so."""

    def forward(self, q, k, v, bool_mask):
        scores = (q / math.sqrt(D)) @ k.transpose(2, 3)
        return torch.softmax(scores.masked_fill(bool_mask, torch.finfo(scores.dtype).min), -1) @ v


@construct({"Attention": 1}, **HEADS)
class Causal_written_out(nn.Module):
    """GPT-2: the upper triangle overwritten."""

    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(-1, -2)) / (v.size(-1) ** 0.5)
        n = q.shape[2]
        keep = torch.tril(torch.ones(n, n, dtype=torch.bool))
        return torch.softmax(torch.where(keep, scores, torch.full([], torch.finfo(scores.dtype).min)), -1) @ v


class Projected(nn.Module):
    def __init__(self, queries=E, keys=E):
        super().__init__()
        self.q, self.k, self.v, self.o = nn.Linear(E, queries), nn.Linear(E, keys), nn.Linear(E, keys), nn.Linear(E, E)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], -1, D).transpose(1, 2)

    def merge(self, y):
        return self.o(y.transpose(1, 2).reshape(y.shape[0], -1, E))


@construct({"Attention": 1, "MatMul": 2}, f16=True, x=(B, S, E), mask=(B, 1, 1, S))
class Self_attention_eager(Projected):
    def forward(self, x, mask):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        return self.merge(torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(D) + mask, -1) @ v)


@construct({"Attention": 1, "MatMul": 2}, f16=True)
class Self_attention_sdpa(Projected):
    def forward(self, x):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        return self.merge(F.scaled_dot_product_attention(q, k, v))


@construct({"Attention": 1, "MatMul": 4}, x=(B, S, E), memory=(B, 7, E))
class Cross_attention(Projected):
    def forward(self, x, memory):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(memory)), self.heads(self.v(memory))
        return self.merge(F.scaled_dot_product_attention(q, k, v))


@construct({"Attention": 1, "MatMul": 2})
class Packed_qkv(nn.Module):
    """timm's vision transformer: one product for all three, split after a permutation."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))


@construct({"Attention": 1, "MatMul": 2})
class Packed_qkv_eager(Packed_qkv):
    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * D**-0.5 @ k.transpose(-2, -1)).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).reshape(b, n, c))


@construct({"Attention": 1, "MatMul": 2}, x=(B, S, E))
class Multihead(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention as DETR and CLIP use it."""

    def __init__(self):
        super().__init__(E, H, batch_first=True)

    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


@construct({"Attention": 1}, q=(B, 4, S, D), k=(B, 2, S, D), v=(B, 2, S, D))
class Gqa_repeat(nn.Module):
    """Llama: keys and values repeated by Expand and Reshape."""

    def repeat(self, x):
        b, h, n, d = x.shape
        return x[:, :, None, :, :].expand(b, h, 2, n, d).reshape(b, h * 2, n, d)

    def forward(self, q, k, v):
        k, v = self.repeat(k), self.repeat(v)
        return torch.softmax(q @ k.transpose(2, 3) * D**-0.5, -1) @ v


@construct({"Attention": 1}, q=(B, 4, S, D), k=(B, 2, S, D), v=(B, 2, S, D))
class Gqa_repeat_sdpa(Gqa_repeat):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, self.repeat(k), self.repeat(v), is_causal=True)


def rotate(x, cos, sin):
    half = torch.cat((-x[..., x.shape[-1] // 2:], x[..., : x.shape[-1] // 2]), -1)
    return x * cos + half * sin


@construct({"Attention": 1, "Rotary": 2}, **HEADS, cos=(B, S, D), sin=(B, S, D))
class Rotary(nn.Module):
    def forward(self, q, k, v, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v)


@construct({"Attention": 1, "Rotary": 2}, **HEADS, cos=(B, S, D // 2), sin=(B, S, D // 2))
class Rotary_partial(nn.Module):
    """GPT-NeoX: the first half of every head."""

    def turned(self, x, cos, sin):
        return torch.cat((rotate(x[..., : D // 2], cos, sin), x[..., D // 2:]), -1)

    def forward(self, q, k, v, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return F.scaled_dot_product_attention(self.turned(q, cos, sin), self.turned(k, cos, sin), v)


@construct({"Attention": 1, "Rotary": 2}, **HEADS, cos=(B, S, D // 2), sin=(B, S, D // 2))
class Rotary_interleaved(nn.Module):
    """GPT-J: neighbours are pairs."""

    def turned(self, x, cos, sin):
        crossed = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        return x * cos + crossed * sin

    def forward(self, q, k, v, cos, sin):
        cos, sin = (torch.repeat_interleave(a.unsqueeze(1), 2, 3) for a in (cos, sin))
        return F.scaled_dot_product_attention(self.turned(q, cos, sin), self.turned(k, cos, sin), v)


@construct({"Attention": 1, "Rotary": 2}, **HEADS, cos=(B, S, D), sin=(B, S, D))
class Rotary_unbound(nn.Module):
    """Flux and other diffusion transformers: pairs unbound from an axis of their own and stacked again."""

    def turned(self, x, cos, sin):
        real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        return x * cos + torch.stack([-imaginary, real], -1).flatten(3) * sin

    def forward(self, q, k, v, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return F.scaled_dot_product_attention(self.turned(q, cos, sin), self.turned(k, cos, sin), v)


@construct({"Attention": 1, "Rotary": 2}, **HEADS, cos=(B, S, D // 2), sin=(B, S, D // 2))
class Rotary_pairs(nn.Module):
    """Both parts of the pairs written out."""

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, q, k, v, cos, sin):
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return F.scaled_dot_product_attention(self.turned(q, cos, sin), self.turned(k, cos, sin), v)


@construct({"Attention": 1, "MatMul": 4}, x=(B, 3, E), past_k=(B, H, S, D), past_v=(B, H, S, D))
class Kv_cache(Projected):
    """A decoder step: new keys and values behind those of the past, all handed out again."""

    def forward(self, x, past_k, past_v):
        k, v = torch.cat([past_k, self.heads(self.k(x))], 2), torch.cat([past_v, self.heads(self.v(x))], 2)
        scores = self.heads(self.q(x)) @ k.transpose(2, 3) * D**-0.5
        return self.merge(torch.softmax(scores, -1) @ v), k, v


@construct({"Attention": 1}, **HEADS, bias=(1, H, S, S))
class T5_bias(nn.Module):
    """T5: no scale, a bias for each head."""

    def forward(self, q, k, v, bias):
        scores = torch.matmul(q, k.transpose(3, 2)) + bias
        return torch.matmul(F.softmax(scores.float(), dim=-1).type_as(scores), v)


@construct({"Attention": 1, "MatMul": 2}, x=(B * 4, 16, E))
class Window_attention(Packed_qkv):
    """Swin: windows as batch, a learnt bias of positions, a mask for shifted windows."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(H, 16, 16))
        self.register_buffer("mask", torch.where(torch.arange(4 * 16 * 16).reshape(4, 16, 16) % 7 == 0, -100.0, 0.0))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q * D**-0.5 @ k.transpose(-2, -1) + self.table.unsqueeze(0)
        scores = (scores.view(-1, 4, H, n, n) + self.mask.unsqueeze(1).unsqueeze(0)).view(-1, H, n, n)
        return self.o((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, n, c))


@construct({"Attention": 1, "MatMul": 2}, x=(B, 4, 16, E))
class Partition_attention(Packed_qkv):
    """MaxViT (torchvision): images and their windows are two axes, a learnt bias of positions."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, H, 16, 16))

    def forward(self, x):
        b, g, n, c = x.shape
        q, k, v = (part.reshape(b, g, n, H, D).permute(0, 1, 3, 2, 4) for part in torch.chunk(self.qkv(x), 3, -1))
        scores = torch.einsum("B G H I D, B G H J D -> B G H I J", q, k * D**-0.5) + self.table
        out = torch.einsum("B G H I J, B G H J D -> B G H I D", torch.softmax(scores, -1), v)
        return self.o(out.permute(0, 1, 3, 2, 4).reshape(b, g, n, c))


def relative_logits(q, table, perm):
    """timm's BoTNet and HaloNet: [.., high, wide, size] by distances along one axis, moved into place by padding."""
    b, high, wide, _ = q.shape
    x = (q @ table.transpose(-1, -2)).reshape(-1, wide, 2 * wide - 1)
    x = F.pad(F.pad(x, [0, 1]).flatten(1), [0, wide - 1]).reshape(-1, wide + 1, 2 * wide - 1)[:, :wide, wide - 1:]
    return x.reshape(b, high, 1, wide, wide).expand(-1, -1, high, -1, -1).permute(perm)


@construct({"Attention": 1, "MatMul": 2}, ["Pad"], q=(B * H, 16, D), k=(B * H, 16, D), v=(B * H, 16, D))
class Bottleneck_attention(nn.Module):
    """BoTNet (timm): positions relative along the rows and along the columns of an image."""

    def __init__(self):
        super().__init__()
        self.high, self.wide = nn.Parameter(torch.randn(7, D)), nn.Parameter(torch.randn(7, D))

    def forward(self, q, k, v):
        image = q.reshape(-1, 4, 4, D)
        rows = relative_logits(image, self.wide, (0, 1, 3, 2, 4))
        columns = relative_logits(image.transpose(1, 2), self.high, (0, 3, 1, 4, 2))
        weights = (q @ k.transpose(-1, -2) * D**-0.5 + (rows + columns).reshape(-1, 16, 16)).softmax(-1)
        return weights @ v


@construct({"Attention": 1, "Conv": 2}, ["Add"], x=(B, E, 4, 4))
class Spatial_attention(nn.Module):
    """YOLO and UNet: positions of an image attend to each other, channels first."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Conv2d(E, 3 * E, 1), nn.Conv2d(E, E, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).view(b, H, 3 * D, h * w).split([D, D, D], dim=2)
        weights = (q.transpose(-2, -1) @ k * D**-0.5).softmax(-1)
        return self.o((v @ weights.transpose(-2, -1)).view(b, c, h, w))


@construct({"Attention": 1, "Conv": 4}, ["Add"], x=(B, E, 4, 4))
class Spatial_attention_one_head(nn.Module):
    """Autoencoders of images (latent diffusion, VQGAN): one head, channels first, batched products of three axes."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Conv2d(E, E, 1) for _ in range(4))

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = (part(x).reshape(b, c, h * w) for part in (self.q, self.k, self.v))
        weights = torch.softmax(torch.bmm(q.permute(0, 2, 1), k) * c**-0.5, dim=2)
        return x + self.o(torch.bmm(v, weights.permute(0, 2, 1)).reshape(b, c, h, w))


class Packed_heads(nn.Module):
    """Queries, keys and values of one layer, the first two normalized."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(E, 3 * E), nn.Linear(E, E)

    def forward(self, x):
        q, k, v = self.qkv(x).reshape(x.shape[0], -1, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        return self.proj(self.attend(self.normalize_q(q), self.normalize_k(k), v).transpose(1, 2).reshape(x.shape))


@construct({"Attention": 1, "MatMul": 4, "Reduce": 2}, x=(B, S, E))
class Cosine_attention(Packed_heads):
    """Swin v2."""

    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.rand(H, 1, 1))

    def normalize_q(self, q):
        return F.normalize(q, dim=-1)

    normalize_k = normalize_q

    def attend(self, q, k, v):
        scores = q @ k.transpose(-2, -1) * self.logit_scale.clamp(max=math.log(100.0)).exp()
        return torch.softmax(scores, -1) @ v


@construct({"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E))
class Qk_norm(Packed_heads):
    """timm's attention with qk_norm."""

    def __init__(self):
        super().__init__()
        self.normalize_q, self.normalize_k = nn.LayerNorm(D), nn.LayerNorm(D)

    def attend(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


class Mixed_heads(Packed_qkv):
    """Attention whose heads are mixed before the softmax and behind it."""

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
        weights = self.after(torch.softmax(self.before(q * D**-0.5 @ k.transpose(-2, -1)), -1))
        return self.o((weights @ v).transpose(1, 2).reshape(b, n, c))


@construct({"TalkingHeads": 1, "MatMul": 2}, x=(B, S, E))
class Talking_heads(Mixed_heads):
    """CaiT (timm): by linear layers."""

    def __init__(self):
        super().__init__()
        self.proj_l, self.proj_w = nn.Linear(H, H), nn.Linear(H, H)

    def before(self, scores):
        return self.proj_l(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def after(self, weights):
        return self.proj_w(weights.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@construct({"TalkingHeads": 1, "MatMul": 2}, x=(B, S, E))
class Talking_heads_conv(Mixed_heads):
    """vit-pytorch: by convolutions of single pixels."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Conv2d(H, H, 1, bias=False), nn.Conv2d(H, H, 1, bias=False)


@construct({"TalkingHeads": 1, "MatMul": 2}, x=(B, S, E))
class Talking_heads_einsum(Mixed_heads):
    """As the paper writes it."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Parameter(torch.ones(H, H)), nn.Parameter(torch.ones(H, H))

    def before(self, scores):
        return torch.einsum("bhij,hg->bgij", scores, self.left)

    def after(self, weights):
        return torch.einsum("bhij,hg->bgij", weights, self.right)
