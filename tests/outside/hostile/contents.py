"""Bytes that are no model, models that are damaged, names that are no files, and much of everything."""
import dataclasses
import os
import random
import zipfile

from onnx import StringStringEntryProto, TensorAnnotation, TensorProto, helper

from .case import Case, cases_of, floats, info, model, node, number


def whole():
    weights = [floats("w", 4, 3, 3, 3), floats("b", 4)]
    made = model([node("Conv", ["x", "w", "b"], ["c"], pads=[1] * 4), node("Relu", ["c"], ["y"])], weights, inputs=[info("x", [1, 3, 8, 8])])
    return made.SerializeToString()


def varint(value):
    out = b""
    while value >= 0x80:
        out, value = out + bytes([0x80 | value & 0x7f]), value >> 7
    return out + bytes([value])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def archive(folders):
    with zipfile.ZipFile(folders.model / "m.onnx", "w") as out:
        out.writestr("../../outside/secret.bin", "evil")
    return folders.model / "m.onnx"


HEAD = b"\x08\x08" + field(8, b"\x10\x11")
BYTES = {
    "empty": b"", "one byte": b"\x08", "zeros": bytes(5000), "random": random.Random(1).randbytes(5000), "text": b"hello, I am a model\n" * 50,
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(500), "JSON": b'{"graph": {}}', "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "an ORT model": b"\x20\0\0\0ORTM" + bytes(100),
    "a length of 2^63": HEAD + b"\x3a" + varint(2**63), "a length beyond the end": HEAD + b"\x3a\x7f\x00", "a length without end": HEAD + b"\x3a" + b"\xff" * 20,
    "groups that open": HEAD + b"\x3b" * 5000, "groups that close": HEAD + b"\x3c" * 50, "field 0": HEAD + b"\x02\x00" + field(7, b""),
    "messages in messages": HEAD + field(7, b"\x0a\x7f" * 5000), "graph of no content": HEAD + field(7, b""), "two graphs": HEAD + field(7, field(2, b"a")) * 2,
}
BYTES_CODES = {"graph of no content": (0, 3), "two graphs": (0, 3)}
TEXT_OF = ("empty", "text", "a Git LFS pointer")


def cut(part):
    data = whole()
    return data[:len(data) * part // 20]


def flipped(seed):
    data, draw = bytearray(whole()), random.Random(seed)
    for _ in range(3):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def spliced(seed):
    """A part of the file once more in another place."""
    data, draw = whole(), random.Random(1000 + seed)
    a, b, at = sorted(draw.sample(range(len(data)), 2)) + [draw.randrange(len(data))]
    return data[:at] + data[a:b] + data[at:]


def special(make, name="m.onnx"):
    def made(folders):
        make(folders.model / name)
        return folders.model / name
    return made


def unreadable(path):
    path.write_bytes(whole())
    path.chmod(0)


FILES = {
    "a folder": special(lambda p: p.mkdir()), "a pipe": special(os.mkfifo), "a link in a circle": special(lambda p: p.symlink_to("m.onnx")),
    "a link to nothing": special(lambda p: p.symlink_to("none")), "a link to a device": special(lambda p: p.symlink_to("/dev/zero")), "nothing": special(lambda p: None),
    "a name that is too long": special(lambda p: None, "n" * 3000), "a name of escapes": special(lambda p: None, "\x1b[31m\n.onnx"), "an archive": archive,
    "a file for a folder": special(lambda p: p.parent.write_bytes(b""), "file/m.onnx"),
}


def identity(**more):
    return model([node("Relu", ["x"], ["y"])], **more)


def with_metadata():
    made = identity()
    made.metadata_props.extend(StringStringEntryProto(key=f"\x1b{i % 10}", value="v" * 1000) for i in range(1000))
    made.graph.quantization_annotation.append(TensorAnnotation(tensor_name="nowhere", quant_parameter_tensor_names=[StringStringEntryProto(key="k", value="also nowhere")]))
    return made


def attributes(count):
    made = identity()
    made.graph.node[0].op_type, made.graph.node[0].domain = "Any", "any"
    made.opset_import.append(helper.make_opsetid("any", 1))
    made.graph.node[0].attribute.extend(helper.make_attribute(f"a{i}", 1) for i in range(count))
    return made


def versions(ir=8, opset=17):
    made = identity()
    made.ir_version, made.opset_import[0].version = ir, opset
    return made


def kinds(*types):
    """Inputs that are no tensors."""
    given = [helper.make_value_info(f"in{i}", t) for i, t in enumerate(types)]
    return model([node("Relu", ["x"], ["y"])], inputs=[info("x", [2, 4]), *given])


TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
deep = TENSOR
for _ in range(20):
    deep = helper.make_sequence_type_proto(deep)
MUCH = {
    "Sum of 20000 inputs": model([node("Sum", ["x"] * 20_000, ["y"])]), "20000 readers": model([*[node("Relu", ["x"], [f"y{i}"]) for i in range(2000)], node("Sum", [f"y{i}" for i in range(2000)], ["y"])]),
    "10000 attributes": attributes(10_000), "5000 inputs": identity(inputs=[info("x", [2, 4])] + [info(f"x{i}", [1]) for i in range(5000)]),
    "3000 constants": identity(constants=[floats(f"w{i}", 1) for i in range(3000)]), "names that could be made": model([node("Relu", ["x" if i == 0 else f"Relu_out_{i - 1}"], [f"Relu_out_{i}"], name=f"Relu_{i}") for i in range(1000)], outputs=[info("Relu_out_999")]),
    "metadata": with_metadata(), "sequences": kinds(helper.make_sequence_type_proto(TENSOR), deep), "optionals": kinds(helper.make_optional_type_proto(TENSOR)),
    "maps": kinds(helper.make_map_type_proto(TensorProto.INT64, TENSOR)), "a type of nothing": kinds(helper.make_tensor_type_proto(0, None), helper.make_tensor_type_proto(77, [1])),
    "a sequence made": model([node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])], [number("i", 2**62)]),
    "an optional made": model([node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["y"])]),
    "a domain nobody knows": model([node("Relu", ["x"], ["y"], domain="\x1b[31m")], domains=["\x1b[31m"]), "a domain not imported": model([node("Relu", ["x"], ["y"], domain="far")]),
    "IR 999": versions(ir=999), "opset 999": versions(opset=999), "opset -1": versions(opset=-1), "opset 2^62": versions(opset=2**62), "opset 1": versions(opset=1),
    "IR 2^62": versions(ir=2**62),
}
SHAPES = ["x", "x:", ":1,2", "x:-1,4", "x:2,x", "x:99999999999999999999,4", "x:2,4,1", "y:2,4", "x:2,5", "x:2,4,", "x:" + "1," * 5000 + "1", "\x1b[31m:1"]
WIDE = ["x:4611686018427387904,4611686018427387904", "x:1099511627776,4", "x:0,0"]
LIMITS = [("--max-memory", "lots"), ("--max-memory", "-5"), ("--max-memory", "nan"), ("--timeout", "-1"), ("--timeout", "nan"), ("--max-nodes", "0"), ("--max-depth", "x")]


def open_input():
    return identity(inputs=[info("x", ["a", "b"])])


CASES = {f"bytes: {name}": Case(lambda f, d=data: d, codes=BYTES_CODES.get(name, (3,))) for name, data in BYTES.items()}
CASES |= {f"cut at {i} of 20": Case(lambda f, i=i: cut(i)) for i in range(20)}
CASES |= {f"flipped bits {i}": Case(lambda f, i=i: flipped(i), codes=(0, 3, 4)) for i in range(20)}
CASES |= {f"spliced {i}": Case(lambda f, i=i: spliced(i), codes=(0, 3, 4)) for i in range(10)}
CASES |= {f"file: {name}": Case(make) for name, make in FILES.items()}
# A folder is taken for many models: that it holds none is a mistake of the command line.
CASES["file: a folder"] = Case(FILES["a folder"], codes=(2,))
CASES |= {f"much: {name}": case for name, case in cases_of(MUCH, codes=(0, 3, 4)).items()}
CASES |= {f"shape: {text[:40]}": Case(lambda f: identity(), codes=(2,), flags=("--input-shapes", text)) for text in SHAPES}
CASES |= {f"shape: {text}": Case(lambda f: open_input(), codes=(0, 2, 3, 7), flags=("--input-shapes", text, "--max-memory", "500M"), memory=1500, seconds=3) for text in WIDE}
CASES |= {f"limit: {' '.join(flags)}": Case(lambda f: identity(), codes=(2,), flags=flags) for flags in LIMITS}
if os.geteuid():
    CASES["file: unreadable"] = Case(special(unreadable))
# Fourteen feeds of as many tensors each: just under a second where nothing else runs.
CASES["much: 5000 inputs"] = dataclasses.replace(CASES["much: 5000 inputs"], seconds=2)
