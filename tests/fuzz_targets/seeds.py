"""Where fuzzing starts from: the models of the test cases in text, the hostile files, small archives, and a dictionary of
the names in the format. Usage: seeds.py FOLDER"""
import hashlib
import io
import pathlib
import re
import sys
import tempfile

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "outside"))
from hostile import contents, external, functions, operators, tensors  # noqa: E402
from hostile.case import Folders  # noqa: E402

LARGEST = 20_000


def put(folder, data):
    folder.mkdir(parents=True, exist_ok=True)
    if 0 < len(data) <= LARGEST:
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


def hostile_models():
    with tempfile.TemporaryDirectory() as name:
        for i, case in enumerate((external.CASES | functions.CASES | tensors.CASES | operators.CASES | contents.CASES).values()):
            folders = Folders(pathlib.Path(name) / f"{i}/model", pathlib.Path(name) / f"{i}/outside")
            folders.model.mkdir(parents=True)
            folders.outside.mkdir()
            (folders.outside / "secret.bin").write_bytes(bytes(16))
            made = case.make(folders)
            if isinstance(made, onnx.ModelProto):
                yield made.SerializeToString()
            elif isinstance(made, bytes):
                yield made


def texts():
    """The models in front of each "=>" of the cases of passes."""
    for file in sorted((HERE.parent / "passes").glob("*.onnxtxt")):
        for case in re.split(r"^-- .*\n", file.read_text(), flags=re.M)[1:]:
            yield re.split(r"^(?:=>|miss:)", case, flags=re.M)[0].strip()


def archives():
    arrays = [np.arange(6, dtype=t).reshape(2, 3) for t in (np.float32, np.int64, np.uint8, np.float16)]
    for save in (np.savez, np.savez_compressed):
        data = io.BytesIO()
        save(data, x=arrays[0], y=arrays[1])
        yield data.getvalue()
    for array in arrays:
        data = io.BytesIO()
        np.save(data, array)
        yield data.getvalue()


def words():
    schemas = onnx.defs.get_all_schemas()
    names = {s.name for s in schemas} | {a for s in schemas for a in s.attributes} | {"modelflow", "ai.onnx", "location", "offset", "length", "float", "int64", "=>"}
    return "".join(f'"{name}"\n' for name in sorted(names))


def main():
    folder = pathlib.Path(sys.argv[1])
    for data in hostile_models():
        for target in ("read_model", "infer", "passes"):
            put(folder / target, data)
    for text in texts():
        for target in ("read_text", "infer", "passes"):
            put(folder / target, text.encode())
    for data in archives():
        put(folder / "archive", data)
    draw = np.random.default_rng(1)
    for _ in range(200):
        put(folder / "kernels", draw.bytes(64))
    for found in HERE.glob("found/*/*"):
        models = ("read_model", "infer", "passes")
        for target in models if found.parent.name in models else (found.parent.name,):
            put(folder / target, found.read_bytes())
    (folder / "words.dict").write_text(words())


main()
