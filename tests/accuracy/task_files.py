"""File types: Magika's model inside its own client, on files made up in many formats."""
import importlib.util
import pathlib

import numpy as np
from files import TYPES, file
from task import Metric, Missing, Task, agreement, take


class AsClientCalls:
    """Our engine behind the interface of the session that the client holds."""

    def __init__(self, engine):
        self.engine = engine

    def run(self, outputs, feeds):
        return self.engine({name: np.array(value, np.int32) for name, value in feeds.items()})


class Files(Task):
    name = "files"
    title = f"File types (Magika): made-up files of {len(TYPES)} types"
    metrics = (Metric("labels alike", floor=99), Metric("label right", loss=1))

    def __init__(self, folder, share):
        spec = importlib.util.find_spec("magika")
        if not spec:
            raise Missing("magika is not installed")
        from magika import Magika

        self.client = Magika()
        package = pathlib.Path(spec.submodule_search_locations[0])
        self.models = {"types": next(package.glob("models/*/model.onnx"))}
        self.data = {split: [(label, file(label, split, i)) for label in TYPES for i in range(take(share, count))]
                     for split, count in (("test", 6), ("calibration", 2))}

    def run(self, engines, split):
        self.client._onnx_session = AsClientCalls(engines["types"])
        return [str(self.client.identify_bytes(content).output.label) for _, content in self.data[split]]

    def score(self, answers, original):
        truth = [label for label, _ in self.data["test"]]
        return {"labels alike": agreement(answers, original), "label right": agreement(answers, truth)}
