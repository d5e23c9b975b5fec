"""Sets of inputs, as users have them, one by one to the library."""
from __future__ import annotations

import ctypes
import operator
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from . import errors
from ._library import checked, encoded, library

_DTYPES = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
           "float64": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16}


def array(value: Any) -> np.ndarray:
    """Whatever holds numbers (arrays, tensors of torch on any device, lists) or texts as a dense array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = _bfloat16(value) if str(value.dtype) == "torch.bfloat16" else value.numpy()
    found = np.asarray(value, order="C")
    texts = found.dtype.kind in "OT" and all(isinstance(text, str) for text in found.flat)
    return found.astype(np.str_) if texts else found


def _bfloat16(tensor: Any) -> np.ndarray:
    """The type of ml_dtypes stands for the one that numpy does not have."""
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("a tensor in bfloat16: pip install ml_dtypes, which has that type for numpy") from None
    import torch
    found: np.ndarray = tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return found


def shape_text(name: str, shape: Sequence[int]) -> str:
    """The shape of an input in the library's words: "x:1,3,224,224"."""
    try:
        return f"{name}:{','.join(str(operator.index(extent)) for extent in shape)}"
    except TypeError:
        raise errors.UsageError(f"input_shapes: '{name}' takes whole numbers, not {shape!r}") from None


def named(sample: Any, names: Sequence[str]) -> dict[str, np.ndarray]:
    """One sample by input name. Of tuples and lists, what goes beyond the inputs (labels) is left out."""
    if isinstance(sample, Mapping):
        return {str(name): array(value) for name, value in sample.items()}
    parts = sample if isinstance(sample, (tuple, list)) else (sample,)
    return {name: array(part) for name, part in zip(names, parts)}


_END: Any = object()


class Samples:
    """Samples by index. A list is used as it is, what can be iterated once is kept in memory, and anything else is
    iterated again whenever an earlier sample is wanted, which must give the same samples again."""

    def __init__(self, data: Any, what: str):
        self._what = what
        if isinstance(data, Mapping):
            data = [data]  # one sample
        elif isinstance(data, (np.ndarray, bytes)) or hasattr(data, "detach"):
            raise TypeError(f"{what}: expected samples (dicts by input name, or tuples), found one {type(data).__name__}")
        elif hasattr(data, "get_next"):  # ONNX Runtime's CalibrationDataReader
            data = list(iter(data.get_next, None))
        elif isinstance(data, Iterator):
            data = list(data)
        self._data = data
        self._iterator: Optional[Iterator[Any]] = None
        self._next = 0
        self._sums: dict[int, int] = {}

    def at(self, index: int) -> Any:
        """The sample, or _END behind the last one."""
        if isinstance(self._data, Sequence):
            return self._data[index] if index < len(self._data) else _END
        if self._iterator is None or index < self._next:
            self._iterator, self._next = iter(self._data), 0
        while True:
            sample = next(self._iterator, _END)
            self._next += 1
            if sample is _END or self._next > index:
                return sample

    def put(self, index: int, target: int) -> int:
        """Copies a sample into the library's; the answer of modelflow_next_sample."""
        sample = self.at(index)
        if sample is None or sample is _END and index == 0:
            raise errors.UsageError(f"{self._what}: " + ("there is no sample" if sample is _END else f"sample {index} is None"))
        if sample is _END:
            return 0
        names = [name.decode() for name in iter(_Names(target), None)]
        feeds = named(sample, names)
        self._check_same(index, feeds)
        for name, value in feeds.items():
            put(target, name, value)
        return 1

    def _check_same(self, index: int, feeds: dict[str, np.ndarray]) -> None:
        if isinstance(self._data, Sequence):
            return
        total = 0
        for name in sorted(feeds):
            total = zlib.crc32(feeds[name].reshape(-1).view(np.uint8).data, total) if feeds[name].size else total
        if self._sums.setdefault(index, total) != total:
            raise ValueError(f"{self._what}: sample {index} is another one when iterated again; give samples in a fixed "
                             "order (a DataLoader with shuffle=False), or a list of them")


class _Names:
    """The model's inputs, one at a call."""

    def __init__(self, sample: int):
        self._sample, self._position = sample, -1

    def __call__(self) -> Optional[bytes]:
        self._position += 1
        name: Optional[bytes] = library().modelflow_sample_input(self._sample, self._position)
        return name


def put(target: int, name: str, value: np.ndarray) -> None:
    """Copies one input into a sample of the library. TypeError for what it takes no data of."""
    dims = (ctypes.c_int64 * value.ndim)(*value.shape)
    if value.dtype.kind in "US":
        texts = [text.encode() if isinstance(text, str) else text for text in value.reshape(-1).tolist()]
        checked("modelflow_sample_set_strings", target, encoded(name, "input"), dims, value.ndim, (ctypes.c_char_p * len(texts))(*texts))
        return
    if value.dtype.name not in _DTYPES:
        raise TypeError(f"input '{name}': data of the type {value.dtype} cannot be given")
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    data = value.ctypes.data if value.size else ctypes.addressof(ctypes.c_char())
    checked("modelflow_sample_set", target, encoded(name, "input"), _DTYPES[value.dtype.name], dims, value.ndim, data)
