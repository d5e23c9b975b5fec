"""An empty batch through optimized models without the plugin: bodies take it wherever the original does, also behind the
default optimizations of ONNX Runtime, which write -1 where a body computes an extent."""
import pathlib

import numpy as np
import onnx
import pytest
from conftest import close, session

CORPUS = pathlib.Path(__file__).resolve().parents[1] / "corpus"
CELLS = ["bert_layer_eager/dynamo-18", "gpt2_block_sdpa/dynamo-18", "llama_layer_sdpa/dynamo-18", "group_norm_silu/keras-17",
         "rotary/dynamo-18"]


def feeds(model, batch):
    """Numbers for every input; `batch` for the first axis where that is a symbol, 5 for all other symbols."""
    values = {}
    for formal in model.graph.input:
        tensor = formal.type.tensor_type
        dims = [d.dim_value if d.HasField("dim_value") else batch if i == 0 else 5 for i, d in enumerate(tensor.shape.dim)]
        values[formal.name] = np.full(dims, 0.5).astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    return values


@pytest.mark.parametrize("cell", CELLS)
def test_an_empty_batch_needs_no_plugin(cell, optimize, tmp_path):
    model = onnx.parser.parse_model((CORPUS / f"{cell}.onnxtxt").read_text())
    source, out = tmp_path / "model.onnx", tmp_path / "fast.onnx"
    onnx.save(model, source)
    assert optimize(source, "-o", out, "--no-measure").code == 0
    assert any(node.domain == "modelflow" for node in onnx.load(out).graph.node)
    for batch in (0, 2):
        values = feeds(model, batch)
        close(session(source).run(None, values), session(out).run(None, values))
