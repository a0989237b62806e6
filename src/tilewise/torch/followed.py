"""`tw.matmul` of tensors with gradients, or traced: keywords are passed to the operator, applied after it, or
refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import DTYPES, DType, dtype_given
from tilewise.algebra.semiring import Semiring
from tilewise.arrays.torch_graph import constant_in_traces
from tilewise.arrays.torch_library import TORCH, dtype_name, wants_gradient
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.core.reproducible import check_reproducible
from tilewise.dispatch.bind import check_return_arg, checked_dtype
from tilewise.dispatch.route import check_fields, is_structured
from tilewise.dispatch.structured.product import structured_matmul
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.torch.function import as_matrices
from tilewise.torch.gradients import OPERATORS
from tilewise.torch.operator import kernel_only, matmul, needs_derivative, product_shape
from tilewise.torch.prepared_gradients import keep_differentiable
from tilewise.torch.semiring_names import name_of, semiring_of

ACTIVATIONS = {
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


def followed_matmul(M: Any, N: Any, o: Options) -> Any:
    """The product by the operator, then its epilogue in torch's own functions."""
    if is_structured(o.semiring):
        return _product_of_fields(M, N, o)
    o.refuse("pin a launch or its memory, which torch cannot follow: pass detached tensors", "kernel", "tile", "memory")
    o.refuse("are applied inside the kernel, which has no gradient: multiply the product by them", "scales")
    _check_device(M, o)
    if check_reproducible(o.reproducible) is not None:
        return _reproducible(M, N, o)
    if o.return_arg:
        check_return_arg(find_semiring(o.semiring), M.device.type, o.accumulate)
    if o.out is not None and any(map(wants_gradient, (M, N, o.out, o.bias))):
        raise UsageError("out= has no gradient, and M or N requires one: leave it out, or pass detached tensors")
    if o.has_epilogue and o.return_arg:
        raise UsageError("return_arg=True goes with min and max; alpha=, bias= and activation= exclude it")
    if o.dtype is not None:
        kind = _requested(o.dtype, M.dtype, N.dtype)
        M, N = M.to(kind), N.to(kind)
    P = matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
    if o.has_epilogue or o.out is not None:
        P, *arg = P if o.return_arg else (P,)
        P = _with_epilogue(P, o)
        P = P if o.out is None else copy_to_out(P, o.out)
        return (P, *arg) if o.return_arg else P
    usual = o.precision == "high" and not o.return_arg and not o.nonnegative and o.dtype is None
    if usual and not torch._C._are_functorch_transforms_active():
        keep_differentiable(M, N, o.semiring, find_semiring(o.semiring))
    return P


def _reproducible(M: Any, N: Any, o: Options) -> Any:
    """The product with a gradient and specified bits, which only a plain sum of products has."""
    o.refuse(
        f"and reproducible={o.reproducible!r} exclude each other where torch follows a product: pass detached tensors",
        *("out", "accumulate", "return_arg", "alpha", "bias", "activation", "nonnegative", "dtype"),
    )
    if not is_plus_times(find_semiring(o.semiring)):
        raise UsageError(f"reproducible={o.reproducible!r} has a gradient over plus_times alone, not over {o.semiring}")
    from tilewise.torch.reproducible import reproducible_matmul

    assert o.reproducible is not None
    return reproducible_matmul(M, N, o.reproducible)


def _check_device(x: Tensor, o: Options) -> None:
    if o.device not in ("auto", x.device.type, str(x.device)):
        raise DeviceError(f"M is on {x.device} and device={o.device!r} was requested: bring M and N there first")


@constant_in_traces
def _requested(dtype: Any, m: torch.dtype, n: torch.dtype) -> torch.dtype:
    """The dtype= of a call as torch's, if a product of such operands can have it."""
    common = TORCH.promote(DTYPES[dtype_name(m)], DTYPES[dtype_name(n)])
    found: torch.dtype = getattr(torch, checked_dtype(dtype_given(dtype), common, TORCH).name)
    return found


def _common(x: Tensor, y: Tensor) -> DType:
    return TORCH.promote(DTYPES[dtype_name(x.dtype)], DTYPES[dtype_name(y.dtype)])


def _with_epilogue(P: Tensor, o: Options) -> Any:
    """activation(alpha · P + bias), with `out` added before the activation if accumulating."""
    ring, bias = find_semiring(o.semiring), o.bias
    kind = None if bias is None else DTYPES.get(dtype_name(bias.dtype))
    epilogue = epilogue_of(o.alpha, kind, o.activation)
    check_fits(epilogue, ring, is_plus_times(ring), DTYPES[dtype_name(P.dtype)])
    P = P if o.alpha == 1 else P * o.alpha
    P = P if bias is None else P + bias.to(P.dtype)
    P = OPERATORS.value(ring.add, o.out, P).to(P.dtype) if o.accumulate else P
    return ACTIVATIONS[o.activation](P) if o.activation else P


def copy_to_out(P: Tensor, out: Tensor) -> Tensor:
    if not isinstance(out, Tensor):
        raise UsageError(f"M is of torch and out is of {type(out).__module__}: pass a tensor")
    if out.dtype != P.dtype:
        raise DtypeError(f"out has dtype {out.dtype}, but the product has {P.dtype}: pass an out of dtype {P.dtype}")
    if out.shape != P.shape:
        raise ShapeError(f"out is {tuple(out.shape)}, but the product is {tuple(P.shape)}")
    return out.copy_(P)


def elementwise(semiring: Semiring, x: Tensor, y: Tensor) -> Tensor:
    """mul(x, y), elementwise, of tensors that broadcast."""
    if semiring.boolean:
        x, y = x != 0, y != 0
    dtype = torch.promote_types(x.dtype, y.dtype)
    shape = torch.broadcast_shapes(x.shape, y.shape)
    made: Tensor = OPERATORS.value(semiring.mul, x.to(dtype), y.to(dtype)).to(dtype)
    return made.expand(shape)


def _product_of_fields(M: Any, N: Any, o: Options) -> Any:
    """The product of values with fields: by our kernel, or with gradients by torch operations on all m×k×n terms."""
    check_fields(o)
    _check_device(M[0], o)
    name, pairs = name_of(o.semiring), list(zip(M, N, strict=True))
    if not any(needs_derivative(x, y) for x, y in pairs):
        return tuple(torch.ops.tilewise.matmul_fields(list(M), list(N), name))
    sides = [as_matrices(x, y)[:2] for x, y in pairs]
    algebra = semiring_of(name).over([_common(x, y) for x, y in pairs])
    made = OPERATORS.product_of_fields(algebra, [x for x, _ in sides], [y for _, y in sides])
    return tuple(x.reshape(product_shape(M[0].shape, N[0].shape)) for x in made)


@torch.library.custom_op("tilewise::matmul_fields", mutates_args=())
def fields(M: list[Tensor], N: list[Tensor], semiring: str) -> list[Tensor]:
    with kernel_only(M[0]):
        left, right = (tuple(x.detach() for x in side) for side in (M, N))
        return list(structured_matmul(left, right, semiring_of(semiring)))


@fields.register_fake
def _(M: list[Tensor], N: list[Tensor], semiring: str) -> list[Tensor]:
    algebra = semiring_of(semiring).over([_common(x, y) for x, y in zip(M, N, strict=True)])
    shape = product_shape(M[0].shape, N[0].shape)
    return [M[0].new_empty(shape, dtype=getattr(torch, kind.name)) for kind in algebra.dtypes]
