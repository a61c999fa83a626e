"""Two small transformers: one that sees digits without a convolution, one that writes verse.

In: sizes.  Out: modules.  Imports ``symgrad`` and its ``nn``; the same text runs on torch, with
only the names behind the imports changed (``benchmarks/training.py`` does that).
"""

from __future__ import annotations

from typing import Any

import symgrad as sg
import symgrad.nn.functional as F
from symgrad import nn


class SelfAttention(nn.Module):
    """Attention of a sequence to itself, in several heads; ``causal``: never to what follows."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.split = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """``x``: [batch, time, width], as is what is returned."""
        batch, time, width = x.shape
        parts = self.split(x).reshape(batch, time, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.join(seen.permute(0, 2, 1, 3).reshape(batch, time, width))


class Block(nn.Module):
    """Attention, then two layers; each behind a layer norm and beside a shortcut."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads, causal)
        self.before_layers = nn.LayerNorm(width)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        """``x``: [batch, time, width], as is what is returned."""
        x = x + self.attention(self.before_attention(x))
        return x + self.layers(self.before_layers(x))


class VisionTransformer(nn.Module):
    """Class scores of 8 by 8 images, read as 16 patches of 2 by 2 pixels."""

    def __init__(self, classes: int, width: int = 32, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.position = nn.Parameter(sg.zeros(16, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=False) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, pixels: Any) -> Any:
        """``pixels``: [batch, 64], row by row; returns [batch, classes]."""
        patches = pixels.reshape(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        x = self.blocks(self.embed(patches) + self.position)
        return self.head(self.norm(x).mean(1))


class CharTransformer(nn.Module):
    """Scores of the next character, for each place of a text."""

    def __init__(
        self, characters: int, context: int, width: int = 64, heads: int = 4, depth: int = 2
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.position = nn.Parameter(sg.zeros(context, width))
        self.blocks = nn.Sequential(*(Block(width, heads, causal=True) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, text: Any) -> Any:
        """``text``: i64[batch, time], no longer than the context; adds an axis of characters."""
        x = self.embed(text) + self.position[: text.shape[1]]
        return self.head(self.norm(self.blocks(x)))
