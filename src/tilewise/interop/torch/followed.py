"""`tw.matmul` where torch follows the product itself: every keyword is honoured by the operator or refused here."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tilewise.algebra.builtin import find_semiring
from tilewise.core.options import Options
from tilewise.errors import UsageError
from tilewise.interop.torch.differentiated import keep_differentiated
from tilewise.interop.torch.finished import finished
from tilewise.interop.torch.operator import check_call, matmul


def followed_matmul(M: Tensor, N: Tensor, o: Options) -> Any:
    """The product by the operator, then its epilogue in torch's own functions."""
    if o.dtype is not None:
        raise UsageError("dtype= takes no part in gradients, torch.compile or autocast: convert M and N first")
    check_call(M, o.out, o.device, o.kernel, o.tile, o.accumulate)
    if o.has_epilogue and o.return_arg:
        raise UsageError("alpha=, bias= and activation= need plus_times, and return_arg=True a min or max semiring")
    made = matmul(M, N, semiring=o.semiring, precision=o.precision, return_arg=o.return_arg, nonnegative=o.nonnegative)
    if not o.has_epilogue:
        if o.precision == "high" and not o.return_arg and not o.nonnegative:
            keep_differentiated(M, N, o.semiring, find_semiring(o.semiring))
        return made
    return finished(made, find_semiring(o.semiring), o.alpha, o.bias, o.activation)
