"""The kernels of all generators, one line each."""

from __future__ import annotations

from collections.abc import Iterable

from tilewise.core.recipe import Address, Scratch, Step
from tilewise.errors import UsageError
from tilewise.kernels.family import Family
from tilewise.kernels.ladder.family import Ladder
from tilewise.kernels.mma_gemm.family import DirectHalf, HalfDots, ShortK, SlicedK
from tilewise.kernels.mma_gemm.mma_sync.family import MmaSync
from tilewise.kernels.shared.delegated import AnyStep, Edge, Fallback
from tilewise.kernels.simt_gemm.gemv import Gemv
from tilewise.kernels.simt_gemm.grouped import Grouped
from tilewise.kernels.simt_gemm.skinny_recipe import edge_launches
from tilewise.kernels.simt_gemm.streamed import Cells, RankK
from tilewise.kernels.simt_gemm.strips import Buffered, Direct
from tilewise.kernels.simt_gemm.tiled.family import Plain
from tilewise.kernels.simt_gemm.tiled.recipe import fallback_launches
from tilewise.kernels.wgmma_gemm.family import BF16x6, BulkLines, KMajor, ReadOnce, WgmmaHalf

COURSE = Ladder()  # the interpreter runs its texts, too
FAMILIES: list[Family] = [
    WgmmaHalf(), KMajor(), BF16x6(), MmaSync(), SlicedK(), ShortK(), Plain(),
    Gemv(), Direct(), DirectHalf(), BulkLines(), HalfDots(), ReadOnce(), Buffered(), Cells(), RankK(),
    Grouped(), COURSE,
]  # fmt: skip


REPLACED = {  # kernels of earlier versions
    "fma_small": "kernel='buffered' and kernel='sliced_k' make what it made",
    "mma_small": "kernel='sliced_k', kernel='mma_sync' and kernel='bulk_lines' make what it made",
    "shallow": "kernel='short_k', kernel='mma_sync' and kernel='direct' make what it made",
    "shifted_half": "kernel='direct_half' and kernel='wgmma_half' make what it made",
    "swept": "kernel='few_rows', kernel='rank_k' and kernel='buffered' make what it made",
}
BY_NAME = {family.name: family for family in FAMILIES}
BY_KERNEL = {kernel: family for family in reversed(FAMILIES) for kernel in family.kernels}


def beside(steps: Iterable[AnyStep], scratch: Scratch) -> list[Step]:
    """The steps, with the launches of another generator in place of each `Edge` and `Fallback`."""
    made, held = list[Step](), dict[int, Address]()
    for step in steps:
        if isinstance(step, Edge):
            made += edge_launches(step, scratch)
        elif isinstance(step, Fallback):
            made += fallback_launches(step, scratch, held)
        else:
            made.append(step)
    return made


def family_named(name: str) -> Family:
    """The family of that name."""
    return BY_NAME[name] if name in BY_NAME else next(family for family in FAMILIES if family.name == name)


def family_of(kernel: str) -> Family:
    """The family of a kernel."""
    if kernel in BY_KERNEL:
        return BY_KERNEL[kernel]
    for family in FAMILIES:
        if kernel in family.kernels:
            return family
    if kernel in REPLACED:
        raise UsageError(f"kernel={kernel!r} was replaced: {REPLACED[kernel]}")
    known = [name for family in reversed(FAMILIES) for name in family.kernels]
    raise UsageError(f"kernel={kernel!r} is not known; known are {', '.join(known)}")
