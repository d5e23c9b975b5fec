"""Detectors as their users export them: YOLO and RT-DETR of ultralytics, boxes decoded, one extent of pictures."""
import os

from .entry import Entry, tensors, wrapped

# The task of a network is the end of its name; none is detection.
CLASSES = {"seg": "SegmentationModel", "pose": "PoseModel", "obb": "OBBModel", "cls": "ClassificationModel"}


def ultralytics(name, size=320, network=None):
    def make():
        os.environ.update(YOLO_OFFLINE="true", YOLO_AUTOINSTALL="false")
        import torch
        from ultralytics.nn import tasks

        net = getattr(tasks, network or CLASSES.get(name.partition("-")[2], "DetectionModel"))(f"{name}.yaml", ch=3, verbose=False).eval()
        for layer in net.modules():  # as ultralytics does before an export
            if hasattr(layer, "export"):
                layer.export, layer.format, layer.dynamic = True, "onnx", False
        picture = torch.rand(1, 3, size, size)
        with torch.no_grad():
            net(picture)  # keeps the grid of this extent
        return wrapped(net, pick=lambda result: tuple(tensors(result))), (picture,), ({},)
    return Entry(f"ultralytics {name}", "vision", make)


MODELS = [
    *map(ultralytics, "yolov5n yolov8n yolov8n-seg yolov8n-pose yolov10n yolo11n yolo11n-obb yolo12n yolo26n".split()),
    ultralytics("rtdetr-l", network="RTDETRDetectionModel"),
]
