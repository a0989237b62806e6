"""Products of Dask arrays: one task computes one tile of P, loops over k and reads its panels itself.

Dask's own product makes a task for every pair of blocks and keeps whole operands alive between them. Here a block that
is cheap to compute (read from a store, or by a short graph) is computed inside the task that needs it and dropped after
use: a worker holds tiles, not operands. Blocks that are expensive, or already in the cluster's memory, are
dependencies, one for each step of a chain.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_of
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.extent import check_block
from tilewise.arrays.labelled import check_plain
from tilewise.core.problem import Problem, problem_of_shape
from tilewise.core.shapes import written
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.scale import host
from tilewise.scale.pieces import of_panels

Array = np.ndarray[Any, np.dtype[Any]]

CHEAP_NODES = 16  # of the graph of a block
CHEAP_BYTES = 64 * 1024  # that such a graph may carry
SPLIT_BLOCKS = 4  # blocks of k in each part at least, where k is split
SPLIT_TASKS = 4  # tasks per thread of the cluster that split-K aims at


def dask_matmul(M: Any, N: Any, semiring: str | Semiring, device: str = "auto", precision: str = "high") -> Any:
    """The product as a Dask array; nothing is multiplied yet."""
    import dask.array as da
    from dask.base import tokenize
    from dask.highlevelgraph import HighLevelGraph

    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"device={device!r}: workers take 'auto' (a card where there is one), 'cpu' or 'cuda'")
    ring = find_semiring(semiring)
    M, N = _operands(M, N, da)
    m, k, n = M.shape[0], M.shape[1], N.shape[1]
    of_m, of_n = dtype_of(M.dtype), dtype_of(N.dtype)
    problem = problem_of_shape(m, k, n, of_m, ring, dtype_n=of_n, precision=precision, unrounded=True)
    result = ring.over(problem.dtype).result.numpy
    name = f"tilewise-{tokenize(M, N, ring, device, precision)}"
    sides = BlockedOperand(M, "M", transposed=False), BlockedOperand(N, "N", transposed=True)
    layer: dict[Any, Any] = {}
    steps = list(_steps(M.chunks[1], N.chunks[0]))
    parts = _parts(steps, len(M.chunks[0]) * len(N.chunks[1]))
    for i, rows in enumerate(M.chunks[0]):
        for j, cols in enumerate(N.chunks[1]):
            tile = TileTask(replace(problem, m=rows, n=cols), device)
            ends = [_one_part(layer, name, (i, j, number), tile, sides, part) for number, part in enumerate(parts)]
            layer[(name, i, j)] = (tile.finish, ends)
    kept = [side.array for side in sides if not side.cheap]
    graph = HighLevelGraph.from_collections(name, layer, dependencies=kept)
    return da.Array(graph, name, chunks=(M.chunks[0], N.chunks[1]), meta=np.empty((0, 0), result))


def _operands(M: Any, N: Any, da: Any) -> tuple[Any, Any]:
    arrays = []
    for name, array in (("M", M), ("N", N)):
        if not isinstance(array, da.Array):
            check_plain(array, name)
            array = da.from_array(np.asarray(array), chunks="auto")
        if type(getattr(array, "_meta", None)).__name__ == "MaskedArray":
            raise DtypeError(f"{name} has masked blocks, and a product would lose their mask: fill them first")
        if array.ndim != 2:
            raise ShapeError(f"{name} has {array.ndim} axes: products of Dask arrays are of matrices, which have 2")
        if any(math.isnan(extent) for extent in array.shape):
            raise ShapeError(f"{name} has chunks of unknown size: call {name}.compute_chunk_sizes() first")
        arrays.append(array)
    if arrays[0].shape[1] != arrays[1].shape[0]:
        raise ShapeError(
            f"M is {written(arrays[0].shape)} and N is {written(arrays[1].shape)}: the {arrays[0].shape[1]} columns of "
            f"M do not meet the {arrays[1].shape[0]} rows of N; they must be equal"
        )
    return arrays[0], arrays[1]


@dataclass(frozen=True)
class BlockStep:
    """A range of k within one block of M and one of N: the blocks' indices, and the range in each."""

    block_m: int
    part_m: slice
    block_n: int
    part_n: slice


def _steps(chunks_m: tuple[int, ...], chunks_n: tuple[int, ...]) -> Iterator[BlockStep]:
    """k cut where either operand is cut, so that chunks need not match."""
    edges = [np.concatenate(([0], np.cumsum(chunks))).astype(int) for chunks in (chunks_m, chunks_n)]
    for start, stop in pairwise(np.union1d(edges[0], edges[1]).tolist()):
        blocks = [int(np.searchsorted(edge, start, "right")) - 1 for edge in edges]
        first = [int(edge[block]) for edge, block in zip(edges, blocks, strict=True)]
        yield BlockStep(
            blocks[0], slice(start - first[0], stop - first[0]), blocks[1], slice(start - first[1], stop - first[1])
        )


def _parts(steps: list[BlockStep], tiles: int) -> list[list[BlockStep]]:
    """k in one part where there are enough tiles for all threads, else split to keep the cluster busy."""
    wanted = math.ceil(SPLIT_TASKS * _threads() / max(1, tiles))
    count = max(1, min(wanted, len(steps) // SPLIT_BLOCKS))
    size = math.ceil(len(steps) / count) if steps else 1
    return [steps[first : first + size] for first in range(0, len(steps), size)]


def _threads() -> int:
    """Threads of the current cluster, or of this machine."""
    try:
        from distributed import get_client

        return max(1, int(sum(get_client().nthreads().values())))
    except (ImportError, ValueError):
        return os.cpu_count() or 1


class BlockedOperand:
    """An operand, and whether its blocks are computed inside the tasks that need them."""

    def __init__(self, array: Any, name: str, transposed: bool) -> None:
        import dask

        self.array, self.name, self.transposed = array, name, transposed
        (optimized,) = dask.optimize(array)  # of the same keys, but without the futures of blocks that are persisted
        self._graph = dict(optimized.__dask_graph__())
        self._dependencies: dict[Any, Any] = {}
        corners = {(0, 0), tuple(count - 1 for count in array.numblocks)}
        expensive = 0 in array.numblocks or _holds_futures(array)
        self.cheap = not expensive and all(self._is_cheap(self._recipe(corner)) for corner in corners)

    def key(self, line: int, block: int) -> Any:
        return (self.array.name, *((block, line) if self.transposed else (line, block)))

    def block(self, line: int, block: int) -> Any:
        """The argument of a task: the recipe of a block, or its key."""
        return (
            BlockRecipe(*self._recipe((block, line) if self.transposed else (line, block)), self.declared(line, block))
            if self.cheap
            else self.key(line, block)
        )

    def declared(self, line: int, block: int) -> DeclaredBlock:
        i, j = (block, line) if self.transposed else (line, block)
        shape = self.array.chunks[0][i], self.array.chunks[1][j]
        return DeclaredBlock(f"block ({i}, {j}) of {self.name}", shape, self.array.dtype)

    def _recipe(self, index: tuple[int, ...]) -> tuple[dict[Any, Any], Any]:
        from dask.core import get_dependencies

        key = (self.array.name, *index)
        found: dict[Any, Any] = {}
        waiting = [key]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found[name] = self._graph[name]
                if name not in self._dependencies:
                    self._dependencies[name] = tuple(get_dependencies(self._graph, name))
                waiting += self._dependencies[name]
                if len(found) > CHEAP_NODES:
                    break
        return found, key

    @staticmethod
    def _is_cheap(recipe: tuple[dict[Any, Any], Any]) -> bool:
        graph, _ = recipe
        if len(graph) > CHEAP_NODES:
            return False
        for node in graph.values():
            value = getattr(node, "value", node)
            plain = isinstance(value, np.ndarray) and not isinstance(value, np.memmap)
            if plain and value.nbytes > CHEAP_BYTES:
                return False
        return True


def _holds_futures(array: Any) -> bool:
    """Whether the graph holds futures of a cluster, whose blocks a task cannot compute again."""
    return any(type(getattr(node, "value", node)).__name__ == "Future" for node in array.__dask_graph__().values())


@dataclass(frozen=True)
class DeclaredBlock:
    """The declared shape and dtype of a block. Dask does not check them, and kernels rely on them."""

    role: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def check(self, value: Any) -> Array:
        return check_block(value, self.role, self.shape, self.dtype)


@dataclass(frozen=True)
class BlockRecipe:
    """How a block is computed: a small graph that is opaque to Dask."""

    graph: dict[Any, Any]
    key: Any
    declared: DeclaredBlock

    def make(self) -> Array:
        import dask

        return self.declared.check(dask.get(self.graph, self.key))


def _one_part(
    layer: dict[Any, Any], name: str, place: tuple[int, int, int], tile: TileTask, sides: Any, steps: Any
) -> Any:
    """The tasks of one part of k for one tile; the key of the last one."""
    key: Any
    i, j, number = place
    if all(side.cheap for side in sides):
        key = (f"{name}-part", i, j, number)
        blocks = [(step, sides[0].block(i, step.block_m), sides[1].block(j, step.block_n)) for step in steps]
        layer[key] = (tile.walk, Blocks(blocks))
        return key
    before: Any = None
    for at, step in enumerate(steps):
        key = (f"{name}-step", i, j, number, at)
        layer[key] = (
            tile.step,
            before,
            Blocks([step, sides[0].declared(i, step.block_m), sides[1].declared(j, step.block_n)]),
            sides[0].block(i, step.block_m),
            sides[1].block(j, step.block_n),
        )
        before = key
    return before


class Blocks(list[Any]):
    """A list without keys, which Dask does not traverse."""


class TileTask:
    """The work for one tile of P."""

    def __init__(self, problem: Problem, device: str) -> None:
        self.problem, self.device = problem, device

    def walk(self, blocks: Any) -> Array:
        """All steps, with blocks that are computed here and dropped after use."""
        sums: Array | None = None
        kept: list[Any] = [None, None]
        for step, left, right in blocks:
            for side, recipe in enumerate((left, right)):
                if kept[side] is None or kept[side][0] != recipe.key:
                    kept[side] = None  # before the next one is made
                    kept[side] = (recipe.key, recipe.make())
            sums = self._add(sums, kept[0][1][:, step.part_m], kept[1][1][step.part_n])
        return self._nothing() if sums is None else sums

    def step(self, before: Array | None, steps: Any, left: Any, right: Any) -> Array:
        """One step of a chain: the sums before are another task's result, so they are copied first."""
        step, *declared = steps
        M, N = (
            x.make() if isinstance(x, BlockRecipe) else expected.check(x)
            for x, expected in zip((left, right), declared, strict=True)
        )
        return self._add(None if before is None else before.copy(), M[:, step.part_m], N[step.part_n])

    def finish(self, parts: list[Array]) -> Array:
        """The sum of the parts of k, in order, rounded to P's dtype."""
        algebra = self.problem.algebra
        sums = parts[0] if parts else self._nothing()
        with np.errstate(all="ignore"):
            for part in parts[1:]:
                sums = algebra.add(sums, part)
            result: Array = sums.astype(self.problem.semiring.over(self.problem.dtype).result.numpy, copy=False)
        return result

    def _nothing(self) -> Array:
        return np.full((self.problem.m, self.problem.n), self.problem.algebra.zero, self.problem.result.numpy)

    def _add(self, sums: Array | None, M: Array, N: Array) -> Array:
        fresh = sums is None
        P = np.empty((self.problem.m, self.problem.n), self.problem.result.numpy) if sums is None else sums
        if self._card():
            from tilewise.backends.cuda.device import describe
            from tilewise.backends.cuda.host import multiply_on_device
            from tilewise.planning.choose import make_plan
            from tilewise.planning.launchers import launcher_of

            M, N = np.ascontiguousarray(M), np.ascontiguousarray(N)
            plan = make_plan(of_panels(self.problem, M, N, P, not fresh), describe("cuda:0"))
            multiply_on_device(launcher_of(plan, "cuda:0"), not fresh, M, N, P)
        else:
            host.multiply(self.problem, M, N, P, not fresh)
        return P

    def _card(self) -> bool:
        from tilewise.arrays.card import card_count

        return self.device.startswith("cuda") or (self.device == "auto" and card_count() > 0)
