"""What other optimizers make of a model: how many nodes of which op remain."""
import collections
import os
import tempfile

import onnx
import onnxruntime as ort


def count(model):
    return dict(sorted(collections.Counter(n.op_type for n in model.graph.node).items()))


def onnxruntime(model):
    """The graph that level extended leaves (level all adds layouts of its own, which would only cloud the count)."""
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.optimized_model_filepath = os.path.join(folder, "o.onnx")
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def onnxsim(model):
    import onnxsim as tool

    return tool.simplify(model)[0]


def onnxslim(model):
    import onnxslim as tool

    return tool.slim(model)


def as_bytes(model):
    """Numbers as raw bytes: what exporters write; onnxsim takes float16 in no other form."""
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT16:
            tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    return model


def ask_peers(model):
    answers, model = {}, as_bytes(model)
    for tool in (onnxruntime, onnxsim, onnxslim):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        try:
            answers[tool.__name__] = count(tool(copy))
        except Exception as error:  # what a user would see as well
            answers[tool.__name__] = f"{type(error).__name__}: {str(error).splitlines()[0][:80] if str(error) else ''}"
    return answers
