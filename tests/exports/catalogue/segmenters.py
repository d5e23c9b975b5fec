"""Networks that give a class to every pixel or voxel: torchvision, segmentation_models_pytorch and MONAI."""
from .entry import Entry, image_of, random_of


def torchvision(name, size=256):
    def build():
        import torchvision.models

        return torchvision.models.get_model(name, weights=None, weights_backbone=None)
    return Entry(f"torchvision {name}", "vision", image_of(build, size))


def smp(name, encoder, size=256):
    def build():
        import segmentation_models_pytorch

        return getattr(segmentation_models_pytorch, name)(encoder, encoder_weights=None)
    return Entry(f"smp {name} {encoder}", "vision", image_of(build, size))


def monai(name, extent, **options):
    """Of volumes: one channel in, two classes out."""
    def build():
        from monai.networks import nets

        return getattr(nets, name)(spatial_dims=3, in_channels=1, out_channels=2, **options)
    return Entry(f"monai {name}", "vision", random_of(build, (1, 1, extent, extent, extent)))


MODELS = [
    *map(torchvision, ["lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50"]),
    smp("Unet", "resnet18"),
    smp("UnetPlusPlus", "mobilenet_v2"),
    smp("FPN", "efficientnet-b0"),
    smp("DeepLabV3Plus", "resnet18"),
    smp("MAnet", "resnet18"),
    smp("Segformer", "mit_b0"),
    smp("UPerNet", "resnet18"),
    monai("BasicUNet", 32, features=(16, 16, 32, 32, 64, 16)),
    monai("DynUNet", 32, kernel_size=[3, 3, 3], strides=[1, 2, 2], upsample_kernel_size=[2, 2]),
    monai("SegResNet", 32, init_filters=8),
    monai("SwinUNETR", 64, feature_size=12),
]
