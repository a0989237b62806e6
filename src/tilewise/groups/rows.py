"""Rows by an index: gathered for the groups they go to, and added up again where they came from, in a fixed order."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.arrays import Library, Operand, find_library
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.problem import row_major
from tilewise.recipe import Recipe
from tilewise.shapes import written

LINE_BYTES = 128  # what gathered rows start on, so that tensor cores take them as they are


def take_rows(x: Any, rows: Any) -> Any:
    """x[rows], its rows apart so far that kernels take them as they are. On a card, a row that x has not is all 0."""
    library = find_library(x)
    given, index = library.operand(x, "x"), _index(library, rows, "rows")
    if len(given.shape) != 2:
        raise ShapeError(f"x is {written(given.shape)}: pass a matrix, whose rows are gathered")
    _together(given, index, "rows")
    if given.device == "cpu":
        return _taken_on_the_host(given, index)
    count, length = index.shape[0], given.shape[1]
    lead = -(-length * given.dtype.itemsize // LINE_BYTES) * LINE_BYTES // given.dtype.itemsize
    room = library.empty((count, lead), given.dtype, given.device)
    from tilewise.kernels.rows.recipe import take_recipe

    wide = index.dtype.itemsize == 8
    recipe = take_recipe(count, length, given.shape[0], given.dtype.itemsize, given.layout(()), lead, wide)
    _launch(recipe, library, given.device, M=given.pointer, P=room.pointer, offsets=index.pointer)
    return library.deliver(room)[:, :length]


def scatter_rows(y: Any, rows: Any, count: int, /, *, weights: Any = None) -> Any:
    """P[t] = Σ weights[i] · y[i] over all i with rows[i] == t, for t below `count`, always added in the order of i.

    y: a matrix; rows: int32 or int64, one for each of its rows; weights: one for each, of y's dtype or of what its
    sums are kept in (float32 for halves), or None. Rows that go nowhere are left out, a t that nothing goes to is 0.

    >>> tw.scatter_rows(np.ones((3, 2)), np.array([1, 0, 1]), 2, weights=np.array([1.0, 2.0, 3.0]))
    array([[2., 2.],
           [4., 4.]])
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(y, torch.Tensor):
        from tilewise.arrays.torch_library import followed

        if followed(y, y if weights is None else weights):
            import tilewise  # the operator stands above this room and is reached by its public name

            return tilewise.torch.followed_scatter_rows(y, rows, count, weights)
    library = find_library(y)
    given, index = library.operand(y, "y"), _index(library, rows, "rows")
    if len(given.shape) != 2 or index.shape[0] != given.shape[0]:
        raise ShapeError(f"y is {written(given.shape)} and rows {written(index.shape)}: pass one number for each row")
    if count < 0 or count >= 2**31:
        raise UsageError(f"count={count} must be a number of rows, 0 to {2**31 - 1:,}")
    algebra = SEMIRINGS["plus_times"].over(given.dtype)
    scales = None if weights is None else _weights(library, weights, given, algebra.partial.name)
    for other, role in ((index, "rows"), (scales, "weights")):
        if other is not None:
            _together(given, other, role)
    product = library.empty((count, given.shape[1]), given.dtype, given.device)
    if given.device == "cpu":
        _added_on_the_host(given, index, scales, product, algebra.partial.numpy)
        return library.deliver(product)
    from tilewise.kernels.rows.recipe import add_recipe

    layouts = given.layout(()), row_major(count, given.shape[1])
    wide, weight = index.dtype.itemsize == 8, None if scales is None else scales.dtype
    recipe = add_recipe(algebra, *given.shape, count, *(replace(x, skew=0) for x in layouts), weight, wide)
    places = {"M": given, "P": product, "offsets": index, "scale_m": scales}
    pointers = {name: x.pointer for name, x in places.items() if x is not None}
    _launch(recipe, library, given.device, **pointers)
    return library.deliver(product)


def _taken_on_the_host(given: Operand, index: Operand) -> Any:
    assert given.host is not None
    assert index.host is not None
    if index.host.size and not (index.host.min() >= 0 and index.host.max() < given.shape[0]):
        wrong = index.host.min() if index.host.min() < 0 else index.host.max()
        raise ShapeError(f"rows has {int(wrong)}, and x has rows 0 to {given.shape[0] - 1}")
    if given.library.name != "numpy":
        return given.array[index.array]
    return given.host[index.host]


def _added_on_the_host(given: Operand, index: Operand, weights: Operand | None, product: Operand, partial: Any) -> None:
    """Every target's rows in ascending order, one after the other."""
    assert given.host is not None
    assert index.host is not None
    assert product.host is not None
    count, kind = product.shape[0], given.host.dtype
    with np.errstate(all="ignore"):
        terms = given.host.astype(partial)
        if weights is not None:
            assert weights.host is not None
            terms = terms * weights.host.astype(partial)[:, None]
        sums = np.zeros(product.shape, partial)
        keep = (index.host >= 0) & (index.host < count)
        np.add.at(sums, index.host[keep], terms[keep])
        product.host[...] = sums.astype(kind)


def _index(library: Library, rows: Any, role: str) -> Operand:
    if find_library(rows).name != library.name:
        raise UsageError(f"{role} is not of {library.name}: convert it")
    index = library.operand(rows, role)
    if len(index.shape) != 1 or (index.shape[0] > 1 and index.strides[0] != 1):
        raise ShapeError(f"{role} is {written(index.shape)}: pass numbers of rows in a line, side by side")
    if index.dtype.name not in ("int32", "int64"):
        raise DtypeError(f"{role} has dtype {index.dtype}: pass int32 or int64")
    return index


def _weights(library: Library, weights: Any, given: Operand, partial: str) -> Operand:
    made = library.operand(weights, "weights")
    if made.shape != given.shape[:1] or (made.shape[0] > 1 and made.strides[0] != 1):
        raise ShapeError(f"weights is {written(made.shape)}: pass one for each of the {given.shape[0]} rows")
    if made.dtype.name not in (given.dtype.name, partial):
        raise DtypeError(f"weights has dtype {made.dtype}: pass {given.dtype} or {partial}")
    return made


def _together(given: Operand, other: Operand, role: str) -> None:
    if given.device != other.device:
        raise DeviceError(f"the rows are on {given.device} and {role} is on {other.device}: bring them together first")


def _launch(recipe: Recipe, library: Library, device: str, **pointers: int) -> None:
    from tilewise.engines.cuda.scratch import scratch
    from tilewise.prepared import recipe_launcher

    launcher, stream = recipe_launcher(recipe, device), library.stream(device)
    with scratch(launcher.scratch_bytes, library.name, device, stream) as held:
        launcher(stream, scratch=held, **pointers)
