"""Operands of any layout transposed into rows with k side by side, in scratch memory: one launch for one or both."""

from __future__ import annotations

import math

from tilewise.core.recipe import Address, Argument, Launch, structure
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.stacked import GRID_LIMIT
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.shared.text import assembled

BLOCK_LINES, BLOCK_BYTES = 64, 128  # of a block, as the kernel has it
MOST_LINES = GRID_LIMIT * BLOCK_LINES  # of a launch
ROUNDED = (  # float32, to the nearest tf32 on the way, ties to even as the copy engine has them
    "typedef float Element;\n"
    "static __device__ __forceinline__ unsigned as_bits(Element x) {\n"
    '    unsigned bits;\n    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));\n    return bits;\n}\n'
)
WHOLE = "typedef {} Element;\nstatic __device__ __forceinline__ unsigned as_bits(Element x) {{ return x; }}\n"
ELEMENTS = {1: WHOLE.format("unsigned char"), 2: WHOLE.format("unsigned short"), 4: ROUNDED}  # by bytes


_Operand = struct_of("Operand", "transforms/transpose.cu")


class Lines:
    """An operand as lines along k: the rows of M, or the columns of N. Transposed ones start on boundaries of so many
    bytes, and are 0 behind k up to the next line."""

    def __init__(self, x: Placed, of_m: bool, boundary: int = BLOCK_BYTES) -> None:
        self.x, self.size = x, x.dtype.itemsize
        self.lines, self.k = (x.rows, x.cols) if of_m else (x.cols, x.rows)
        row, col = x.layout.row, x.layout.col
        self.stride, self.k_stride = (row, col) if of_m else (col, row)
        self.lead_to = -(-self.k * self.size // boundary) * boundary  # bytes from line to line, once transposed

    @property
    def bytes(self) -> int:
        return self.lines * self.lead_to

    def transposed(self, member: tuple[int, ...], to: Address, first: int) -> Argument:
        """What a launch transposes of it, from line `first` on."""
        along_k = abs(self.k_stride) <= abs(self.stride) or self.lines == 1
        source, lines = self.x.member(member) + first * self.stride * self.size, min(MOST_LINES, self.lines - first)
        strides = (self.stride, self.k_stride, self.lead_to // 4)
        return structure(_Operand, source, to + first * self.lead_to, lines, self.k, *strides, along_k)


@KeyedRenderer
def render_transpose(size: int) -> str:
    """`size`: bytes of an element."""
    return assembled(ELEMENTS[size], "shared/dependent_launch.cuh transforms/transpose.cu")


def transposing(sides: list[tuple[Lines, Address]], member: tuple[int, ...]) -> list[Launch]:
    """One operand or both, each to its place: in one launch, if a grid has blocks for all lines."""
    made, text = list[Launch](), render_transpose.key(sides[0][0].size)
    wide = max(math.ceil(x.k * x.size / BLOCK_BYTES) for x, _ in sides) or 1
    most = max(x.lines for x, _ in sides)
    for first in range(0, most, MOST_LINES):
        given = [x.transposed(member, to, first) for x, to in sides if not first or x.lines > first]
        high = math.ceil(min(MOST_LINES, most - first) / BLOCK_LINES)
        made.append(Launch.of(text, "transpose", (wide, high, len(given)), (256,), (given[0], given[-1])))
    return made
