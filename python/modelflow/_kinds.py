"""Kinds of models: how each goes into the library, as bytes or as a file, and how it comes out again."""
from __future__ import annotations

import os
import pathlib
import sys
from typing import Any, Union

from . import errors

# A message of protobuf cannot be larger than 2 GiB; beyond this the library itself writes weights to a file of their own.
MOST_BYTES = 3 << 29

Form = Union[bytes, pathlib.Path]


class Holder:
    """What holds a model of any kind: `model`. A file that this names may go with the holder."""

    model: Any


def unwrapped(model: Any) -> Any:
    """The model itself. Whoever asks keeps the holder for as long as it needs files of the model."""
    return model.model if isinstance(model, Holder) else model


class _Files:
    """A path; what comes out is a path as well."""

    def arrive(self, model: Any, folder: pathlib.Path) -> Form:
        return pathlib.Path(os.fspath(model))

    def leave(self, done: Form, original: Any) -> Any:
        return done


class _Bytes:
    """A serialized ModelProto."""

    def arrive(self, model: Any, folder: pathlib.Path) -> Form:
        return bytes(model)

    def leave(self, done: Form, original: Any) -> Any:
        return done


class _Protos:
    """onnx.ModelProto. One that is too large for bytes takes a copy and the way through files."""

    def arrive(self, model: Any, folder: pathlib.Path) -> Form:
        if model.ByteSize() <= MOST_BYTES:
            return bytes(model.SerializeToString())
        import onnx
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        path = folder / "arrived.onnx"
        onnx.save_model(copy, str(path), save_as_external_data=True, location="arrived.onnx.data")
        return path

    def leave(self, done: Form, original: Any) -> Any:
        import onnx
        return onnx.load_model_from_string(done) if isinstance(done, bytes) else onnx.load_model(str(done))


class _Irs:
    """onnx_ir.Model. Its weights may lie anywhere, so it goes through files; the result holds them in memory."""

    def arrive(self, model: Any, folder: pathlib.Path) -> Form:
        import onnx_ir
        onnx_ir.save(model, folder / "arrived.onnx", external_data="arrived.onnx.data")
        return folder / "arrived.onnx"

    def leave(self, done: Form, original: Any) -> Any:
        import onnx_ir
        assert isinstance(done, pathlib.Path)
        return onnx_ir.external_data.load_to_model(onnx_ir.load(done))


class _Programs:
    """torch.onnx.ONNXProgram, what torch.onnx.export(dynamo=True) gives."""

    def arrive(self, model: Any, folder: pathlib.Path) -> Form:
        return _Irs().arrive(model.model, folder)

    def leave(self, done: Form, original: Any) -> Any:
        return type(original)(_Irs().leave(done, None), original.exported_program)


def kind_of(model: Any) -> Any:
    """The kind of a model, without importing what is not imported: where its class is not, it is of another kind."""
    if isinstance(model, (str, os.PathLike)):
        return _Files()
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _Bytes()
    for package, name, kind in (("onnx", "ModelProto", _Protos), ("onnx_ir", "Model", _Irs), ("torch.onnx", "ONNXProgram", _Programs)):
        known = getattr(sys.modules.get(package), name, None)
        if known is not None and isinstance(model, known):
            return kind()
    raise errors.UsageError(f"no model: {type(model).__name__}; expected a path, bytes, onnx.ModelProto, onnx_ir.Model "
                            "or torch.onnx.ONNXProgram; a torch.nn.Module goes to modelflow.torch.export")
