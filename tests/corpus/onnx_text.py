"""A model as the text that docs/text.md describes: onnx's own printer, with what it leaves out filled in."""
import re

import onnx
from onnx import TensorProto, helper, numpy_helper

BITS = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16}


def plain_names(model):
    """Letters, digits and underscores: such names need no quotes."""
    taken, names = set(), {"": ""}

    def plain(name):
        if name not in names:
            short = re.sub(r"\W+", "_", name).strip("_") or "v"
            short = "n" + short if short[0].isdigit() else short
            while short in taken:
                short += "_"
            taken.add(short)
            names[name] = short
        return names[name]

    def visit(graph):
        for value in [*graph.input, *graph.output]:
            value.name = plain(value.name)
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param and not re.fullmatch(r"[A-Za-z_]\w*", dim.dim_param):
                    dim.ClearField("value")
        for tensor in graph.initializer:
            tensor.name = plain(tensor.name)
        del graph.value_info[:]
        for node in graph.node:
            node.name = node.doc_string = ""
            del node.metadata_props[:]
            node.input[:], node.output[:] = map(plain, node.input), map(plain, node.output)
            for attribute in node.attribute:
                attribute.doc_string = ""
                if attribute.type == onnx.AttributeProto.GRAPH:
                    visit(attribute.g)

    visit(model.graph)


def unpacked(tensor):
    """The numbers in the typed field instead of raw bytes, which the printer skips for most types."""
    array = numpy_helper.to_array(tensor)
    if tensor.data_type == TensorProto.FLOAT16:
        array = array.view("uint16")
    copy = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    if tensor.data_type in BITS:
        copy.int32_data.extend(int(v) for v in array.ravel())
    elif tensor.data_type == TensorProto.STRING:
        copy.string_data.extend(tensor.string_data)
    else:
        return helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, array.ravel().tolist())
    return copy


def to_text(model):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    model.producer_name = model.producer_version = model.doc_string = ""
    del model.metadata_props[:]
    model.graph.name, model.graph.doc_string = "main_graph", ""
    plain_names(model)
    filled = {}

    def unpack(graph):
        lifted = []
        for node in list(graph.node):
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    unpack(attribute.g)
                elif attribute.type == onnx.AttributeProto.TENSOR:
                    tensor = unpacked(attribute.t)
                    if tensor.data_type == TensorProto.FLOAT16 and node.op_type == "Constant":  # the printer gives dots
                        tensor.name = node.output[0]
                        lifted.append(tensor)
                        graph.node.remove(node)
                        break
                    tensor.name = ""
                    attribute.t.CopyFrom(tensor)
        tensors = [unpacked(t) for t in graph.initializer] + lifted
        del graph.initializer[:]
        for tensor in tensors:
            if tensor.data_type == TensorProto.FLOAT16:
                filled[tensor.name] = ", ".join(map(str, tensor.int32_data))
            graph.initializer.append(tensor)

    unpack(model.graph)
    text = onnx.printer.to_text(model)
    text = re.sub(r"(float16(?:\[[^\]]*\])? (\w+) =\s*)\.\.\.", lambda m: m[1] + "{" + filled[m[2]] + "}", text)
    head, _, rest = text.partition("\nmain_graph") if "\nmain_graph" in text else text.partition("main_graph")
    versions = ", ".join(f'"{o.domain}" : {o.version}' for o in model.opset_import if o.domain in ("", "ai.onnx") or model.functions)
    text = f"<ir_version: {min(model.ir_version, 10)}, opset_import: [{versions}]>\nmain_graph{rest}"
    parsed = onnx.parser.parse_model(text)
    onnx.checker.check_model(parsed, full_check=True)
    return re.sub(r"[ \t]+\n", "\n", text).rstrip() + "\n"
