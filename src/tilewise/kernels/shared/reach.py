"""The extent in memory of a stack of matrices: kernels that read unaligned rows by 16 bytes stay inside."""

from __future__ import annotations

import ctypes

from tilewise.core.recipe import Argument, structure
from tilewise.kernels.shared.placed import Placed


class Reach(ctypes.Structure):
    """The kernels' `Reach`."""

    _fields_ = (("low", ctypes.c_longlong), ("high", ctypes.c_longlong))


def reach_of(x: Placed, step: int, members: int) -> Argument:
    lines, length, lead = x.lines
    last = (members - 1) * step
    return structure(Reach, min(0, last), max(0, last) + (lines - 1) * lead + length)
