"""Split-K: k in parts, each part's sums in scratch memory, then one pass that adds them up and makes P."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

from tilewise.core.epilogue import Epilogue
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Argument, Launch, structure
from tilewise.kernels.transforms.sums import render_add_parts


def add_parts(
    p: Problem, sums: Address, lead: int, target: Address, ldp: int, parts: int, epilogue: Argument
) -> Launch:
    """Sums of parts of k, their rows `lead` apart, to P with the problem's epilogue."""
    shares = 8 if parts >= 16 else 1
    arguments = (
        sums,
        target,
        epilogue,
        *(ctypes.c_int(extent) for extent in (p.m, p.n, parts)),
        *(ctypes.c_longlong(x) for x in (lead, ldp)),
    )
    blocks = math.ceil(p.m * p.n * shares / 256)
    source = render_add_parts.named(p.dtype, p.result, p.accumulate, shares, p.epilogue)
    return Launch.of(source, "add_parts", (blocks,), (256,), arguments)


def epilogue_argument(epilogue: Epilogue, sums: str, bias: Address | None) -> Argument:
    """The kernels' `Epilogue` for sums of a dtype."""
    return structure(_epilogue(sums), 1 if sums == "int32" else epilogue.alpha, bias)


@lru_cache(maxsize=8)
def _epilogue(sums: str) -> type[ctypes.Structure]:
    alpha: type = {"float64": ctypes.c_double, "int32": ctypes.c_int}.get(sums, ctypes.c_float)
    return type("Epilogue", (ctypes.Structure,), {"_fields_": (("alpha", alpha), ("bias", ctypes.c_void_p))})
