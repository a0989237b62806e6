"""`little`: everything lies in the caches, so packing would cost more than it brings.

Tiles take M and N where they lie. A strip of KC rows of N is walked along its columns; M's rows are split into tiles of
8, 4, 2 and 1, which find the same piece of N in the first cache.
"""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.merge import merge_function
from tilewise.engines.cpu.kernels.shared.tile import TileForm, tile_function
from tilewise.engines.cpu.runtime.address import data_field


def row_forms(a: Arithmetic) -> list[TileForm]:
    """Fewer rows, more vectors: the sums fill the registers either way."""
    sums = a.MR * a.tile[1]
    most = 1 << (a.MR.bit_length() - 1)
    heights = [most >> shift for shift in range(most.bit_length())]
    return [TileForm(rows, min(8, max(1, sums // rows)), True, True) for rows in heights]


def little_module(a: Arithmetic) -> str:
    forms = row_forms(a)
    edges = [TileForm(form.rows, 1, True, True, edge=True, masked=masked) for form in forms for masked in (False, True)]
    tiles = {form.name: tile_function(a, form) for form in [*forms, *edges]}
    return module([merge_function(a), *tiles.values(), _piece(a, forms), _run(a), _enter(data_field())])


def _run(a: Arithmetic) -> Function:
    """One task: a range of columns of one member's P."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    tasks_n = job.word("tasks_n")
    member = f.div("%task", tasks_n)
    M, N, P = (job.member_of_stack(name, f"at_{name.lower()}", member, a.bytes) for name in ("M", "N", "P"))
    j0 = f.mul(f.rem("%task", tasks_n), job.word("task_n"))
    f.do(f"call void @piece(ptr %job, ptr {M}, ptr {N}, ptr {P}, i64 {j0})")
    return f


def _enter(data_field: int) -> Function:
    """The short way in: a product that is one task, whose operands come as array objects."""
    f = Function("enter", [("ptr", "job"), ("ptr", "M"), ("ptr", "N"), ("ptr", "P")], public=True)
    places = [f.op(f"load ptr, ptr {f.at('i8', f'%{name}', data_field)}") for name in ("M", "N", "P")]
    f.do(f"call void @piece(ptr %job, ptr {places[0]}, ptr {places[1]}, ptr {places[2]}, i64 0)")
    return f


def _piece(a: Arithmetic, forms: list[TileForm]) -> Function:
    """Columns j0 to j0 + task_n of P: all of k, all rows."""
    f = Function("piece", [("ptr", "job"), ("ptr", "M"), ("ptr", "N"), ("ptr", "P"), ("i64", "j0")])
    job = JobReader(f)
    m, k, n, task_n, KC = job.words("m", "k", "n", "task_n", "KC")
    row_m, col_m, row_n, row_p = job.words("row_m", "col_m", "row_n", "row_p")
    fresh = f.test("eq", job.word("onto"), 0)
    cols = f.lower(f.sub(n, "%j0"), task_n)
    M, N, P = "%M", f.at(a.kind, "%N", "%j0"), f.at(a.kind, "%P", "%j0")
    with f.loop(0, k, KC) as p:
        kc = f.lower(f.sub(k, p.index), KC)
        first = f.op(f"and i1 {fresh}, {f.test('eq', p.index, 0)}")
        strip_m = f.at(a.kind, M, f.mul(p.index, col_m))
        strip_n = f.at(a.kind, N, f.mul(p.index, row_n))
        step = _step(f, forms, m, a.lanes)
        with f.loop(0, cols, step) as j:
            left = f.lower(f.sub(cols, j.index), step)
            row = "0"
            for form in forms:
                row = _rows(
                    f, a, form, (kc, strip_m, row_m, col_m, strip_n, row_n, P, row_p), (m, row, j.index, left), first
                )
    return f


def _step(f: Function, forms: list[TileForm], m: str, lanes: int) -> str:
    """Columns walked at a time: as wide as the tallest tile in use allows."""
    step = str(forms[-1].vectors * lanes)
    for form in reversed(forms[:-1]):
        enough = f.test("sge", m, form.rows)
        step = f.op(f"select i1 {enough}, i64 {form.vectors * lanes}, i64 {step}")
    return step


def _rows(
    f: Function,
    a: Arithmetic,
    form: TileForm,
    strip: tuple[str, ...],
    place: tuple[str, str, str, str],
    first: str,
) -> str:
    """As many tiles of this height as fit below `row`; the row after them comes back."""
    kc, M, row_m, col_m, N, row_n, P, row_p = strip
    m, row, column, left = place
    count = f.div(f.sub(m, row), form.rows)
    stop = f.add(row, f.mul(count, form.rows))
    width = form.vectors * a.lanes
    with f.loop(row, stop, form.rows) as i:
        tall = f.at(a.kind, M, f.mul(i.index, row_m))
        cells = f.at(a.kind, P, f.mul(i.index, row_p))

        def tile(name: str, at: str, cols: str | int) -> None:
            f.do(
                f"call void @{name}(i64 {kc}, ptr {tall}, i64 {row_m}, i64 {col_m}, ptr {f.at(a.kind, N, at)}, "
                f"i64 {row_n}, ptr {f.at(a.kind, cells, at)}, i64 {row_p}, i64 0, i64 {form.rows}, i64 {cols}, "
                f"i1 {first}, i64 0)"
            )

        whole = f.mul(f.div(left, width), width)
        with f.loop(0, whole, width) as j:
            tile(form.name, f.add(column, j.index), width)
        vectors = f.mul(f.div(left, a.lanes), a.lanes)
        with f.loop(whole, vectors, a.lanes) as j:
            tile(TileForm(form.rows, 1, True, True).name, f.add(column, j.index), a.lanes)
        with f.when(f.test("slt", vectors, left)):
            name = TileForm(form.rows, 1, True, True, masked=True).name
            tile(name, f.add(column, vectors), f.sub(left, vectors))
    return stop
