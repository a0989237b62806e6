"""Split-K: k in parts, each part's sums in scratch memory, then one pass that adds them up and makes P."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

from tilewise.core.epilogue import Epilogue
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Argument, Launch, structure
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.transforms.sums import render_add_parts


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
    )
    blocks = math.ceil(p.m * math.ceil(p.n / wide) * shares / 256)
    source = render_add_parts.named(p.dtype, p.result, p.accumulate, shares, p.epilogue, wide)
    if members is None:
        return Launch.of(source, "add_parts", (blocks,), (256,), arguments)
    count, *steps = members
    more = map(ctypes.c_longlong, steps)
    return Launch.of(of_pairs(source), "add_parts", (blocks, count), (256,), (*arguments, *more))


def of_pairs(source: str) -> str:
    """The text of `add_parts` for members of a stack."""
    return stacked.named(source, ("sums", "P"))


def epilogue_argument(epilogue: Epilogue, sums: str, bias: Address | None) -> Argument:
    """The kernels' `Epilogue` for sums of a dtype."""
    return structure(_epilogue(sums), 1 if sums == "int32" else epilogue.alpha, bias)


@lru_cache(maxsize=8)
def _epilogue(sums: str) -> type[ctypes.Structure]:
    alpha: type = {"float64": ctypes.c_double, "int32": ctypes.c_int}.get(sums, ctypes.c_float)
    return type("Epilogue", (ctypes.Structure,), {"_fields_": (("alpha", alpha), ("bias", ctypes.c_void_p))})
