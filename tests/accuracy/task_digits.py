"""Digits: two small networks trained on real handwriting, a convolutional one and a transformer."""
import importlib.util

import digits
import numpy as np
from task import Metric, Missing, Task, take

NETS = {"convolutional": digits.convolutional, "transformer": digits.transformer}


class Digits(Task):
    name = "digits"
    title = "Digits (scikit-learn's, trained here): a small convolutional net and a small transformer"
    metrics = tuple(Metric(f"top-1, {name}", loss=0.5) for name in NETS)

    def __init__(self, folder, share):
        if not importlib.util.find_spec("sklearn"):
            raise Missing("scikit-learn, whose digits these are, is not installed")
        learn, test = digits.data()
        self.models = {name: digits.export(net, digits.train(net, *learn), folder / f"{name}.onnx")
                       for name, net in NETS.items()}
        self.labels = test[1]
        self.data = {"test": test[0], "calibration": learn[0][:take(share, 256, 64)]}

    def run(self, engines, split):
        images = self.data[split]
        return {name: np.concatenate([engine({"image": images[i:i + 16]})[0] for i in range(0, len(images), 16)])
                for name, engine in engines.items()}

    def score(self, answers, original):
        return {f"top-1, {name}": 100 * float(np.mean(answers[name].argmax(1) == self.labels)) for name in NETS}
