"""The text of `mma_sync.cu`: an element's types, its product of fragments, and the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tilewise.algebra.dtypes import FLOAT8, DType
from tilewise.algebra.to_cuda import c_name
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.machine import Machine, arch_number
from tilewise.core.problem import Problem
from tilewise.kernels.capabilities import elements_of, tensor_name
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.mma_gemm.mma_sync.model import in_the_set
from tilewise.kernels.mma_gemm.mma_sync.tiles import MmaTile
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.fragments import AMPERE, ATOMS, product_of_fragments
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.text import assembled, of_tile, without
from tilewise.kernels.shared.triangle import macros
from tilewise.kernels.transforms.realign import render_realign
from tilewise.kernels.transforms.sums import render_add_parts, render_numbers, sum_of

GROUP = 8  # rows of tiles that are walked together, so that their columns of N stay in L2


@dataclass(frozen=True)
class Form:
    """Contiguity along k of M and N, bytes of a copy and of a store, accumulate."""

    m_along_k: bool
    n_along_k: bool
    vector: int = 16
    store: int = 16
    accumulate: bool = False
    split: bool = False  # stores sums unrounded, for `add_parts`
    symmetric: bool = False  # tiles on and above the diagonal, stored twice


def generation(arch: str) -> int:
    """The compute capability whose instructions this text uses on an arch."""
    number = arch_number(arch)
    return next(first for first in (100, 90, 80, 0) if number >= first) if number != 75 else 75


@KeyedRenderer
def render_mma_sync(
    dtype: DType,
    result: DType,
    tile: MmaTile,
    stages: int,
    form: Form,
    epilogue: Epilogue = PLAIN,
    arch: int = 80,
    right: DType | None = None,
) -> str:
    """`arch`: as `generation` has it; `right`: N's dtype, where it is not M's."""
    size, sums = dtype.itemsize, sum_of(dtype)
    staged = arch < AMPERE
    defines = {
        "SIZE": size,
        **of_tile(tile, "rows", "cols", "warps_m", "warps_n", "resident", "rolling"),
        "STAGES": stages,
        "GROUP": GROUP,
        "PHASE_BYTES": tile.phase,
        "REGISTER_STAGED": staged,
        "PEELED": not staged and arch != 90,
        "BYTE_PAIRS": size == 1 and arch != 90,
        "PROMOTED": dtype.name in FLOAT8,
        "STEP_K": ATOMS[dtype.name].k,
        "ROUNDED": (1 if arch == 90 or tile.rolling else 2) if size == 4 else 0,
        "M_ALONG_K": form.m_along_k,
        "N_ALONG_K": form.n_along_k,
        "VECTOR_BYTES": form.vector,
        "STORE_BYTES": form.store,
        **macros(tile.rows, tile.cols, form.symmetric),
    }
    made = sums if form.split else result
    text = assembled(
        f"// mma_sync over {dtype}, sums in {sums}, P in {made}",
        defines,
        f"typedef {c_name(dtype)} Element;",
        f"typedef {'double' if size == 8 else 'unsigned'} Word;  // of a fragment",
        f"typedef {({16: 'uint4', 8: 'uint2'}).get(form.store, 'unsigned')} Stored;",
        render_numbers(sums, made, form.accumulate and not form.split, paired=not staged),
        render_epilogue(PLAIN if form.split else epilogue, sums),
        product_of_fragments(dtype, arch, right),
        "shared/dependent_launch.cuh",
        "mma_gemm/register_copies.cuh" if staged else "mma_gemm/copies.cuh",
        "mma_gemm/matrices.cuh",
        *(["shared/triangle.cuh"] if form.symmetric else []),
        *(f"mma_gemm/mma_sync/{name}" for name in ("operand.cuh", "fragments.cuh", "mma_sync.cu")),
    )
    return text if form.symmetric else without(text, "SYMMETRIC")


def form_of(
    dtype: DType,
    result: DType,
    m_along_k: bool,
    n_along_k: bool,
    vector: int,
    store: int,
    accumulate: bool = False,
    apart: bool = False,
    symmetric: bool = False,
) -> Form:
    """The form for these layouts; `apart`: sums are stored unrounded, for `add_parts`. P is stored by 16 bytes or,
    where it is not aligned to 16, by the fewest."""
    split = apart and (sum_of(dtype) != result or accumulate)
    store = 16 if apart or store == 16 else min(4, result.itemsize) if result.itemsize < 8 else 8
    return Form(m_along_k, n_along_k, vector, store, accumulate, split, symmetric)


def texts(problem: Problem, machine: Machine) -> Iterator[str]:
    """All texts with one epilogue; for split-K `add_parts` has the epilogue."""
    (dtype, right), result, epilogue = elements_of(problem, machine), problem.result, problem.epilogue
    other = right if right != dtype else None
    yield render_realign.key()
    yield from (render_add_parts.key(problem.dtype, result, shares, epilogue) for shares in (1, 8))
    tiles, vectors = in_the_set(tensor_name(problem, machine), dtype.itemsize, machine)
    for tile in tiles:
        stages = tile.stages(machine.arch)
        if not tile.fits(machine.arch):
            continue
        for m_along_k, n_along_k, vector in product((False, True), (False, True), vectors):
            if vector < dtype.itemsize or not tile.takes(n_along_k, vector):
                continue
            forms = {
                (
                    form_of(dtype, result, m_along_k, n_along_k, vector, store, False, apart, problem.symmetric),
                    PLAIN if apart else epilogue,
                )
                for store, apart in ((16, False), (1, False), (16, True))
            }
            for form, finish in sorted(forms, key=repr):
                text = render_mma_sync.key(dtype, result, tile, stages, form, finish, generation(machine.arch), other)
                yield stacked.key(text, ("M", "N", "P"))
