"""Encoders and decoders of words: transformers, and the variants of x_transformers."""
from .configured import all_experts, transformers, translation, words
from .entry import BATCH, Entry, wrapped

ENCODERS = """BertModel DistilBertModel RobertaModel AlbertModel ElectraModel DebertaModel DebertaV2Model MPNetModel ConvBertModel
    MobileBertModel SqueezeBertModel RoFormerModel ModernBertModel CamembertModel XLMRobertaModel NystromformerModel
    LayoutLMModel""".split()
DECODERS = "GPT2Model GPTNeoModel GPTJModel OPTModel BloomModel".split()
WIDE_DECODERS = """LlamaModel MistralModel Qwen2Model Qwen3Model GemmaModel Gemma2Model PhiModel Phi3Model StableLmModel OlmoModel
    GraniteModel SmolLM3Model GPTNeoXModel FalconModel CohereModel NemotronModel Gemma3TextModel Olmo2Model Glm4Model
    HunYuanDenseV1Model ApertusModel XGLMModel""".split()
NARROWED = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
            "ffn_hidden_size": 1376}
EXPERTS = {**NARROWED, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 512}
TRANSLATED = {"d_model": 512, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048, "encoder_attention_heads": 8, "decoder_attention_heads": 8,
              "decoder_start_token_id": 0}


def x_transformers(name, **options):
    def make():
        import torch
        from x_transformers import Encoder, TransformerWrapper

        net = TransformerWrapper(num_tokens=4000, max_seq_len=128, attn_layers=Encoder(dim=384, depth=2, heads=6, **options))
        return wrapped(net), (torch.randint(0, 4000, (2, 32)),), (BATCH,)
    return Entry(f"x_transformers {name}", "language", make)


MODELS = [
    *(transformers(name, words()) for name in ENCODERS + DECODERS),
    *(transformers(name, words(), settings=NARROWED) for name in WIDE_DECODERS),
    transformers("Lfm2Model", words(), settings={**NARROWED, "layer_types": ["conv", "full_attention"]}),
    transformers("Exaone4Model", words(), settings={**NARROWED, "layer_types": ["sliding_attention", "full_attention"]}),
    *(transformers(name, words(), settings=EXPERTS, prepare=all_experts) for name in ("MixtralModel", "Qwen3MoeModel")),
    transformers("FunnelModel", words(), settings={"block_sizes": [1, 1, 1]}),
    transformers("XLNetModel", words(), exporter="torchscript"),
    *(transformers(name, words(mask=False)) for name in ("FNetModel", "MambaModel")),
    transformers("RwkvModel", words(mask=False), settings={"hidden_size": 768, "attention_hidden_size": 768, "intermediate_size": 3072}),
    transformers("Mamba2Model", words(mask=False), settings={"hidden_size": 256, "num_heads": 8, "n_groups": 1, "state_size": 32, "chunk_size": 16}),
    transformers("EsmModel", words(), settings={"hidden_size": 320, "num_attention_heads": 20, "intermediate_size": 1280,
                                                "position_embedding_type": "rotary"}),
    transformers("T5EncoderModel", words(), config_name="T5Config"),
    transformers("CLIPTextModel", words(), config_name="CLIPTextConfig"),
    transformers("BigBirdModel", words(), settings={"attention_type": "original_full"}),
    transformers("T5Model", translation(words(mask=False))),
    *(transformers(name, translation(words(mask=False)), settings=TRANSLATED) for name in ("BartModel", "MarianModel", "M2M100Model")),
    x_transformers("rotary-glu-rms", rotary_pos_emb=True, ff_glu=True, use_rmsnorm=True),
    x_transformers("alibi-sandwich", alibi_pos_bias=True, sandwich_norm=True),
    x_transformers("t5bias-talking", rel_pos_bias=True, attn_pre_talking_heads=True, attn_post_talking_heads=True),
    x_transformers("qknorm-gate", attn_qk_norm=True, attn_gate_values=True),
]
