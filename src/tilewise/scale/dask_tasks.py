"""The tasks of a Dask product: partial results of one tile over blocks of k, and the finished tile.

One class for each kind of partial result: sums, values with the winning k, values with fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.arrays.float8_scales import HostScales, scaled
from tilewise.backends.cpu.kernels.epilogue.run import HostEpilogue
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.problem import Problem
from tilewise.scale import host
from tilewise.scale.dask_blocks import BlockRecipe
from tilewise.scale.pieces import of_panels


@dataclass(frozen=True)
class BlockStep:
    """A range of k within one block of M and one of N: its first k, the blocks' numbers, and the range in each."""

    first: int
    block_m: int
    part_m: slice
    block_n: int
    part_n: slice


class Blocks(list[Any]):
    """A list that Dask does not search for keys."""


def records(shape: tuple[int, ...], dtype: Any, fields: Iterable[Any]) -> Array:
    """Fields as one array of records."""
    made = np.empty(shape, dtype)
    for name, field in zip(made.dtype.names or (), fields, strict=True):
        made[name] = field
    return made


class TileTask:
    """The tasks of one tile of P; `extents`: of its stack, its rows and its columns."""

    extents: tuple[int, ...] = ()

    def of_tile(self, extents: tuple[int, ...], firsts: tuple[int, ...]) -> Self:
        """The task of one tile; `firsts`: its first row and column in P."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, extents=extents)
        made.restrict_to_tile(firsts)
        return made

    def restrict_to_tile(self, firsts: tuple[int, ...]) -> None:
        """Restrict the problem to this tile."""

    def multiply_all(self, blocks: Any) -> Any:
        """All steps in one task, with blocks that are computed here and dropped after use."""
        partial: Any = None
        kept: list[Any] = [None, None]
        for step, left, right in blocks:
            for side, recipe in enumerate((left, right)):
                if kept[side] is None or kept[side][0] != recipe.key:
                    kept[side] = None  # freed before the next block is computed
                    kept[side] = (recipe.key, recipe.make())
            partial = self.add(partial, step.first, kept[0][1][..., step.part_m], kept[1][1][..., step.part_n, :])
        return self.zero_tile() if partial is None else partial

    def step(self, previous: Any, steps: Any, left: Any, right: Any) -> Any:
        """One step of a chain; `previous` is another task's result, so it is copied before it is written."""
        step, *declared = steps
        M, N = (
            x.make() if isinstance(x, BlockRecipe) else expected.check(x)
            for x, expected in zip((left, right), declared, strict=True)
        )
        partial = None if previous is None else previous.copy()
        return self.add(partial, step.first, M[..., step.part_m], N[..., step.part_n, :])

    def finish(self, parts: list[Any], bias: Array | None = None) -> Array:
        """The tile, from its parts over k in order."""
        partial = parts[0] if parts else self.zero_tile()
        with np.errstate(all="ignore"):
            for part in parts[1:]:
                partial = self.merged(partial, part)
            return self.rounded(partial, bias)

    def zero_tile(self) -> Any:
        raise NotImplementedError

    def add(self, partial: Any, first: int, M: Array, N: Array) -> Any:
        """`partial` ⊕ the product of two blocks that begin at k = `first`; `partial` may be overwritten."""
        raise NotImplementedError

    def merged(self, partial: Any, later: Any) -> Any:
        raise NotImplementedError

    def rounded(self, partial: Any, bias: Array | None) -> Array:
        raise NotImplementedError


class SumsTask(TileTask):
    """Sums in the accumulator's dtype; the epilogue or the scales are applied before rounding."""

    def __init__(
        self, problem: Problem, device: str, epilogue: Epilogue = PLAIN, scales: HostScales | None = None
    ) -> None:
        self.problem, self.device, self.epilogue, self.scales = problem, device, epilogue, scales

    def restrict_to_tile(self, firsts: tuple[int, ...]) -> None:
        self.problem = replace(self.problem, m=self.extents[-2], n=self.extents[-1])
        if self.scales is not None:
            factor, *sides = self.scales
            rows, columns = (
                x if x is None or x.size == 1 else x.reshape(-1)[first : first + extent]
                for x, first, extent in zip(sides, firsts, self.extents[-2:], strict=True)
            )
            self.scales = factor, rows, columns

    def zero_tile(self) -> Array:
        return np.full(self.extents, self.problem.algebra.zero, self.problem.result.numpy)

    def merged(self, partial: Array, later: Array) -> Array:
        made: Array = self.problem.algebra.add(partial, later)
        return made

    def rounded(self, partial: Array, bias: Array | None) -> Array:
        result = self.problem.semiring.over(self.problem.dtype).result.numpy
        if self.epilogue:
            sums = partial.copy()
            return HostEpilogue(self.epilogue, sums, result, False)(sums, bias)
        made = partial if self.scales is None else scaled(partial.copy(), *self.scales)
        return made.astype(result, copy=False)

    def add(self, partial: Array | None, first: int, M: Array, N: Array) -> Array:
        fresh = partial is None
        P = np.empty(self.extents, self.problem.result.numpy) if partial is None else partial
        left, right = (np.broadcast_to(x, (*self.extents[:-2], *x.shape[-2:])) for x in (M, N))
        for member in np.ndindex(self.extents[:-2]):
            self._multiply(left[member], right[member], P[member], not fresh)
        return P

    def _multiply(self, M: Array, N: Array, P: Array, accumulate: bool) -> None:
        if not self._on_card():
            host.multiply(self.problem, M, N, P, accumulate)
            return
        from tilewise.backends.cuda.device import describe
        from tilewise.backends.cuda.host import multiply_on_device
        from tilewise.planning.choose import make_plan
        from tilewise.planning.launchers import launcher_of

        M, N = np.ascontiguousarray(M), np.ascontiguousarray(N)
        plan = make_plan(of_panels(self.problem, M, N, P, accumulate), describe("cuda:0"))
        multiply_on_device(launcher_of(plan, "cuda:0"), accumulate, M, N, P)

    def _on_card(self) -> bool:
        from tilewise.arrays.card import card_count

        return self.device.startswith("cuda") or (self.device == "auto" and card_count() > 0)


class ArgTask(TileTask):
    """Records of values in the accumulator's dtype and their winning k."""

    def __init__(self, problem: Problem, device: str, matmul: Callable[..., Any] | None) -> None:
        assert matmul is not None
        self.problem, self.device, self.matmul = problem, device, matmul

    def _records(self, value: Any, arg: Any, dtype: Any) -> Array:
        return records(self.extents, [("value", dtype), ("arg", np.int64)], (value, arg))

    def zero_tile(self) -> Array:
        return self._records(self.problem.algebra.zero, -1, self.problem.result.numpy)

    def add(self, partial: Array | None, first: int, M: Array, N: Array) -> Array:
        p, wide = self.problem, self.problem.algebra.partial
        if wide.kind in "fc":  # rounded values would have more ties
            M, N = M.astype(wide.numpy, copy=False), N.astype(wide.numpy, copy=False)
        device = self.device if self.device.startswith("cuda") else "auto"
        value, arg = self.matmul(M, N, semiring=p.semiring, precision=p.precision, device=device, return_arg=True)
        made = self._records(value, np.where(arg < 0, arg, arg + first), value.dtype)
        return made if partial is None else self.merged(partial, made)

    def merged(self, partial: Array, later: Array) -> Array:
        """The better values with their k; on a tie the earlier, lower k wins."""
        old, new = partial["value"], later["value"]
        best = self.problem.algebra.add(old, new)
        better = (later["arg"] >= 0) & ((partial["arg"] < 0) | ((best != old) & (best == new)))
        return np.where(better, later, partial)

    def rounded(self, partial: Array, bias: Array | None) -> Array:
        result = self.problem.semiring.over(self.problem.dtype).result.numpy
        return self._records(partial["value"], partial["arg"], result)


class FieldsTask(TileTask):
    """Values with fields, as records."""

    def __init__(self, algebra: StructuredAlgebra, result: np.dtype[Any], matmul: Callable[..., Any]) -> None:
        self.algebra, self.result, self.matmul = algebra, result, matmul

    def zero_tile(self) -> Array:
        return records(self.extents, self.result, self.algebra.zero)

    def add(self, partial: Array | None, first: int, M: Array, N: Array) -> Array:
        made: Array = self.matmul(M, N, semiring=self.algebra.semiring)
        return made if partial is None else self.merged(partial, made)

    def merged(self, partial: Array, later: Array) -> Array:
        x, y = ([side[name] for name in self.algebra.semiring.fields] for side in (partial, later))
        return records(self.extents, self.result, self.algebra.evaluate(self.algebra.semiring.add, x=x, y=y))

    def rounded(self, partial: Array, bias: Array | None) -> Array:
        return partial
