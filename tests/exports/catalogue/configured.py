"""Models of transformers: a class, a config made smaller, arguments by name."""
from .entry import BATCH, Entry, first_tensor, wrapped

# Two layers show what a layer is made of; the widths are those of the models that hubs serve.
LAYERS = {"num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "n_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
          "num_decoder_layers": 2, "vocab_size": 8192, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}


def config(name, **settings):
    import transformers

    made = getattr(transformers, name)()
    known = made.to_dict()
    for key, value in {**LAYERS, **settings}.items():
        if key in known or key in made.attribute_map:
            setattr(made, key, value)
    made.use_cache = False
    return made


def all_experts(net):
    """Each expert of a mixture is asked, of whatever rows chose it. No exporter takes the loop over those that some row chose."""
    import functools

    import torch

    def forward(block, states):
        rows = states.reshape(-1, states.shape[-1])
        logits = block.gate(rows)
        weights, chosen = logits.softmax(-1).topk(block.top_k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        total = torch.zeros_like(rows)
        for i, expert in enumerate(block.experts):
            row, place = torch.where(chosen == i)
            total = total.index_add(0, row, expert(rows[row]) * weights[row, place, None])
        return total.reshape(states.shape), logits
    for block in net.modules():
        if hasattr(block, "experts") and hasattr(block, "gate"):
            block.forward = functools.partial(forward, block)


def transformers(name, inputs, kind="language", settings=None, config_name=None, part="", exporter="", prepare=None):
    """`inputs()`: arguments by name, and their dynamic axes. `part`: the one module of the model that is exported; `prepare(net)` changes the model first."""
    def make():
        import transformers as library

        wanted = config(config_name or name.replace("Model", "Config"), **(settings or {}))
        net = getattr(library, name)._from_config(wanted)
        if prepare:
            prepare(net)
        made, axes = inputs()

        def call(net, *arguments):
            return net(**dict(zip(made, arguments)))
        return wrapped(net.get_submodule(part), call, first_tensor), tuple(made.values()), tuple(axes.get(key, {}) for key in made)
    return Entry(f"transformers {name} {part}".strip(), kind, make, exporter)


WORDS = {0: "batch", 1: "sequence"}


def words(mask=True, length=32):
    def inputs():
        import torch

        made = {"input_ids": torch.randint(3, 8000, (2, length))}
        if mask:
            made["attention_mask"] = torch.ones(2, length, dtype=torch.int64)
        return made, {key: WORDS for key in made}
    return inputs


def translation(first, length=16):
    """What an encoder reads, and words for the decoder."""
    def inputs():
        import torch

        made, axes = first()
        made["decoder_input_ids"] = torch.randint(3, 8000, (next(iter(made.values())).shape[0], length))
        return made, {**axes, "decoder_input_ids": {0: "batch", 1: "target"}}
    return inputs


def features(shape, key, axes=BATCH):
    def inputs():
        import torch

        return {key: torch.randn(*shape)}, {key: axes}
    return inputs


def pixels(size=224, key="pixel_values"):
    return features((1, 3, size, size), key)


def wave(seconds=1, key="input_values"):
    return features((1, 16000 * seconds), key, {0: "batch", 1: "samples"})
