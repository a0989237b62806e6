"""Split-K: k in parts, each part's sums in scratch memory, then one pass that adds them up and makes P."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache

from tilewise.algebra.semiring import Algebra
from tilewise.core.epilogue import Epilogue
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Argument, Launch, Value, structure
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.transforms.sums import combine_text, render_add_parts

MANY_PIECES = 16  # of a cell, beyond which eight warps add them up together; a block of `combine` has 8


def add_parts(
    p: Problem,
    sums: Address,
    lead: int,
    target: Address,
    ldp: int,
    parts: int,
    epilogue: Argument,
    members: tuple[int, int, int] | None = None,
) -> Launch:
    """Sums of parts of k, their rows `lead` apart, to P with the problem's epilogue. Of so many `members` of a stack,
    whose sums and whose P lie so far apart, two cells at a time: their `lead` is even."""
    shares, wide = 8 if parts >= 16 else 1, 1 if members is None else 2
    arguments = (
        sums,
        target,
        epilogue,
        *(ctypes.c_int(extent) for extent in (p.m, p.n, parts)),
        *(ctypes.c_longlong(x) for x in (lead, ldp)),
        ctypes.c_int(p.accumulate),
    )
    blocks = math.ceil(p.m * math.ceil(p.n / wide) * shares / 256)
    source = render_add_parts.key(p.dtype, p.result, shares, p.epilogue, wide)
    if members is None:
        return Launch.of(source, "add_parts", (blocks,), (256,), arguments)
    count, *steps = members
    more = map(ctypes.c_longlong, steps)
    return Launch.of(of_pairs(source), "add_parts", (blocks, count), (256,), (*arguments, *more))


def combine(
    algebra: Algebra,
    onto: bool,
    planes: Address,
    target: Address,
    cells: tuple[int, int],
    strides: tuple[int, int, int],
    pieces: int,
    *,
    where: Sequence[Value] = (),
    guard: tuple[Address | None, int] = (None, 0),
    members: tuple[int, int, int] = (1, 0, 0),
    overlap: bool = False,
) -> Launch:
    """The same over any semiring: rows and columns of `cells`, added `onto` P or not. `strides`: from row to row of the
    planes, and of P from row to row and column to column; `where`: planes of the k that won, and where they go;
    `guard`: a word on the card, and what it must be for this to run; `members`: as of `add_parts`."""
    share = 8 if pieces > MANY_PIECES else 1
    (address, value), (count, *steps) = guard, members
    arguments = (
        planes, target, *where, *map(ctypes.c_int, cells), *map(ctypes.c_longlong, strides), ctypes.c_int(pieces),
        address, ctypes.c_uint(value), ctypes.c_int(onto), *map(ctypes.c_longlong, steps),
    )  # fmt: skip
    blocks, source = math.ceil(cells[0] * cells[1] * share / 256), combine_text(algebra, share, bool(where))
    return Launch.of(source, "combine", (blocks, count), (256,), arguments, overlap=overlap)


def of_pairs(source: str) -> str:
    """The text of `add_parts` for members of a stack."""
    return stacked.key(source, ("sums", "P"))


def epilogue_argument(epilogue: Epilogue, sums: str, bias: Address | None) -> Argument:
    """The kernels' `Epilogue` for sums of a dtype."""
    return structure(_epilogue(sums), 1 if sums == "int32" else epilogue.alpha, bias)


@lru_cache(maxsize=8)
def _epilogue(sums: str) -> type[ctypes.Structure]:
    alpha: type = {"float64": ctypes.c_double, "int32": ctypes.c_int}.get(sums, ctypes.c_float)
    return type("Epilogue", (ctypes.Structure,), {"_fields_": (("alpha", alpha), ("bias", ctypes.c_void_p))})
