"""Expression trees as NumPy: the definition that all other renderings are tested against."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import Array, DType
from tilewise.algebra.expression import (
    UFUNCS,
    Apply,
    Constant,
    Expression,
    Extreme,
    Variable,
    check_types,
    constant_over,
    is_truth,
)

Function = Callable[..., Array]  # (x, y, out=None) -> out

_UFUNC_OF = {op: getattr(np, name) for name, op in UFUNCS.items()}


def ufunc(op: str, dtype: DType) -> Any:
    """The ufunc for one operation. Over bool, + and max are or, * and min are and, as NumPy has them."""
    if dtype.kind == "b":
        logical = {"add": np.logical_or, "max": np.logical_or, "mul": np.logical_and, "min": np.logical_and}
        if op in logical:
            return logical[op]
    if op in ("min", "max") and dtype.kind != "f":
        return np.minimum if op == "min" else np.maximum
    return _UFUNC_OF[op]


@lru_cache(maxsize=512)
def numpy_function(tree: Expression, dtype: DType) -> Function:
    """The tree as a function of two arrays of `dtype`, with an optional `out`."""
    check_types(tree, dtype)
    evaluate = _node(tree, dtype)
    if isinstance(tree, Apply) and tree.op != "where" and not (is_truth(tree) and dtype.kind != "b"):
        top = ufunc(tree.op, dtype)
        parts = [_node(arg, dtype) for arg in tree.args]
        if all(isinstance(arg, Variable) for arg in tree.args) and [a.name for a in tree.args] == ["x", "y"]:  # type: ignore[attr-defined]
            return top  # type: ignore[no-any-return]

        def function(x: Array, y: Array, out: Array | None = None) -> Array:
            return top(*(part(x, y) for part in parts), out=out)  # type: ignore[no-any-return]

        return function

    def copied(x: Array, y: Array, out: Array | None = None) -> Array:
        value = np.broadcast_to(evaluate(x, y), np.broadcast_shapes(np.shape(x), np.shape(y)))
        if out is None:
            return value.astype(dtype.numpy)
        np.copyto(out, value, casting="unsafe")
        return out

    return copied


def _node(tree: Expression, dtype: DType) -> Callable[[Any, Any], Any]:
    if isinstance(tree, Variable):
        return (lambda x, y: x) if tree.name == "x" else (lambda x, y: y)
    if isinstance(tree, (Constant, Extreme)):
        value = dtype.numpy.type(constant_over(tree, dtype))
        return lambda x, y: value
    assert isinstance(tree, Apply)
    parts = [_node(arg, dtype) for arg in tree.args]
    if tree.op == "where":
        condition, yes, no = parts
        return lambda x, y: np.where(condition(x, y), yes(x, y), no(x, y))
    function = ufunc(tree.op, dtype)
    if is_truth(tree) and tree.op in ("or", "and", "not"):
        return lambda x, y: function(*(part(x, y) for part in parts))
    # a comparison used in arithmetic counts as 0 or 1 of the dtype, not as NumPy's bool
    casts = [is_truth(arg) and dtype.kind != "b" for arg in tree.args]
    if any(casts):
        number = dtype.numpy.type

        def with_casts(x: Any, y: Any) -> Any:
            values = (part(x, y) for part in parts)
            return function(*(np.asarray(v, number) if cast else v for v, cast in zip(values, casts, strict=True)))

        return with_casts
    return lambda x, y: function(*(part(x, y) for part in parts))
