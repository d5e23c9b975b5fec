"""What an entry of the catalogue is, and what entries are made with."""
import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Entry:
    """`make()`: (module, arguments in order, axes of each that are dynamic: {axis: symbol}). Torch is imported no earlier."""

    name: str
    kind: str  # vision, language, sound, other
    make: Callable
    exporter: str = ""  # the only one that takes it: dynamo or torchscript


BATCH = {0: "batch"}


def tensors(result):
    """All tensors of what a module gives, in order."""
    if hasattr(result, "shape"):
        return [result]
    parts = result.values() if hasattr(result, "values") else result
    return [tensor for part in parts if part is not None for tensor in tensors(part)]


def first_tensor(result):
    """Hidden states, logits, a sample."""
    return tensors(result)[0]


def wrapped(net, call=lambda net, *arguments: net(*arguments), pick=first_tensor):
    """A module of up to four arguments in order, as both exporters want it, that gives what `pick` takes of `call(net, *arguments)`."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, first, second=None, third=None, fourth=None):
            return pick(call(self.net, *(each for each in (first, second, third, fourth) if each is not None)))
    return Wrapped()


def random_of(build, *shapes, axes=BATCH):
    """`make` of a module that takes random numbers of these shapes, all with the same dynamic axes."""
    def make():
        import torch

        return wrapped(build()), tuple(torch.randn(*shape) for shape in shapes), (axes,) * len(shapes)
    return make


def image_of(build, size, axes=BATCH):
    """`make` of a module that takes a picture."""
    return random_of(build, (1, 3, size, size), axes=axes)
