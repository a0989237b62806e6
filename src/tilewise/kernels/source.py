"""The text that a plan runs, whichever kernel it chose."""

from __future__ import annotations

from tilewise.kernels.render import render
from tilewise.kernels.render_hopper import render_tensor_cores
from tilewise.planning import Plan
from tilewise.tensor_tiles import KERNEL, along_columns, tile_of


def source_of(plan: Plan) -> str:
    """One self-contained source: for the tensor cores, the form for operands that lie as the problem says."""
    if plan.kernel != KERNEL:
        return render(plan)
    p = plan.problem
    lead = p.layout_p.leading_dimension(p.m, p.n)
    return render_tensor_cores(
        p.dtype.name,
        tile_of(plan.geometry),
        m_along_k=not along_columns(p.layout_m, p.m, p.k),
        n_along_k=along_columns(p.layout_n, p.k, p.n),
        p_aligned=lead is not None and lead % 8 == 0 and p.layout_p.alignment >= 16,
        accumulate=p.accumulate,
        unrounded=p.unrounded,
    )
