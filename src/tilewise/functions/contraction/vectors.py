"""`matvec`, `vecmat`, `vecdot`, `inner`, `outer` and `tensordot` over any semiring, with NumPy's signatures: vectors as
matrices of one row or column, and pairs of axes as labels of an einsum."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any, Unpack, overload

import numpy as np

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.names import BooleanName
from tilewise.api import matmul
from tilewise.arrays import ArrayOf, HostArray, Kind, Number
from tilewise.core.options import AnySemiring, Details, DTypeArg, Numeric
from tilewise.core.reproducible import Level
from tilewise.core.shapes import product_shape, written
from tilewise.dispatch.forms import single_out
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.functions.contraction.einsum import einsum
from tilewise.functions.contraction.forms import from_lists
from tilewise.functions.contraction.views import array_of, dtype_of_array, permuted
from tilewise.system.quantities import counted

ROW, COLUMN = (..., None, slice(None)), (..., slice(None), None)  # index a vector as a matrix
SUBSCRIPTS = {"matvec": "...ij,...j->...i", "vecmat": "...i,...ij->...j", "vecdot": "...i,...i->..."}


@overload
def matvec(
    A: HostArray, x: HostArray, /, *, dtype: DTypeArg, semiring: AnySemiring = ..., **how: Unpack[Details]
) -> HostArray: ...
@overload
def matvec(A: HostArray, x: HostArray, /, *, semiring: BooleanName, **how: Unpack[Details]) -> ArrayOf[np.bool_]: ...
@overload
def matvec(
    A: ArrayOf[Number], x: ArrayOf[Number], /, *, semiring: Numeric = ..., dtype: None = None,
    **how: Unpack[Details],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def matvec(
    A: Kind, x: Kind, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None, **how: Unpack[Details]
) -> Kind: ...
@overload
def matvec(
    A: Any, x: Any, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None, **how: Unpack[Details]
) -> HostArray: ...
def matvec(A: Any, x: Any, /, **how: Any) -> Any:
    """A matrix with a vector, or stacks of both, which broadcast: as `numpy.matvec`.

    Keywords are those of `tw.matmul`: semiring, out, dtype, casting, device, precision, nonnegative, reproducible.

    >>> tw.matvec([[0, 4.0], [4, 0]], [1.0, 9], semiring="min_plus")
    array([1., 5.])
    """
    return _product("matvec", A, x, (None, COLUMN), ("A", "x"), how)


@overload
def vecmat(
    x: HostArray, A: HostArray, /, *, dtype: DTypeArg, semiring: AnySemiring = ..., **how: Unpack[Details]
) -> HostArray: ...
@overload
def vecmat(x: HostArray, A: HostArray, /, *, semiring: BooleanName, **how: Unpack[Details]) -> ArrayOf[np.bool_]: ...
@overload
def vecmat(
    x: ArrayOf[Number], A: ArrayOf[Number], /, *, semiring: Numeric = ..., dtype: None = None,
    **how: Unpack[Details],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def vecmat(
    x: Kind, A: Kind, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None, **how: Unpack[Details]
) -> Kind: ...
@overload
def vecmat(
    x: Any, A: Any, /, *, semiring: AnySemiring = ..., dtype: DTypeArg | None = None, **how: Unpack[Details]
) -> HostArray: ...
def vecmat(x: Any, A: Any, /, **how: Any) -> Any:
    """A vector with a matrix, or stacks of both, which broadcast: as `numpy.vecmat`, which conjugates x.

    >>> tw.vecmat([1.0, 9], [[0, 4.0], [4, 0]], semiring="min_plus")
    array([1., 5.])
    """
    return _product("vecmat", _conjugated(x, "x", how), A, (ROW, None), ("x", "A"), how)


@overload
def vecdot(
    x: HostArray,
    y: HostArray,
    /,
    *,
    dtype: DTypeArg,
    axis: int = -1,
    semiring: AnySemiring = ...,
    **how: Unpack[Details],
) -> HostArray: ...
@overload
def vecdot(
    x: HostArray, y: HostArray, /, *, semiring: BooleanName, axis: int = -1, **how: Unpack[Details]
) -> ArrayOf[np.bool_]: ...
@overload
def vecdot(
    x: ArrayOf[Number], y: ArrayOf[Number], /, *, semiring: Numeric = ..., dtype: None = None, axis: int = -1,
    **how: Unpack[Details],
) -> ArrayOf[Number]: ...  # fmt: skip
@overload
def vecdot(
    x: Kind,
    y: Kind,
    /,
    *,
    semiring: AnySemiring = ...,
    dtype: DTypeArg | None = None,
    axis: int = -1,
    **how: Unpack[Details],
) -> Kind: ...
@overload
def vecdot(
    x: Any,
    y: Any,
    /,
    *,
    semiring: AnySemiring = ...,
    dtype: DTypeArg | None = None,
    axis: int = -1,
    **how: Unpack[Details],
) -> HostArray: ...
def vecdot(x: Any, y: Any, /, *, axis: int = -1, **how: Any) -> Any:
    """The dot product of vectors along an axis, or of stacks of them: as `numpy.vecdot`, which conjugates x.

    >>> tw.vecdot([[1.0, 9], [3, 5]], [2.0, 0], semiring="max_plus")
    array([9., 5.])
    """
    x = _conjugated(x, "x", how)
    if axis.__class__ is not int or axis != -1:
        x, y = _with_axis_last(x, axis, "x"), _with_axis_last(array_of(y, "y", sparse=False), axis, "y")
    return _product("vecdot", x, y, (ROW, COLUMN), ("x", "y"), how)


def _product(name: str, x: Any, y: Any, places: tuple[Any, Any], roles: tuple[str, str], how: dict[str, Any]) -> Any:
    """A product of vectors and matrices, or stacks of them; `places` index vectors as ROW or COLUMN."""
    plain = not how or (len(how) == 1 and how.get("semiring").__class__ is str)
    if plain and x.__class__ is y.__class__ is np.ndarray:
        depth = 1 if places[1] is None else 0  # axes of y behind the summed one
        if x.ndim > (places[0] is None) and y.ndim > depth and x.shape[-1] == y.shape[-1 - depth]:
            return einsum(SUBSCRIPTS[name], x, y, **how)  # which makes no views after the first call
    refused = [key for key in how if key not in ("semiring", "dtype", *Details.__annotations__)]
    if refused:
        raise TypeError(f"{name}() got an unexpected keyword argument {refused[0]!r}")
    arrays = [array_of(v, role, sparse=place is None) for v, place, role in zip((x, y), places, roles, strict=True)]
    for v, place, role in zip(arrays, places, roles, strict=True):
        if v.ndim < (2 if place is None else 1):
            raise ShapeError(
                f"{name}: {role} is {written(tuple(v.shape))}, and must be a {'matrix' if place is None else 'vector'}"
            )
    left, right = (v if place is None else v[place] for v, place in zip(arrays, places, strict=True))
    at = (..., *(slice(None) if place is None else 0 for place in places))  # of the vectors' rows and columns in P
    out = single_out(how.get("out"))
    if out is not None:
        if not hasattr(out, "shape"):
            raise DtypeError(f"out must be an array, got {type(out).__name__}")
        made = product_shape(tuple(left.shape), tuple(right.shape))
        shape = (*made.stack, *(side for side, at in zip((made.m, made.n), places, strict=True) if at is None))
        if tuple(out.shape)[max(0, len(out.shape) - len(shape)) :] != shape:  # it may have further axes in front
            raise ShapeError(f"out is {written(tuple(out.shape))}, but the product is {written(shape)}")
        matrix = (..., *(slice(None) if place is None else None for place in places))
        matmul(left, right, **{**how, "out": out[matrix]})
        return out
    return matmul(left, right, **how)[at]


def _conjugated(x: Any, role: str, how: dict[str, Any]) -> Any:
    """x conjugated, as NumPy does for complex numbers; unchanged over other semirings than plus_times."""
    if x.__class__ is np.ndarray and x.dtype.kind != "c":
        return x
    x = array_of(x, role, sparse=False)
    complex_numbers = dtype_of_array(x).kind == "c" and is_plus_times(find_semiring(how.get("semiring", "plus_times")))
    return x.conj() if complex_numbers else x


def _with_axis_last(x: Any, axis: int, role: str) -> Any:
    """A view with this axis last."""
    at = _axis(axis, x, role)
    return permuted(x, [*(i for i in range(x.ndim) if i != at), at])


def _axis(axis: Any, x: Any, role: str) -> int:
    try:
        at = index(axis)
    except TypeError:
        raise UsageError(f"{axis!r} is no axis of {role}: pass a whole number") from None
    if not -x.ndim <= at < x.ndim:
        raise ShapeError(f"{role} has {counted(x.ndim, 'axis', 'axes')}, and none numbered {at}")
    return at % int(x.ndim)


@overload
def tensordot(
    a: ArrayOf[Any], b: ArrayOf[Any], /, axes: Any = 2, *, semiring: BooleanName, reproducible: Level = ...
) -> ArrayOf[np.bool_]: ...
@overload
def tensordot(
    a: ArrayOf[Number], b: ArrayOf[Number], /, axes: Any = 2, *, semiring: Numeric = ..., reproducible: Level = ...
) -> ArrayOf[Number]: ...
@overload
def tensordot(
    a: Kind, b: Kind, /, axes: Any = 2, *, semiring: AnySemiring = ..., reproducible: Level = ...
) -> Kind: ...
@overload
def tensordot(
    a: Any, b: Any, /, axes: Any = 2, *, semiring: AnySemiring = ..., reproducible: Level = ...
) -> HostArray: ...
def tensordot(
    a: Any, b: Any, /, axes: Any = 2, *, semiring: AnySemiring = "plus_times", reproducible: Level = None
) -> Any:
    """Products summed over pairs of axes: as `numpy.tensordot`.

    axes: how many of a's last meet as many of b's first, or two lists: a's axes and those of b that they meet.

    >>> tw.tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    a, b = array_of(a, "a", sparse=False), array_of(b, "b", sparse=False)
    return _contracted(a, b, _pairs(axes, a, b), semiring, reproducible)


def _contracted(
    a: Any, b: Any, pairs: tuple[Sequence[int], Sequence[int]], semiring: AnySemiring, reproducible: Level
) -> Any:
    """The sum over pairs of axes: those of a, and those of b that they meet."""
    for i, j in zip(*pairs, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(f"axis {i} of a is {a.shape[i]} long and axis {j} of b {b.shape[j]}: they must be equal")
    subscripts = _subscripts(a.ndim, b.ndim, *map(tuple, pairs))
    return einsum(subscripts, a, b, semiring=semiring, reproducible=reproducible)


@lru_cache(maxsize=256)
def _subscripts(axes_a: int, axes_b: int, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> str:
    """Of the product of two arrays with so many axes, summed over these pairs."""
    labels_a, labels_b = list(range(axes_a)), list(range(axes_a, axes_a + axes_b))
    for i, j in zip(of_a, of_b, strict=True):
        labels_b[j] = i
    kept = [i for i in labels_a if i not in of_a] + [label for label in labels_b if label >= axes_a]
    return from_lists((None, labels_a, None, labels_b, kept))[0]


def _pairs(axes: Any, a: Any, b: Any) -> tuple[list[int], list[int]]:
    try:
        count = index(axes)
    except TypeError:
        pass
    else:
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ShapeError(f"axes={count}, and a has {a.ndim} axes and b {b.ndim}")
        return list(range(a.ndim - count, a.ndim)), list(range(count))
    if not isinstance(axes, Sequence | np.ndarray) or len(axes) != 2:
        raise UsageError(f"axes={axes!r} must be a number of axes, or two lists: those of a and those of b")
    of_a, of_b = (
        [_axis(i, x, role) for i in np.ravel(side).tolist()] for side, x, role in zip(axes, (a, b), "ab", strict=True)
    )
    if len(of_a) != len(of_b) or len(set(of_a)) < len(of_a) or len(set(of_b)) < len(of_b):
        raise ShapeError(f"axes={axes!r} must name as many axes of a as of b, each once")
    return of_a, of_b


@overload
def inner(
    a: ArrayOf[Any], b: ArrayOf[Any], /, *, semiring: BooleanName, reproducible: Level = ...
) -> ArrayOf[np.bool_]: ...
@overload
def inner(
    a: ArrayOf[Number], b: ArrayOf[Number], /, *, semiring: Numeric = ..., reproducible: Level = ...
) -> ArrayOf[Number]: ...
@overload
def inner(a: Kind, b: Kind, /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> Kind: ...
@overload
def inner(a: Any, b: Any, /, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> HostArray: ...
def inner(a: Any, b: Any, /, *, semiring: AnySemiring = "plus_times", reproducible: Level = None) -> Any:
    """Sums over the last axes of both: as `numpy.inner`.

    >>> tw.inner(np.array([1.0, 9]), np.array([[2.0, 0], [7, 7]]), semiring="max_plus")
    array([ 9., 16.])
    """
    a, b = array_of(a, "a", sparse=False), array_of(b, "b", sparse=False)
    pairs = ((), ()) if 0 in (a.ndim, b.ndim) else ((a.ndim - 1,), (b.ndim - 1,))
    return _contracted(a, b, pairs, semiring, reproducible)


@overload
def outer(
    a: ArrayOf[Any], b: ArrayOf[Any], /, out: Any = None, *, semiring: BooleanName, reproducible: Level = ...
) -> ArrayOf[np.bool_]: ...
@overload
def outer(
    a: ArrayOf[Number], b: ArrayOf[Number], /, out: Any = None, *, semiring: Numeric = ..., reproducible: Level = ...
) -> ArrayOf[Number]: ...
@overload
def outer(a: Kind, b: Kind, /, out: Any = None, *, semiring: AnySemiring = ..., reproducible: Level = ...) -> Kind: ...
@overload
def outer(
    a: Any, b: Any, /, out: Any = None, *, semiring: AnySemiring = ..., reproducible: Level = ...
) -> HostArray: ...
def outer(
    a: Any, b: Any, /, out: Any = None, *, semiring: AnySemiring = "plus_times", reproducible: Level = None
) -> Any:
    """Every element of a with every element of b: as `numpy.outer`.

    >>> tw.outer(np.array([0.0, 4]), np.array([1.0, 2]), semiring="min_plus")
    array([[1., 2.],
           [5., 6.]])
    """
    flat = [array_of(x, role, sparse=False).reshape(-1) for x, role in ((a, "a"), (b, "b"))]
    how: Any = {"casting": "same_kind" if out is not None else "safe", "reproducible": reproducible}
    return einsum("i,j->ij", *flat, semiring=semiring, out=out, **how)
