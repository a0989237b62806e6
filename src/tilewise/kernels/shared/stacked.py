"""Stacks in one launch: blockIdx.y (or .z) is the member, and offsets the pointers.

A stack of several axes is cut into runs: as many of its last axes as every operand steps through evenly (0 where it is
broadcast) make one run, which is one launch; the axes before them are walked on the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import mul

from tilewise.core.members import merged_axes
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.placed import members

GRID_LIMIT = 65535  # of blocks along y and z; longer runs come in several launches


@KeyedRenderer
def stacked(source: str, pointers: tuple[str, ...], axis: str = "y") -> str:
    """The kernel's text with a stride from member to member for each of these pointers as its last arguments."""
    above, mark, kernel = source.rpartition('extern "C" __global__')
    signature, opening, body = kernel.partition(")\n{\n")
    assert mark, "the text has no kernel"
    assert opening, "the kernel's body does not open with a brace on a line of its own"
    steps = "".join(f", long long step_{name}" for name in pointers)
    moves = "".join(f"    {name} += blockIdx.{axis} * step_{name};\n" for name in pointers)
    return above + mark + signature + steps + opening + moves + body


@KeyedRenderer
def with_member_loop(source: str, arguments: tuple[str, ...], pointers: tuple[str, ...]) -> str:
    """The kernel's text with a loop over members, from blockIdx.y on, behind one test of the guard: starting a block
    for each member only to exit would take longer. `arguments`: names of all the kernel's arguments."""
    above, mark, kernel = source.rpartition('extern "C" __global__')
    head, parameters, body = kernel.partition("(\n")[0], *kernel.partition("(\n")[2].split(")\n{\n", 1)
    steps = "".join(f", long long step_{name}" for name in pointers)
    given = ", ".join(f"{name} + i * step_{name}" if name in pointers else name for name in arguments)
    return f"""{above}static __device__ __forceinline__ void one_member(
{parameters})
{{
{body}
{mark}{head}(
{parameters}, int members{steps})
{{
    if (verdict && *verdict != wanted) return;
    for (int i = blockIdx.y; i < members; i += gridDim.y) {{
        one_member({given});
        __syncthreads();
    }}
}}
"""


class Levels:
    """The members of a stack in launches that walk some of its axes: those that every operand steps through evenly are
    one axis, axes of one member are none, and what is left beyond `axes` is walked on the host."""

    def __init__(
        self, stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], most: int = 2**30, axes: int = 2
    ) -> None:
        """`strides`: each operand's, along the axes of the stack; `most`: members of one launch."""
        extents, steps = merged_axes(stack, strides)
        missing = max(0, axes - len(extents))
        extents, steps = [1] * missing + extents, [[0] * missing + x for x in steps]
        self._most, self._host, self._inner = most, extents[:-axes], extents[-1]
        self._outer = math.prod(extents[-axes:-1])
        self._host_steps = [x[:-axes] for x in steps]
        self.steps = [(x[-1], x[-axes]) for x in steps]  # of each operand: along the inner axis, and the outer

    @property
    def members(self) -> int:
        """Of one launch, if it is not cut by `most`."""
        return self._outer * self._inner

    def starts(self) -> Iterator[tuple[list[int], int, int]]:
        """(elements from each operand's start to a launch's first member, members along its inner axis, its outer)."""
        if self._inner == self._outer == 1 and not self._host:  # what most products are
            yield [0] * len(self.steps), 1, 1
            return
        inner = min(self._inner, self._most)
        outer = max(1, self._most // max(1, self._inner))
        for index in members(tuple(self._host)):
            before = [sum(map(mul, index, x)) for x in self._host_steps]
            for o in range(0, self._outer, outer):
                for i in range(0, self._inner, inner):
                    at = [b + i * x[0] + o * x[1] for b, x in zip(before, self.steps, strict=True)]
                    yield at, min(inner, self._inner - i), min(outer, self._outer - o)


class Runs:
    """The members of a stack in launches along one axis."""

    def __init__(self, stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], most: int = GRID_LIMIT) -> None:
        self._levels = Levels(stack, strides, most, axes=1)
        self.together = min(self._levels.members, most)  # members of one launch
        self.steps = [step for step, _ in self._levels.steps]  # each operand's, from member to member

    def starts(self) -> Iterator[tuple[list[int], int]]:
        """(elements from each operand's start to a launch's first member, how many members it takes from there)."""
        return ((at, count) for at, count, _ in self._levels.starts())
