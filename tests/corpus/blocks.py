"""Whole blocks as transformers and timm write them, with random weights; registered beside the other constructs."""
import timm.models.swin_transformer as swin
import timm.models.vision_transformer as vit
import torch
import transformers as hf
from constructs import B, D, E, H, S, construct
from torch import nn
from transformers.models import bert, clip, gpt2, llama, roberta, t5, whisper

BUCKETS = "Abs Add Div Greater Less Log Min Mul Sub Where".split()  # of relative positions, from integers


def attention(kind, name, fused, left=(), **shapes):
    """The same block once with attention written out, once through SDPA."""

    def register(make):
        for how in ("eager", "sdpa"):

            class Block(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.block, self.call = make(how)

                def forward(self, *inputs):
                    y = self.call(self.block, *inputs)
                    return y[0] if isinstance(y, (tuple, list)) else y

            Block.__name__ = f"{name}_{how}"
            construct(fused, left, **shapes)(Block)
        return make

    return register


@attention("encoder", "bert_layer", {"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E), mask=(B, 1, 1, S))
def bert_layer(how):
    config = hf.BertConfig(hidden_size=E, num_attention_heads=H, intermediate_size=32, attn_implementation=how)
    return bert.modeling_bert.BertLayer(config), lambda block, x, mask: block(x, attention_mask=mask)


@attention("decoder", "gpt2_block", {"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E), mask=(B, 1, S, S))
def gpt2_block(how):
    config = hf.GPT2Config(n_embd=E, n_head=H, n_layer=1, attn_implementation=how)
    return gpt2.modeling_gpt2.GPT2Block(config), lambda block, x, mask: block(x, attention_mask=mask)


@attention("decoder", "llama_layer", {"Attention": 1, "MatMul": 7, "LayerNorm": 2, "Rotary": 2},
           x=(B, S, E), mask=(B, 1, S, S), cos=(B, S, D), sin=(B, S, D))
def llama_layer(how):
    config = hf.LlamaConfig(hidden_size=E, num_attention_heads=H, num_key_value_heads=1, intermediate_size=32, attn_implementation=how)
    layer = llama.modeling_llama.LlamaDecoderLayer(config, 0)
    return layer, lambda block, x, mask, cos, sin: block(x, attention_mask=mask, position_embeddings=(cos, sin))


@attention("encoder", "clip_layer", {"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E))
def clip_layer(how):
    config = hf.CLIPVisionConfig(hidden_size=E, num_attention_heads=H, intermediate_size=32, attn_implementation=how)
    return clip.modeling_clip.CLIPEncoderLayer(config), lambda block, x: block(x, None)


@attention("encoder", "whisper_layer", {"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E))
def whisper_layer(how):
    config = hf.WhisperConfig(d_model=E, encoder_attention_heads=H, encoder_ffn_dim=32, attn_implementation=how)
    return whisper.modeling_whisper.WhisperEncoderLayer(config), lambda block, x: block(x, None)


@construct({"Attention": 1, "MatMul": 4, "LayerNorm": 2, "Pointwise": 1}, BUCKETS, x=(B, S, E), mask=(B, 1, 1, S))
class T5_block_eager(nn.Module):
    def __init__(self):
        super().__init__()
        config = hf.T5Config(d_model=E, d_kv=D, num_heads=H, d_ff=32, num_layers=1, is_encoder_decoder=False, use_cache=False)
        self.block = t5.modeling_t5.T5Block(config, has_relative_attention_bias=True, layer_idx=0)

    def forward(self, x, mask):
        return self.block(x, attention_mask=mask)[0]


@construct({"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, S, E))
class Vit_block_timm(vit.Block):
    def __init__(self):
        super().__init__(E, H, mlp_ratio=2, qkv_bias=True, init_values=1.0)


@construct({"Attention": 1, "MatMul": 4, "LayerNorm": 2}, x=(B, 8, 8, E))
class Swin_block_timm(swin.SwinTransformerBlock):
    def __init__(self):
        super().__init__(E, (8, 8), num_heads=H, window_size=4, shift_size=2, mlp_ratio=2)


@construct({"Embedding": 1}, ids=(B, S), keep=(B, S))
class Bert_embeddings(bert.modeling_bert.BertEmbeddings):
    def __init__(self):
        super().__init__(hf.BertConfig(vocab_size=20, hidden_size=E, max_position_embeddings=32))

    def forward(self, ids, kinds):
        return super().forward(input_ids=ids, token_type_ids=kinds)


@construct({"Embedding": 1}, "Add And Cast CumSum Equal GatherElements Mul Not Sub Where".split(), ids=(B, S))
class Roberta_embeddings(roberta.modeling_roberta.RobertaEmbeddings):
    def __init__(self):
        super().__init__(hf.RobertaConfig(vocab_size=20, hidden_size=E, max_position_embeddings=32, pad_token_id=1))

    def forward(self, ids):
        return super().forward(input_ids=ids)


@construct({"Embedding": 1}, ids=(B, S))
class Gpt2_embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.ln_1 = nn.Embedding(20, E), nn.Embedding(32, E), nn.LayerNorm(E)

    def forward(self, ids):
        hidden = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]).unsqueeze(0))
        return torch.cat([self.ln_1(hidden), hidden], -1)
