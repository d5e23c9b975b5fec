"""Builds the corpus again: exports every construct, writes it as text, and asks other optimizers what they make of it.

    python make.py [--only REGEX]          what torch, timm and transformers write
    python make.py --models FOLDER         what keras_models.py and paddle_models.py wrote there as .onnx

Needs torch, timm, transformers, onnxscript, onnx, onnxruntime, onnxsim and onnxslim; the other two scripts need
environments of their own. Texts that differ only in their opset are stored once; `manifest.json` lists the opsets that
each file stands for. No test needs anything of this.
"""
import argparse
import contextlib
import inspect
import io
import json
import logging
import pathlib
import re
import sys
import warnings

import onnx
import torch

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
from onnx_text import to_text  # noqa: E402
from peers import ask_peers  # noqa: E402

import constructs  # noqa: E402  isort: skip
import attention  # noqa: E402,F401  isort: skip
import blocks  # noqa: E402,F401  isort: skip

TORCHSCRIPT, DYNAMO, HALF = (13, 14, 16, 17, 18, 20), (18, 20, 21, 23), {"torchscript": (17,), "dynamo": (20, 23)}
SPELL_NORMS = {"depthwise_bn_relu", "residual_block", "inverted_residual", "conv_transpose_bn_relu"}  # not folded by the exporter
INTEGERS = {"ids": 20, "keep": 2}


def build(thing):
    """The module with small round weights: they keep the text short."""
    torch.manual_seed(0)
    module = thing()
    if not isinstance(module, torch.nn.Module):
        raise TypeError(thing)
    generator = torch.Generator().manual_seed(1)
    for name, value in [*module.named_parameters(), *module.named_buffers()]:
        if value.is_floating_point() and value.numel() and name.rsplit(".")[-1] not in ("mask", "inv_freq", "attn_mask"):
            rounded = torch.randint(-4, 5, value.shape, generator=generator) / 8
            value.data.copy_(rounded.abs() + 0.5 if name.endswith("var") else rounded)
    return module.eval()


def example(shapes):
    generator = torch.Generator().manual_seed(2)
    inputs = {}
    for name, shape in shapes.items():
        if name in INTEGERS:
            inputs[name] = torch.randint(0, INTEGERS[name], shape, generator=generator)
        elif name == "bool_mask":
            inputs[name] = torch.randint(0, 2, shape, generator=generator).bool().logical_or(torch.eye(*shape[-2:]).bool() if
                                                                                          shape[-2] > 1 else torch.tensor(False))
        else:
            inputs[name] = torch.randn(shape, generator=generator)
    return inputs


def dynamic_axes(shapes):
    """Batch everywhere; the length where it is no constant of the construct."""
    axes = {}
    for name, shape in shapes.items():
        axes[name] = {0: "batch"} if shape[0] > 1 else {}
        for axis, extent in enumerate(shape[1:], 1):
            if extent == constructs.S:
                axes[name][axis] = "seq"
            if name == "memory" and axis == 1:
                axes[name][axis] = "memory_len"
            if name.startswith("past") and axis == 2:
                axes[name][axis] = "past_len"
    return axes


def export(module, inputs, axes, opset, dynamo, spell_norms):
    target = io.BytesIO()
    args = tuple(inputs.values())
    if not dynamo:
        options = {"training": torch.onnx.TrainingMode.PRESERVE} if spell_norms else {}
        names = [f"y{i}" for i in range(3 if "past_k" in inputs else 1)]
        torch.onnx.export(module, args, target, input_names=list(inputs), output_names=names, dynamic_axes=axes,
                          opset_version=opset, dynamo=False, **options)
        return onnx.load_from_string(target.getvalue())
    dims = {n: torch.export.Dim.DYNAMIC for n in ("batch", "seq", "memory_len", "past_len")}
    shapes = tuple({a: dims[n] for a, n in axes[name].items()} for name in inputs)
    forward = inspect.signature(module.forward).parameters
    if any(p.kind is p.VAR_POSITIONAL for p in forward.values()):
        shapes = (shapes,)
    program = torch.onnx.export(module, args, input_names=list(inputs), dynamic_shapes=shapes, opset_version=opset, dynamo=True,
                                verbose=False, optimize=True)
    return program.model_proto


def cells(only):
    for name, (thing, shapes, fused, left, half) in constructs.CONSTRUCTS.items():
        for exporter, opsets in (("torchscript", TORCHSCRIPT), ("dynamo", DYNAMO)):
            for opset in opsets:
                if re.search(only, f"{name}/{exporter}-{opset}"):
                    yield name, thing, shapes, exporter, opset, False
            for opset in HALF[exporter] if half else ():
                if re.search(only, f"{name}/{exporter}-{opset}-f16"):
                    yield name, thing, shapes, exporter, opset, True


class Corpus:
    """The manifest and the files beside it."""

    def __init__(self):
        self.file = HERE / "manifest.json"
        empty = {"constructs": {}, "cells": {}, "versions": {}}
        self.data = json.loads(self.file.read_text()) if self.file.exists() else empty
        self.known = {}

    def add(self, name, exporter, opset, half, model):
        """`exporter` wrote `model` for the construct `name`."""
        cell = f"{name}/{exporter}-{opset}{'-f16' if half else ''}"
        got = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        if got != opset:
            return print(f"{cell}: came out as opset {got}", flush=True)
        _, _, fused, left, _ = constructs.CONSTRUCTS[name]
        self.data["constructs"][name] = {"fused": fused, "left": list(left)}
        text = to_text(model)
        key = (name, exporter, half, text.split("\n", 1)[1])
        if key in self.known:
            return self.data["cells"][self.known[key]]["opsets"].append(opset)
        self.known[key] = cell
        (HERE / name).mkdir(exist_ok=True)
        (HERE / f"{cell}.onnxtxt").write_text(text)
        self.data["cells"][cell] = {"opsets": [opset], "nodes": len(model.graph.node), "peers": ask_peers(onnx.parser.parse_model(text))}
        print(cell, len(text), self.data["cells"][cell], flush=True)
        self.write()

    def write(self):
        tools = ("torch", "timm", "transformers", "onnxruntime", "onnxsim", "onnxslim")
        self.data["versions"].update({m: __import__(m).__version__ for m in tools})
        # One line per cell and construct, to be read and diffed.
        parts = []
        for part, entries in sorted(self.data.items()):
            lines = [f"  {json.dumps(name)}: {json.dumps(entry, sort_keys=True)}" for name, entry in sorted(entries.items())]
            parts.append(f" {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n }")
        self.file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def why(error):
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:150]}"


def from_torch(corpus, only):
    for name, thing, shapes, exporter, opset, half in cells(only):
        try:
            module, inputs = build(thing), example(shapes)
            if half:
                module = module.half()
                inputs = {k: v.half() if v.is_floating_point() else v for k, v in inputs.items()}
            with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
                model = export(module, inputs, dynamic_axes(shapes), opset, exporter == "dynamo", name in SPELL_NORMS)
            onnx.checker.check_model(model, full_check=True)
            corpus.add(name, exporter, opset, half, model)
        except Exception as error:  # an exporter that cannot is no cell
            print(f"{name}/{exporter}-{opset}: not exported: {why(error)}", flush=True)


def from_folder(corpus, folder):
    for file in sorted(folder.glob("*/*.onnx")):
        exporter, opset = file.stem.rsplit("-", 1)
        try:
            corpus.add(file.parent.name, exporter, int(opset), False, onnx.load(file))
        except Exception as error:
            print(f"{file}: {why(error)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--models", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    corpus = Corpus()
    if arguments.models:
        from_folder(corpus, arguments.models)
    else:
        from_torch(corpus, arguments.only)
    corpus.write()


if __name__ == "__main__":
    main()
