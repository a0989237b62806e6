"""`tw.matmul` over a structured semiring: fields bound one by one, stacks matrix by matrix, the same kind out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.algebra.structured import Structured, StructuredAlgebra
from tilewise.arrays.find import find_library
from tilewise.arrays.operand import HostArray, Operand
from tilewise.core.shapes import ProductShape, product_shape, written
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError


@dataclass(frozen=True)
class Value:
    """An operand of structured values: its fields, and whether they were one structured array."""

    fields: tuple[Operand, ...]
    structured: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self.fields[0].shape


def structured_ring(ring: Structured | str) -> Structured:
    """A structured semiring, or a built-in one by name."""
    if isinstance(ring, Structured):
        return ring
    from tilewise.algebra.structured_builtin import structured_named

    return structured_named(ring)


def structured_matmul(M: Any, N: Any, ring: Structured, device: str = "auto") -> Any:
    """P as a tuple of arrays, or as a structured array where M is one."""
    left, right = value_of(M, "M", ring), value_of(N, "N", ring)
    kinds = {(x.library.name, x.device) for x in (*left.fields, *right.fields)}
    if len(kinds) > 1:
        raise UsageError(
            f"the fields of M and N are of {' and '.join(sorted(f'{name} on {at}' for name, at in kinds))}: "
            "bring them to one library and one device"
        )
    ((_, where),) = kinds
    if device not in ("auto", where, where.partition(":")[0]):
        raise DeviceError(f"the fields are on {where} and device={device!r} was requested: copy them there first")
    shape = product_shape(left.shape, right.shape)
    algebra = ring.over([x.library.promote(x.dtype, y.dtype) for x, y in zip(left.fields, right.fields, strict=True)])
    if where != "cpu":
        from tilewise.dispatch.structured.card import multiply_on_card

        return multiply_on_card(algebra, left.fields, right.fields, shape)
    return _on_host(algebra, left, right, shape)


def value_of(x: Any, role: str, ring: Structured) -> Value:
    """An operand as its fields; an error names what does not fit the semiring."""
    names, count = ", ".join(ring.fields), len(ring.fields)
    if isinstance(x, (tuple, list)):
        if len(x) != count:
            raise ShapeError(f"{role} has {len(x)} fields, and a value of {ring} has {count}: {names}")
        library = find_library(x[0])
        fields = tuple(library.operand(field, f"{role}[{i}]") for i, field in enumerate(x))
        for i, field in enumerate(fields):
            if field.shape != fields[0].shape:
                raise ShapeError(
                    f"{role}[{i}] is {written(field.shape)} and {role}[0] is {written(fields[0].shape)}: "
                    "all fields of a value have one shape"
                )
        return Value(fields, False)
    if isinstance(x, np.ndarray) and x.dtype.names is not None:
        if len(x.dtype.names) != count:
            raise DtypeError(f"{role} has the fields {', '.join(x.dtype.names)}, and a value of {ring} has {names}")
        library = find_library(x)
        return Value(tuple(library.operand(x[name], f"{role}[{name!r}]") for name in x.dtype.names), True)
    raise UsageError(
        f"{ring} is over values with the fields {names}: pass {role} as a tuple of {count} arrays or as a NumPy "
        f"structured array, not {type(x).__name__}"
    )


def _on_host(algebra: StructuredAlgebra, M: Value, N: Value, shape: ProductShape) -> Any:
    from tilewise.backends.cpu.kernels.structured.run import multiply

    whole = (*shape.stack, shape.m, shape.n)
    if M.structured:
        names = algebra.semiring.fields
        made: Any = np.empty(whole, [(name, d.numpy) for name, d in zip(names, algebra.dtypes, strict=True)])
        fields = [made[name] for name in names]
    else:
        library = M.fields[0].library
        operands = [library.empty(whole, dtype, "cpu") for dtype in algebra.dtypes]
        fields = [x.memory for x in operands]
    left = [_matrices(x, d.numpy, shape.vector_m, 0) for x, d in zip(M.fields, algebra.dtypes, strict=True)]
    right = [_matrices(x, d.numpy, shape.vector_n, 1) for x, d in zip(N.fields, algebra.dtypes, strict=True)]
    left, right = ([np.broadcast_to(x, (*shape.stack, *x.shape[-2:])) for x in side] for side in (left, right))
    for member in np.ndindex(shape.stack):
        multiply(algebra, *([x[member] for x in side] for side in (left, right, fields)))
    if M.structured:
        return made.reshape(shape.product)
    if whole == shape.product:
        return tuple(x.library.deliver(x) for x in operands)
    return tuple(x.library.deliver(x).reshape(shape.product) for x in operands)


def _matrices(x: Operand, dtype: Any, vector: bool, axis: int) -> HostArray:
    host = x.memory.astype(dtype, copy=False)
    return np.expand_dims(host, axis) if vector else host
