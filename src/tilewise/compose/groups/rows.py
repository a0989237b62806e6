"""Rows by an index: gathered into groups, and scattered back with sums in a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.arrays import Library, Operand, find_library
from tilewise.arrays.numpy_library import NUMPY
from tilewise.compose.groups.prepared import keep, prepared, rows_signature
from tilewise.core.problem import row_major
from tilewise.core.recipe import Recipe
from tilewise.core.shapes import written
from tilewise.dispatch.bind import check_device, operand_beside
from tilewise.errors import DtypeError, ShapeError, UsageError

ROW_ALIGNMENT = 128  # alignment of gathered rows: tensor-core kernels take them without realignment
CELLS = 1 << 22  # added per NumPy call, between which Ctrl-C is handled


def take_rows(x: Any, rows: Any, weights: Any = None) -> Any:
    """x[rows], its rows aligned to 128 bytes on a card; times `weights`, one for each row, if given.
    On a card, an index outside x gives a row of 0."""
    key = rows_signature("take", x, rows, weights)
    made = prepared(key, {"M": x, "offsets": rows, "scale_m": weights})
    if made is not None:
        return made
    library = find_library(x)
    given, index = library.operand(x, "x"), _index(library, rows, "rows")
    if len(given.shape) != 2:
        raise ShapeError(f"x is {written(given.shape)}: pass a matrix, whose rows are gathered")
    count, length = index.shape[0], given.shape[1]
    scales = None if weights is None else _weights(library, weights, count, given)
    for other, role in ((index, "rows"), (scales, "weights")):
        if other is not None:
            check_device(given, other, role, "the matrix")
    if given.device == "cpu":
        return _taken_on_the_host(given, index, scales)
    lead = -(-length * given.dtype.itemsize // ROW_ALIGNMENT) * ROW_ALIGNMENT // given.dtype.itemsize
    padded = library.empty((count, lead), given.dtype, given.device)
    from tilewise.kernels.transforms.rows import take_recipe, weighted_take_recipe

    wide, size, layout = index.dtype.itemsize == 8, given.dtype.itemsize, given.layout(())
    if scales is None:
        recipe = take_recipe(count, length, given.shape[0], size, layout, lead, wide)
    else:
        algebra = SEMIRINGS["plus_times"].over(given.dtype)
        recipe = weighted_take_recipe(algebra, count, length, given.shape[0], layout, lead, scales.dtype, wide)
    places = {"M": given, "P": padded, "offsets": index, "scale_m": scales}
    product = library.deliver(padded)[:, :length]
    keep(key, _launched(recipe, library, given.device, places), product)
    return product


def scatter_rows(y: Any, rows: Any, count: int, weights: Any = None) -> Any:
    """`tw.scatter_rows` of arrays that no framework traces."""
    made = prepared_rows(y, rows, count, weights)
    return first_rows(y, rows, count, weights) if made is None else made


def prepared_rows(y: Any, rows: Any, count: int, weights: Any) -> Any:
    """P by a prepared call; None if there is none."""
    key = rows_signature("scatter", y, rows, weights, count)
    return prepared(key, {"M": y, "offsets": rows, "scale_m": weights})


def first_rows(y: Any, rows: Any, count: int, weights: Any) -> Any:
    """Check and run a call, and keep it prepared under its signature."""
    library = find_library(y)
    given, index = library.operand(y, "y"), _index(library, rows, "rows")
    if len(given.shape) != 2 or index.shape[0] != given.shape[0]:
        raise ShapeError(f"y is {written(given.shape)} and rows {written(index.shape)}: pass one number for each row")
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 2**31:
        raise UsageError(f"count={count!r} must be a number of rows, 0 to {2**31 - 1:,}")
    algebra = SEMIRINGS["plus_times"].over(given.dtype)
    scales = None if weights is None else _weights(library, weights, given.shape[0], given)
    for other, role in ((index, "rows"), (scales, "weights")):
        if other is not None:
            check_device(given, other, role, "the matrix")
    product = library.empty((count, given.shape[1]), given.dtype, given.device)
    if given.device == "cpu":
        _added_on_the_host(given, index, scales, product, algebra.partial.numpy)
        return library.deliver(product)
    from tilewise.kernels.transforms.rows import add_recipe

    wide, weight = index.dtype.itemsize == 8, None if scales is None else scales.dtype
    recipe = add_recipe(algebra, *given.shape, count, given.layout(()), row_major(count, given.shape[1]), weight, wide)
    places = {"M": given, "P": product, "offsets": index, "scale_m": scales}
    launcher = _launched(recipe, library, given.device, places)
    keep(rows_signature("scatter", y, rows, weights, count), launcher, product.array)
    return library.deliver(product)


def _taken_on_the_host(given: Operand, index: Operand, weights: Operand | None) -> Any:
    rows = index.memory
    if rows.size and not (rows.min() >= 0 and rows.max() < given.shape[0]):
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise ShapeError(f"rows has {int(wrong)}, and x has rows 0 to {given.shape[0] - 1}")
    if not isinstance(given.array, np.ndarray):
        taken = given.array[index.array]
        return taken if weights is None else (taken * weights.array[:, None]).to(given.array.dtype)
    made = given.memory[rows]
    if weights is not None:
        made = (made * weights.memory[:, None]).astype(made.dtype)
    return made if given.library is NUMPY else given.library.deliver(NUMPY.wrap(made, given.library))


def _added_on_the_host(given: Operand, index: Operand, weights: Operand | None, product: Operand, partial: Any) -> None:
    """Add the rows of each target in ascending order."""
    count, y, rows = product.shape[0], given.memory, index.memory
    sums, step = np.zeros(product.shape, partial), max(1, CELLS // max(1, given.shape[1]))
    keep = (rows >= 0) & (rows < count)
    with np.errstate(all="ignore"):
        for first in range(0, given.shape[0], step):
            some = np.flatnonzero(keep[first : first + step]) + first
            terms = y[some].astype(partial, copy=False)
            if weights is not None:
                terms = terms * weights.memory[some].astype(partial)[:, None]
            np.add.at(sums, rows[some], terms)
        product.memory[...] = sums.astype(y.dtype)


def _index(library: Library, rows: Any, role: str) -> Operand:
    index = operand_beside(library, rows, role, "the matrix")
    if len(index.shape) != 1 or (index.shape[0] > 1 and index.strides[0] != 1):
        raise ShapeError(f"{role} is {written(index.shape)}: pass a contiguous vector of row numbers")
    if index.dtype.name not in ("int32", "int64"):
        raise DtypeError(f"{role} has dtype {index.dtype}: pass int32 or int64")
    return index


def _weights(library: Library, weights: Any, count: int, given: Operand) -> Operand:
    made, partial = library.operand(weights, "weights"), SEMIRINGS["plus_times"].over(given.dtype).partial.name
    if made.shape != (count,) or (count > 1 and made.strides[0] != 1):
        raise ShapeError(f"weights is {written(made.shape)}: pass one for each of the {count} rows")
    if made.dtype.name not in (given.dtype.name, partial):
        raise DtypeError(f"weights has dtype {made.dtype}: pass {given.dtype} or {partial}")
    return made


def _launched(recipe: Recipe, library: Library, device: str, places: dict[str, Operand | None]) -> Any:
    """Queue on the caller's stream; returns the launcher."""
    from tilewise.backends.cuda.scratch import scratch
    from tilewise.planning.launchers import recipe_launcher

    launcher, stream = recipe_launcher(recipe, device), library.stream(device)
    with scratch(launcher.scratch_bytes, library.name, device, stream) as held:
        launcher(stream, scratch=held, **{name: x.pointer for name, x in places.items() if x is not None})
    return launcher
