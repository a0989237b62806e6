"""`dots`: M times one column, with k side by side in both: dot products, a few rows at a time.

Sums are kept lane by lane along k and added across the lanes at the end; lanes past the end of k are left as they were.
"""

from __future__ import annotations

from tilewise.algebra.to_llvm import Value
from tilewise.engines.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.engines.cpu.kernels.shared.ir import Function, module
from tilewise.engines.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.engines.cpu.kernels.shared.masks import mask_below, masked_load

ROWS, UNROLL = 4, 2  # rows at a time, vectors of k at a time: eight chains of sums


def dots_module(a: Arithmetic) -> str:
    return module([_dot(a, ROWS), _dot(a, 1), _run(a)])


def _dot(a: Arithmetic, rows: int) -> Function:
    """`rows` dot products of length k; results at every `row_p` of P."""
    params = [
        ("i64", "k"), ("ptr", "M"), ("i64", "row_m"), ("ptr", "N"), ("ptr", "P"), ("i64", "row_p"), ("i64", "onto"),
    ]  # fmt: skip
    f = Function(f"dot{rows}", params)
    wide = a.renderer(f, a.lanes)
    zero = a.zeros(a.lanes)[0]
    pointers = [f.at(a.kind, "%M", f.mul("%row_m", row)) for row in range(rows)]

    def products(at: str, mask: str | None) -> list[Value]:
        def fetch(place: str) -> str:
            return masked_load(f, a, place, mask) if mask else f.op(f"load {a.vector}, ptr {place}, align {a.bytes}")

        y = fetch(f.at(a.kind, "%N", at))
        return [((fetch(f.at(a.kind, pointer, at))), y) for pointer in pointers]

    step = UNROLL * a.lanes
    bulk = f.mul(f.div("%k", step), step)
    with f.loop(0, bulk, step, [(a.vector, zero)] * (rows * UNROLL)) as loop:
        sums = list(loop.values)
        for u in range(UNROLL):
            for row, (x, y) in enumerate(products(f.add(loop.index, u * a.lanes), None)):
                i = row * UNROLL + u
                sums[i] = wide.accumulate(a.add, a.mul, (sums[i],), (x,), (y,))[0]
        loop.next = sums
    totals = [wide.value(a.add, (loop.values[r * UNROLL],), (loop.values[r * UNROLL + 1],))[0] for r in range(rows)]
    with f.loop(bulk, "%k", a.lanes, [(a.vector, total) for total in totals]) as tail:
        mask = mask_below(f, f.sub("%k", tail.index), a.lanes)
        following = []
        for total, (x, y) in zip(tail.values, products(tail.index, mask), strict=True):
            more = wide.accumulate(a.add, a.mul, (total,), (x,), (y,))[0]
            following.append(f.op(f"select <{a.lanes} x i1> {mask}, {a.vector} {more}, {a.vector} {total}"))
        tail.next = following
    one = a.renderer(f, 1)
    for row, total in enumerate(tail.values):
        value = (across(f, a, total),)
        place = f.at(a.kind, "%P", f.mul("%row_p", row))
        with f.when(f.test("ne", "%onto", 0)):
            old = f.op(f"load {a.kind}, ptr {place}")
            f.do(f"store {a.kind} {one.value(a.add, (old,), value)[0]}, ptr {place}")
        with f.when(f.test("eq", "%onto", 0)):
            f.do(f"store {a.kind} {value[0]}, ptr {place}")
    return f


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


def _run(a: Arithmetic) -> Function:
    """One task: a range of rows. N's column is copied first where its elements do not lie side by side."""
    f = Function("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    m, k, tasks_m, task_m = job.words("m", "k", "tasks_m", "task_m")
    row_m, row_n, row_p, onto = job.words("row_m", "row_n", "row_p", "onto")
    i0, member = f.mul(f.rem("%task", tasks_m), task_m), f.div("%task", tasks_m)
    rows = f.lower(f.sub(m, i0), task_m)
    M = f.at(a.kind, job.member_of_stack("M", "at_m", member, a.bytes), f.mul(i0, row_m))
    N = job.member_of_stack("N", "at_n", member, a.bytes)
    P = f.at(a.kind, job.member_of_stack("P", "at_p", member, a.bytes), f.mul(i0, row_p))
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.word("workspace_bytes")))
    apart = f.test("ne", row_n, 1)
    with f.when(apart), f.loop(0, k) as i:
        element = f.op(f"load {a.kind}, ptr {f.at(a.kind, N, f.mul(i.index, row_n))}")
        f.do(f"store {a.kind} {element}, ptr {f.at(a.kind, space, i.index)}")
    column = f.op(f"select i1 {apart}, ptr {space}, ptr {N}")
    bulk = f.mul(f.div(rows, ROWS), ROWS)
    for start, stop, height in (("0", bulk, ROWS), (bulk, rows, 1)):
        with f.loop(start, stop, height) as i:
            f.do(
                f"call void @dot{height}(i64 {k}, ptr {f.at(a.kind, M, f.mul(i.index, row_m))}, i64 {row_m}, "
                f"ptr {column}, ptr {f.at(a.kind, P, f.mul(i.index, row_p))}, i64 {row_p}, i64 {onto})"
            )
    return f
