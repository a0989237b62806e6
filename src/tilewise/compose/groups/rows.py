"""Rows by an index: gathered for the groups they go to, and added up again where they came from, in a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewise.algebra.builtin import SEMIRINGS
from tilewise.arrays import Library, Operand, find_library
from tilewise.arrays.numpy_library import NUMPY
from tilewise.compose.groups.prepared import gradient_wanted, keep_rows, rows_prepared, rows_signature
from tilewise.core.problem import row_major
from tilewise.core.recipe import Recipe
from tilewise.core.shapes import written
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.system.imported import imported

LINE_BYTES = 128  # what gathered rows start on, so that tensor cores take them as they are


def take_rows(x: Any, rows: Any, weights: Any = None) -> Any:
    """x[rows], its rows apart so far that kernels take them as they are; times `weights`, one for each row, where there
    are any. On a card, a row that x has not is all 0."""
    key = rows_signature("take", x, rows, weights)
    made = rows_prepared(key, x, rows, weights)
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
            _together(given, other, role)
    if given.device == "cpu":
        return _taken_on_the_host(given, index, scales)
    lead = -(-length * given.dtype.itemsize // LINE_BYTES) * LINE_BYTES // given.dtype.itemsize
    room = library.empty((count, lead), given.dtype, given.device)
    from tilewise.kernels.rows.recipe import take_recipe, weighted_take_recipe

    wide, size, layout = index.dtype.itemsize == 8, given.dtype.itemsize, given.layout(())
    if scales is None:
        recipe = take_recipe(count, length, given.shape[0], size, layout, lead, wide)
    else:
        algebra = SEMIRINGS["plus_times"].over(given.dtype)
        recipe = weighted_take_recipe(algebra, count, length, given.shape[0], layout, lead, scales.dtype, wide)
    places = {"M": given, "P": room, "offsets": index, "scale_m": scales}
    product = library.deliver(room)[:, :length]
    keep_rows(key, _launched(recipe, library, given.device, places), product)
    return product


def scatter_rows(y: Any, rows: Any, count: int, /, *, weights: Any = None) -> Any:
    """P[t] = Σ weights[i] · y[i] over all i with rows[i] == t, for t below `count`, always added in the order of i.

    y: a matrix; rows: int32 or int64, one for each of its rows; weights: one for each, of y's dtype or of what its
    sums are kept in (float32 for halves), or None. Rows that go nowhere are left out, a t that nothing goes to is 0.

    >>> tw.scatter_rows(np.ones((3, 2)), np.array([1, 0, 1]), 2, weights=np.array([1.0, 2.0, 3.0]))
    array([[2., 2.],
           [4., 4.]])
    """
    key = None if gradient_wanted(y, weights) else rows_signature("scatter", y, rows, weights, count)
    made = rows_prepared(key, y, rows, weights)
    if made is not None:
        return made
    torch = imported("torch")
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
    scales = None if weights is None else _weights(library, weights, given.shape[0], given)
    for other, role in ((index, "rows"), (scales, "weights")):
        if other is not None:
            _together(given, other, role)
    product = library.empty((count, given.shape[1]), given.dtype, given.device)
    if given.device == "cpu":
        _added_on_the_host(given, index, scales, product, algebra.partial.numpy)
        return library.deliver(product)
    from tilewise.kernels.rows.recipe import add_recipe

    wide, weight = index.dtype.itemsize == 8, None if scales is None else scales.dtype
    recipe = add_recipe(algebra, *given.shape, count, given.layout(()), row_major(count, given.shape[1]), weight, wide)
    places = {"M": given, "P": product, "offsets": index, "scale_m": scales}
    keep_rows(key, _launched(recipe, library, given.device, places), product.array)
    return library.deliver(product)


def _taken_on_the_host(given: Operand, index: Operand, weights: Operand | None) -> Any:
    assert given.host is not None
    assert index.host is not None
    if index.host.size and not (index.host.min() >= 0 and index.host.max() < given.shape[0]):
        wrong = index.host.min() if index.host.min() < 0 else index.host.max()
        raise ShapeError(f"rows has {int(wrong)}, and x has rows 0 to {given.shape[0] - 1}")
    if not isinstance(given.array, np.ndarray):
        taken = given.array[index.array]
        return taken if weights is None else (taken * weights.array[:, None]).to(given.array.dtype)
    made = given.host[index.host]
    if weights is not None:
        assert weights.host is not None
        made = (made * weights.host[:, None]).astype(given.host.dtype)
    return made if given.library is NUMPY else given.library.deliver(NUMPY.wrap(made, given.library))


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


def _weights(library: Library, weights: Any, count: int, given: Operand) -> Operand:
    made, partial = library.operand(weights, "weights"), SEMIRINGS["plus_times"].over(given.dtype).partial.name
    if made.shape != (count,) or (count > 1 and made.strides[0] != 1):
        raise ShapeError(f"weights is {written(made.shape)}: pass one for each of the {count} rows")
    if made.dtype.name not in (given.dtype.name, partial):
        raise DtypeError(f"weights has dtype {made.dtype}: pass {given.dtype} or {partial}")
    return made


def _together(given: Operand, other: Operand, role: str) -> None:
    if given.device != other.device:
        raise DeviceError(f"the rows are on {given.device} and {role} is on {other.device}: bring them together first")


def _launched(recipe: Recipe, library: Library, device: str, places: dict[str, Operand | None]) -> Any:
    """Queued on the caller's stream; what can be launched again."""
    from tilewise.backends.cuda.scratch import scratch
    from tilewise.planning.launchers import recipe_launcher

    launcher, stream = recipe_launcher(recipe, device), library.stream(device)
    with scratch(launcher.scratch_bytes, library.name, device, stream) as held:
        launcher(stream, scratch=held, **{name: x.pointer for name, x in places.items() if x is not None})
    return launcher
