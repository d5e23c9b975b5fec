"""One way to call a model, whatever runs it: feeds by name in, a list of outputs out."""
import numpy as np
import onnxruntime as ort


class Ort:
    """ONNX Runtime, with our plugin where one is given."""

    def __init__(self, path, plugin=None, threads=1):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        if plugin:
            options.register_custom_ops_library(str(plugin))
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]

    def __call__(self, feeds):
        return self.session.run(None, feeds)


class OpenVino:
    """OpenVINO in float32: what is quantized says so in its graph."""

    def __init__(self, path, threads=1):
        import openvino

        core = openvino.Core()
        self.model = core.compile_model(core.read_model(str(path)), "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads})
        self.inputs = [i.any_name for i in self.model.inputs]

    def __call__(self, feeds):
        result = self.model(feeds)
        return [np.array(result[i]) for i in range(len(self.model.outputs))]


class Recorder:
    """Stands in for an engine and keeps what it is fed: the samples for calibration."""

    def __init__(self, engine):
        self.engine, self.inputs, self.feeds = engine, engine.inputs, []

    def __call__(self, feeds):
        self.feeds.append({name: np.array(value) for name, value in feeds.items()})
        return self.engine(feeds)
