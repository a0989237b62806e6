"""NumPy's other forms of an einsum: labels as lists of numbers, and out=, dtype=, order= and casting=."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import index
from typing import Any, Literal, TypedDict

import numpy as np

from tilewise.algebra.dtypes import DType, dtype_given
from tilewise.arrays import find_library
from tilewise.arrays.operand import check_apart
from tilewise.core.reproducible import Level
from tilewise.core.shapes import written
from tilewise.dispatch.forms import check_cast, check_rules, in_order, single_out
from tilewise.errors import DtypeError, ShapeError, UsageError
from tilewise.functions.contraction.views import array_of, dtype_of_array

LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"  # in the sort order of an implicit output


class EinsumDetails(TypedDict, total=False):
    """Keywords of `tw.einsum` on which the result's type does not depend."""

    optimize: Any
    out: Any
    order: Literal["C", "F", "A", "K"]
    casting: Literal["no", "equiv", "safe", "same_kind", "unsafe"]
    reproducible: Level


def from_lists(given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """(subscripts, operands) of NumPy's form: operands, each followed by the list of its labels, and the output's."""
    if len(given) < 2 or not isinstance(given[1], (list, tuple)):
        kind = type(given[0]).__name__
        raise UsageError(
            f"einsum takes subscripts first, say 'ij,jk->ik', or operands each before a list of its labels, not {kind}"
        )
    terms = ",".join(_term(labels) for labels in given[1::2])
    output = f"->{_term(given[-1])}" if len(given) % 2 else ""
    return terms + output, tuple(given[0 : len(given) - len(given) % 2 : 2])


def _term(labels: Any) -> str:
    try:
        return "".join("..." if label is Ellipsis else LABELS[_checked(index(label))] for label in labels)
    except TypeError:
        raise UsageError(
            f"the labels {labels!r} of an operand must be a list of whole numbers from 0 to {len(LABELS) - 1}, or ..."
        ) from None


def _checked(label: int) -> int:
    if not 0 <= label < len(LABELS):
        raise TypeError
    return label


def with_keywords(
    einsum: Callable[..., Any], operands: Sequence[Any], out: Any, dtype: Any, order: str, casting: str
) -> Any:
    """`einsum` of the operands cast to `dtype`, its result in `out` or in memory order `order`."""
    check_rules(order, casting)
    arrays, out = [array_of(x, f"operand {number}") for number, x in enumerate(operands, 1)], single_out(out)
    if order != "K" and not all(isinstance(x, np.ndarray) for x in arrays):
        raise UsageError("order= is for NumPy's arrays: leave it out, and convert the result yourself")
    common = reduce(find_library(arrays[0]).promote, map(dtype_of_array, arrays))
    wanted = common if dtype is None else dtype_given(dtype)
    for number, x in enumerate(arrays, 1):
        check_cast(dtype_of_array(x).numpy, wanted.numpy, casting, f"operand {number}")
    made = einsum(*(arrays if dtype is None else [_converted(x, wanted) for x in arrays]))
    if out is None:
        return in_order(made, order, arrays)
    return copy_to_out(made, out, casting)


def _converted(x: Any, dtype: DType) -> Any:
    if dtype_of_array(x) == dtype:
        return x
    if hasattr(x, "new_full"):
        import torch

        return x.to(getattr(torch, dtype.name))
    with np.errstate(all="ignore"):
        return x.astype(dtype.numpy)


def copy_to_out(made: Any, out: Any, casting: str) -> Any:
    """Copy a result into `out` by the casting rule; returns `out`."""
    if not hasattr(out, "shape"):
        raise DtypeError(f"out must be an array, got {type(out).__name__}")
    shape = tuple(getattr(made, "shape", ()))
    if tuple(out.shape) != shape:
        raise ShapeError(f"out is {written(tuple(out.shape))}, and the result is {written(shape)}")
    if hasattr(made, "new_full") and hasattr(out, "copy_"):
        check_apart(tuple(out.shape), tuple(out.stride()))
        return out.copy_(made)
    if not isinstance(out, np.ndarray) or not isinstance(made, np.ndarray | np.generic):
        raise DtypeError(
            f"out= is {type(out).__name__} and the result {type(made).__name__}: pass an array of one kind that can "
            "be written, or leave it out"
        )
    if not out.flags.writeable:
        raise ShapeError("out is read-only: pass an array that can be written")
    check_apart(out.shape, out.strides, out.itemsize)
    check_cast(made.dtype, out.dtype, casting, "the result")
    with np.errstate(all="ignore"):
        np.copyto(out, made, casting=casting)  # type: ignore[arg-type]
    return out
