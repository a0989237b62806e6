"""The text that a plan runs, whichever kernel it chose."""

from __future__ import annotations

from tilewise.kernels.render import render
from tilewise.kernels.render_hopper import render_tensor_cores
from tilewise.planning import Plan
from tilewise.tensor_tiles import BY_CLASSES, KERNEL, along_columns


def source_of(plan: Plan) -> str:
    """One self-contained source: for the tensor cores, the form for operands that lie as the problem says."""
    if plan.kernel != KERNEL or plan.tensor is None:
        return render(plan)
    p, way = plan.problem, plan.tensor
    return render_tensor_cores(
        p.dtype.name,
        way.tile,
        m_along_k=not along_columns(p.layout_m, p.m, p.k),
        n_along_k=along_columns(p.layout_n, p.k, p.n),
        store="partial" if p.unrounded else way.store(p.layout_p, p.m, p.n, p.layout_p.alignment, plan.machine.units),
        accumulate=p.accumulate and way.splits == 1,
        edges=bool(way.edge_rows or way.edge_cols),
        classes=way.classes if way.routes[0] == BY_CLASSES else 0,
    )
