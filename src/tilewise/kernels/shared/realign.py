"""Realigning: lines of an operand move onto 128-byte boundaries in scratch memory, so that the TMA or 16-byte copies
can take them (`realign.cu`). Lines are moved as 2-byte elements, whatever the operand's dtype."""

from __future__ import annotations

import ctypes
import math
from functools import lru_cache

from tilewise.kernels.shared.layouts import along_columns, contiguous_lines
from tilewise.kernels.shared.placed import Placed, members, own_stack
from tilewise.kernels.shared.text import kernel_text
from tilewise.problem import Layout, row_major
from tilewise.recipe import Address, Argument, Launch, structure

ELEMENT = "typedef unsigned short Element;  // 2 bytes, as bits\n"
SEGMENT = 1024  # elements of a line that a warp realigns at a time
LINE_BYTES = 128  # realigned lines start on such boundaries: a TMA box row that straddles two costs twice
LINES = 8  # of a block, as the kernel has them
ALONG, ENOUGH = 2, 1024  # blocks that share a line; more only where lines are too few for the card


class Lines(ctypes.Structure):
    """The kernel's `Lines`: a matrix, and where its lines go."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("to", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("length", ctypes.c_int),
        ("lead", ctypes.c_longlong),
        ("lead_to", ctypes.c_longlong),
    )


NO_LINES = structure(Lines)


@lru_cache(maxsize=1)
def render_realign() -> str:
    names = ("shared/ptx.cuh", "shared/words.cuh", "shared/lines.cuh", "shared/realign.cu")
    return "\n".join((f"#define WORDS {SEGMENT // 256}", ELEMENT, *map(kernel_text, names)))


def lines_of(x: Placed) -> tuple[int, int, int]:
    """(lines, length, lead) of a matrix that has them, in elements."""
    lines = contiguous_lines(x.layout, x.rows, x.cols)
    assert lines is not None
    return lines


def _lead_to(x: Placed) -> int:
    """Elements from one realigned line to the next."""
    return -(-lines_of(x)[1] * x.dtype.itemsize // LINE_BYTES) * LINE_BYTES // x.dtype.itemsize


def scratch_bytes(x: Placed, stack: tuple[int, ...]) -> int:
    """Of an operand's realigned copy."""
    return math.prod(own_stack(x, stack)) * lines_of(x)[0] * _lead_to(x) * x.dtype.itemsize


class Realigned:
    """An operand moved to `address`: where it then lies, and the lines to be moved."""

    def __init__(self, x: Placed, stack: tuple[int, ...], address: Address) -> None:
        count, length, lead = lines_of(x)
        own, lead_to, halves = own_stack(x, stack), _lead_to(x), x.dtype.itemsize // 2
        fresh = row_major(count, lead_to, own).stack
        strides = tuple(0 if extent == 1 else stride for extent, stride in zip(own, fresh, strict=True))
        first = (0,) * len(own)
        columns = along_columns(x.layout, x.rows, x.cols)
        layout = Layout(1, lead_to, strides) if columns else Layout(lead_to, 1, strides)
        self.placed = Placed(address, x.dtype, x.rows, x.cols, layout)
        if _continues(x.layout.stack, own, count * lead) and _continues(strides, own, count * lead_to):
            count, own = count * math.prod(own), ()  # members go on where the last one's lines end
        self.count, self.length = count, length * halves  # in 2-byte elements
        self.jobs: list[Argument] = [
            structure(
                Lines,
                x.member(index or first),
                self.placed.member(index or first),
                count,
                length * halves,
                lead * halves,
                lead_to * halves,
            )
            for index in members(own)
        ]


def _continues(strides: tuple[int, ...], own: tuple[int, ...], each: int) -> bool:
    """Whether members lie one behind the other, `each` elements apart."""
    for extent, stride in zip(reversed(own), reversed(strides), strict=True):
        if extent > 1 and stride != each:
            return False
        each *= extent
    return True


def realign_launches(operands: list[Realigned]) -> list[Launch]:
    """Two matrices a launch: their tails overlap."""
    jobs = [(job, x.count, x.length) for x in operands for job in x.jobs]
    launches = []
    for first in range(0, len(jobs), 2):
        pair = jobs[first : first + 2]
        across = math.ceil(max(count for _, count, _ in pair) / LINES)
        along = math.ceil(max(length for _, _, length in pair) / SEGMENT)
        along = min(along, max(ALONG, math.ceil(ENOUGH / across)))
        arguments = (*(job for job, _, _ in pair), NO_LINES)[:2]
        launches.append(Launch.of(render_realign(), "realign", (across, along, len(pair)), (256,), arguments))
    return launches
