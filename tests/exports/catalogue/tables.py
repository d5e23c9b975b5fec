"""Tables, series of numbers and graphs: TabNet, FT-Transformer, PatchTST and torch_geometric."""
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
    transformers("PatchTSTModel", features((2, 32, 1), "past_values"), "other"),
    transformers("PatchTSMixerModel", features((2, 32, 1), "past_values"), "other"),
    graph("GCN"),
    graph("GraphSAGE"),
    graph("GAT", heads=4),
]
