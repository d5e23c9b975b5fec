"""One task measured: the original models' answers, and those of every variant of them."""
import time

from engines import Ort, Recorder
from variants import NotAvailable, write_calibration


def in_8_bits(fused):
    """How many of the convolutions and products are: the others stayed in float for the sake of speed or accuracy."""
    counts = {name: sum(ops.get(name, 0) for ops in fused.values()) for name in ("Conv", "MatMul", "QConv", "QMatMul")}
    low = counts["QConv"] + counts["QMatMul"]
    return f"{low} of {sum(counts.values())} convolutions and products in 8 bits" if low else ""


class Bench:
    """One task: its originals, their answers, and a row for every variant."""

    def __init__(self, task, folder, threads):
        self.task, self.folder = task, folder
        self.originals = {name: Ort(path, threads=threads) for name, path in task.models.items()}
        recorders = {name: Recorder(engine) for name, engine in self.originals.items()}
        task.run(recorders, "calibration")
        for name, recorder in recorders.items():
            write_calibration(recorder.feeds, folder / "calibration" / name)
        self.samples = {name: len(recorder.feeds) for name, recorder in recorders.items()}
        self.answers = task.run(self.originals, "test")
        self.values = task.score(self.answers, self.answers)

    def result(self):
        metrics = [{"name": m.name, "unit": m.unit, "digits": m.digits, "bound": m.bound()} for m in self.task.metrics]
        return {"title": self.task.title, "metrics": metrics, "calibration_samples": self.samples,
                "rows": [{"variant": "original, float32", "values": self.values, "holds": {}}]}

    def make(self, variant):
        """One engine per model, or why there is none."""
        engines, fused = {}, {}
        for name, path in self.task.models.items():
            stem = self.folder / f"{name}.{variant.name.replace(' ', '-').lower()}"
            try:
                engines[name], fused[name] = variant.make(path, self.folder / "calibration" / name, stem)
            except NotAvailable as error:
                raise NotAvailable(f"{name}: {error}") from error
        return engines, fused

    def row(self, label, engines):
        start = time.perf_counter()
        values = self.task.score(self.task.run(engines, "test"), self.answers)
        holds = {m.name: bool(m.holds(values[m.name], self.values[m.name])) for m in self.task.metrics}
        return {"variant": label, "values": values, "holds": holds, "seconds": round(time.perf_counter() - start, 1)}

    def rows(self, variant, each):
        try:
            engines, fused = self.make(variant)
        except NotAvailable as error:
            yield {"variant": variant.name, "values": {}, "holds": {}, "note": f"not available: {error}"}
            return
        try:
            yield self.row(variant.name, engines) | {"fused": fused, "note": in_8_bits(fused)}
            if each and len(engines) > 1:
                for name, engine in engines.items():
                    yield self.row(f"{variant.name}, {name} alone", self.originals | {name: engine})
        except Exception as error:  # a model that was made and does not run
            yield {"variant": variant.name, "values": {}, "holds": {}, "note": f"does not run: {str(error)[-200:]}"}
