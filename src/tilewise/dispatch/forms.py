"""`axes=`, `order=`, `casting=` and a tuple as `out=`, as in `numpy.matmul`: the call is reduced to one without them.

Axes are views, so every library has them; memory orders and casting rules are NumPy's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from tilewise.algebra.builtin import find_semiring
from tilewise.algebra.dtypes import dtype_given, dtype_of, promote
from tilewise.core.options import Key, Options
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.system.quantities import counted

FORMS = ("axes", "order", "casting")
ORDERS, CASTINGS = ("C", "F", "A", "K"), ("no", "equiv", "safe", "same_kind", "unsafe")


class NumpysForms:
    """Calls with NumPy's keywords for axes, memory order and casting."""

    def takes(self, M: Any, N: Any, o: Options) -> bool:
        return isinstance(o.out, tuple) or bool(o.given(*FORMS))

    def product(self, M: Any, N: Any, o: Options, key: Key | None, matmul: Callable[..., Any]) -> Any:
        check_rules(o.order, o.casting)
        keywords = {name: value for name, value in o.keywords().items() if name not in FORMS}
        keywords["out"] = out = single_out(o.out)
        if o.order != "K" or o.casting != "same_kind":
            M, N = (_as_numpys(x, name, o) for x, name in ((M, "M"), (N, "N")))
        left, right, of_p = M, N, None
        if o.axes is not None:
            of_m, of_n, of_p = _checked_axes(o.axes, M, N)
            left, right = _axes_last(M, of_m, "M"), _axes_last(N, of_n, "N")
            keywords["out"] = None if out is None else _axes_last(out, of_p, "out")
        if o.casting != "same_kind":
            left, right = _cast(left, right, o, keywords)
        made = matmul(left, right, **keywords)
        if o.casting == "unsafe" and out is not None and keywords["out"] is None:
            np.copyto(out if of_p is None else _axes_last(out, of_p, "out"), made, casting="unsafe")
        if of_p is not None:
            made = tuple(_axes_restored(x, of_p) for x in made) if o.return_arg else _axes_restored(made, of_p)
        if out is not None:
            return (out, made[1]) if o.return_arg else out
        return in_order(made, o.order, (M, N)) if o.order != "K" else made


def check_rules(order: Any, casting: Any) -> None:
    """Refuse values of order= and casting= that NumPy does not have."""
    for name, value, known in (("order", order, ORDERS), ("casting", casting, CASTINGS)):
        if value not in known:
            raise UsageError(f"{name}={value!r} is not known; known are {', '.join(known)}")


def single_out(out: Any) -> Any:
    """NumPy also takes a tuple of one array, or of None."""
    if not isinstance(out, tuple):
        return out
    if len(out) != 1:
        raise UsageError(f"out= is a tuple of {len(out)}, and there is one product: pass an array, or a tuple of one")
    return out[0]


def in_order(made: Any, order: str, operands: Sequence[Any]) -> Any:
    """A product (or a pair of arrays) in the memory order requested; "A": Fortran's where all operands have it."""
    if isinstance(made, tuple):
        return tuple(in_order(x, order, operands) for x in made)
    if order == "A":
        order = "F" if all(x.flags.fnc for x in operands) else "C"
    return np.asarray(made, order=order) if isinstance(made, np.ndarray) else made  # type: ignore[call-overload]


def check_cast(given: np.dtype[Any], wanted: np.dtype[Any], casting: Any, role: str) -> None:
    if not np.can_cast(given, wanted, casting):
        raise DtypeError(f"{role} is {given}, which casting={casting!r} does not convert to {wanted}")


def _as_numpys(x: Any, role: str, o: Options) -> Any:
    x = np.asarray(x) if isinstance(x, list) else x
    lazy = type(x).__module__.startswith("dask") and o.order == "K"
    if not isinstance(x, np.ndarray) and not lazy:
        raise UsageError(
            f"{', '.join(o.given('order', 'casting'))} is for NumPy's arrays, and {role} is {type(x).__name__}: "
            "leave it out, and convert the operands or the product yourself"
        )
    return x


def _cast(M: Any, N: Any, o: Options, keywords: dict[str, Any]) -> tuple[Any, Any]:
    """The operands in the dtype that is computed, if `casting` allows the conversions, that of P included; an out= of
    another kind is removed from `keywords`."""
    dtype = promote(dtype_of(M.dtype), dtype_of(N.dtype)) if o.dtype is None else dtype_given(o.dtype)
    for x, role in ((M, "M"), (N, "N")):
        check_cast(x.dtype, dtype.numpy, o.casting, role)
    keywords["dtype"] = None
    out, result = keywords["out"], find_semiring(o.semiring).over(dtype).result.numpy
    if out is not None and not isinstance(out, np.ndarray):
        raise DtypeError(f"out must be an array, got {type(out).__name__}")
    if out is not None and out.dtype != result:
        check_cast(result, out.dtype, o.casting, "the product")
        if not out.flags.writeable:
            raise ShapeError("out is read-only: pass an array that can be written")
        if not np.can_cast(result, out.dtype, "same_kind"):
            o.refuse("and an out= of another kind exclude each other", "accumulate")
            keywords["out"] = None
    with np.errstate(all="ignore"):
        return M.astype(dtype.numpy, copy=False), N.astype(dtype.numpy, copy=False)


def _checked_axes(axes: Any, M: Any, N: Any) -> list[tuple[int, ...]]:
    """The axes of M, N and P as three tuples, each counted from the front."""
    if not isinstance(axes, (list, tuple)) or len(axes) != 3:
        raise UsageError(f"axes={axes!r} must be a list of three: the axes of M, of N and of P, say [(0, 1)] * 3")
    for x, role in ((M, "M"), (N, "N")):
        if not hasattr(x, "ndim"):
            raise UsageError(f"axes= needs arrays, and {role} is {type(x).__name__}")
    if min(M.ndim, N.ndim) < 1:
        raise ShapeError("matmul takes no numbers: M and N have at least one axis each")
    core = min(M.ndim, 2), min(N.ndim, 2)
    stack = max(M.ndim - core[0], N.ndim - core[1])
    counts = (core[0], M.ndim), (core[1], N.ndim), (sum(core) - 2, stack + sum(core) - 2)
    return [_checked(item, role, *count) for item, role, count in zip(axes, "MNP", counts, strict=True)]


def _checked(item: Any, role: str, core: int, ndim: int) -> tuple[int, ...]:
    given = tuple(item) if isinstance(item, (tuple, list)) else (item,)
    try:
        found = tuple(index(axis) for axis in given)
    except TypeError:
        raise UsageError(f"axes= of {role} are {item!r}: pass whole numbers") from None
    if len(found) != core:
        raise UsageError(f"axes= of {role} are {item!r}, and a product has {core} of its axes")
    if any(not -ndim <= axis < ndim for axis in found):
        raise ShapeError(f"axes= of {role} are {item!r}, and {role} has {counted(ndim, 'axis', 'axes')}")
    if len({axis % ndim for axis in found}) < core:
        raise ShapeError(f"axes= of {role} are {item!r}, which names one twice")
    return tuple(axis % ndim for axis in found)


def _axes_last(x: Any, axes: tuple[int, ...], role: str) -> Any:
    """A view with these axes last."""
    if not hasattr(x, "ndim") or len(axes) > x.ndim or max(axes, default=0) >= max(1, x.ndim):
        raise ShapeError(f"axes= of {role} are {axes}, and {role} has other ones")
    return _transposed(x, [*(i for i in range(x.ndim) if i not in axes), *axes])


def _axes_restored(x: Any, axes: tuple[int, ...]) -> Any:
    """A view whose last axes are moved to these positions."""
    if not getattr(x, "ndim", 0):
        return x
    rest = iter(range(x.ndim - len(axes)))
    at = {axis: x.ndim - len(axes) + i for i, axis in enumerate(axes)}
    return _transposed(x, [at[i] if i in at else next(rest) for i in range(x.ndim)])


def _transposed(x: Any, order: list[int]) -> Any:
    if order == list(range(x.ndim)):
        return x
    return x.permute(*order) if hasattr(x, "permute") else x.transpose(order)
