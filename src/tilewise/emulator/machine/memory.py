"""Memory: typed buffers (global and shared), cells (local arrays and structs), and pointers into both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.emulator.machine.arithmetic import Value, poison, select
from tilewise.emulator.machine.costs import distinct
from tilewise.errors import EngineError


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()
ZERO = np.int64(0)
NULL = np.int64(-(1 << 40))  # the offset of a pointer that is null in some lanes only


@dataclass
class MatrixView:
    """A buffer as a matrix: `pitch` elements from row to row, `cells` cells per element."""

    rows: int
    cols: int
    pitch: int
    cells: int = 1


class Buffer:
    """Flat typed memory. Shared buffers have one instance per block: lane i's starts at `base[i]`."""

    def __init__(
        self, name: str, space: str, data: np.ndarray, size: int, dims: tuple[int, ...] = (), index: int = -1
    ) -> None:
        self.name = name
        self.space = space
        self.data = data
        self.size = size  # cells of one instance
        self.dims = dims
        self.index = index  # in Trace.names
        self.base: Any = None
        self.matrix: MatrixView | None = None
        self.poison = poison(data.dtype)
        self.initialised: np.ndarray | None = None  # per cell; None: all are
        self.shadow: Any = None
        self.loads = 0
        self.stores = 0
        self.written: np.ndarray | None = None  # cells stored to, if that is tracked

    def places(self, cells: np.ndarray) -> list[np.ndarray]:
        """Coordinates of cells: row and column in a matrix, subscripts in an array."""
        if self.matrix is not None:
            element = cells // self.matrix.cells
            return [element // self.matrix.pitch, element % self.matrix.pitch]
        dims = tuple(max(1, extent) for extent in self.dims or (self.size,))  # 0: no dynamic shared memory
        return list(np.unravel_index(cells % max(1, self.size), dims))


class Cells:
    """A local array or struct: a list of leaf values, each uniform or per lane."""

    def __init__(self, name: str, count: int, dtypes: list[Any], dims: tuple[int, ...] = ()) -> None:
        self.name = name
        self.values: list[Value] = [UNSET] * count
        self.dtypes = dtypes  # of each leaf; None for a pointer
        self.dims = dims
        self.mask: Any = None  # at the declaration; assignments under it need no select
        self.partial: dict[int, Any] = {}  # leaf -> lanes that have written it, if not all

    def get(self, index: int) -> Value:
        value = self.values[index]
        if value is UNSET:
            dtype = self.dtypes[index]
            return Pointer(None, np.int64(0)) if dtype is None else poison(dtype)
        return value

    def set(self, index: int, value: Value, mask: Any) -> None:
        old = self.values[index]
        self._note_write(index, mask)
        if mask is self.mask or old is UNSET:
            self.values[index] = value
        else:
            self.values[index] = merge(mask, value, old)

    def _note_write(self, index: int, mask: Any) -> None:
        """Update `partial` before the lanes of `mask` write a leaf."""
        if mask is None or mask is self.mask:
            self.partial.pop(index, None)
        elif self.values[index] is UNSET:
            self.partial[index] = mask
        elif index in self.partial:
            self.partial[index] = self.partial[index] | mask

    def unwritten(self, index: Any, lanes: int) -> Any:
        """The lanes that have not written the leaf."""
        if not isinstance(index, np.ndarray):
            written = self.partial.get(int(index))
            return np.full(lanes, self.values[int(index)] is UNSET) if written is None else ~written
        where = np.array([value is UNSET for value in self.values])[index]
        for leaf, written in self.partial.items():
            where |= (index == leaf) & ~written
        return where

    def gather(self, index: np.ndarray, lanes: np.ndarray) -> Value:
        """One leaf per lane; all leaves must have one type."""
        table = np.empty((len(self.values), len(lanes)), self.dtypes[0])
        for i in range(len(self.values)):
            table[i] = self.get(i)
        return table[index, lanes]

    def scatter(self, index: np.ndarray, lanes: np.ndarray, value: Value, mask: Any) -> None:
        for i in distinct(index if mask is None else index[mask]).tolist():
            if not 0 <= i < len(self.values):
                raise EngineError(f"{self.name} has {len(self.values)} elements and element {i} is written")
            here = index == i
            if mask is not None:
                here &= mask
            self._note_write(i, here)
            old = self.values[i]
            if old is UNSET:
                old = poison(self.dtypes[i])
            self.values[i] = np.where(here, value, old)


class Pointer:
    """A place in a buffer or in cells, at `offset` cells. If `row` is set, the offset is row * (leading dimension
    `symbol`) + column. `guessed`: a leading dimension was added once, which may mean a row or columns. `nulls`: null in
    some lanes."""

    __slots__ = ("guessed", "memory", "nulls", "offset", "row", "symbol")

    def __init__(
        self,
        memory: Buffer | Cells | None,
        offset: Value,
        row: Value = None,
        symbol: Any = None,
        guessed: bool = False,
        nulls: bool = False,
    ) -> None:
        self.memory = memory
        self.nulls = nulls
        self.offset = offset
        self.row = row
        self.symbol = symbol
        self.guessed = guessed

    def moved(self, cells: Value, row: Value = None, symbol: Any = None, guessed: bool = False) -> Pointer:
        """This pointer moved by `cells`, of which `row` are rows of the leading dimension `symbol`."""
        if symbol is None:
            return Pointer(self.memory, self.offset + cells, self.row, self.symbol, self.guessed or guessed, self.nulls)
        if self.symbol is None or self.symbol is symbol:
            total = row if self.row is None else self.row + row
            return Pointer(self.memory, self.offset + cells, total, symbol, self.guessed or guessed, self.nulls)
        return Pointer(self.memory, self.offset + cells, None, None, True, self.nulls)

    @property
    def null(self) -> Any:
        """The lanes in which it is null."""
        if self.memory is None or not self.nulls:
            return np.bool_(self.memory is None)
        return self.offset < NULL // 2


def as_dtype(value: Value, dtype: Any, name: str) -> Value:
    """The bits of a cell as another type."""
    if not isinstance(value, (np.generic, np.ndarray)) or dtype is None or value.dtype == dtype:
        return value
    if value.dtype.itemsize != dtype.itemsize:
        raise EngineError(f"{name} holds {value.dtype} and is used as {dtype}, of another size")
    return value.view(dtype)


def merge(mask: Any, new: Value, old: Value) -> Value:
    """`select` for any value, also pointers and structs (tuples of leaves)."""
    if isinstance(new, Pointer):
        if not isinstance(old, Pointer) or old.memory is new.memory is None:
            return new
        if old.memory is None:
            return Pointer(new.memory, select(mask, new.offset, NULL), new.row, new.symbol, new.guessed, True)
        if new.memory is None:
            return Pointer(old.memory, select(mask, NULL, old.offset), old.row, old.symbol, old.guessed, True)
        if new.memory is not old.memory:
            raise EngineError("a pointer into different arrays for different threads is not supported")
        row = None if new.row is None or old.row is None else select(mask, new.row, old.row)
        symbol = new.symbol if row is not None and new.symbol is old.symbol else None
        return Pointer(
            new.memory,
            select(mask, new.offset, old.offset),
            row if symbol else None,
            symbol,
            new.guessed or old.guessed,
            new.nulls or old.nulls,
        )
    if isinstance(new, tuple):
        return tuple(merge(mask, a, b) for a, b in zip(new, old, strict=True))
    return select(mask, new, old)
