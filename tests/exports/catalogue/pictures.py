"""Classifiers of pictures: torchvision and timm."""
from .entry import Entry, image_of


def torchvision(name, size=224, **options):
    def build():
        import torchvision.models

        return torchvision.models.get_model(name, weights=None, **options)
    return Entry(f"torchvision {name}", "vision", image_of(build, size))


def timm(name, size=224, exporter="", **options):
    def build():
        import timm

        return timm.create_model(name, pretrained=False, **options)
    return Entry(f"timm {name}", "vision", image_of(build, size), exporter)


TORCHVISION = """alexnet squeezenet1_1 shufflenet_v2_x1_0 mnasnet1_0 mobilenet_v2 mobilenet_v3_small densenet121 googlenet
    regnet_y_400mf regnet_x_800mf resnet18 resnext50_32x4d wide_resnet50_2 vgg11_bn efficientnet_b1 efficientnet_v2_s convnext_tiny
    swin_t vit_b_32 maxvit_t""".split()
TIMM = """efficientvit_b0 efficientvit_m0 ghostnetv2_100 repvgg_a0 repghostnet_050 mobileone_s0 starnet_s1 mobilenetv4_conv_small
    edgenext_xx_small xcit_nano_12_p16_224 levit_128s poolformerv2_s12 convnextv2_atto cait_xxs24_224 deit_tiny_patch16_224
    twins_pcpvt_small pvt_v2_b0 mixer_s32_224 gmlp_s16_224 resmlp_12_224 hrnet_w18_small res2net50_26w_4s resnest14d
    ese_vovnet19b_dw coat_tiny focalnet_tiny_srf inception_next_atto efficientformerv2_s0 mambaout_femto
    swiftformer_xs tf_efficientnet_lite0 mixnet_s dla34 visformer_tiny davit_tiny cs3darknet_s regnetz_005 skresnet18
    eca_resnet33ts eva02_tiny_patch14_224 beit_base_patch16_224 tiny_vit_5m_224 hgnetv2_b0 repvit_m0_9 fasternet_t0 shvit_s1
    nfnet_l0 nextvit_small mvitv2_tiny coatnet_0_rw_224 gcvit_xxtiny volo_d1_224 swinv2_cr_tiny_ns_224""".split()
TIMM_OTHER_SIZES = {"crossvit_tiny_240": 240, "fastvit_t8": 256, "botnet26t_256": 256, "halonet26t": 256, "mobilevit_xxs": 256,
                    "mobilevitv2_050": 256, "vit_small_patch14_dinov2": 518, "lambda_resnet26t": 256, "vit_small_patch16_dinov3": 256}

MODELS = [
    *map(torchvision, TORCHVISION),
    torchvision("inception_v3", 299, aux_logits=False, init_weights=False),
    torchvision("swin_v2_t", 256),
    *map(timm, TIMM),
    *(timm(name, size) for name, size in TIMM_OTHER_SIZES.items()),
    timm("hiera_tiny_224", exporter="torchscript", num_classes=0),  # its classifier begins as zeros
    timm("nest_tiny", exporter="torchscript"),
]
