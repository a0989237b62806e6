"""`tilewise::matmul` in Inductor's code: one plain call that writes into memory Inductor has planned.

Without this, compiled code would call the operator through torch's dispatcher, which costs more than the launch. The
call is `extern_kernels.tilewise_matmul(M, N, out=P, …)`, as Inductor calls torch's own products.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from tilewise import api
from tilewise.arrays.torch_library import SETTLED
from tilewise.interop.torch.words import ring_of
from tilewise.prepared import PREPARED, SIGNATURES

NAME = "tilewise_matmul"


def run(M: Tensor, N: Tensor, *, out: Tensor) -> Tensor:
    """P = M · N where Inductor wants it."""
    keywords = {"out": out}
    sign = SIGNATURES.get(Tensor)
    key = None if sign is None else sign(M, N, keywords)
    prepared = None if key is None else PREPARED.get(key)
    if prepared is None or prepared(M, N, keywords) is None:
        _settled(M, N, out=out)
    return out


def run_over(M: Tensor, N: Tensor, *, semiring: str, precision: str, nonnegative: bool, out: Tensor) -> Tensor:
    """The same over any semiring."""
    _settled(M, N, semiring=ring_of(semiring), precision=precision, nonnegative=nonnegative, out=out)
    return out


def _settled(M: Tensor, N: Tensor, **how: Any) -> None:
    before, SETTLED.inside = SETTLED.inside, True
    try:
        with torch.no_grad():
            api.matmul(M.detach(), N.detach(), **how)
    finally:
        SETTLED.inside = before


@cache
def register() -> None:
    """Once: tell Inductor how the operator is written down in its code."""
    from torch._inductor import ir, lowering, select_algorithm
    from torch._inductor.virtualized import V

    operator = torch.ops.tilewise.matmul.default
    plain = select_algorithm.ExternKernelChoice(run, name=NAME)
    over = select_algorithm.ExternKernelChoice(run_over, name=f"{NAME}_over")
    by_dispatcher = lowering.fallback_handler(operator, add_to_fallback_set=False)

    @lowering.register_lowering(operator, type_promotion_kind=None)
    def _(M: Any, N: Any, semiring: str, precision: str, nonnegative: bool = False) -> Any:
        if V.graph.cpp_wrapper:  # C++ code has no way into Python but the dispatcher
            return by_dispatcher(M, N, semiring, precision, nonnegative)
        made = V.graph.current_node.meta["val"]
        M, N = ir.ExternKernel.realize_input(M), ir.ExternKernel.realize_input(N)
        size = ir.convert_shape_to_inductor(made.shape)
        layout = ir.FlexibleLayout(M.get_device(), made.dtype, size)
        if (semiring, precision) == ("plus_times", "high"):
            return plain.bind((M, N), layout).output_node()
        how = {"semiring": semiring, "precision": precision, "nonnegative": nonnegative}
        return over.bind((M, N), layout, **how).output_node()
