"""Architectures that hubs serve and papers bring, from the packages that people export from: random weights, no downloads."""
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Entry:
    """`make()`: (module, arguments by name or in order, axes that are dynamic: argument -> {axis: symbol})."""

    name: str
    kind: str  # vision, language, sound, other
    make: Callable


def image(size, module, batch="batch"):
    import torch

    return module, (torch.randn(1, 3, size, size),), ({0: batch},)


def torchvision(name, size=224, **options):
    def make():
        import torchvision.models

        return image(size, torchvision.models.get_model(name, weights=None, **options))
    return Entry(f"torchvision {name}", "vision", make)


def segmentation(name, size=256):
    def make():
        import torch
        import torchvision.models

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.net = torchvision.models.get_model(name, weights=None, weights_backbone=None)

            def forward(self, x):
                return self.net(x)["out"]
        return image(size, Logits())
    return Entry(f"torchvision {name}", "vision", make)


def timm(name, size=224, **options):
    def make():
        import timm

        return image(size, timm.create_model(name, pretrained=False, **options))
    return Entry(f"timm {name}", "vision", make)


# Two layers show what a layer is made of; the widths are those of the models that hubs serve.
LAYERS = {"num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
          "num_decoder_layers": 2, "vocab_size": 8192, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}


def config(name, **settings):
    import transformers

    made = getattr(transformers, name)()
    for key, value in {**LAYERS, **settings}.items():
        if hasattr(made, key):
            setattr(made, key, value)
    made.use_cache = False
    return made


def first_tensor(result):
    """The first output that is a tensor: hidden states, logits."""
    return next(value for value in result.to_tuple() if hasattr(value, "shape"))


def transformers(name, inputs, kind="language", settings=None, config_name=None):
    """`inputs()`: arguments by name, and their dynamic axes."""
    def make():
        import torch
        import transformers as library

        class First(torch.nn.Module):
            def __init__(self):
                super().__init__()
                wanted = config(config_name or name.replace("Model", "Config"), **(settings or {}))
                self.net = getattr(library, name)._from_config(wanted)

            def forward(self, first, second=None):
                return first_tensor(self.net(**dict(zip(names, (first, second)))))
        made, axes = inputs()
        names = list(made)
        return First(), tuple(made.values()), tuple(axes.get(key, {}) for key in names)
    return Entry(f"transformers {name}", kind, make)


def words(mask=True, length=32):
    def inputs():
        import torch

        axes = {0: "batch", 1: "sequence"}
        made = {"input_ids": torch.randint(3, 8000, (2, length))}
        if mask:
            made["attention_mask"] = torch.ones(2, length, dtype=torch.int64)
        return made, {key: axes for key in made}
    return inputs


def pixels(size=224, key="pixel_values"):
    def inputs():
        import torch

        return {key: torch.randn(1, 3, size, size)}, {key: {0: "batch"}}
    return inputs


def wave(seconds=1, key="input_values"):
    def inputs():
        import torch

        return {key: torch.randn(1, 16000 * seconds)}, {key: {0: "batch", 1: "samples"}}
    return inputs


def features(shape, key):
    def inputs():
        import torch

        return {key: torch.randn(*shape)}, {key: {0: "batch"}}
    return inputs


TORCHVISION = """alexnet squeezenet1_1 shufflenet_v2_x1_0 mnasnet1_0 mobilenet_v2 mobilenet_v3_small densenet121 googlenet
    regnet_y_400mf regnet_x_800mf resnet18 resnext50_32x4d wide_resnet50_2 vgg11_bn efficientnet_b1 efficientnet_v2_s convnext_tiny
    swin_t vit_b_32 maxvit_t""".split()
TIMM = """efficientvit_b0 efficientvit_m0 ghostnetv2_100 repvgg_a0 repghostnet_050 mobileone_s0 starnet_s1 mobilenetv4_conv_small
    edgenext_xx_small xcit_nano_12_p16_224 levit_128s poolformerv2_s12 convnextv2_atto cait_xxs24_224 deit_tiny_patch16_224
    twins_pcpvt_small pvt_v2_b0 mixer_s32_224 gmlp_s16_224 resmlp_12_224 hrnet_w18_small res2net50_26w_4s resnest14d
    ese_vovnet19b_dw coat_tiny focalnet_tiny_srf inception_next_atto efficientformerv2_s0 mambaout_femto hiera_tiny_224
    swiftformer_xs tf_efficientnet_lite0 mixnet_s dla34 visformer_tiny nest_tiny davit_tiny cs3darknet_s regnetz_005 skresnet18
    eca_resnet33ts eva02_tiny_patch14_224 beit_base_patch16_224 tiny_vit_5m_224""".split()
TIMM_OTHER_SIZES = {"crossvit_tiny_240": 240, "fastvit_t8": 256, "botnet26t_256": 256, "halonet26t": 256, "mobilevit_xxs": 256,
                    "mobilevitv2_050": 256, "vit_small_patch14_dinov2": 518}
ENCODERS = """BertModel DistilBertModel RobertaModel AlbertModel ElectraModel DebertaModel DebertaV2Model MPNetModel ConvBertModel
    MobileBertModel SqueezeBertModel RoFormerModel ModernBertModel CamembertModel XLMRobertaModel NystromformerModel FunnelModel
    LayoutLMModel XLNetModel""".split()
DECODERS = "GPT2Model GPTNeoXModel GPTNeoModel GPTJModel OPTModel BloomModel FalconModel".split()
WIDE_DECODERS = """LlamaModel MistralModel Qwen2Model Qwen3Model GemmaModel Gemma2Model PhiModel Phi3Model StableLmModel OlmoModel
    GraniteModel SmolLM3Model""".split()
NARROWED = {"hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64}
WAVES = "Wav2Vec2Model HubertModel WavLMModel SEWModel UniSpeechModel Data2VecAudioModel Wav2Vec2ConformerModel".split()

MODELS = [
    *map(torchvision, TORCHVISION),
    torchvision("inception_v3", 299, aux_logits=False, init_weights=False),
    torchvision("swin_v2_t", 256),
    *map(segmentation, ["lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50"]),
    *map(timm, TIMM),
    *(timm(name, size) for name, size in TIMM_OTHER_SIZES.items()),
    *(transformers(name, pixels(), "vision") for name in ("SiglipVisionModel", "CLIPVisionModel", "Dinov2Model")),
    *(transformers(name, pixels(256), "vision") for name in ("SegformerModel", "MobileViTModel")),
    transformers("Swin2SRModel", pixels(64), "vision", settings={"image_size": 64, "depths": [2, 2]}),
    transformers("YolosModel", pixels(256), "vision", settings={"image_size": [256, 256]}),
    transformers("DPTModel", pixels(384), "vision"),
    *(transformers(name, words()) for name in ENCODERS + DECODERS),
    *(transformers(name, words(), settings=NARROWED) for name in WIDE_DECODERS),
    *(transformers(name, words(mask=False)) for name in ("FNetModel", "MambaModel", "RwkvModel")),
    transformers("T5EncoderModel", words(), config_name="T5Config"),
    transformers("CLIPTextModel", words(), config_name="CLIPTextConfig"),
    transformers("BigBirdModel", words(), settings={"attention_type": "original_full"}),
    *(transformers(name, wave(), "sound") for name in WAVES),
    transformers("ASTModel", features((1, 1024, 128), "input_values"), "sound"),
]
