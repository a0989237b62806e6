"""Operands that the product's dtype (`dtype=`, a framework's promotion) cannot hold are rounded to it first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import FLOAT8, DType
from tilewise.arrays.operand import Operand
from tilewise.errors import DtypeError


def narrowed(operand: Operand, dtype: DType) -> Operand:
    """The operand converted to `dtype` if that cannot hold its values; if it can, kernels widen them in the tile
    load."""
    if operand.dtype.name in FLOAT8 or np.can_cast(operand.dtype.numpy, dtype.numpy):
        return operand
    if operand.host is None:
        return replace(operand.library.operand(_on_card(operand.array, operand.dtype, dtype), "M"), converted=True)
    made = operand.library.empty(operand.shape, dtype, "cpu")
    with np.errstate(all="ignore"):
        np.copyto(made.memory, operand.host, casting="unsafe")
    return replace(made, converted=True)


def _on_card(array: Any, given: DType, dtype: DType) -> Any:
    if hasattr(array, "new_empty"):  # torch
        import torch

        return array.detach().to(getattr(torch, dtype.name))
    if hasattr(array, "astype"):
        return array.astype(dtype.name)
    raise DtypeError(f"dtype={dtype.name!r} is narrower than {given}, and {type(array).__name__} cannot be converted")
