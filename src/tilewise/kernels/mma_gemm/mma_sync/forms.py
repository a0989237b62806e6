"""Every text of `mma_sync` that a product of a dtype may name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tilewise.algebra.dtypes import DType
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import Machine, arch_number
from tilewise.kernels.mma_gemm.mma_sync.model import in_the_set
from tilewise.kernels.mma_gemm.mma_sync.text import Form, render_mma_sync
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.transforms.realign import render_realign
from tilewise.kernels.transforms.sums import render_add_parts, sum_of


def form_of(
    dtype: DType,
    result: DType,
    m_along_k: bool,
    n_along_k: bool,
    vector: int,
    store: int,
    accumulate: bool = False,
    apart: bool = False,
) -> Form:
    """The form of operands that lie so; `apart`: sums are stored as they are, for `add_parts`. P is stored by 16 bytes
    or, where its rows do not start so, by as few as may be."""
    split = apart and (sum_of(dtype) != result or accumulate)
    store = 16 if apart or store == 16 else min(4, result.itemsize) if result.itemsize < 8 else 8
    return Form(m_along_k, n_along_k, vector, vector, store, accumulate, split)


def texts(
    dtype: DType, result: DType, machine: Machine, epilogue: Epilogue = PLAIN, onto: tuple[bool, ...] = (False, True)
) -> Iterator[str]:
    """Of one epilogue, and whether parts are added `onto` P; sums of parts of k have theirs in `add_parts`."""
    yield render_realign.named()
    for accumulate, shares in product(onto, (1, 8)):
        yield render_add_parts.named(dtype, result, accumulate, shares, epilogue)
    tiles, vectors = in_the_set(dtype.itemsize, machine)
    for tile in tiles:
        stages = tile.stages(machine.arch)
        if stages < 2 + tile.rolling:
            continue
        for m_along_k, n_along_k, vector in product((False, True), (False, True), vectors):
            if vector < dtype.itemsize or not tile.takes(n_along_k, (vector, vector)):
                continue
            forms = {
                (form_of(dtype, result, m_along_k, n_along_k, vector, store, apart=apart), PLAIN if apart else epilogue)
                for store, apart in ((16, False), (1, False), (16, True))
            }
            for form, finish in sorted(forms, key=repr):
                text = render_mma_sync.named(
                    dtype, result, tile, stages, form, finish, min(90, arch_number(machine.arch))
                )
                yield stacked.named(text, ("M", "N", "P"))
