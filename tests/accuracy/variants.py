"""The same model in low precision: ours, and the defaults of the tools that people use today."""
import collections
import json
import logging
import pathlib
import re
import subprocess

import numpy as np
import onnx
from engines import OpenVino, Ort


class NotAvailable(Exception):
    """The tool cannot make this variant of this model; the message says why."""


def write_calibration(feeds, folder):
    """One file per sample, arrays named like the inputs: what `optimize --calibration` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.npz"):
        old.unlink()
    for i, sample in enumerate(feeds):
        np.savez(folder / f"{i:04d}.npz", **sample)


def last_line(text):
    lines = [line for line in str(text).strip().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


class ModelFlow:
    """Our optimizer, run in ONNX Runtime with the plugin."""

    def __init__(self, precision, build, flags=(), threads=1):
        self.name, self.precision = f"ModelFlow {precision}", precision
        self.build, self.flags, self.threads = pathlib.Path(build), list(flags), threads

    def make(self, model, samples, stem):
        out, report = f"{stem}.onnx", f"{stem}.json"
        command = [str(self.build / "optimize"), str(model), "-o", out, "--report", report, "--quiet",
                   "--precision", self.precision, *self.flags]
        if self.precision in ("auto", "int8", "int4-weights"):
            command += ["--calibration", str(samples)]
        else:  # real shapes for verifying and timing
            command += ["--inputs", str(next(iter(sorted(pathlib.Path(samples).glob("*.npz")))))]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise NotAvailable(f"optimize exits with {done.returncode}: {last_line(done.stderr)}")
        return Ort(out, self.build / "libmodelflow_ort.so", self.threads), self.summary(report)

    @staticmethod
    def summary(report):
        """The fused ops that came out, by kind: whether there was anything to lose."""
        ops = collections.Counter()
        for op, n in json.loads(pathlib.Path(report).read_text())["after"]["ops"].items():
            if op.startswith("modelflow."):
                ops[re.sub(r"_\d+$", "", op.removeprefix("modelflow."))] += n
        return dict(ops)


def read_samples(folder):
    for path in sorted(pathlib.Path(folder).glob("*.npz")):
        with np.load(path) as archive:
            yield dict(archive)


def opset_13(model, path):
    """ONNX Runtime's quantizer writes scales per channel, which DequantizeLinear takes since opset 13."""
    loaded = onnx.load(model)
    if next(o.version for o in loaded.opset_import if o.domain == "") >= 13:
        return model
    onnx.save(onnx.version_converter.convert_version(loaded, 13), path)
    return path


class OrtStatic:
    """onnxruntime.quantization as its documentation tells: pre-process, then static QDQ, u8 activations, s8 weights
    per channel."""

    name = "ORT static int8"

    def __init__(self, threads=1):
        self.threads = threads

    def make(self, model, samples, stem):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(CalibrationDataReader):
            def __init__(self):
                self.samples = read_samples(samples)

            def get_next(self):
                return next(self.samples, None)

        logging.getLogger().setLevel(logging.ERROR)
        out, clean = f"{stem}.onnx", f"{stem}.clean.onnx"
        try:
            quant_pre_process(str(opset_13(model, f"{stem}.opset13.onnx")), clean, skip_symbolic_shape=True)
            usual = {"quant_format": QuantFormat.QDQ, "per_channel": True, "activation_type": QuantType.QUInt8,
                     "weight_type": QuantType.QInt8}
            try:
                quantize_static(clean, out, Reader(), **usual)
            except ValueError:  # ONNX Runtime 1.31 stumbles over scales per channel when it looks after biases
                quantize_static(clean, out, Reader(), **usual,
                                extra_options={"QDQDisableWeightAdjustForInt32Bias": True})
            return Ort(out, threads=self.threads), {}
        except Exception as error:  # whatever the peer throws, the others are still measured
            raise NotAvailable(last_line(error)) from error


class OrtDynamic:
    """onnxruntime.quantization's quantize_dynamic, which its documentation names for transformers: no calibration."""

    name = "ORT dynamic int8"

    def __init__(self, threads=1):
        self.threads = threads

    def make(self, model, samples, stem):
        from onnxruntime.quantization import quantize_dynamic

        logging.getLogger().setLevel(logging.ERROR)
        try:
            quantize_dynamic(str(model), f"{stem}.onnx", per_channel=True)
            return Ort(f"{stem}.onnx", threads=self.threads), {}
        except Exception as error:
            raise NotAvailable(last_line(error)) from error


def has_attention(model):
    """A Softmax that a MatMul consumes."""
    graph = onnx.load(model, load_external_data=False).graph
    softmax = {n.output[0] for n in graph.node if n.op_type == "Softmax"}
    return any(n.op_type == "MatMul" and softmax & set(n.input) for n in graph.node)


class Nncf:
    """nncf.quantize with its defaults, run in OpenVINO."""

    name = "NNCF int8"

    def __init__(self, threads=1):
        self.threads = threads

    def make(self, model, samples, stem):
        try:
            import nncf
            import openvino

            nncf.set_log_level(logging.ERROR)
            kind = nncf.ModelType.TRANSFORMER if has_attention(model) else None
            data = list(read_samples(samples))
            quantized = nncf.quantize(openvino.Core().read_model(str(model)), nncf.Dataset(data), model_type=kind,
                                      subset_size=len(data))
            openvino.save_model(quantized, f"{stem}.xml", compress_to_fp16=False)
            return OpenVino(f"{stem}.xml", self.threads), {}
        except Exception as error:
            raise NotAvailable(last_line(error)) from error
