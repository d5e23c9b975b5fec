"""Two small classifiers of 8x8 images of digits: a CNN and a transformer."""
import torch
from torch import nn


class Cnn(nn.Module):
    """Two blocks of convolution, batch normalization and ReLU, and a linear layer: 8x8, 4x4, 2x2."""

    def __init__(self, channels=96):
        super().__init__()

        def block(before, after):
            return nn.Sequential(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())

        self.layers = nn.Sequential(block(1, channels), block(channels, channels), nn.MaxPool2d(2), block(channels, 2 * channels), nn.MaxPool2d(2),
                                    nn.Flatten(), nn.Dropout(0.3), nn.Linear(8 * channels, 10))

    def forward(self, image):
        """Images [batch, 1, 8, 8], from 0 to 1; gives scores [batch, 10]."""
        return self.layers(image)


class Transformer(nn.Module):
    """Every 2x2 pixels are a token: 16 tokens, three layers of four heads, and the mean of the tokens."""

    def __init__(self, width=192, layers=3):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, stride=2)
        self.places = nn.Parameter(0.02 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 10))

    def forward(self, image):
        """Images [batch, 1, 8, 8], from 0 to 1; gives scores [batch, 10]."""
        tokens = self.patches(image).flatten(2).transpose(1, 2) + self.places
        return self.head(self.encoder(tokens).mean(1))
