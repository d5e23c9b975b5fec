"""Models without functions, from Python: for runtimes that have neither the plugin nor local functions."""
import numpy as np
import onnx
import pytest
from conftest import close, session
from test_python import QUICK, is_fused, modelflow


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_normal((2, 3, 32, 32), dtype=np.float32)


def is_plain(proto):
    return not proto.functions and {node.domain for node in proto.graph.node} == {""}


def test_every_kind_comes_out_without_functions(cnn, tmp_path, x):
    fast = modelflow.optimize(cnn, tmp_path / "fast.onnx", **QUICK).model
    proto = onnx.load(fast)
    before = proto.SerializeToString()
    assert is_fused(proto) and proto.functions
    plain = modelflow.inline(fast, tmp_path / "plain.onnx")
    from_bytes = modelflow.inline(before, tmp_path / "bytes.onnx")
    from_proto = modelflow.inline(proto)
    assert plain == tmp_path / "plain.onnx" and type(from_bytes) is bytes and type(from_proto) is onnx.ModelProto
    assert proto.SerializeToString() == before, "the argument changed"
    expected = session(cnn).run(None, {"x": x})
    for name in ("plain.onnx", "bytes.onnx"):
        assert is_plain(onnx.load(tmp_path / name))
        close(expected, session(tmp_path / name).run(None, {"x": x}))
    assert is_plain(from_proto) and is_plain(onnx.load_model_from_string(from_bytes))


def test_what_a_path_needs(cnn, tmp_path):
    with pytest.raises(modelflow.UsageError, match="output"):
        modelflow.inline(cnn)
    with pytest.raises(modelflow.InvalidInputError):
        modelflow.inline(tmp_path / "nothing.onnx", tmp_path / "plain.onnx")
    with pytest.raises(modelflow.LimitError):
        modelflow.inline(cnn, tmp_path / "plain.onnx", max_nodes=1)
    assert not (tmp_path / "plain.onnx").exists()
    modelflow.inline(cnn, tmp_path / "plain.onnx", external_data="always")
    assert (tmp_path / "plain.onnx.data").exists()
