"""`packed_n`: M is read where it lies, its k side by side; N is packed while the first rows of P are made.

For each strip of KC and each group of columns that fits the second cache: the first panel of M takes N where it lies
and leaves it packed on the way, which costs nothing beside the sums; all other panels read it from there. What reads
an operand a few times only gains nothing from packing it first, so this wins until M is read for too many groups.
"""

from __future__ import annotations

from functools import partial

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.merge import merge_function
from tilewise.engines.cpu.kernels.shared.pack import pack_function
from tilewise.engines.cpu.kernels.shared.strips import strip_functions
from tilewise.engines.cpu.kernels.shared.tile import TileForm, tile_function


def packed_n_module(a: Arithmetic) -> str:
    rows, vectors = a.tile
    forms = [
        TileForm(rows, v, direct_m=True, along_k=True, panel=a.width, edge=v < vectors) for v in range(1, vectors + 1)
    ]
    keeping = TileForm(rows, vectors, direct_m=True, along_k=True, direct_n=True, keeps_n=True, panel=a.width)
    return module(
        [
            pack_function(a, "pack_n", a.width, a.source_n),
            merge_function(a),
            *(tile_function(a, form) for form in (*forms, keeping)),
            _group(a, forms, keeping),
            _run(a),
            _against_strip(a),
            *strip_functions(a),
        ]
    )


def _group(a: Arithmetic, forms: list[TileForm], keeping: TileForm) -> Function:
    """All rows of a task against one group of columns and one strip of k. `packs`: N does not lie packed yet."""
    params = [
        ("i64", "rows"), ("i64", "cols"), ("i64", "kc"), ("ptr", "M"), ("i64", "row_m"), ("ptr", "N"), ("i64", "row_n"),
        ("ptr", "P"), ("i64", "row_p"), ("i1", "first"), ("ptr", "panels"), ("i1", "packs"),
    ]  # fmt: skip
    f = Function("group", params)
    whole = f.mul(f.div("%cols", a.NR), a.NR)
    left = f.sub("%cols", whole)
    edge_n, edge = f.at(a.kind, "%N", whole), f.at(a.kind, "%panels", f.mul(whole, "%kc"))
    with f.when(f.op(f"and i1 %packs, {f.test('sgt', left, 0)}")):
        f.do(f"call void @pack_n(ptr {edge_n}, i64 1, i64 %row_n, i64 {left}, i64 %kc, ptr {edge})")

    def tile(form: TileForm, M: str, N: str, P: str, rows: str, cols: str | int, kept: str = "") -> None:
        f.do(
            f"call void @{form.name}(i64 %kc, ptr {M}, i64 %row_m, i64 1, ptr {N}, i64 %row_n, ptr {P}, i64 %row_p, "
            f"i64 0, i64 {rows}, i64 {cols}, i1 %first, i64 0{kept})"
        )

    with f.loop(0, "%rows", a.MR) as i:
        rows = f.lower(f.sub("%rows", i.index), a.MR)
        M, P = f.at(a.kind, "%M", f.mul(i.index, "%row_m")), f.at(a.kind, "%P", f.mul(i.index, "%row_p"))
        with f.loop(0, whole, a.NR) as j:
            panel, cells = f.at(a.kind, "%panels", f.mul(j.index, "%kc")), f.at(a.kind, P, j.index)
            in_place = f.at(a.kind, "%N", j.index)
            f.either(
                f.op(f"and i1 %packs, {f.test('eq', i.index, 0)}"),
                partial(tile, keeping, M, in_place, cells, rows, a.NR, f", ptr {panel}"),
                partial(tile, forms[-1], M, panel, cells, rows, a.NR),
            )
        for form in forms:
            fits = f.op(
                f"and i1 {f.test('sgt', left, (form.vectors - 1) * a.lanes)}, "
                f"{f.test('sle', left, form.vectors * a.lanes)}"
            )
            with f.when(fits):
                tile(form, M, edge, f.at(a.kind, P, whole), rows, left)
    return f


def _run(a: Arithmetic) -> Function:
    """One task: a piece of one member's P."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, KC, group = job.words("m", "k", "n", "KC", "group")
    tasks_m, tasks_n, task_m, task_n = job.words("tasks_m", "tasks_n", "task_m", "task_n")
    row_m, row_n, row_p = job.words("row_m", "row_n", "row_p")
    rest = f.div("%task", tasks_m)
    i0, j0, member = f.mul(f.rem("%task", tasks_m), task_m), f.mul(f.rem(rest, tasks_n), task_n), f.div(rest, tasks_n)
    rows, cols = f.lower(f.sub(m, i0), task_m), f.lower(f.sub(n, j0), task_n)
    M = f.at(a.kind, job.member_of_stack("M", "at_m", member, a.bytes), f.mul(i0, row_m))
    N = f.at(a.kind, job.member_of_stack("N", "at_n", member, a.bytes), j0)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), f.mul(i0, row_p), j0)
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    fresh = f.test("eq", job.word("onto"), 0)
    with f.loop(0, k, KC) as p, f.loop(0, cols, group) as g:
        first = f.op(f"and i1 {fresh}, {f.test('eq', p.index, 0)}")
        f.do(
            f"call void @group(i64 {rows}, i64 {f.lower(f.sub(cols, g.index), group)}, "
            f"i64 {f.lower(f.sub(k, p.index), KC)}, ptr {f.at(a.kind, M, p.index)}, i64 {row_m}, "
            f"ptr {f.at(a.kind, N, f.mul(p.index, row_n), g.index)}, i64 {row_n}, ptr {f.at(a.kind, P, g.index)}, "
            f"i64 {row_p}, i1 {first}, ptr {space}, i1 true)"
        )
    return f


def _against_strip(a: Arithmetic) -> Function:
    """`rows` of P against a strip of N that lies packed, group by group."""
    params = [
        ("ptr", "job"), ("i64", "rows"), ("i64", "cols"), ("i64", "kc"), ("ptr", "M"), ("ptr", "panels"), ("ptr", "P"),
        ("i1", "first"), ("ptr", "space"),
    ]  # fmt: skip
    f = Function("against_strip", params)
    row_m, row_p, group = JobReader(f).words("row_m", "row_p", "group")
    with f.loop(0, "%cols", group) as g:
        f.do(
            f"call void @group(i64 %rows, i64 {f.lower(f.sub('%cols', g.index), group)}, i64 %kc, ptr %M, i64 {row_m}, "
            f"ptr null, i64 0, ptr {f.at(a.kind, '%P', g.index)}, i64 {row_p}, i1 %first, "
            f"ptr {f.at(a.kind, '%panels', f.mul(g.index, '%kc'))}, i1 false)"
        )
    return f
