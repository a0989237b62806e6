"""A GPT in plain torch, of any widths, odd ones too; its head is tied to its embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """Of a model and its batch."""

    vocabulary: int
    width: int
    tokens: int  # of one sequence
    batch: int
    layers: int
    heads: int
    hidden: int  # of the feed-forward part


class Attention(nn.Module):
    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.heads = s.heads
        self.qkv, self.out = nn.Linear(s.width, 3 * s.width), nn.Linear(s.width, s.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        made = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(made.transpose(1, 2).reshape(batch, tokens, width))


class FeedForward(nn.Module):
    """gelu with biases, as GPT-2 has it."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(s.width, s.hidden), nn.Linear(s.hidden, s.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class TransformerBlock(nn.Module):
    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(s.width), nn.LayerNorm(s.width)
        self.attention, self.forward_part = Attention(s), FeedForward(s)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.forward_part(self.between(x))


class LanguageModel(nn.Module):
    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(s.vocabulary, s.width), nn.Embedding(s.tokens, s.width)
        self.blocks = nn.ModuleList(TransformerBlock(s) for _ in range(s.layers))
        self.last = nn.LayerNorm(s.width)
        self.head = nn.Linear(s.width, s.vocabulary, False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        self.head.weight = self.tokens.weight

    def logits(self, x: Tensor) -> Tensor:
        made = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            made = block(made)
        logits: Tensor = self.head(self.last(made))
        return logits

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return functional.cross_entropy(self.logits(x).flatten(0, 1), y.flatten())


SIZES = {  # on a card those of GPT-2; on a CPU small ones
    ("cuda", "aligned"): Sizes(50304, 768, 1024, 8, 12, 12, 3072),
    ("cuda", "vocabulary"): Sizes(50257, 768, 1024, 8, 12, 12, 3072),
    ("cuda", "odd"): Sizes(50257, 770, 1023, 8, 12, 11, 3079),
    ("cpu", "aligned"): Sizes(512, 64, 32, 2, 2, 4, 256),
    ("cpu", "vocabulary"): Sizes(509, 64, 32, 2, 2, 4, 256),
    ("cpu", "odd"): Sizes(509, 66, 31, 2, 2, 6, 251),
}


def make_model(sizes: Sizes, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return LanguageModel(sizes)


def batch_of(sizes: Sizes, seed: int) -> tuple[Tensor, Tensor]:
    """Tokens that can be learned: each is the one before times 3 plus noise."""
    made = torch.Generator().manual_seed(seed)
    first = torch.randint(sizes.vocabulary, (sizes.batch, 1), generator=made)
    tokens = [first]
    for _ in range(sizes.tokens):
        noise = torch.randint(4, first.shape, generator=made)
        tokens.append((tokens[-1] * 3 + noise) % sizes.vocabulary)
    text = torch.cat(tokens, 1)
    return text[:, :-1], text[:, 1:]
