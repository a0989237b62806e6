"""`tilewise::routed_matmul(Tensor M, Tensor N, str when) -> Tensor`: a product whose kernel is not chosen yet.

It stands in graphs that torch writes down (torch.compile, torch.export): `compiled.py` puts ours or torch's in its
place before Inductor pads or fuses anything; where no such pass runs, it chooses when it runs.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from tilewise.interop.torch.choice import ACCOUNTS
from tilewise.interop.torch.compiled import arrange
from tilewise.interop.torch.function import cast
from tilewise.interop.torch.gradients import of_sums

_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")
_LIBRARY.define("routed_matmul(Tensor M, Tensor N, str when) -> Tensor")
NAME = "tilewise::routed_matmul"


def marked(M: Tensor, N: Tensor, when: str) -> Any:
    """M · N of matrices, or of stacks of the same extents."""
    return torch.ops.tilewise.routed_matmul(M, N, when)


def traced_linear(input: Tensor, weight: Tensor, bias: Tensor | None, when: str) -> Tensor:
    """A layer while a graph is written down."""
    made: Tensor = torch.ops.tilewise.routed_matmul(input.flatten(0, -2), weight.mT, when)
    if bias is not None:
        made = made + bias.to(made.dtype)  # beside the product: one `addmm`, where torch keeps it
    return made.unflatten(0, input.shape[:-1])


def _run(M: Tensor, N: Tensor, when: str) -> Any:
    account = ACCOUNTS[when]
    choice = account.choice("mm" if M.dim() == 2 else "bmm", M, N)
    choice.calls += 1
    if choice.routed:
        return torch.ops.tilewise.matmul(M, N, "plus_times", "high", False)
    return torch.matmul(M, N)


for _key in ("CPU", "CUDA"):
    _LIBRARY.impl("routed_matmul", _run, _key)


@torch.library.register_fake(NAME, lib=_LIBRARY)
def _(M: Tensor, N: Tensor, when: str) -> Tensor:
    arrange()
    return M.new_empty((*M.shape[:-1], N.shape[-1]))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    M, N, ctx.when = inputs
    ctx.save_for_backward(M, N)


def _backward(ctx: Any, dP: Tensor) -> Any:
    M, N = ctx.saved_tensors
    return (*of_sums(partial(marked, when=ctx.when), M, N, dP, ctx.needs_input_grad), None)


torch.library.register_autograd(NAME, _backward, setup_context=_remember, lib=_LIBRARY)


def _under_autocast(device: str) -> Any:
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, f"Autocast{device}"))

    def kernel(M: Tensor, N: Tensor, when: str) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            return marked(cast(M), cast(N), when)

    return kernel


for _device in ("CPU", "CUDA"):
    _LIBRARY.impl("routed_matmul", _under_autocast(_device), f"Autocast{_device}")


def _operations(m_shape: Any, n_shape: Any, *_: Any, **__: Any) -> int:
    return 2 * int(math.prod(m_shape)) * int(n_shape[-1])


register_flop_formula(torch.ops.tilewise.routed_matmul)(_operations)
