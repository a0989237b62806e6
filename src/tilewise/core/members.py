"""The axes of a stack: which of them every operand steps through evenly, and how many members an operand has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewise.system.once import once


def merged_axes(stack: tuple[int, ...], strides: Sequence[tuple[int, ...]]) -> tuple[list[int], list[list[int]]]:
    """(extents, strides of each operand) of a stack's axes: those that every operand steps through evenly are one, and
    those of one member are none."""
    kept = [axis for axis, extent in enumerate(stack) if extent != 1]
    extents, steps = [stack[axis] for axis in kept], [[x[axis] for axis in kept] for x in strides]
    for at in reversed(range(len(extents) - 1)):
        if all(x[at] == extents[at + 1] * x[at + 1] for x in steps):
            extents[at : at + 2] = [extents[at] * extents[at + 1]]
            for x in steps:
                del x[at]
    return extents, steps


def even_members(stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], axes: int) -> int:
    """Members of a launch that steps evenly through so many axes."""
    return math.prod(stack if len(stack) <= axes else merged_axes(stack, strides)[0][-axes:])


def own_members(stack: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Members of an operand in memory: axes that it is broadcast over count once."""
    return math.prod([extent for extent, stride in zip(stack, strides, strict=True) if stride]) if stack else 1


class Stacked:
    """The numbers of a problem's stack."""

    if TYPE_CHECKING:
        stack: tuple[int, ...]
        layout_m: Any
        layout_n: Any
        layout_p: Any
        groups: Any

        @property
        def stack_n(self) -> tuple[int, ...]: ...

    @property
    def group_count(self) -> int:
        """Of groups; 0 where there are none."""
        return self.groups.count if self.groups else 0

    @property
    def axes(self) -> int:
        """Of the stack."""
        return len(self.stack)

    @property
    def strides(self) -> list[tuple[int, ...]]:
        """Those of M, N and P from member to member."""
        return [layout.stack for layout in (self.layout_m, self.layout_n, self.layout_p)]

    @once
    def own_m(self) -> int:
        """Members of M in memory: axes that it is broadcast over count once."""
        return own_members(self.stack, self.layout_m.stack)

    @once
    def own_n(self) -> int:
        """The same of N."""
        return own_members(self.stack_n, self.layout_n.stack)

    @once
    def together(self) -> int:
        """Members of a launch that steps evenly through two axes of the stack."""
        return even_members(self.stack, self.strides, 2)

    @once
    def in_a_row(self) -> int:
        """Members of a launch that steps evenly through one."""
        return even_members(self.stack, self.strides, 1)
