"""From sums to P on the card: `add_parts`, and the epilogue as kernels take it."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from tilewise.engines.cuda.queue import Launch, kernel_function
from tilewise.epilogue import Epilogue
from tilewise.kernels.render_ampere import render_add_parts
from tilewise.problem import Problem


def add_parts(
    p: Problem, place: tuple[int, int, int, int], parts: int, epilogue: Any, device: str, stream: Any
) -> Launch:
    """Sums of parts of k to P, with the problem's epilogue; `place`: the sums' address and lead, then P's."""
    sums, lead, target, ldp = place
    shares = 8 if parts >= 16 else 1
    source = render_add_parts(p.dtype, p.result, p.accumulate, shares, p.epilogue)
    arguments = (
        ctypes.c_void_p(sums),
        ctypes.c_void_p(target),
        epilogue,
        *(ctypes.c_int(extent) for extent in (p.m, p.n, parts)),
        *(ctypes.c_longlong(x) for x in (lead, ldp)),
    )
    blocks = math.ceil(p.m * p.n * shares / 256)
    return Launch(kernel_function(source, "add_parts", device), (blocks,), (256,), arguments, stream)


def epilogue_argument(epilogue: Epilogue, sums: str, bias: int) -> Any:
    """The kernels' `Epilogue`; `bias` is an address."""
    alpha: Any = {"float64": ctypes.c_double, "int32": ctypes.c_int}.get(sums, ctypes.c_float)
    fields = (("alpha", alpha), ("bias", ctypes.c_void_p))
    made = type("Epilogue", (ctypes.Structure,), {"_fields_": fields})
    return made(1 if sums == "int32" else epilogue.alpha, bias)
