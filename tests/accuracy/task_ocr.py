"""OCR: the three trained models of the package rapidocr-onnxruntime inside that package's own client."""
import importlib.util
import pathlib

import numpy as np
import pages
from task import Metric, Missing, Task, edit_distance, take

MODELS = {  # name -> file, part of the client, attribute of that part that runs the model
    "detection": ("ch_PP-OCRv4_det_infer.onnx", "text_det", "infer"),
    "orientation": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", "text_cls", "infer"),
    "recognition": ("ch_PP-OCRv4_rec_infer.onnx", "text_rec", "session"),
}


class AsClientCalls:
    """Our engine behind the interface of the client's own session class."""

    def __init__(self, engine):
        self.engine = engine

    def __call__(self, batch):
        return self.engine({self.engine.inputs[0]: batch})


def overlap(a, b):
    from shapely.geometry import Polygon

    a, b = Polygon(a), Polygon(b)
    return a.intersection(b).area / a.union(b).area if a.is_valid and b.is_valid else 0.0


def match(truth, found):
    """Pairs (index of truth, index of found), best overlaps first, each used once, overlap at least 0.5."""
    pairs = sorted(((overlap(t[0], f[0]), i, j) for i, t in enumerate(truth) for j, f in enumerate(found)), reverse=True)
    used_truth, used_found, kept = set(), set(), []
    for value, i, j in pairs:
        if value >= 0.5 and i not in used_truth and j not in used_found:
            used_truth.add(i)
            used_found.add(j)
            kept.append((i, j))
    return kept


class Ocr(Task):
    name = "ocr"
    title = "OCR (PP-OCRv4 in RapidOCR): rendered lines and pages"
    metrics = (
        Metric("character error rate, lines", loss=0.5, rises=False),
        Metric("character error rate, pages", loss=0.5, rises=False),
        Metric("detection F1", loss=0.5),
        Metric("orientation right", loss=0.5),
    )

    def __init__(self, folder, share):
        spec = importlib.util.find_spec("rapidocr_onnxruntime")
        if not spec:
            raise Missing("rapidocr-onnxruntime is not installed")
        from rapidocr_onnxruntime import RapidOCR

        package = pathlib.Path(spec.submodule_search_locations[0]) / "models"
        self.models = {name: package / file for name, (file, _, _) in MODELS.items()}
        self.client = RapidOCR(intra_op_num_threads=1, text_score=0.0)  # nothing read is thrown away
        # The pages that "test" draws were looked at while int8 was made; "fresh" ones were not.
        sizes = {"test": (300, 90), "calibration": (96, 30)}
        drawn = {"test": "fresh", "calibration": "calibration"}
        self.data = {split: ([pages.line(split, i) for i in range(take(share, lines, 12))],
                             [pages.page(drawn[split], i) for i in range(take(share, sheets, 2))])
                     for split, (lines, sheets) in sizes.items()}

    def run(self, engines, split):
        for name, (_, part, attribute) in MODELS.items():
            setattr(getattr(self.client, part), attribute, AsClientCalls(engines[name]))
        lines, sheets = self.data[split]
        read = []
        for start in range(0, len(lines), 12):  # what a page gives the client at once
            images, turned, _ = self.client.text_cls([image for image, _, _ in lines[start:start + 12]])
            texts, _ = self.client.text_rec(images)
            read += [(text[0], label == "180") for text, (label, _) in zip(texts, turned, strict=True)]
        found = []
        for image, _ in sheets:
            result, _ = self.client(image)
            found.append([(np.array(box), text) for box, text, *_ in result or []])
        return read, found

    def score(self, answers, original):
        read, found = answers
        lines, sheets = self.data["test"]
        errors = sum(edit_distance(text, got) for (_, text, _), (got, _) in zip(lines, read, strict=True))
        right = np.mean([turned == got for (_, _, turned), (_, got) in zip(lines, read, strict=True)])
        page_errors = hits = boxes = 0
        for (_, truth), got in zip(sheets, found, strict=True):
            pairs = dict(match(truth, got))
            hits += len(pairs)
            boxes += len(truth) + len(got)
            page_errors += sum(edit_distance(text, got[pairs[i]][1]) if i in pairs else len(text)
                               for i, (_, text) in enumerate(truth))
        characters = sum(len(text) for _, text, _ in lines)
        page_characters = sum(len(text) for _, truth in sheets for _, text in truth)
        return {
            "character error rate, lines": 100 * errors / characters,
            "character error rate, pages": 100 * page_errors / page_characters,
            "detection F1": 100 * 2 * hits / boxes,
            "orientation right": 100 * float(right),
        }


