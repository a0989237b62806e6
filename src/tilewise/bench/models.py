"""Small real models in plain torch, for whole steps: a GPT, a Llama-like one, a mixture of experts, an MLP.

Widths are free, odd ones too; the head of the GPT is tied to its embedding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """Of one model and its batch."""

    vocabulary: int
    width: int
    tokens: int  # of one sequence
    batch: int
    layers: int
    heads: int
    hidden: int  # of the feed-forward part
    experts: int = 0


class Attention(nn.Module):
    def __init__(self, s: Sizes, bias: bool, rotary: bool) -> None:
        super().__init__()
        self.heads, self.rotary = s.heads, rotary
        self.qkv, self.out = nn.Linear(s.width, 3 * s.width, bias), nn.Linear(s.width, s.width, bias)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).split(width, 2)
        )
        if self.rotary:
            q, k = rotated(q), rotated(k)
        made = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(made.transpose(1, 2).reshape(batch, tokens, width))


def rotated(x: Tensor) -> Tensor:
    """Rotary positions over the even part of a head's width."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2], device=x.device)[:, None] * 1e4 ** (-torch.arange(half, device=x.device) / half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


class FeedForward(nn.Module):
    """gelu with biases, as GPT-2 has it."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(s.width, s.hidden), nn.Linear(s.hidden, s.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x), approximate="tanh"))


class GatedForward(nn.Module):
    """silu with a gate and no biases, as Llama has it."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(s.width, s.hidden, False), nn.Linear(s.width, s.hidden, False)
        self.down = nn.Linear(s.hidden, s.width, False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    """Every expert takes the same number of tokens, those that it scores highest; the others skip the layer."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.choose = nn.Linear(s.width, s.experts, False)
        self.up = nn.Parameter(torch.randn(s.experts, s.width, s.hidden) * s.width**-0.5)
        self.down = nn.Parameter(torch.randn(s.experts, s.hidden, s.width) * s.hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        room = max(1, flat.shape[0] // self.up.shape[0])
        share, taken = self.choose(flat).softmax(-1).topk(room, 0)
        rows = flat[taken.T]
        made = torch.bmm(functional.silu(torch.bmm(rows, self.up)), self.down) * share.T[..., None]
        out = torch.zeros_like(flat).index_add(0, taken.T.flatten(), made.flatten(0, 1))
        return out.view_as(x)


class TransformerBlock(nn.Module):
    def __init__(self, s: Sizes, kind: str) -> None:
        super().__init__()
        plain = kind == "gpt2"
        self.before, self.between = (nn.LayerNorm(s.width) if plain else nn.RMSNorm(s.width) for _ in range(2))
        self.attention = Attention(s, bias=plain, rotary=not plain)
        self.forward_part = FeedForward(s) if plain else Experts(s) if kind == "moe" else GatedForward(s)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before(x))
        return x + self.forward_part(self.between(x))


class LanguageModel(nn.Module):
    def __init__(self, s: Sizes, kind: str) -> None:
        super().__init__()
        self.tokens = nn.Embedding(s.vocabulary, s.width)
        self.positions = nn.Embedding(s.tokens, s.width) if kind == "gpt2" else None
        self.blocks = nn.ModuleList(TransformerBlock(s, kind) for _ in range(s.layers))
        self.last = nn.LayerNorm(s.width) if kind == "gpt2" else nn.RMSNorm(s.width)
        self.head = nn.Linear(s.width, s.vocabulary, False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        if kind == "gpt2":
            self.head.weight = self.tokens.weight

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        made = self.tokens(x)
        if self.positions is not None:
            made = made + self.positions(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            made = block(made)
        logits = self.head(self.last(made))
        return functional.cross_entropy(logits.flatten(0, 1), y.flatten())


class Perceptron(nn.Module):
    """width → hidden → width with a residual, then → vocabulary, and the mean of logsumexp less the target's."""

    def __init__(self, s: Sizes) -> None:
        super().__init__()
        self.tokens = nn.Embedding(s.vocabulary, s.width)
        self.up, self.down = nn.Linear(s.width, s.hidden), nn.Linear(s.hidden, s.width)
        self.head = nn.Linear(s.width, s.vocabulary, False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        made = self.tokens(x.flatten())
        made = made + self.down(functional.gelu(self.up(made)))
        logits = self.head(made)
        return logits.float().logsumexp(-1).mean() - logits.gather(1, y.flatten()[:, None]).float().mean()


KINDS = ("gpt2", "llama-like", "moe", "mlp")
ON_A_CARD = {
    ("gpt2", "aligned"): Sizes(50304, 768, 1024, 8, 12, 12, 3072),
    ("gpt2", "vocabulary"): Sizes(50257, 768, 1024, 8, 12, 12, 3072),
    ("gpt2", "odd"): Sizes(50257, 770, 1023, 8, 12, 11, 3079),
    ("llama-like", "aligned"): Sizes(32000, 1024, 1024, 8, 12, 16, 2816),
    ("llama-like", "vocabulary"): Sizes(32003, 1024, 1024, 8, 12, 16, 2816),
    ("llama-like", "odd"): Sizes(32003, 1030, 1023, 8, 12, 10, 2753),
    ("moe", "aligned"): Sizes(32000, 1024, 1024, 8, 4, 16, 1408, 16),
    ("moe", "vocabulary"): Sizes(32003, 1024, 1024, 8, 4, 16, 1408, 16),
    ("moe", "odd"): Sizes(32003, 1030, 1023, 8, 4, 10, 1407, 15),
    ("mlp", "aligned"): Sizes(50304, 1024, 4096, 1, 1, 1, 4096),
    ("mlp", "vocabulary"): Sizes(50257, 1024, 4096, 1, 1, 1, 4096),
    ("mlp", "odd"): Sizes(50257, 1000, 4095, 1, 1, 1, 4001),
}


def sizes_of(kind: str, case: str, device: str) -> Sizes:
    """On a card those of the published models; on a CPU, small ones of the same kind."""
    if device == "cuda":
        return ON_A_CARD[kind, case]
    vocabulary, width, tokens, heads = {"aligned": (512, 64, 32, 4), "vocabulary": (509, 64, 32, 4)}.get(
        case, (509, 66, 31, 6)
    )
    hidden = 256 if case != "odd" else 251
    return Sizes(vocabulary, width, tokens, 2, 2, heads, hidden, 3 if kind == "moe" else 0)


def make_model(kind: str, sizes: Sizes, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return Perceptron(sizes) if kind == "mlp" else LanguageModel(sizes, kind)


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
