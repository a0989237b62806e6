"""`tiny`: products whose call costs more than their arithmetic. No packing, no workspace, no threads.

A row of P at a time, by vectors where rows of N and P are contiguous, else element by element. `enter` takes NumPy's
array objects, whose first field after the header is the address of their elements.
"""

from __future__ import annotations

from tilewise.algebra.to_llvm import Value, vector
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.job import ENTER, TASK_PARAMS, JobReader
from tilewise.backends.cpu.kernels.shared.masks import load_lanes, store_lanes, vector_loop
from tilewise.system.llvm_text import IRFunction, module


def tiny_module(a: Arithmetic) -> str:
    return module([_member(a), _run(a), _enter()], a.float_state)


def _member(a: Arithmetic) -> IRFunction:
    f = IRFunction("member", ENTER)
    job = JobReader(f)
    m, k, n, onto = job.fields("m", "k", "n", "onto")
    row_m, col_m, row_n, col_n, row_p, col_p = job.fields("row_m", "col_m", "row_n", "col_n", "row_p", "col_p")
    fresh = f.test("eq", onto, 0)
    lined_up = f.both(f.test("eq", col_n, 1), f.test("eq", col_p, 1))

    def columns(j: str, lanes: int, mask: str | None) -> None:
        """A vector of columns, or one: all rows."""
        N, P = f.at(a.kind, "%N", j), f.at(a.kind, "%P", j)
        render = a.renderer(f, lanes)
        with f.loop(0, m) as i:
            row = f.at(a.kind, "%M", f.mul(i.index, row_m))
            with f.loop(0, k, 1, [(vector(a.kind, lanes), a.zeros(lanes)[0])]) as p:
                x = f.load(a.kind, f.at(a.kind, row, f.mul(p.index, col_m)))
                x = f.splat(a.kind, x, lanes)
                y = load_lanes(f, a, f.at(a.kind, N, f.mul(p.index, row_n)), lanes, mask)
                p.next = list(render.accumulate(a.add, a.mul, (p.values[0],), (x,), (y,)))
            total, place = p.values[0], f.at(a.kind, P, f.mul(i.index, row_p))

            def keep(value: Value) -> None:
                store_lanes(f, a, a.canonical(f, value, lanes)[0], place, lanes, mask)

            def onto() -> None:
                old = load_lanes(f, a, place, lanes, mask)
                keep(render.value(a.add, (old,), (total,)))

            f.either(fresh, lambda: keep((total,)), onto)

    def by_vectors() -> None:
        vector_loop(f, a, n, columns)

    def one_by_one() -> None:
        with f.loop(0, m) as i, f.loop(0, n) as j:
            row = f.at(a.kind, "%M", f.mul(i.index, row_m))
            column = f.at(a.kind, "%N", f.mul(j.index, col_n))
            with f.loop(0, k, 1, [(a.kind, a.zeros(1)[0])]) as p:
                x = f.load(a.kind, f.at(a.kind, row, f.mul(p.index, col_m)))
                y = f.load(a.kind, f.at(a.kind, column, f.mul(p.index, row_n)))
                p.next = list(a.renderer(f, 1).accumulate(a.add, a.mul, (p.values[0],), (x,), (y,)))
            total = p.values[0]
            place = f.at(a.kind, "%P", f.mul(i.index, row_p), f.mul(j.index, col_p))
            with f.when(f.negated(fresh)):
                old = f.load(a.kind, place)
                f.store(a.kind, a.canonical(f, a.renderer(f, 1).value(a.add, (old,), (total,)), 1)[0], place)
            with f.when(fresh):
                f.store(a.kind, a.canonical(f, (total,), 1)[0], place)

    f.either(lined_up, by_vectors, one_by_one)
    return f


def _run(a: Arithmetic) -> IRFunction:
    """One task: `task_m` members of the stack."""
    f = IRFunction("run", TASK_PARAMS, public=True)
    job = JobReader(f)
    each, members = job.fields("task_m", "members")
    start = f.mul("%task", each)
    with f.loop(start, f.lower(f.add(start, each), members)) as member:
        M, N, P = (job.member_of_stack(name, f"at_{name.lower()}", member.index, a.bytes) for name in ("M", "N", "P"))
        f.invoke("member", ENTER, M=M, N=N, P=P)
    return f


def _enter() -> IRFunction:
    """The entry for one product; its operands come as array objects."""
    f = IRFunction("enter", ENTER, public=True)
    places = f.data_of("M", "N", "P")
    f.invoke("member", ENTER, M=places[0], N=places[1], P=places[2])
    return f
