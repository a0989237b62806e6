"""Stacks in one launch: blockIdx.y (or .z) is the member, and offsets the pointers.

A stack of several axes is cut into runs: as many of its last axes as every operand steps through evenly (0 where it is
broadcast) make one run, which is one launch; the axes before them are walked on the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul

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


class Runs:
    """The members of a stack, cut into runs that one launch can take."""

    def __init__(self, stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], most: int = GRID_LIMIT) -> None:
        """`strides`: each operand's, along the axes of the stack; `most`: members of one launch."""
        self.most, self._rank = most, len(stack)
        self._axes: list[int] = []
        self._outer: tuple[int, ...] = ()
        self._inner: tuple[int, ...] = ()
        self.count, self.steps = 1, [0] * len(strides)
        if not stack:
            return
        self._axes, stack, strides = _without_single_axes(stack, strides)
        inner = len(stack)
        while inner > 0 and (inner == len(stack) or all(_merges(x, stack, inner - 1) for x in strides)):
            inner -= 1
        self._outer, self._inner = stack[:inner], stack[inner:]
        for extent in self._inner:
            self.count *= extent
        self.steps = [x[-1] if stack else 0 for x in strides]

    def starts(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """(the index of a run's first member, how many members a launch takes from there)."""
        for outer in members(self._outer):
            for first in range(0, self.count, self.most):
                yield self._index(outer, first), min(self.most, self.count - first)

    def _index(self, outer: tuple[int, ...], number: int) -> tuple[int, ...]:
        index = []
        for extent in reversed(self._inner):
            number, rest = divmod(number, extent)
            index.append(rest)
        whole = [0] * self._rank
        for axis, at in zip(self._axes, (*outer, *reversed(index)), strict=True):
            whole[axis] = at
        return tuple(whole)


class Levels:
    """The members of a stack in launches that walk two of its axes: those that every operand steps through evenly are
    one axis, axes of one member are none, and what is left beyond two is walked on the host."""

    def __init__(self, stack: tuple[int, ...], strides: Sequence[tuple[int, ...]], most: int = 2**30) -> None:
        """`strides`: each operand's, along the axes of the stack; `most`: members of one launch."""
        if not stack:
            self._most, self._outer, self._inner = most, 1, 1
            self._host: list[int] = []
            self._host_steps: list[list[int]] = [[] for _ in strides]
            self.steps = [(0, 0)] * len(strides)
            return
        _, stack, strides = _without_single_axes(stack, strides)
        extents, steps = list(stack), [list(x) for x in strides]
        for at in reversed(range(len(stack) - 1)):
            if all(_merges(tuple(x), tuple(extents), at) for x in steps):
                extents[at : at + 2] = [extents[at] * extents[at + 1]]
                for x in steps:
                    del x[at]
        while len(extents) < 2:
            extents.insert(0, 1)
            for x in steps:
                x.insert(0, 0)
        self._most, self._host, (self._outer, self._inner) = most, extents[:-2], extents[-2:]
        self._host_steps = [x[:-2] for x in steps]
        self.steps = [(x[-1], x[-2]) for x in steps]  # of each operand: along the inner axis, and the outer

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


def _without_single_axes(
    stack: tuple[int, ...], strides: Sequence[tuple[int, ...]]
) -> tuple[list[int], tuple[int, ...], list[tuple[int, ...]]]:
    """(the axes of more or less than one member, their extents, each operand's strides along them)."""
    axes = [axis for axis, extent in enumerate(stack) if extent != 1]
    return axes, tuple(stack[a] for a in axes), [tuple(x[a] for a in axes) for x in strides]


def _merges(strides: tuple[int, ...], stack: tuple[int, ...], axis: int) -> bool:
    """Whether one step along `axis` is as far as all members along the next one."""
    return strides[axis] == strides[axis + 1] * stack[axis + 1]
