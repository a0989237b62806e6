"""`dots`: M times a few columns, with k side by side in both: dot products, a few rows and columns at a time.

Sums are kept lane by lane along k and added across the lanes at the end; lanes past the end of k are left as they were.
Where a tile of P has fewer columns than half a vector, that is sooner done than an element of M in every lane.
"""

from __future__ import annotations

from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.masks import mask_below, masked_load

ROWS = 4  # at a time
PARAMS = [
    ("i64", "k"), ("ptr", "M"), ("i64", "row_m"), ("ptr", "N"), ("i64", "column"), ("ptr", "P"), ("i64", "row_p"),
    ("i64", "col_p"), ("i64", "onto"),
]  # fmt: skip


def widest(a: Arithmetic) -> int:
    """Columns at a time: their sums and their vectors of N stay in registers."""
    return 4 if a.target.registers >= 32 else 2


def dots_module(a: Arithmetic) -> str:
    dots = [_dot(a, rows, columns) for columns in range(1, widest(a) + 1) for rows in (ROWS, 1)]
    return module([*dots, _rows(a), _run(a)])


def _dot(a: Arithmetic, rows: int, columns: int) -> Function:
    """rows × columns dot products of length k; N's columns are `column` elements apart."""
    f = Function(f"dot{rows}x{columns}", PARAMS)
    wide = a.renderer(f, a.lanes)
    cells = [(row, col) for row in range(rows) for col in range(columns)]
    unroll = 2 if columns == 1 else 1  # enough chains of sums to hide an addition's time
    ms = [f.at(a.kind, "%M", f.mul("%row_m", row)) for row in range(rows)]
    ns = [f.at(a.kind, "%N", f.mul("%column", col)) for col in range(columns)]

    def vectors(at: str, mask: str | None) -> tuple[list[str], list[str]]:
        def fetch(place: str) -> str:
            return masked_load(f, a, place, mask) if mask else f.op(f"load {a.vector}, ptr {place}, align {a.bytes}")

        return [fetch(f.at(a.kind, m, at)) for m in ms], [fetch(f.at(a.kind, n, at)) for n in ns]

    step = unroll * a.lanes
    bulk = f.mul(f.div("%k", step), step)
    with f.loop(0, bulk, step, [(a.vector, a.zeros(a.lanes)[0])] * (len(cells) * unroll)) as loop:
        sums = list(loop.values)
        for u in range(unroll):
            x, y = vectors(f.add(loop.index, u * a.lanes), None)
            for i, (row, col) in enumerate(cells):
                at = i * unroll + u
                sums[at] = wide.accumulate(a.add, a.mul, (sums[at],), (x[row],), (y[col],))[0]
        loop.next = sums
    totals = list(loop.values)
    if unroll > 1:
        pairs = zip(totals[::2], totals[1::2], strict=True)
        totals = [wide.value(a.add, (one,), (other,))[0] for one, other in pairs]
    with f.loop(bulk, "%k", a.lanes, [(a.vector, total) for total in totals]) as tail:
        mask = mask_below(f, f.sub("%k", tail.index), a.lanes)
        x, y = vectors(tail.index, mask)
        following = []
        for total, (row, col) in zip(tail.values, cells, strict=True):
            more = wide.accumulate(a.add, a.mul, (total,), (x[row],), (y[col],))[0]
            following.append(f.op(f"select <{a.lanes} x i1> {mask}, {a.vector} {more}, {a.vector} {total}"))
        tail.next = following
    for total, (row, col) in zip(tail.values, cells, strict=True):
        _keep(f, a, across(f, a, total), f.at(a.kind, "%P", f.mul("%row_p", row), f.mul("%col_p", col)))
    return f


def _keep(f: Function, a: Arithmetic, total: str, place: str) -> None:
    """Into P, or onto what it holds."""
    with f.when(f.test("ne", "%onto", 0)):
        old = f.op(f"load {a.kind}, ptr {place}")
        f.do(f"store {a.kind} {a.renderer(f, 1).value(a.add, (old,), (total,))[0]}, ptr {place}")
    with f.when(f.test("eq", "%onto", 0)):
        f.do(f"store {a.kind} {total}, ptr {place}")


def across(f: Function, a: Arithmetic, total: str) -> str:
    """The sum over a vector's lanes, by halves."""
    lanes = a.lanes
    while lanes > 1:
        kind, half = f"<{lanes} x {a.kind}>", lanes // 2
        parts = []
        for start in (0, half):
            picks = ", ".join(f"i32 {start + i}" for i in range(half))
            if half == 1:
                parts.append(f.op(f"extractelement {kind} {total}, i32 {start}"))
            else:
                parts.append(f.op(f"shufflevector {kind} {total}, {kind} poison, <{half} x i32> <{picks}>"))
        total = a.renderer(f, half).value(a.add, (parts[0],), (parts[1],))[0]
        lanes = half
    return total


def _rows(a: Arithmetic) -> Function:
    """Some rows of P, all columns: groups of columns, as wide as they go."""
    f = Function("rows", [*PARAMS, ("i64", "rows"), ("i64", "columns")])
    bulk, most = f.mul(f.div("%rows", ROWS), ROWS), widest(a)
    for start, stop, height in (("0", bulk, ROWS), (bulk, "%rows", 1)):
        with f.loop(start, stop, height) as i, f.loop(0, "%columns", most) as j:
            M = f.at(a.kind, "%M", f.mul(i.index, "%row_m"))
            N = f.at(a.kind, "%N", f.mul(j.index, "%column"))
            P = f.at(a.kind, "%P", f.mul(i.index, "%row_p"), f.mul(j.index, "%col_p"))
            left = f.lower(f.sub("%columns", j.index), most)
            for columns in range(1, most + 1):
                with f.when(f.test("eq", left, columns)):
                    f.do(
                        f"call void @dot{height}x{columns}(i64 %k, ptr {M}, i64 %row_m, ptr {N}, i64 %column, ptr {P}, "
                        "i64 %row_p, i64 %col_p, i64 %onto)"
                    )
    return f


def _run(a: Arithmetic) -> Function:
    """One task: a range of rows. N's columns are copied first where their elements do not lie side by side."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, n, tasks_m, task_m = job.words("m", "k", "n", "tasks_m", "task_m")
    row_m, row_n, col_n, row_p, col_p, onto = job.words("row_m", "row_n", "col_n", "row_p", "col_p", "onto")
    i0, member = f.mul(f.rem("%task", tasks_m), task_m), f.div("%task", tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = f.at(a.kind, job.member_of_stack("M", "at_m", member, a.bytes), f.mul(i0, row_m))
    N = job.member_of_stack("N", "at_n", member, a.bytes)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), f.mul(i0, row_p))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    apart = f.test("ne", row_n, 1)
    with f.when(apart), f.loop(0, k) as i, f.loop(0, n) as j:
        element = f.op(f"load {a.kind}, ptr {f.at(a.kind, N, f.mul(i.index, row_n), f.mul(j.index, col_n))}")
        f.do(f"store {a.kind} {element}, ptr {f.at(a.kind, space, f.mul(j.index, k), i.index)}")
    columns = f.op(f"select i1 {apart}, ptr {space}, ptr {N}")
    column = f.op(f"select i1 {apart}, i64 {k}, i64 {col_n}")
    f.do(
        f"call void @rows(i64 {k}, ptr {M}, i64 {row_m}, ptr {columns}, i64 {column}, ptr {P}, i64 {row_p}, "
        f"i64 {col_p}, i64 {onto}, i64 {rows}, i64 {n})"
    )
    return f
