"""Encoders of pictures and videos, and what stands on them: transformers."""
from .configured import features, pixels, transformers

MODELS = [
    *(transformers(name, pixels(), "vision") for name in ("SiglipVisionModel", "CLIPVisionModel", "Dinov2Model", "DINOv3ViTModel", "SwiftFormerModel")),
    *(transformers(name, pixels(256), "vision") for name in ("SegformerModel", "MobileViTModel")),
    transformers("Swin2SRModel", pixels(64), "vision", settings={"image_size": 64, "depths": [2, 2]}),
    transformers("DonutSwinModel", pixels(), "vision", settings={"depths": [2, 2], "image_size": 224}),
    transformers("YolosModel", pixels(256), "vision", settings={"image_size": [256, 256]}),
    transformers("DPTModel", pixels(384), "vision"),
    transformers("SamVisionModel", pixels(512), "vision", settings={"image_size": 512, "initializer_range": 0.02}, config_name="SamVisionConfig"),
    transformers("Sam2VisionModel", pixels(512), "vision", config_name="Sam2VisionConfig"),
    *(transformers(name, pixels(320), "vision", settings={"encoder_layers": 1}) for name in ("RTDetrV2Model", "DFineModel")),
    transformers("Mask2FormerModel", pixels(256), "vision"),
    transformers("DepthAnythingForDepthEstimation", pixels(252), "vision", config_name="DepthAnythingConfig"),
    transformers("TimesformerModel", features((1, 8, 3, 224, 224), "pixel_values"), "vision"),
    transformers("VideoMAEModel", features((1, 8, 3, 224, 224), "pixel_values"), "vision", settings={"num_frames": 8}),
]
