"""all-MiniLM-L6-v2 from a package's own files: weights and vocabulary read here, the graph written as exporters do."""
import json
import re
import struct
import unicodedata

import numpy as np
import onnx
from onnx import TensorProto
from onnx_writer import Writer


def safetensors(path):
    """Name -> array. The format: length of the header, a header in JSON, the bytes."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    header.pop("__metadata__", None)
    kinds = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    return {name: np.frombuffer(data[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


class Bert:
    """Writes the encoder of a BERT checkpoint: the norm after each residual, GELU with Erf, an additive mask."""

    def __init__(self, weights, config):
        self.w, self.writer = weights, Writer()
        self.heads, self.epsilon = config["num_attention_heads"], config["layer_norm_eps"]
        self.width, self.layers = config["hidden_size"], config["num_hidden_layers"]

    def weight(self, name, transposed=False):
        value = self.w[name]
        return self.writer.constant(np.ascontiguousarray(value.T) if transposed else value, name)

    def linear(self, x, name):
        return x @ self.weight(f"{name}.weight", True) + self.weight(f"{name}.bias")

    def norm(self, x, name):
        return x.layer_norm(self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), self.epsilon)

    def ints(self, *values):
        return self.writer.constant(np.array(values, np.int64))

    def embed(self, ids, types):
        node = self.writer.node
        length = node("Slice", node("Shape", ids), self.ints(1), self.ints(2))
        places = node("Slice", self.weight("embeddings.position_embeddings.weight"), self.ints(0), length, self.ints(0))
        words = node("Gather", self.weight("embeddings.word_embeddings.weight"), ids)
        kinds = node("Gather", self.weight("embeddings.token_type_embeddings.weight"), types)
        return self.norm(words + kinds + places, "embeddings.LayerNorm")

    def attention(self, x, name, mask):
        size = self.width // self.heads

        def split(part, *axes):
            return self.linear(x, f"{name}.self.{part}").reshape(0, 0, self.heads, size).transpose(*axes)

        scores = split("query", 0, 2, 1, 3) @ split("key", 0, 2, 3, 1) * float(1 / np.sqrt(size)) + mask
        mixed = scores.softmax() @ split("value", 0, 2, 1, 3)
        out = self.linear(mixed.transpose(0, 2, 1, 3).reshape(0, 0, self.width), f"{name}.output.dense")
        return self.norm(out + x, f"{name}.output.LayerNorm")

    def sentence(self, x, mask):
        """Mean of the tokens that are there, at length one."""
        node, number = self.writer.node, self.writer.constant
        kept = node("Cast", node("Unsqueeze", mask, self.ints(2)), to=TensorProto.FLOAT)
        total = node("ReduceSum", x * kept, self.ints(1), keepdims=0)
        count = node("Clip", node("ReduceSum", kept, self.ints(1), keepdims=0), number(np.float32(1e-9)))
        mean = node("Div", total, count)
        length = node("Clip", node("ReduceL2", mean, axes=[1], keepdims=1), number(np.float32(1e-12)))
        return node("Div", mean, length)

    def model(self):
        node, symbol = self.writer.node, self.writer.input
        ids, mask, types = symbol("input_ids"), symbol("attention_mask"), symbol("token_type_ids")
        seen = node("Cast", node("Unsqueeze", mask, self.ints(1, 2)), to=TensorProto.FLOAT)
        hidden_away = node("Sub", self.writer.constant(np.float32(1)), seen)
        additive = node("Mul", hidden_away, self.writer.constant(np.finfo(np.float32).min))
        x = self.embed(ids, types)
        for i in range(self.layers):
            name = f"encoder.layer.{i}"
            x = self.attention(x, f"{name}.attention", additive)
            wide = self.linear(x, f"{name}.intermediate.dense").gelu_erf()
            x = self.norm(self.linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")
        ids = {name: (TensorProto.INT64, ["batch", "sequence"])
               for name in ("input_ids", "attention_mask", "token_type_ids")}
        return self.writer.model(ids, (self.sentence(x, mask), ["batch", self.width]))


def export(folder, path):
    """`folder`: config.json and model.safetensors as the package ships them."""
    config = json.loads((folder / "config.json").read_text())
    onnx.save(Bert(safetensors(folder / "model.safetensors"), config).model(), path)
    return path


class Tokenizer:
    """WordPiece on lower-cased text: words and single punctuation marks, then the longest known pieces."""

    def __init__(self, vocabulary):
        self.ids = {word: i for i, word in enumerate(vocabulary.read_text(encoding="utf-8").split("\n"))}

    def pieces(self, word):
        start, found = 0, []
        while start < len(word):
            end = next((e for e in range(len(word), start, -1) if ("##" * (start > 0)) + word[start:e] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            found.append(("##" * (start > 0)) + word[start:end])
            start = end
        return found

    def __call__(self, text):
        plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        words = re.findall(r"\w+|[^\w\s]", plain)
        return [self.ids[p] for p in ["[CLS]", *(p for w in words for p in self.pieces(w)), "[SEP]"]]

    def batch(self, texts):
        """Padded to the longest."""
        rows = [self(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
        mask = np.zeros_like(ids)
        for i, row in enumerate(rows):
            ids[i, :len(row)], mask[i, :len(row)] = row, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
