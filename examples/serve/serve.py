"""Run an optimized model in ONNX Runtime: python serve.py fast.onnx libmodelflow_ort.so"""
import sys

import numpy as np
import onnxruntime as ort

model, plugin = sys.argv[1:3]
options = ort.SessionOptions()
options.register_custom_ops_library(plugin)  # the only line that an existing deployment adds
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
feeds = {i.name: np.zeros([d if isinstance(d, int) else 1 for d in i.shape], np.float32) for i in session.get_inputs()}
for output, value in zip(session.get_outputs(), session.run(None, feeds)):
    print(output.name, value.shape, value.dtype)
