"""Tables, series of numbers and graphs: TabNet, FT-Transformer, DLRM, entity embeddings, PatchTST and torch_geometric."""
from .configured import features, transformers
from .entry import BATCH, Entry, wrapped


def tabnet():
    import torch
    from pytorch_tabnet.tab_network import TabNet

    return wrapped(TabNet(16, 2, group_attention_matrix=torch.eye(16))), (torch.randn(8, 16),), (BATCH,)


def ft_transformer():
    import rtdl
    import torch

    net = rtdl.FTTransformer.make_default(n_num_features=10, cat_cardinalities=[5, 9], n_blocks=2, d_out=2, last_layer_query_idx=None)
    return wrapped(net), (torch.randn(8, 10), torch.zeros(8, 2, dtype=torch.int64)), (BATCH, BATCH)


def perceptron(*widths):
    import torch.nn as nn

    return nn.Sequential(*[layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU())][:-1])


def dlrm():
    """For Criteo's clicks (arXiv 1906.00091): 13 numbers, 26 categories, products of all pairs."""
    import torch
    import torch.nn as nn

    class Dlrm(nn.Module):
        def __init__(self):
            super().__init__()
            self.numbers, self.top = perceptron(13, 512, 256, 64, 16), perceptron(16 + 27 * 26 // 2, 512, 256, 1)
            self.tables = nn.ModuleList(nn.Embedding(1000, 16) for _ in range(26))

        def forward(self, numbers, categories):
            x = self.numbers(numbers)
            rows = torch.stack([x] + [table(categories[:, i]) for i, table in enumerate(self.tables)], 1)
            products = rows @ rows.transpose(1, 2)
            i, j = torch.tril_indices(27, 27, -1)
            return torch.sigmoid(self.top(torch.cat([x, products[:, i, j]], 1)))

    return wrapped(Dlrm()), (torch.randn(8, 13), torch.randint(0, 1000, (8, 26))), (BATCH, BATCH)


def entity_embeddings():
    """A row of a table as fastai's TabularModel takes it: categories embedded (arXiv 1604.06737), numbers normalized, two layers."""
    import torch
    import torch.nn as nn

    class Tabular(nn.Module):
        def __init__(self, categories=(10, 17, 8, 16, 7, 6, 3, 43)):
            super().__init__()
            widths = [min(50, (n + 1) // 2) for n in categories]
            self.tables = nn.ModuleList(nn.Embedding(n, width) for n, width in zip(categories, widths))
            self.numbers = nn.BatchNorm1d(6)
            self.layers = nn.Sequential(nn.Linear(sum(widths) + 6, 200), nn.ReLU(), nn.BatchNorm1d(200), nn.Linear(200, 100), nn.ReLU(),
                                        nn.BatchNorm1d(100), nn.Linear(100, 2))

        def forward(self, categories, numbers):
            rows = [table(categories[:, i]) for i, table in enumerate(self.tables)]
            return self.layers(torch.cat(rows + [self.numbers(numbers)], 1))

    return wrapped(Tabular()), (torch.randint(0, 3, (8, 8)), torch.randn(8, 6)), (BATCH, BATCH)


def graph(name, **options):
    """300 nodes of 64 features, 2000 edges."""
    def make():
        import torch
        from torch_geometric.nn.models import basic_gnn

        net = getattr(basic_gnn, name)(64, 128, 2, 16, **options)
        return wrapped(net), (torch.randn(300, 64), torch.randint(0, 300, (2, 2000))), ({}, {})
    return Entry(f"torch_geometric {name}", "other", make)


MODELS = [
    Entry("pytorch_tabnet TabNet", "other", tabnet, exporter="torchscript"),
    Entry("rtdl FTTransformer", "other", ft_transformer),
    Entry("DLRM", "other", dlrm),
    Entry("entity embeddings", "other", entity_embeddings),
    transformers("PatchTSTModel", features((2, 32, 1), "past_values"), "other"),
    transformers("PatchTSMixerModel", features((2, 32, 1), "past_values"), "other"),
    graph("GCN"),
    graph("GraphSAGE"),
    graph("GAT", heads=4),
]
