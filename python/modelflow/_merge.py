"""modelflow.merge: several models as one, as `optimize --merge` has it, and front ends to merge with."""
from __future__ import annotations

import ctypes
import os
import pathlib
from ctypes import c_char_p, c_void_p
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

from . import errors
from ._files import as_it_came, file_of
from ._folder import Folder
from ._kinds import Holder, unwrapped
from ._library import checked, encoded, taken
from ._run import Run


class Merged(Holder):
    """model: of the kind of the first that went in, or the path where it was written.
    signature: what goes where, a line for each input, edge and output, and notes behind them."""

    def __init__(self, model: Any, signature: str, folder: Folder) -> None:
        self.model = model
        self.signature = signature
        self._folder = folder  # what `model` may lie in

    def __repr__(self) -> str:
        return self.signature


def merge(models: Union[Mapping[str, Any], Sequence[Union[str, os.PathLike[str]]]], edges: Union[Mapping[str, str], Iterable[str]] = (),
          output: Union[None, str, os.PathLike[str]] = None, *, inputs: Any = None, input_shapes: Optional[Mapping[str, Sequence[int]]] = None,
          custom_ops: Iterable[Union[str, os.PathLike[str]]] = (), threads: Optional[int] = None, verify: bool = True,
          max_memory: Union[None, int, str] = None, timeout: Optional[float] = None, max_nodes: Optional[int] = None,
          max_depth: Optional[int] = None, external_data: Optional[str] = None, progress: Optional[Callable[[str, float], Any]] = None) -> Merged:
    """Several models become one that computes what they compute in turn; it is optimized as any other.

        merged = modelflow.merge({"encoder": "enc.onnx", "decoder": "dec.onnx"}, {"decoder.memory": "encoder.hidden"})
        result = modelflow.optimize(merged.model, "both.onnx")

    models: {name: model}, or paths, which are called by their stems; kinds as for optimize().
    edges: {"decoder.memory": "encoder.hidden"}: what each input takes, or texts "encoder.hidden=decoder.memory". The
        left side may be an input of another model, which is then given once. Without edges, what has the same name.
    output: also where the merged model is written.
    inputs, input_shapes: what the whole and its parts are run on, as for optimize().
    custom_ops: libraries of custom operators that the models need: without them nothing can be run.
    verify: False leaves out running the whole beside its parts.
    threads, max_memory, timeout, max_nodes, max_depth, external_data, progress: as for optimize().

    Raises UsageError where edges cannot fit, with both ends; UnsupportedError for opsets that cannot be brought together;
    VerificationError where the whole is not its parts in turn, or does not run where they do."""
    named = models if isinstance(models, Mapping) else {pathlib.Path(os.fspath(each)).stem: each for each in models}
    if not isinstance(models, Mapping) and len(named) != len(models):
        raise errors.UsageError("two models have the same name: give a dict of names")
    texts = [f"{source}={target}" for target, source in edges.items()] if isinstance(edges, Mapping) else list(edges)
    folder = Folder()
    parts = [unwrapped(model) for model in named.values()]
    files = [file_of(part, folder.path / str(place)) for place, part in enumerate(parts)]
    target = pathlib.Path(os.fspath(output)) if output is not None else folder.path / "merged.onnx"
    run = Run()
    run.set_flags(verify=verify)
    run.set_given(threads=threads, max_memory=max_memory, timeout=timeout, max_nodes=max_nodes, max_depth=max_depth, external_data=external_data)
    run.set_each("custom_ops", custom_ops)
    run.set_shapes(input_shapes)
    run.set_data("inputs", inputs)
    if progress is not None:
        run.set_progress(progress)

    def merged(options: c_void_p) -> str:
        text = c_void_p()
        checked("modelflow_merge_files", _strings(files), _strings(named), len(files), _strings(texts), len(texts), encoded(target, "output"),
                options, ctypes.byref(text))
        return taken(text).decode(errors="replace")

    signature = run.call(merged, (folder, list(named.values())))
    return Merged(as_it_came(target, parts[0]), signature, folder)


def audio_front_end(features: str) -> bytes:
    """A model `samples` float32 [N, T] -> `features` of standard ops, to be merged in front of another one:

        front = modelflow.audio_front_end("kaldi:n_mels=80,input_scale=32768")
        merged = modelflow.merge({"front": front, "net": open("net.onnx", "rb").read()}, {"net.x": "front.features"})

    features: as `optimize --audio-front-end` has them (docs/compose.md). UsageError for what makes no sense."""
    return _front_end("modelflow_audio_front_end", features)


def image_front_end(features: str) -> bytes:
    """A model `pixels` uint8 [N, height, width, 3] -> `image` of standard ops, to be merged in front of another one.

    features: as `optimize --image-front-end` has them, "imagenet:size=232" or a preprocessor_config.json
    (docs/compose.md). UsageError for what makes no sense."""
    return _front_end("modelflow_image_front_end", features)


def _front_end(function: str, features: str) -> bytes:
    folder = Folder()
    target = folder.path / "front.onnx"
    checked(function, encoded(features, "features"), encoded(target, "output"))
    return target.read_bytes()


def _strings(values: Iterable[Any]) -> Any:
    texts = [encoded(str(value), "models, names and edges") for value in values]
    return (c_char_p * len(texts))(*texts)
