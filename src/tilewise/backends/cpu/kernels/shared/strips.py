"""Several threads on one product: every strip of N is packed once, by all threads together, and read by all.

Tasks are taken in one order: the first strip is packed; then, for each strip, half of P's rows are multiplied, the next
strip is packed into the other of two buffers, and the other half is multiplied. A task waits only for tasks with lower
numbers, so there is no deadlock, and with half a strip in between threads hardly wait.
"""

from __future__ import annotations

from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.job import COUNTERS, TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.pack import PACK
from tilewise.backends.cpu.runtime.systems import system_of
from tilewise.backends.cpu.runtime.workers import pause_function
from tilewise.system.llvm_text import IRFunction

AGAINST_STRIP = "ptr job, i64 rows, i64 cols, i64 kc, ptr M, ptr panels, ptr P, i1 first, ptr space, i64 below"
WAIT = "ptr job, i64 counter, i64 count"
PACK_PIECE = "ptr job, i64 strip, i64 piece"
NO_DIAGONAL = -(1 << 62)  # a row offset so far above the diagonal that no tile is skipped
PACKED, ROWS = COUNTERS, COUNTERS + 8  # counters: pieces packed; and for each piece of rows, strips multiplied


def count_tasks(pieces_n: int, pieces_m: int, strips: int) -> int:
    """The number of tasks."""
    return pieces_n + strips * (pieces_n + pieces_m)


def job_size(pieces_m: int) -> int:
    """Fields of such a job, counters included."""
    return ROWS + pieces_m


def strip_functions(a: Arithmetic) -> list[IRFunction]:
    """For a module that has `pack_n`, and `against_strip` for some rows of P."""
    return [pause_function(a.target), _wait(), _pack_piece(a), _multiply_piece(a), _run(a)]


def _run(a: Arithmetic) -> IRFunction:
    f = IRFunction("run_strips", TASK_PARAMS, public=True)
    job = JobReader(f)
    pieces_n, pieces_m = job.fields("tasks_n", "tasks_m")

    def pack(strip: str, piece: str) -> None:
        f.invoke("pack_piece", PACK_PIECE, strip=strip, piece=piece)

    def multiply(strip: str, piece: str) -> None:
        f.do(f"call void @multiply_piece(ptr %job, i64 {strip}, i64 {piece}, i64 %worker)")

    def later() -> None:
        both, since = f.add(pieces_n, pieces_m), f.sub("%task", pieces_n)
        strip, place, half = f.div(since, both), f.rem(since, both), f.div(pieces_m, 2)

        def not_first() -> None:
            f.either(
                f.test("slt", place, f.add(half, pieces_n)),
                lambda: pack(f.add(strip, 1), f.sub(place, half)),
                lambda: multiply(strip, f.sub(place, pieces_n)),
            )

        f.either(f.test("slt", place, half), lambda: multiply(strip, place), not_first)

    f.either(f.test("slt", "%task", pieces_n), lambda: pack("0", "%task"), later)
    return f


def rows_below_diagonal(f: IRFunction, job: JobReader, i: str, j: str) -> str:
    """i - j in a symmetric product; NO_DIAGONAL in others, of which every tile is computed."""
    return f.select(f.test("ne", job.field("symmetric"), 0), "i64", f.sub(i, j), NO_DIAGONAL)


def _wait() -> IRFunction:
    """Until a counter of the job has reached `count`."""
    f = IRFunction("wait", WAIT)
    place = f.at("i64", "%job", "%counter")
    again, pause, done = f.label("again"), f.label("pause"), f.label("done")
    f.goto(again)
    f.start(again)
    with f.loop(0, 1000):
        now = f.op(f"load atomic i64, ptr {place} seq_cst, align 8")
        f.branch(f.test("sge", now, "%count"), done, pause, then=pause)
        f.do("call void @pause()")
    system_of().yield_core(f)  # the other thread may need this core
    f.goto(again)
    f.start(done)
    return f


def _where(f: IRFunction, job: JobReader) -> tuple[str, str, str]:
    """A strip's first column, its first k, and its depth."""
    k, KC, NC = job.fields("k", "KC", "NC")
    strips_k = f.div(f.add(k, f.sub(KC, 1)), KC)
    first = f.mul(f.rem("%strip", strips_k), KC)
    return f.mul(f.div("%strip", strips_k), NC), first, f.lower(KC, f.sub(k, first))


def _packed_strip(f: IRFunction, a: Arithmetic, job: JobReader) -> str:
    """The buffer of a packed strip: there are two."""
    return f.at(a.kind, job.pointer("sums"), f.mul(f.rem("%strip", 2), job.field("strip")))


def _pack_piece(a: Arithmetic) -> IRFunction:
    """Pack `task_n` columns of a strip of N into the shared buffer, once no thread reads its old contents."""
    f = IRFunction("pack_piece", PACK_PIECE)
    job = JobReader(f)
    n, NC, task_n, pieces_n, pieces_m = job.fields("n", "NC", "task_n", "tasks_n", "tasks_m")
    row_n, col_n = job.fields("row_n", "col_n")
    strip_j, strip_k, kc = _where(f, job)
    with f.when(f.test("slt", strip_j, n)):  # no strip follows the last one
        f.invoke("wait", WAIT, counter=PACKED, count=f.mul("%strip", pieces_n))
        with f.loop(0, pieces_m) as i:
            f.invoke("wait", WAIT, counter=f.add(i.index, ROWS), count=f.sub("%strip", 1))
        j = f.mul("%piece", task_n)
        cols = f.lower(task_n, f.sub(f.lower(NC, f.sub(n, strip_j)), j))
        size = f"[{a.source_n.itemsize} x i8]"
        N = f.at(size, job.pointer("N"), f.mul(strip_k, row_n), f.mul(f.add(strip_j, j), col_n))
        rows = a.emit_rows_n(f, a.emit_groups(f, kc))
        to = f.at(a.kind, _packed_strip(f, a, job), f.mul(j, f.mul(rows, a.parts)))
        with f.when(f.test("sgt", cols, 0)):  # the last strip may be narrower
            f.invoke("pack_n", PACK, src=N, lane=col_n, step=row_n, lanes=cols, kc=kc, dst=to)
        f.op(f"atomicrmw add ptr {f.at('i64', '%job', PACKED)}, i64 1 seq_cst")
    return f


def _multiply_piece(a: Arithmetic) -> IRFunction:
    """`task_m` rows of P times a packed strip, once they have been multiplied with the strips before."""
    f = IRFunction("multiply_piece", f"{PACK_PIECE}, i64 worker")
    job = JobReader(f)
    m, n, NC, task_m, pieces_n = job.fields("m", "n", "NC", "task_m", "tasks_n")
    row_m, col_m, row_p = job.fields("row_m", "col_m", "row_p")
    strip_j, strip_k, kc = _where(f, job)
    i = f.mul("%piece", task_m)
    rows, cols = f.lower(task_m, f.sub(m, i)), f.lower(NC, f.sub(n, strip_j))
    fresh = f.test("eq", f.add(job.field("onto"), strip_k), 0)
    M = f.at(f"[{a.source_m.itemsize} x i8]", job.pointer("M"), f.mul(i, row_m), f.mul(strip_k, col_m))
    P = f.at(a.cell, job.pointer("P"), f.mul(i, row_p), strip_j)
    space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
    f.invoke("wait", WAIT, counter=PACKED, count=f.mul(f.add("%strip", 1), pieces_n))
    f.invoke("wait", WAIT, counter=f.add("%piece", ROWS), count="%strip")
    f.invoke("against_strip", AGAINST_STRIP, rows=rows, cols=cols, kc=kc, M=M, panels=_packed_strip(f, a, job),
        P=P, first=fresh, space=space, below=rows_below_diagonal(f, job, i, strip_j))  # fmt: skip
    f.do(f"store atomic i64 {f.add('%strip', 1)}, ptr {f.at('i64', '%job', f.add('%piece', ROWS))} seq_cst, align 8")
    return f
