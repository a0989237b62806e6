"""Blocks of Dask arrays as arguments of tasks: recipes that the task itself computes if that is cheap, else keys of
other tasks; each block is checked against its declared shape and dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array
from tilewise.arrays.extent import check_block

CHEAP_NODES = 16  # most nodes in the graph of a cheap block
CHEAP_BYTES = 64 * 1024  # largest array in such a graph


class BlockedOperand:
    """An operand; `cheap`: its blocks are computed inside the tasks that need them."""

    def __init__(self, array: Any, name: str) -> None:
        import dask

        self.array, self.name = array, name
        (optimized,) = dask.optimize(array)  # same keys, without futures of persisted blocks
        self._graph = dict(optimized.__dask_graph__())
        self._dependencies: dict[Any, Any] = {}
        corners = {(0,) * array.ndim, tuple(count - 1 for count in array.numblocks)}
        expensive = 0 in array.numblocks or _holds_futures(array)
        self.cheap = not expensive and all(self._is_cheap(self._recipe(corner)) for corner in corners)

    def block(self, index: tuple[int, ...]) -> Any:
        """The argument of a task: the recipe of a block, or its key."""
        return BlockRecipe(*self._recipe(index), self.declared(index)) if self.cheap else (self.array.name, *index)

    def declared(self, index: tuple[int, ...]) -> DeclaredBlock:
        shape = tuple(chunks[i] for chunks, i in zip(self.array.chunks, index, strict=True))
        return DeclaredBlock(f"block {index} of {self.name}", shape, self.array.dtype)

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
    """Whether the graph has futures of a cluster, whose blocks a task cannot compute."""
    return any(type(getattr(node, "value", node)).__name__ == "Future" for node in array.__dask_graph__().values())


@dataclass(frozen=True)
class DeclaredBlock:
    """The declared shape and dtype of a block. Dask does not check them, and kernels rely on them."""

    role: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def check(self, value: Any) -> Array:
        return check_block(value, self.role, self.shape, self.dtype)


@dataclass(frozen=True)
class BlockRecipe:
    """A small graph that computes a block; opaque to Dask."""

    graph: dict[Any, Any]
    key: Any
    declared: DeclaredBlock

    def make(self) -> Array:
        import dask

        return self.declared.check(dask.get(self.graph, self.key))
