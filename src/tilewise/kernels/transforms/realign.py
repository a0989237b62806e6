"""Realigning: lines of an operand move onto 128-byte boundaries in scratch memory, so that the TMA or 16-byte copies
can take them (`realign.cu`). Lines are moved as 2-byte elements, whatever the operand's dtype."""

from __future__ import annotations

import math

from tilewise.core.problem import Layout, row_major
from tilewise.core.recipe import Address, Argument, Launch, structure
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.layouts import along_columns
from tilewise.kernels.shared.placed import Placed, broadcast, own_stack
from tilewise.kernels.shared.stacked import Runs
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.text import assembled

ELEMENT = "typedef unsigned short Element;  // 2 bytes, as bits\n"
SEGMENT = 1024  # elements of a line that a warp realigns at a time
LINE_BYTES = 128  # realigned lines start on such boundaries: a TMA box row that straddles two costs twice
LINES = 8  # of a block, as the kernel has them
SHORT = 256  # elements: up to here a thread takes eight elements of a line, beyond a warp takes segments
MOST_LINES = 2**31 - 256  # that one launch counts
ALONG, ENOUGH = 2, 1024  # blocks that share a line; more only where lines are too few for the card


DECLARED = "shared/lines.cuh", "transforms/realign.cu"
Lines, LinesOfStack = struct_of("Lines", *DECLARED), struct_of("LinesOfStack", *DECLARED)
NO_LINES, NOTHING = structure(Lines), structure(LinesOfStack)


@KeyedRenderer
def render_realign() -> str:
    files = "shared/dependent_launch.cuh shared/words.cuh shared/lines.cuh transforms/realign.cu"
    return assembled({"WORDS": SEGMENT // 256}, ELEMENT, files)


def _lead_to(x: Placed) -> int:
    """Elements from one realigned line to the next: whole boundaries, or of short lines as many as fit between two."""
    return realigned_bytes(x.lines[1] * x.dtype.itemsize) // x.dtype.itemsize


def realigned_bytes(length: int) -> int:
    """Bytes from a line of so many to the next."""
    if length <= LINE_BYTES // 2:
        return 16 if length <= 16 else 32 if length <= 32 else LINE_BYTES // 2
    return -(-length // LINE_BYTES) * LINE_BYTES


def scratch_bytes(x: Placed, stack: tuple[int, ...]) -> int:
    """Of an operand's realigned copy."""
    return math.prod(own_stack(x, stack)) * x.lines[0] * _lead_to(x) * x.dtype.itemsize


class Realigned:
    """An operand moved to `address`: where it then lies, and the lines to be moved."""

    def __init__(self, x: Placed, stack: tuple[int, ...], address: Address) -> None:
        count, length, lead = x.lines
        own, lead_to, halves = own_stack(x, stack), _lead_to(x), x.dtype.itemsize // 2
        strides = broadcast(own, row_major(count, lead_to, own).stack)
        columns = along_columns(x.layout, x.rows, x.cols)
        layout = Layout(1, lead_to, strides) if columns else Layout(lead_to, 1, strides)
        self.placed = Placed(address, x.dtype, x.rows, x.cols, layout)
        sizes = (count, length * halves, lead * halves, lead_to * halves)  # in 2-byte elements
        self.count, self.length = count, length * halves
        self._x, self._sizes = x, sizes
        runs = Runs(own, [x.layout.stack, strides], MOST_LINES // max(1, count))
        self.jobs: list[tuple[Argument, int]] = []  # what a launch moves, and how many lines that is
        for at, members in runs.starts():
            lines = structure(Lines, x.on(at[0]), self.placed.on(at[1]), *sizes)
            job = structure(LinesOfStack, lines, members, *(step * halves for step in runs.steps))
            self.jobs.append((job, count * members))

    @property
    def lines(self) -> Argument:
        """Those of the first member."""
        return structure(Lines, self._x.pointer, self.placed.pointer, *self._sizes)


def realign_launches(operands: list[Realigned]) -> list[Launch]:
    """Two stacks of matrices a launch: their tails overlap. Short lines and long ones go by kernels of their own."""
    jobs = [(job, count, x.length) for x in operands for job, count in x.jobs if count and x.length]
    launches = []
    for short in (True, False):
        alike = [job for job in jobs if (job[2] <= SHORT) == short]
        launches += [_launch(alike[first : first + 2], short) for first in range(0, len(alike), 2)]
    return launches


def _launch(pair: list[tuple[Argument, int, int]], short: bool) -> Launch:
    """`pair`: what is moved, its lines, their length."""
    arguments = (*(job for job, _, _ in pair), NOTHING)[:2]
    if short:
        blocks = max(math.ceil(count / (256 // math.ceil(length / 8))) for _, count, length in pair)
        grid = (blocks, 1, len(pair))
        return Launch.of(render_realign.key(), "realign_short", grid, (256,), arguments)
    across = math.ceil(max(count for _, count, _ in pair) / LINES)
    along = math.ceil(max(length for _, _, length in pair) / SEGMENT)
    along = min(along, max(ALONG, math.ceil(ENOUGH / across)))
    return Launch.of(render_realign.key(), "realign", (across, along, len(pair)), (256,), arguments)
