"""Arguments of Hopper's kernels: the size of a product, and tensor maps for the TMA."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.core.recipe import Address, Argument, TensorMap
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.structs import struct_of

HALF_BOX = 64  # 2-byte elements of a box row: one 128-byte row of the swizzled tile
NO_MAP = Argument(bytes(128))


Size = struct_of("Size", "shared/walk.cuh")


def half_map(
    address: Address, lines: int, length: int, lead: int, box_lines: int, stack: tuple[tuple[int, int], ...] = ()
) -> TensorMap:
    """Of matrices of 2-byte elements, `lead` elements from line to line; `stack`: (members, elements from one to the
    next) of its axes, where 0 means that all of them are one."""
    apart = tuple((1, 2 * lead) if not step else (members, 2 * step) for members, step in stack)
    return TensorMap(address, "uint16", lines, length, 2 * lead, HALF_BOX, box_lines, True, apart)


class RowClass(NamedTuple):
    """The rows of one alignment class, every `classes`-th of a matrix, from the 16-byte boundary before them on."""

    address: Address  # of the boundary
    rows: int
    length: int
    lead: int  # elements from one to the next
    before: int  # elements between the boundary and the first row


def row_classes(first: Address, rows: int, cols: int, lead: int, size: int, classes: int) -> list[RowClass]:
    """Of a matrix whose rows lie `lead` elements of `size` bytes apart."""
    made = []
    for at in range(classes):
        address = first + size * at * lead
        before = address % 16 // size
        some = max(1, -(-(rows - at) // classes))
        made.append(RowClass(address - address % 16, some, cols + before, classes * lead, before))
    return made


def half_map_of(x: Placed, address: Address, box_lines: int, stack: tuple[tuple[int, int], ...] = ()) -> TensorMap:
    """Of members, from the one at `address` on, of an operand whose lines start on 16-byte boundaries."""
    count, length, lead = x.lines
    return half_map(address, count, length, lead if count > 1 else -(-length // 8) * 8, box_lines, stack)
