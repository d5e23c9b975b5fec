"""What draws pictures and films: the networks of diffusers, two blocks of each, and the codecs of their latent space."""
from .entry import BATCH, Entry, wrapped


def diffusers(name, network, call, inputs, axes=None, exporter="", **config):
    """`inputs`: a shape of random numbers each, or whole numbers; `axes`: the dynamic ones of all."""
    def make():
        import diffusers as library
        import torch

        made = tuple(torch.tensor(each) if isinstance(each, list) else torch.randn(*each) for each in inputs)
        return wrapped(getattr(library, network)(**config), call), made, (axes or {},) * len(made)
    return Entry(f"diffusers {name}", "vision", make, exporter)


def of_places(net, latent, text, pooled, step):
    """Flux wants a place of each of the 16 x 16 patches and of each word."""
    import torch

    places = torch.stack([torch.zeros(256), torch.arange(256) // 16, torch.arange(256) % 16], dim=1)
    return net(hidden_states=latent, encoder_hidden_states=text, pooled_projections=pooled, timestep=step, img_ids=places, txt_ids=torch.zeros(64, 3))


def decode(net, latent):
    return net.decode(latent)


def encode(net, picture):
    return [net.encode(picture).latent_dist.mean]


def conditioned(net, latent, text, step):
    return net(latent, encoder_hidden_states=text, timestep=step)


UNET = {"sample_size": 32, "layers_per_block": 1, "block_out_channels": (320, 640)}
CODEC = {"block_out_channels": (64, 128, 128), "layers_per_block": 1, "latent_channels": 4,
         "down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
DC = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in {
    "block_out_channels": (32, 64, 64), "block_types": ("ResBlock", "ResBlock", "EfficientViTBlock"), "layers_per_block": (1, 1, 1),
    "qkv_multiscales": ((), (), (5,))}.items()}

MODELS = [
    diffusers("UNet2DCondition", "UNet2DConditionModel", lambda net, latent, step, text: net(latent, step, text),
              [(2, 4, 24, 24), [3, 5], (2, 77, 768)], BATCH, cross_attention_dim=768, attention_head_dim=8,
              down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **UNET),
    diffusers("UNet2DCondition-XL", "UNet2DConditionModel", lambda net, latent, step, text: net(latent, step, text),
              [(1, 4, 32, 32), [3], (1, 77, 1024)], cross_attention_dim=1024, use_linear_projection=True, transformer_layers_per_block=2,
              attention_head_dim=(5, 10), down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
              up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), **UNET),
    diffusers("AutoencoderKL decoder", "AutoencoderKL", decode, [(1, 4, 32, 32)], BATCH, **CODEC),
    diffusers("AutoencoderKL encoder", "AutoencoderKL", encode, [(1, 3, 128, 128)], BATCH, **CODEC),
    diffusers("AutoencoderTiny decoder", "AutoencoderTiny", decode, [(1, 4, 32, 32)], BATCH),
    diffusers("AutoencoderDC decoder", "AutoencoderDC", decode, [(1, 8, 32, 32)], BATCH, latent_channels=8, attention_head_dim=32, **DC),
    diffusers("AutoencoderKLWan decoder", "AutoencoderKLWan", decode, [(1, 16, 1, 16, 16)], base_dim=32, num_res_blocks=1),
    diffusers("DiT", "DiTTransformer2DModel", lambda net, latent, step, label: net(latent, timestep=step, class_labels=label),
              [(2, 4, 32, 32), [3, 4], [1, 2]], BATCH, num_attention_heads=6, attention_head_dim=64, num_layers=2, sample_size=32,
              in_channels=4, out_channels=8, patch_size=2, num_embeds_ada_norm=1000),
    diffusers("SD3", "SD3Transformer2DModel", lambda net, latent, text, pooled, step: net(latent, text, pooled, step),
              [(1, 16, 32, 32), (1, 77, 512), (1, 256), [7]], sample_size=32, num_layers=2, attention_head_dim=64, num_attention_heads=8,
              in_channels=16, out_channels=16, joint_attention_dim=512, caption_projection_dim=512, pooled_projection_dim=256,
              pos_embed_max_size=32),
    diffusers("Flux", "FluxTransformer2DModel", of_places, [(1, 256, 64), (1, 64, 512), (1, 256), [0.7]], in_channels=64, num_layers=1,
              num_single_layers=2, attention_head_dim=128, num_attention_heads=4, joint_attention_dim=512, pooled_projection_dim=256),
    diffusers("PixArt", "PixArtTransformer2DModel", conditioned, [(1, 4, 32, 32), (1, 60, 512), [3]], num_attention_heads=6,
              attention_head_dim=64, num_layers=2, sample_size=32, cross_attention_dim=384, caption_channels=512,
              use_additional_conditions=False, exporter="torchscript"),
    diffusers("Sana", "SanaTransformer2DModel", conditioned, [(1, 32, 16, 16), (1, 60, 512), [3]], in_channels=32, out_channels=32,
              num_layers=2, num_attention_heads=8, attention_head_dim=32, num_cross_attention_heads=4, cross_attention_head_dim=64,
              cross_attention_dim=256, caption_channels=512, sample_size=16),
    diffusers("Wan", "WanTransformer3DModel", lambda net, latent, step, text: net(latent, step, text),
              [(1, 16, 2, 16, 16), [3], (1, 60, 512)], num_attention_heads=4, attention_head_dim=128, text_dim=512, ffn_dim=2048, num_layers=2),
]
