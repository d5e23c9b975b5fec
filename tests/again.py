"""What the coverage test and tools/exports have alike: results that are optimized again, and their ops counted."""
import collections
import re

import onnx


def forget_values(file):
    """The model without anything that it says of its values; weights beside it stay there, of which there may be more than 2 GiB."""
    model = onnx.load(file, load_external_data=False)
    del model.graph.value_info[:]
    onnx.save(model, file)


def by_kind(ops):
    """Ops by name: MatMul and MatMul_1 are two bodies of one op."""
    counts = collections.Counter()
    for op, count in ops.items():
        counts[re.sub(r"_\d+$", "", op) if op.startswith("modelflow.") else op] += count
    return counts
