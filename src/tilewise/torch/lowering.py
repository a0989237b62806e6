"""The lowering of `tilewise::matmul` in Inductor: a direct call that writes into memory Inductor has planned.

Without it, compiled code would call the operator through torch's dispatcher, which costs more than the launch. The call
is `extern_kernels.tilewise_matmul(M, N, out=P, …)`, as Inductor calls torch's own products; if all sizes are constant,
`buffers.py` chooses the layouts, and the call reuses its launch (`call_sites.py`).
"""

from __future__ import annotations

from functools import cache
from typing import Any
from uuid import uuid4

import torch

from tilewise.torch import call_sites, row_losses
from tilewise.torch.buffers import arrange_operands, freeze_leading_dimension, keeps_launches

NAME = "tilewise_matmul"


@cache
def register() -> None:
    """Register the lowerings with Inductor, once."""
    from torch._inductor import ir, lowering, select_algorithm
    from torch._inductor.virtualized import V

    operator = torch.ops.tilewise.matmul.default
    plain = select_algorithm.ExternKernelChoice(call_sites.run, name=NAME)
    sited = select_algorithm.ExternKernelChoice(call_sites.run_at, name=f"{NAME}_at")
    over = select_algorithm.ExternKernelChoice(call_sites.run_over, name=f"{NAME}_over")
    by_dispatcher = lowering.fallback_handler(operator, add_to_fallback_set=False)

    @lowering.register_lowering(torch.ops.tilewise.aligned_rows.default, type_promotion_kind=None)
    def _(x: Any, lead: int) -> Any:
        return freeze_leading_dimension(x, lead)

    gradient = torch.ops.tilewise.row_losses_gradient.default
    beside = lowering.fallback_handler(gradient, add_to_fallback_set=False)

    @lowering.register_lowering(gradient, type_promotion_kind=None)
    def _(logits: Any, *given: Any) -> Any:
        if not is_spent(logits, V.graph.current_node):
            return beside(logits, *given)
        ir.FallbackKernel.create(row_losses.IN_PLACE, logits, *given)
        return logits

    @lowering.register_lowering(operator, type_promotion_kind=None)
    def _(M: Any, N: Any, semiring: str, precision: str, nonnegative: bool = False, aligned_rows: bool = False) -> Any:
        if V.graph.cpp_wrapper or aligned_rows:  # C++ code calls Python through the dispatcher only
            return by_dispatcher(M, N, semiring, precision, nonnegative, aligned_rows)
        node = V.graph.current_node
        if (semiring, precision) == ("plus_times", "high") and keeps_launches(node):
            M, N, layout, spare = arrange_operands(M, N, node)
            return sited.bind((M, N), layout, site=uuid4().hex, spare=spare).output_node()
        made = node.meta["val"]
        M, N = ir.ExternKernel.realize_input(M), ir.ExternKernel.realize_input(N)
        layout = ir.FlexibleLayout(M.get_device(), made.dtype, ir.convert_shape_to_inductor(made.shape))
        if (semiring, precision) == ("plus_times", "high"):
            return plain.bind((M, N), layout).output_node()
        how = {"semiring": semiring, "precision": precision, "nonnegative": nonnegative}
        return over.bind((M, N), layout, **how).output_node()


def is_spent(logits: Any, node: Any) -> bool:
    """Whether a gradient may overwrite its logits: they are a donated buffer that the graph reads only here, and their
    rows start on 16 bytes. Not in CUDA graphs, which would copy them first."""
    from torch._inductor import config, ir

    box = logits.data if isinstance(logits, ir.TensorBox) else logits
    held = box.data if isinstance(box, ir.StorageBox) else None
    if not isinstance(held, ir.DonatedBuffer) or config.triton.cudagraphs or len(node.args[0].users) != 1:
        return False
    lead, step = held.get_stride()
    return bool(step == 1 and lead * held.get_dtype().itemsize % 16 == 0)
