"""The text that a plan runs, whichever kernel it chose."""

from __future__ import annotations

from tilewise.epilogue import PLAIN
from tilewise.few_tiles import FewTile, long_lines
from tilewise.k_major_tiles import AcrossTile, KMajorWay, boxed, lines_apart, paired
from tilewise.kernels.render import render
from tilewise.kernels.render_ampere import Form as MmaForm
from tilewise.kernels.render_ampere import render_mma_sync
from tilewise.kernels.render_few import render_few
from tilewise.kernels.render_hopper import render_tensor_cores
from tilewise.kernels.render_k_major import render_k_across, render_k_major
from tilewise.kernels.render_plain import Form, render_plain
from tilewise.kernels.render_split import render_bf16x6
from tilewise.mma_tiles import KERNEL as MMA
from tilewise.mma_tiles import along_k, line_bytes
from tilewise.plain_tiles import IDEAS, choose, line_alignment
from tilewise.plain_ways import arch_number
from tilewise.plans import Plan
from tilewise.problem import Layout
from tilewise.tensor_tiles import BY_CLASSES, KERNEL, along_columns


def source_of(plan: Plan) -> str:
    """One self-contained source: the form for operands that lie as the problem says."""
    if plan.kernel in IDEAS:
        return _plain_source(plan)
    if plan.k_major is not None:
        return _k_major_source(plan, plan.k_major)
    if plan.split is not None:
        return render_bf16x6(plan.split.tile)
    if plan.kernel == MMA:
        return _mma_source(plan)
    if plan.kernel != KERNEL or plan.tensor is None:
        return render(plan)
    p, way = plan.problem, plan.tensor
    m_along_k, n_along_k = not along_columns(p.layout_m, p.m, p.k), along_columns(p.layout_n, p.k, p.n)
    return render_tensor_cores(
        p.dtype.name,
        way.tile,
        m_along_k=m_along_k,
        n_along_k=n_along_k,
        store="partial" if p.unrounded else way.store(p.layout_p, p.m, p.n, p.layout_p.alignment, plan.machine.units),
        accumulate=p.accumulate and way.splits == 1,
        edges=way.edge_forms(m_along_k, n_along_k),
        classes=way.classes if way.routes[0] == BY_CLASSES else 0,
        epilogue=p.epilogue if way.splits == 1 else PLAIN,
    )


def _mma_source(plan: Plan) -> str:
    p, way, arch = plan.problem, plan.mma, plan.machine.arch
    assert way is not None
    form = MmaForm(
        along_k(p.layout_m, p.m, p.k, "M"),
        along_k(p.layout_n, p.k, p.n, "N"),
        *way.vectors,
        16 if way.parts > 1 else line_bytes(p.layout_p, p.m, p.n, p.result.itemsize),
        p.accumulate,
        way.parts > 1,
    )
    return render_mma_sync(
        p.dtype, p.result, way.tile, way.tile.stages(arch), form, p.epilogue, min(90, arch_number(arch))
    )


def _k_major_source(plan: Plan, way: KMajorWay) -> str:
    p, whole = plan.problem, way.splits == 1
    by_boxes = whole and not p.accumulate and boxed(p.layout_p, p.m, p.n, p.layout_p.alignment, p.result.itemsize)
    if isinstance(way.tile, AcrossTile):
        return render_k_across(
            way.tile,
            apart=lines_apart(p.layout_n),
            classes=way.classes,
            boxed=by_boxes and way.classes == 1,
            onto=p.accumulate,
        )
    words = paired(p.layout_p, p.m, p.n, p.layout_p.alignment, p.result.itemsize) and not p.accumulate
    return render_k_major(
        (p.dtype_m.name, p.dtype_n.name),
        way.tile,
        boxed=by_boxes,
        result=p.result.name,
        paired=words,
        scaled=p.scaled,
    )


def _plain_source(plan: Plan) -> str:
    p, choice = plan.problem, choose(plan.problem, plan.machine, plan.kernel)
    split = choice.pieces > 1
    if isinstance(choice.tile, FewTile):
        short = p.layout_n if choice.tile.swapped else p.layout_m
        along_k = abs(short.row) <= abs(short.col) if choice.tile.swapped else abs(short.col) <= abs(short.row)
        return render_few(p.algebra, choice.tile, along_k=along_k, accumulate=p.accumulate, split=split)
    way = choice.way

    def lies(side: str, layout: Layout, rows: int, cols: int) -> tuple[bool, int]:
        """(k side by side, words a copy takes); packed words lie across k, on 16-byte boundaries."""
        lines = long_lines(layout, rows, cols)
        if side in choice.packs or lines is None:
            return False, 16 // way.word_bytes
        along_k = lines[0] == (side == "N")
        aligned = line_alignment(layout, rows, cols, way.word_bytes)
        return along_k, 1 if along_k else max(1, aligned // way.word_bytes)

    m_along_k, vector_m = lies("M", p.layout_m, p.m, p.k)
    n_along_k, vector_n = lies("N", p.layout_n, p.k, p.n)
    lead = p.layout_p.leading_dimension(p.m, p.n)
    quad = 16 // way.word_bytes
    aligned = split or (lead is not None and lead % quad == 0 and p.layout_p.alignment >= quad * p.result.itemsize)
    form = Form(
        way, m_along_k, n_along_k, vector_m, vector_n, aligned, p.accumulate and not split, split, bool(choice.tail)
    )
    return render_plain(p.algebra, choice.tile, form)
