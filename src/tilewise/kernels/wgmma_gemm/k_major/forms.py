"""Every text of `k_major` that a product of two dtypes may name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewise.kernels.transforms.turn import render_turn
from tilewise.kernels.wgmma_gemm.k_major.model import ACROSS_TILES, KINDS, TILES
from tilewise.kernels.wgmma_gemm.k_major.seconds import CLASSES
from tilewise.kernels.wgmma_gemm.k_major.text import render_k_across, render_k_major


def texts(kinds: tuple[str, str], result: str) -> Iterator[str]:
    """Without scales, which are compiled when they are asked for."""
    yield render_turn.named(KINDS[kinds[0]].size)
    kind = KINDS[kinds[0]]
    halves = result in ("bfloat16", "float16")
    for tile, boxed, paired in product(TILES, (False, True), (False, True) if halves else (False,)):
        if tile.takes(kind):
            yield render_k_major.named(kinds, tile, boxed=boxed, result=result, paired=paired)
    if kind.size == 4:
        for tile, apart, classes in product(ACROSS_TILES, (False, True), (1, CLASSES)):
            if classes > 1 and not tile.beside:
                continue
            for boxed, onto in ((False, False), (False, True), (True, False)):
                if not (boxed and classes > 1):
                    yield render_k_across.named(tile, apart=apart, classes=classes, boxed=boxed, onto=onto)
