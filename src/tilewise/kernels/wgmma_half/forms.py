"""Every text of `wgmma_half` that a product of a dtype may name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewise.kernels.shared.groups import render_walk
from tilewise.kernels.shared.realign import render_realign
from tilewise.kernels.wgmma_half.model import CLASSES, FEW, TILES, TensorTile
from tilewise.kernels.wgmma_half.text import render_gather, render_realign_with_edges, render_wgmma_half
from tilewise.problem import Groups

SIDES = tuple(product((False, True), (False, True)))  # k along M's lines, along N's
EDGES = ("dots", "dots")  # any: the kernel finds at run time how they are made


def texts(dtype: str) -> Iterator[str]:
    """Without epilogues, and without what is added onto P as it is stored: those are compiled when asked for."""
    yield render_realign()
    for along_k in (False, True):
        yield render_realign_with_edges(dtype, along_k)
    for shares, accumulate in product((1, 8), (False, True)):
        yield render_gather(dtype, accumulate, shares)
    for tile in TILES:
        some = {"carried": tile.wide, "partial": tile.takes_parts}
        stores = ("boxes", "rows", *(store for store, is_so in some.items() if is_so))
        for store, (m, n) in product(stores, SIDES):
            yield render_wgmma_half(dtype, tile, m_along_k=m, n_along_k=n, store=store)
        for store in ("rows", "carried") if tile.wide else ():
            yield render_wgmma_half(dtype, tile, m_along_k=True, n_along_k=False, store=store, classes=CLASSES)
        if tile.takes_edges:
            yield from _with_edges(dtype, tile)
    for cols, cluster, m in product(range(16 * (FEW[0] // 16 + 1), 257, 16), (1, 2), (False, True)):
        tile = TensorTile(128, cols, cluster)
        yield render_wgmma_half(dtype, tile, m_along_k=m, n_along_k=True, store="turned")


def _with_edges(dtype: str, tile: TensorTile) -> Iterator[str]:
    for m, n in SIDES:
        yield render_wgmma_half(dtype, tile, m_along_k=m, n_along_k=n, store="carried", edges=EDGES)
    yield render_wgmma_half(dtype, tile, m_along_k=True, n_along_k=False, store="carried", edges=EDGES, classes=CLASSES)


def grouped_texts(dtype: str, groups: Groups) -> Iterator[str]:
    """Of groups of rows or of k: M has its k along its lines or across them, as `ways` takes them."""
    by_rows = groups.along == "rows"
    yield render_realign()
    if by_rows:
        yield render_walk(groups.wide)
    for tile, store, n in product(TILES, ("boxes", "rows", "carried"), (False, True)):
        if tile.cluster == 1 and (by_rows or not n) and (tile.wide or store != "carried"):
            yield render_wgmma_half(dtype, tile, m_along_k=by_rows, n_along_k=n, store=store, groups=groups)
