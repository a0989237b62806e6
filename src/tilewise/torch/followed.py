"""`tw.matmul` of tensors with gradients, or traced: each keyword is passed to the operator, applied after it, or
refused."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.builtin import find_semiring, is_plus_times
from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.torch_library import dtype_name
from tilewise.core.epilogue import check_fits, epilogue_of
from tilewise.core.options import Options
from tilewise.errors import DeviceError, UsageError
from tilewise.torch.operator import matmul
from tilewise.torch.prepared_gradients import keep_differentiable

ACTIVATIONS = {
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


def followed_matmul(M: Tensor, N: Tensor, o: Options) -> Any:
    """The product by the operator, then its epilogue in torch's own functions."""
    if o.dtype is not None:
        raise UsageError("dtype= takes no part in gradients, torch.compile or autocast: convert M and N first")
    if o.out is not None or o.accumulate:
        raise UsageError("out= has no gradient, and M or N requires one: leave it out, or pass detached tensors")
    if o.kernel is not None or o.tile is not None:
        raise UsageError("kernel= and tile= pin one launch, which torch cannot follow: pass detached tensors")
    if o.device not in ("auto", M.device.type, str(M.device)):
        raise DeviceError(f"M is on {M.device} and device={o.device!r} was requested: bring M and N there first")
    if o.has_epilogue and o.return_arg:
        raise UsageError("alpha=, bias= and activation= need plus_times, and return_arg=True a min or max semiring")
    P = matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
    if o.has_epilogue:
        return _with_epilogue(P, o)
    if o.precision == "high" and not o.return_arg and not o.nonnegative:
        keep_differentiable(M, N, o.semiring, find_semiring(o.semiring))
    return P


def _with_epilogue(P: Tensor, o: Options) -> Any:
    """activation(alpha · P + bias)."""
    ring, bias = find_semiring(o.semiring), o.bias
    kind = None if bias is None else DTYPES.get(dtype_name(bias.dtype))
    epilogue = epilogue_of(o.alpha, kind, o.activation)
    check_fits(epilogue, ring, is_plus_times(ring), DTYPES[dtype_name(P.dtype)])
    P = P if o.alpha == 1 else P * o.alpha
    P = P if bias is None else P + bias.to(P.dtype)
    return ACTIVATIONS[o.activation](P) if o.activation else P
