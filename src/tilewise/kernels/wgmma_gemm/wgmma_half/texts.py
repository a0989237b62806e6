"""Every text of `wgmma_half` that a product of a dtype may name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from tilewise.algebra.dtypes import DTYPES
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.problem import Groups
from tilewise.kernels.shared.groups import in_text, render_walk
from tilewise.kernels.transforms.realign import render_realign
from tilewise.kernels.transforms.sums import of_pairs, render_add_parts
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


Form = tuple[
    TensorTile, bool, bool, str, dict[str, Any]
]  # a tile, k along M's lines, along N's, how sums leave, and more


def texts(dtype: str, epilogue: Epilogue = PLAIN) -> Iterator[str]:
    """Of one epilogue. What is added onto P as it is stored, and serial split-K, are compiled on request. Sums of parts
    of k (`partial`) have no epilogue."""
    yield render_realign.key()
    yield render_deinterleave.key()
    for along_k in (False, True):
        yield render_realign_with_edges.key(dtype, along_k)
    for shares in (1, 8):
        name = DTYPES[dtype]
        yield of_pairs(render_add_parts.key(name, name, shares, epilogue, 2))
    for form in _forms():
        yield _text(dtype, form, PLAIN if form[3] == "partial" else epilogue)


def _text(dtype: str, form: Form, epilogue: Epilogue = PLAIN, groups: Groups | None = None) -> str:
    tile, m, n, store, more = form
    along = {"m_along_k": m, "n_along_k": n}
    return render_wgmma_half.key(dtype, tile, **along, store=store, epilogue=epilogue, groups=groups, **more)


def _forms() -> Iterator[Form]:
    """Of single products and stacks."""
    for tile, (stores, by_classes) in STORES.items():
        edged = [("carried", True)] * tile.takes_edges
        for (store, apart), (m, n) in product([*((store, False) for store in sorted(stores)), *edged], SIDES):
            yield tile, m, n, store, {"edged": apart}
        for store, apart in [*((store, False) for store in sorted(by_classes)), *(edged if by_classes else ())]:
            yield tile, True, False, store, {"classes": CLASSES, "edged": apart}
    for tile, store in product(IN_STACKS, ("rows", "carried")):
        if tile.wide or store == "rows":
            yield tile, True, False, store, {"n_by_classes": True}
    for tile, store, (m, n) in product(INSIDE, CUTS, SIDES):
        if tile != SQUARE_INSIDE or store == "cut":
            yield tile, m, n, store, {}
    for cols, m in product(range(16 * (FEW[0] // 16 + 1), 257, 16), (False, True)):
        yield TensorTile(TRANSPOSED_ROWS, cols), m, True, "transposed", {}


def grouped_texts(dtype: str, groups: Groups) -> Iterator[str]:
    """Of groups of rows or of k: M has its k along its lines or across them, as `_groups` of the model takes them."""
    by_rows = groups.along == "rows"
    yield render_realign.key()
    if by_rows:
        yield render_walk.key(groups.wide)
        yield render_deinterleave.key()
    for form in _grouped_forms(by_rows):
        yield _text(dtype, form, groups=in_text(groups))


def _grouped_forms(by_rows: bool) -> Iterator[Form]:
    for tile, store, n in product(TILES, ("boxes", "rows", "carried"), (False, True)):
        if tile.together == 1 and (by_rows or not n) and (tile.wide or store != "carried"):
            narrow = by_rows and not n and tile.cols >= NARROWED
            for narrowed in (False, True) if narrow and store != "carried" else (narrow,):
                yield tile, by_rows, n, store, {"narrowed": narrowed}
    for tile, store, narrowed in product(N_BY_CLASSES if by_rows else (), ("rows", "carried"), (False, True)):
        if store == "rows" or (tile.wide and narrowed):
            yield tile, True, False, store, {"n_by_classes": True, "narrowed": narrowed}
