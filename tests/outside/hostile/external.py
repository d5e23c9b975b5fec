"""External data that leads elsewhere, or does not hold what the model says."""
import os

from onnx import SparseTensorProto, TensorProto, TrainingInfoProto, helper

from .case import Case, floats, graph, info, model, node


def external(name="w", location="w.bin", dims=(4,), dtype=TensorProto.FLOAT, **entries):
    tensor = TensorProto(name=name, data_type=dtype, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def adding(tensor):
    return model([node("Add", ["x", "w"], ["y"])], [tensor])


def located(location, prepare=lambda folders: None, **entries):
    def make(folders):
        (folders.model / "w.bin").write_bytes(bytes(16))
        prepare(folders)
        return adding(external(location=location.format(outside=folders.outside), **entries))
    return make


def link(name, target):
    return lambda folders: os.symlink(target.format(outside=folders.outside), folders.model / name)


LEADS_OUT = {
    "parent": located("../outside/secret.bin"),
    "parent behind a folder": located("a/../../outside/secret.bin", lambda f: (f.model / "a").mkdir()),
    "parent behind a dot": located("./../outside/secret.bin"),
    "parent with backslashes": located("..\\outside\\secret.bin"),
    "absolute": located("{outside}/secret.bin"),
    "absolute, of a device": located("/dev/zero"),
    "absolute of another system": located("C:\\outside\\secret.bin"),
    "link": located("link.bin", link("link.bin", "../outside/secret.bin")),
    "absolute link": located("link.bin", link("link.bin", "{outside}/secret.bin")),
    "link to a device": located("link.bin", link("link.bin", "/dev/zero")),
    "link in a circle": located("link.bin", link("link.bin", "link.bin")),
    "folder that is a link": located("folder/secret.bin", link("folder", "../outside")),
    "folder that is a link, deeper": located("a/b/secret.bin", lambda f: ((f.model / "a").mkdir(), os.symlink(f.outside, f.model / "a/b"))),
    "hard link": located("hard.bin", lambda f: os.link(f.outside / "secret.bin", f.model / "hard.bin")),
    "pipe": located("pipe", lambda f: os.mkfifo(f.model / "pipe")),
    "folder": located("folder", lambda f: (f.model / "folder").mkdir()),
    "nothing there": located("none.bin"),
    "empty location": located(""),
    "no location": lambda f: adding(external(location=None)),
    "long location": located("w" * 100_000),
    "address in memory": located("*/_ORT_MEM_ADDR_/*", offset=140000000000000, length=16),
    "other base": located("secret.bin", basepath="../outside"),
}

WRONG_NUMBERS = {
    "offset behind the end": {"offset": 4},
    "offset of 2^64-1": {"offset": 2**64 - 1},
    "offset and length that wrap": {"offset": 2**64 - 8, "length": 16},
    "offset beyond 64 bits": {"offset": 2**64},
    "negative offset": {"offset": -1},
    "negative length": {"length": -16},
    "length beyond 64 bits": {"length": 10**30},
    "length of 2^63": {"length": 2**63},
    "length that is not the tensor's": {"length": 12},
    "offset in words": {"offset": "all"},
    "hexadecimal offset": {"offset": "0x0"},
    "offset with a space": {"offset": " 0"},
    "empty offset": {"offset": ""},
}


def zero_in_location(folders):
    return adding(external(location="w.bin\0../secret.bin"))


def shorter(folders):
    (folders.model / "w.bin").write_bytes(bytes(15))
    return adding(external())


def vanishing(folders):
    (folders.model / "w.bin").write_bytes(b"")
    return adding(external())


LEAK = {"location": "../outside/secret.bin", "dims": (4,)}


def sparse(values, indices):
    return SparseTensorProto(values=values, indices=indices, dims=[8])


def indices(**entries):
    return external("i", dtype=TensorProto.INT64, **entries) if entries else helper.make_tensor("i", TensorProto.INT64, [4], [0, 1, 2, 3])


def sparse_initializer(of_indices):
    values, places = (floats("w", 4), indices(**LEAK)) if of_indices else (external(**LEAK), indices())
    return model([node("Identity", ["x"], ["y"])], sparse_initializer=[sparse(values, places)])


def constant(**attribute):
    return node("Constant", [], ["w"], **attribute)


def branch(tensor):
    made = model([node("If", ["c"], ["y"], then_branch=graph([node("Identity", ["w"], ["t"])], [tensor], [], [info("t")]),
                       else_branch=graph([node("Identity", ["v"], ["e"])], [floats("v", 4)], [], [info("e")]))], inputs=[info("c", [], TensorProto.BOOL)])
    return made


def function(nodes, attribute_protos=()):
    return helper.make_function("local", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 17)], [], attribute_protos)


def in_a_function(folders):
    body = function([constant(value=external("c", **LEAK)), node("Add", ["a", "w"], ["b"])])
    return model([node("F", ["x"], ["y"], domain="local")], functions=[body], domains=["local"])


def in_a_default(folders):
    default = helper.make_attribute("value", external("c", **LEAK))
    reference = constant()
    reference.attribute.add(name="value", type=default.type, ref_attr_name="value")
    body = function([reference, node("Add", ["a", "w"], ["b"])], [default])
    return model([node("F", ["x"], ["y"], domain="local")], functions=[body], domains=["local"])


def in_training(folders):
    made = model([node("Relu", ["x"], ["y"])])
    step = graph([constant(sparse_value=sparse(external(**LEAK), indices()))], inputs=[], outputs=[info("w")])
    made.training_info.append(TrainingInfoProto(algorithm=step))
    return made


def in_a_hidden_graph(folders):
    made = model([node("Any", ["x"], ["y"], domain="any")], domains=["any"])
    attribute = made.graph.node[0].attribute.add(name="more", type=12)  # SPARSE_TENSORS, and a graph beside it
    attribute.g.CopyFrom(graph([constant(value=external("c", **LEAK))], inputs=[], outputs=[info("w")]))
    return made


def strange_type(folders):
    return model([node("Relu", ["x"], ["y"])], [external(dtype=99, **LEAK)])


PLACES = {
    "in sparse values": lambda f: sparse_initializer(False),
    "in sparse indices": lambda f: sparse_initializer(True),
    "in a Constant": lambda f: model([constant(value=external("c", **LEAK)), node("Add", ["x", "w"], ["y"])]),
    "in a sparse Constant": lambda f: model([constant(sparse_value=sparse(external(**LEAK), indices())), node("Add", ["x", "w"], ["y"])]),
    "in a branch": lambda f: branch(external(**LEAK)),
    "in a function": in_a_function,
    "in the default of an attribute": in_a_default,
    "in training info": in_training,
    "in a graph beside the attribute": in_a_hidden_graph,
    "in a tensor of no known type": strange_type,
}


def cache(folders, data="blobs"):
    """As hubs lay models out: a folder of links into a store of contents."""
    root = folders.model / "hub"
    (root / "blobs").mkdir(parents=True)
    (root / "snapshots/1").mkdir(parents=True)
    (root / "blobs/abc").write_bytes(adding(external()).SerializeToString())
    (root / "blobs/def").write_bytes(bytes(16))
    os.symlink("../../blobs/abc", root / "snapshots/1/m.onnx")
    os.symlink("../../blobs/def" if data == "blobs" else folders.outside / "secret.bin", root / "snapshots/1/w.bin")
    return root / "snapshots/1/m.onnx"


FINE = {
    "unknown keys": located("w.bin", checksum="0" * 40, colour="red"),
    "the same key twice": lambda f: ((f.model / "w.bin").write_bytes(bytes(16)), adding(twice()))[1],
    "links of a hub": cache,
    "the model itself": lambda f: adding(external(location="m.onnx")),
}


def twice():
    tensor = external(location="../outside/secret.bin")
    tensor.external_data.add(key="location", value="w.bin")
    return tensor


CASES = {f"external: {name}": Case(make, word="external data") for name, make in LEADS_OUT.items()}
CASES |= {f"external: {name}": Case(located("w.bin", **entries), word="external data") for name, entries in WRONG_NUMBERS.items()}
CASES |= {f"external {name}": Case(make, word="'..'") for name, make in PLACES.items()}
CASES |= {f"external: {name}": Case(make, codes=(0,)) for name, make in FINE.items()}
CASES |= {"external: zero byte": Case(zero_in_location, word="zero byte"), "external: shorter": Case(shorter, word="15 bytes"),
          "external: empty file": Case(vanishing, word="0 bytes"),
          "external: links of a hub that lead out": Case(lambda f: cache(f, "outside"), word="leads out")}
