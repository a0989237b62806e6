"""Every text of `wgmma_half` that a product of a dtype may name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewise.algebra.dtypes import DTYPES
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.problem import Groups
from tilewise.kernels.shared.groups import in_text, render_walk
from tilewise.kernels.transforms.realign import render_realign
from tilewise.kernels.transforms.split_k import of_pairs
from tilewise.kernels.transforms.sums import render_add_parts
from tilewise.kernels.wgmma_gemm.wgmma_half.alignment_classes import IN_STACKS, N_BY_CLASSES
from tilewise.kernels.wgmma_gemm.wgmma_half.text import (
    render_deinterleave,
    render_realign_with_edges,
    render_wgmma_half,
)
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import (
    CLASSES,
    CUTS,
    FEW,
    INSIDE,
    NARROWED,
    SQUARE_INSIDE,
    STORES,
    TILES,
    TRANSPOSED_ROWS,
    TensorTile,
)

SIDES = tuple(product((False, True), (False, True)))  # k along M's lines, along N's


def texts(dtype: str, epilogue: Epilogue = PLAIN) -> Iterator[str]:
    """Of one epilogue. What is added onto P as it is stored, and serial split-K, are compiled on request. Sums of parts
    of k (`partial`) have no epilogue."""
    yield render_realign.key()
    for along_k in (False, True):
        yield render_realign_with_edges.key(dtype, along_k)
    for shares in (1, 8):
        name = DTYPES[dtype]
        yield of_pairs(render_add_parts.key(name, name, shares, epilogue, 2))
    for tile, (stores, by_classes) in STORES.items():
        for store, (m, n) in product(sorted(stores), SIDES):
            finish = PLAIN if store == "partial" else epilogue
            yield render_wgmma_half.key(dtype, tile, m_along_k=m, n_along_k=n, store=store, epilogue=finish)
        for store in sorted(by_classes):
            yield render_wgmma_half.key(
                dtype, tile, m_along_k=True, n_along_k=False, store=store, classes=CLASSES, epilogue=epilogue
            )
        if tile.takes_edges:
            yield from _with_edges(dtype, tile, epilogue)
    yield from _n_by_classes(dtype, epilogue)
    for tile, store, (m, n) in product(INSIDE, CUTS, SIDES):
        if tile != SQUARE_INSIDE or store == "cut":
            yield render_wgmma_half.key(dtype, tile, m_along_k=m, n_along_k=n, store=store, epilogue=epilogue)
    for cols, m in product(range(16 * (FEW[0] // 16 + 1), 257, 16), (False, True)):
        tile = TensorTile(TRANSPOSED_ROWS, cols)
        yield render_wgmma_half.key(dtype, tile, m_along_k=m, n_along_k=True, store="transposed", epilogue=epilogue)


def _with_edges(dtype: str, tile: TensorTile, epilogue: Epilogue) -> Iterator[str]:
    for m, n in SIDES:
        yield render_wgmma_half.key(
            dtype, tile, m_along_k=m, n_along_k=n, store="carried", edged=True, epilogue=epilogue
        )
    if "carried" in STORES[tile][1]:
        yield render_wgmma_half.key(
            dtype, tile, m_along_k=True, n_along_k=False, store="carried", edged=True, classes=CLASSES,
            epilogue=epilogue,
        )  # fmt: skip


def _n_by_classes(dtype: str, epilogue: Epilogue) -> Iterator[str]:
    """Of stacks whose lines of N come by classes."""
    yield render_deinterleave.key()
    for tile, store in product(IN_STACKS, ("rows", "carried")):
        if tile.wide or store == "rows":
            yield render_wgmma_half.key(
                dtype, tile, m_along_k=True, n_along_k=False, store=store, n_by_classes=True, epilogue=epilogue
            )


def grouped_texts(dtype: str, groups: Groups) -> Iterator[str]:
    """Of groups of rows or of k: M has its k along its lines or across them, as `ways` takes them."""
    by_rows = groups.along == "rows"
    yield render_realign.key()
    if by_rows:
        yield render_walk.key(groups.wide)
    for tile, store, n in product(TILES, ("boxes", "rows", "carried"), (False, True)):
        if tile.together == 1 and (by_rows or not n) and (tile.wide or store != "carried"):
            narrow = by_rows and not n and tile.cols >= NARROWED
            for narrowed in (False, True) if narrow and store != "carried" else (narrow,):
                yield render_wgmma_half.key(
                    dtype,
                    tile,
                    m_along_k=by_rows,
                    n_along_k=n,
                    store=store,
                    narrowed=narrowed,
                    groups=in_text(groups),
                )
    if by_rows:
        yield render_deinterleave.key()
        for tile, store, narrowed in product(N_BY_CLASSES, ("rows", "carried"), (False, True)):
            if store == "rows" or (tile.wide and narrowed):
                yield render_wgmma_half.key(
                    dtype, tile, m_along_k=True, n_along_k=False, store=store, n_by_classes=True, narrowed=narrowed,
                    groups=in_text(groups),
                )  # fmt: skip
