"""Exports one architecture: export.py NAME FILE dynamo|torchscript. Beside FILE come inputs of two sizes (.0.npz, .1.npz)."""
import pathlib
import sys
import warnings

import numpy as np
import torch
from catalogue import MODELS


def larger(arguments, axes):
    """The same with other extents along the dynamic axes: 3 of a batch, 5 more of others. Whole numbers that keep their extents stay."""
    made = []
    for argument, dynamic in zip(arguments, axes):
        shape = [3 if dynamic.get(i) == "batch" else extent + (5 if i in dynamic else 0) for i, extent in enumerate(argument.shape)]
        whole = torch.ones(shape, dtype=argument.dtype) if dynamic else argument
        made.append(torch.randn(shape) if argument.is_floating_point() else whole)
    return tuple(made)


def learn_statistics(module, arguments):
    """Gives BatchNormalization the means and variances of random inputs, as training does. With those of a new module values fade layer by layer
    until they are denormal, which CPUs take a hundred times as long for."""
    norms = [each for each in module.modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    with torch.no_grad():
        module(*(torch.randn(2, *argument.shape[1:]) if argument.is_floating_point() else argument[:2] for argument in arguments))
    module.eval()


def main():
    name, file, exporter = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    torch.manual_seed(7)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    entry = next(entry for entry in MODELS if entry.name == name)
    module, arguments, axes = entry.make()
    module = module.eval()
    learn_statistics(module, arguments)
    names = [f"input_{i}" for i in range(len(arguments))]
    with torch.no_grad():
        if exporter == "dynamo":
            dynamic = tuple({axis: torch.export.Dim.AUTO for axis in each} for each in axes)
            torch.onnx.export(module, arguments, str(file), dynamo=True, input_names=names, dynamic_shapes=dynamic, external_data=False, verbose=False)
        else:
            torch.onnx.export(module, arguments, str(file), dynamo=False, input_names=names, opset_version=17, dynamic_axes=dict(zip(names, axes)))
    for i, feeds in enumerate((arguments, larger(arguments, axes))):
        np.savez(file.with_suffix(f".{i}.npz"), **{key: value.numpy() for key, value in zip(names, feeds)})


if __name__ == "__main__":
    main()
