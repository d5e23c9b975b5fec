"""The main job on real input: three trained OCR models are optimized and run in the client that ships them.

The client is the PyPI package rapidocr-onnxruntime, used twice on the same page: as it is, and with our models and our
plugin. Nothing else about it changes. Called by tools/demo.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import onnxruntime
import rapidocr_onnxruntime
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime.utils import infer_engine

MODELS = {  # argument of the client -> file in the package, attribute of the client that runs it
    "det_model_path": ("ch_PP-OCRv4_det_infer.onnx", "text_det", "text detection"),
    "cls_model_path": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "text_cls", "orientation"),
    "rec_model_path": ("ch_PP-OCRv4_rec_infer.onnx", "text_rec", "recognition"),
}
LINES = [
    ("DejaVuSans.ttf", 34, "A model flows in, a model flows out"),
    ("DejaVuSerif.ttf", 30, "The quick brown fox jumps over the lazy dog"),
    ("LiberationSans-Regular.ttf", 32, "Invoice No. 20391 - total 1,284.50 EUR"),
    ("DejaVuSansMono.ttf", 28, "optimize model.onnx -o fast.onnx"),
    ("LiberationSerif-Regular.ttf", 36, "Nothing else in a deployment changes"),
    ("DejaVuSans-Bold.ttf", 30, "Same inputs, same outputs, same runtime"),
    ("LiberationMono-Regular.ttf", 28, "Every rewrite is checked before it is written"),
    ("DejaVuSerif-Bold.ttf", 32, "Measured on this machine, today"),
]
FONT_DIRS = ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/truetype/liberation", "/usr/share/fonts/truetype/liberation2")


def font(name, size):
    for folder in FONT_DIRS:
        if os.path.exists(f"{folder}/{name}"):
            return ImageFont.truetype(f"{folder}/{name}", size)
    raise SystemExit(f"demo: font {name} is missing; tools/setup installs fonts-dejavu-core and fonts-liberation")


def render_page():
    image = Image.new("RGB", (960, 640), "white")
    draw = ImageDraw.Draw(image)
    for row, (name, size, text) in enumerate(LINES):
        draw.text((48, 36 + row * 72), text, font=font(name, size), fill=(24, 24, 32))
    return np.asarray(image)[:, :, ::-1].copy()  # BGR, as OpenCV loads it


class Recorder:
    """Stands in for one model's session inside the client: times each call, and can keep the inputs."""

    def __init__(self, engine):
        self.engine, self.seconds, self.feeds = engine, 0.0, None

    def __call__(self, batch):
        start = time.perf_counter()
        result = self.engine(batch)
        self.seconds += time.perf_counter() - start
        self.feeds = batch
        return result

    def __getattr__(self, name):
        return getattr(self.engine, name)


def session_attribute(part):
    return next(k for k, v in vars(part).items() if isinstance(v, infer_engine.OrtInferSession))


def make_client(paths, plugin=None):
    class Options(onnxruntime.SessionOptions):
        def __init__(self):
            super().__init__()
            if plugin:
                self.register_custom_ops_library(plugin)  # the one line a deployment adds

    infer_engine.SessionOptions = Options
    client = rapidocr_onnxruntime.RapidOCR(**{key: str(path) for key, path in paths.items()})
    recorders = {}
    for key, (_, attribute, _) in MODELS.items():
        part = getattr(client, attribute)
        name = session_attribute(part)
        recorders[key] = Recorder(getattr(part, name))
        setattr(part, name, recorders[key])
    return client, recorders


def read_page(client, page):
    result, _ = client(page)
    return [line[1] for line in result or []]


def optimize_all(stock, recorders, optimize, folder):
    fast = {}
    for key, path in stock.items():
        name = recorders[key].engine.get_input_names()[0]
        sample = folder / f"{path.stem}.npz"
        np.savez(sample, **{name: recorders[key].feeds})
        fast[key] = folder / f"{path.stem}.fast.onnx"
        print(f"optimize {path.name} -o {fast[key].name} --inputs {sample.name}", flush=True)
        subprocess.run([optimize, str(path), "-o", str(fast[key]), "--inputs", str(sample), "--report", str(fast[key]) + ".json",
                        "--quiet"], check=True)
        report = json.loads(pathlib.Path(str(fast[key]) + ".json").read_text())
        print(f"    {report['before']['nodes']} -> {report['after']['nodes']} nodes, verified: {report['verified']}", flush=True)
    return fast


def measure(clients, page, rounds):
    """Pages alternate between the clients, so that a drift of the machine's speed hits both alike."""
    pages = {side: [] for side in clients}
    models = {side: {key: [] for key in MODELS} for side in clients}
    for turn in range(rounds + 1):
        for side in (list(clients) if turn % 2 == 0 else list(clients)[::-1]):
            client, recorders = clients[side]
            for recorder in recorders.values():
                recorder.seconds = 0.0
            start = time.perf_counter()
            read_page(client, page)
            if turn == 0:
                continue  # warm-up
            pages[side].append(time.perf_counter() - start)
            for key, recorder in recorders.items():
                models[side][key].append(recorder.seconds)
    return pages, models


def print_table(pages, models):
    def row(name, stock, fast):
        ratio = np.median(np.array(stock) / np.array(fast))
        print(f"{name:<18}{np.median(stock) * 1e3:>12.1f}{np.median(fast) * 1e3:>12.1f}{ratio:>10.2f}x")
        return ratio

    print(f"\n{'ms per page':<18}{'stock':>12}{'ModelFlow':>12}{'speedup':>11}")
    for key, (_, _, label) in MODELS.items():
        row(label, models["stock"][key], models["fast"][key])
    return row("whole page", pages["stock"], pages["fast"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    plugin = str(arguments.build / "libmodelflow_ort.so")
    package = pathlib.Path(rapidocr_onnxruntime.__file__).parent / "models"
    stock_paths = {key: package / file for key, (file, _, _) in MODELS.items()}
    page = render_page()
    Image.fromarray(page[:, :, ::-1]).save(arguments.out / "page.png")

    stock = make_client(stock_paths)
    stock_text = read_page(stock[0], page)
    fast_paths = optimize_all(stock_paths, stock[1], str(arguments.build / "optimize"), arguments.out)
    fast = make_client(fast_paths, plugin)
    fast_text = read_page(fast[0], page)

    print(f"\n{'stock ONNX Runtime':<52}ModelFlow")
    for row in range(max(len(stock_text), len(fast_text))):
        a = stock_text[row] if row < len(stock_text) else "-"
        b = fast_text[row] if row < len(fast_text) else "-"
        print(f"{a:<52}{b}{'' if a == b else '   <-- DIFFERS'}")
    if stock_text != fast_text or not stock_text:
        print("demo: the recognised texts differ", file=sys.stderr)
        return 1
    print("equal texts")
    ratio = print_table(*measure({"stock": stock, "fast": fast}, page, arguments.rounds))
    print(f"\nYour own model:\n  {arguments.build}/optimize model.onnx -o fast.onnx"
          f"\n  options.register_custom_ops_library('{plugin}')   # Python; other languages: docs/deploy.md"
          f"\n  {arguments.build}/modelflow-bench fast.onnx --vs model.onnx")
    if ratio <= 1.0:
        print("demo: the page was not faster on this machine", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
