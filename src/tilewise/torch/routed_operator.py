"""`tilewise::routed_matmul(Tensor M, Tensor N, str when) -> Tensor`: a product whose kernel is chosen later.

It is used in graphs that torch records (torch.compile, torch.export): `compiled.py` replaces it by our product or
torch's before Inductor pads or fuses anything; without that pass, it chooses at run time.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from tilewise.torch.choice import ACCOUNTS
from tilewise.torch.compiled import install_while_tracing
from tilewise.torch.gradients import of_sums
from tilewise.torch.operator import operations, register_autocast

_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")
_LIBRARY.define("routed_matmul(Tensor M, Tensor N, str when) -> Tensor")
NAME = "tilewise::routed_matmul"


def routed(M: Tensor, N: Tensor, when: str) -> Any:
    """M · N of matrices, or of stacks of the same extents."""
    return torch.ops.tilewise.routed_matmul(M, N, when)


def traced_linear(input: Tensor, weight: Tensor, bias: Tensor | None, when: str) -> Tensor:
    """A linear layer in a graph that torch records."""
    made: Tensor = routed(input.flatten(0, -2), weight.mT, when)
    if bias is not None:
        made = made + bias.to(made.dtype)  # adjacent, so that `compiled.py` can merge both into torch's `addmm`
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
    install_while_tracing()
    return M.new_empty((*M.shape[:-1], N.shape[-1]))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    M, N, ctx.when = inputs
    ctx.save_for_backward(M, N)


def _backward(ctx: Any, dP: Tensor) -> Any:
    M, N = ctx.saved_tensors
    return (*of_sums(partial(routed, when=ctx.when), M, N, dP, ctx.needs_input_grad), None)


torch.library.register_autograd(NAME, _backward, setup_context=_save, lib=_LIBRARY)
register_autocast("routed_matmul", routed, lambda when: True)
register_flop_formula(torch.ops.tilewise.routed_matmul)(operations)
