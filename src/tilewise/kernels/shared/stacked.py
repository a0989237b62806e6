"""Stacks in one launch: a block's member of the stack is blockIdx.y (or .z), and its pointers step by that.

A stack of several axes is cut into runs: as many of its last axes as every operand steps through evenly (0 where it is
broadcast) make one run, which is one launch; the axes before them are walked on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from tilewise.kernels.shared.placed import members

GRID_LIMIT = 65535  # of blocks along y and z; longer runs come in several launches


@lru_cache(maxsize=512)
def stacked(source: str, pointers: tuple[str, ...], axis: str = "y") -> str:
    """The kernel's text with a step for each of these pointers as its last arguments."""
    above, mark, kernel = source.rpartition('extern "C" __global__')
    signature, opening, body = kernel.partition(")\n{\n")
    assert mark, "the text has no kernel"
    assert opening, "the kernel's body opens in some other way"
    steps = "".join(f", long long step_{name}" for name in pointers)
    moves = "".join(f"    {name} += blockIdx.{axis} * step_{name};\n" for name in pointers)
    return above + mark + signature + steps + opening + moves + body


class Runs:
    """The members of a stack, cut into runs that one launch can take."""

    def __init__(self, stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], most: int = GRID_LIMIT) -> None:
        """`strides`: each operand's, along the axes of the stack; `most`: members of one launch."""
        self._most = most
        inner = len(stack)
        while inner > 0 and (inner == len(stack) or all(_merges(x, stack, inner - 1) for x in strides)):
            inner -= 1
        self._outer, self._inner = stack[:inner], stack[inner:]
        self.count = 1
        for extent in self._inner:
            self.count *= extent
        self.steps = [x[-1] if stack else 0 for x in strides]

    def starts(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """(the index of a run's first member, how many members a launch takes from there)."""
        for outer in members(self._outer):
            for first in range(0, self.count, self._most):
                yield (*outer, *self._index(first)), min(self._most, self.count - first)

    def _index(self, number: int) -> tuple[int, ...]:
        index = []
        for extent in reversed(self._inner):
            number, rest = divmod(number, extent)
            index.append(rest)
        return tuple(reversed(index))


def _merges(strides: tuple[int, ...], stack: tuple[int, ...], axis: int) -> bool:
    """Whether one step along `axis` is as far as all members along the next one."""
    return strides[axis] == strides[axis + 1] * stack[axis + 1]
