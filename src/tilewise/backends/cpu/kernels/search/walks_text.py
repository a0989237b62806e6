"""The k shortest walks from one source as LLVM IR: Dijkstra's order, in which each node is taken k times.

A node's list has the k least lengths known, ascending; the first of them that was not taken is its key in the heap of
`orders`. A walk extended by an edge is inserted into the list of the edge's end if it is shorter than the last of its
k; these last lengths are contiguous, so that dense rows are compared by vectors. No weight is below 0.
"""

from __future__ import annotations

from tilewise.algebra.dtypes import DType
from tilewise.algebra.to_llvm import constant, scalar_kind
from tilewise.backends.cpu.kernels.search.orders import PUT, heap
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.system.llvm_text import IRFunction, module


def walks_module(dtype: DType, k: int, lanes: int) -> str:
    """`walk`, a task. `lanes`: how many columns of a dense row are compared at a time; 0 for stored edges.

    Fields of the job: M the rows' starts, N the columns (int32), P the weights, or their rows of `row_p`; at_m the
    sources, arg the lists, n the nodes. A worker's workspace has the counters and the heap; from `sums_at` on places,
    from `strip` how often each node was taken, from `at_n` on the last of each list, −∞ behind those of the n nodes.
    """
    kind, (zero,) = scalar_kind(dtype), constant(dtype.largest(), dtype, 1)
    made = _Walks(kind, zero, k, lanes)
    return module([*heap(kind, zero, f"fcmp olt {kind}"), made.offer(), made.function()])


class _Walks:
    def __init__(self, kind: str, zero: str, k: int, lanes: int) -> None:
        self.kind, self.zero, self.k, self.lanes = kind, zero, k, lanes
        self.held = f"ptr space, ptr places, ptr counts, ptr lasts, ptr lists, i64 n, i64 node, {kind} value"

    def offer(self) -> IRFunction:
        """Insert a length below the last of a node's list; the node moves in the heap if that is its next one."""
        f, kind, k = IRFunction("offer", self.held), self.kind, self.k
        own = f.at(kind, "%lists", f.mul("%node", k))
        count = f.load("i64", f.at("i64", "%counts", "%node"))
        key = f.load(kind, f.at(kind, own, count))
        look, move, put = f.label("look"), f.label("move"), f.label("put")
        f.do(f"br label %{look}")
        f.start(look)
        at, above = f.fresh(), f.fresh()
        f.lines.append(f"  {at} = phi i64 [{k - 1}, %entry], [{above}, %{move}]")
        f.lines.append(f"  {above} = sub i64 {at}, 1")
        compare = f.label("compare")
        f.branch(f.test("sgt", at, 0), compare, put)
        before = f.load(kind, f.at(kind, own, above))
        f.branch(f.op(f"fcmp ogt {kind} {before}, %value"), move, put)
        f.store(kind, before, f.at(kind, own, at))
        f.goto(look)
        f.start(put)
        f.store(kind, "%value", f.at(kind, own, at))
        f.store(kind, f.load(kind, f.at(kind, own, k - 1)), f.at(kind, "%lasts", "%node"))
        with f.when(f.test("eq", at, count)):
            f.invoke("put", PUT.format(kind=kind), new=f.op(f"fcmp oeq {kind} {key}, {self.zero}"))
        return f

    def function(self) -> IRFunction:
        self.f = f = IRFunction("walk", TASK_PARAMS, public=True)
        job = JobReader(f)
        n, kind, k = job.field("n"), self.kind, self.k
        space = f.at("i8", job.pointer("workspace"), f.mul("%worker", job.field("workspace_bytes")))
        self.given: dict[str, str | int] = {
            "space": space, "n": n, "lists": f.at(kind, job.pointer("arg"), f.mul(f.mul("%task", n), k)),
            **{name: f.at("i8", space, job.field(at)) for name, at in (
                ("places", "sums_at"), ("counts", "strip"), ("lasts", "at_n"))},
        }  # fmt: skip
        lists, counts, lasts = (str(self.given[name]) for name in ("lists", "counts", "lasts"))
        starts, columns, weights = (job.pointer(x) for x in "MNP")
        leading = job.field("row_p")
        with f.loop(0, f.mul(n, k)) as i:
            f.store(kind, self.zero, f.at(kind, lists, i.index))
        with f.loop(0, n) as i:
            f.store("i64", 0, f.at("i64", counts, i.index))
            f.store(kind, self.zero, f.at(kind, lasts, i.index))
        f.store("i64", 0, space)
        self._offered(f.load("i64", f.at("i64", job.pointer("at_m"), "%task")), "0.0")
        turn, taken, done = f.label("turn"), f.label("taken"), f.label("done")
        f.goto(turn)
        f.start(turn)
        u = f.op(f"call i64 @take(ptr {space}, ptr {self.given['places']}, ptr null, i64 {n})")
        f.branch(f.test("sge", u, 0), taken, done)
        value = self._taken(u)
        if self.lanes:
            self._dense_row(f.at(kind, weights, f.mul(u, leading)), value, lasts)
        else:
            start = f.at("i64", starts, u)
            with f.loop(f.load("i64", start), f.load("i64", f.at("i64", start, 1))) as e:
                narrow = f.load("i32", f.at("i32", columns, e.index))
                weight = f.load(kind, f.at(kind, weights, e.index))
                self._compared(f.op(f"zext i32 {narrow} to i64"), f.op(f"fadd {kind} {value}, {weight}"), lasts)
        f.goto(turn)
        f.start(done)
        return f

    def _taken(self, u: str) -> str:
        """The length with which u was taken; the next of its list becomes its key."""
        f, kind = self.f, self.kind
        place = f.at("i64", str(self.given["counts"]), u)
        count = f.load("i64", place)
        own = f.at(kind, str(self.given["lists"]), f.mul(u, self.k), count)
        following = f.add(count, 1)
        f.store("i64", following, place)
        with f.when(f.test("slt", following, self.k)):
            key = f.load(kind, f.at(kind, own, 1))
            with f.when(f.op(f"fcmp olt {kind} {key}, {self.zero}")):
                held = {name: self.given[name] for name in ("space", "places", "n")}
                f.invoke("put", PUT.format(kind=kind), node=u, value=key, new="true", **held)
        return f.load(kind, own)

    def _dense_row(self, row: str, value: str, lasts: str) -> None:
        f, kind, lanes = self.f, self.kind, self.lanes
        vector = f"<{lanes} x {kind}>"
        every = f.splat(kind, value, lanes)
        with f.loop(0, self.given["n"], lanes) as j:
            weights = f.load(vector, f.at(kind, row, j.index), 4)
            below = f.op(f"fcmp olt {vector} {f.op(f'fadd {vector} {weights}, {every}')}, "
                         f"{f.load(vector, f.at(kind, lasts, j.index), 4)}")  # fmt: skip
            bits = f.op(f"zext i{lanes} {f.op(f'bitcast <{lanes} x i1> {below} to i{lanes}')} to i64")
            hits, left, done = f.label("hits"), f.label("left"), f.label("done")
            before = f.label("before")
            f.goto(before)
            f.start(before)
            f.goto(hits)
            f.start(hits)
            mask, rest, last = f.fresh(), f.fresh(), f.label("last")
            f.lines.append(f"  {mask} = phi i64 [{bits}, %{before}], [{rest}, %{last}]")
            f.branch(f.test("ne", mask, 0), left, done)
            lane = f.call("i64", "llvm.cttz.i64", [("i64", mask), ("i1", "true")])
            node = f.add(j.index, lane)
            self._offered(node, f.op(f"fadd {kind} {value}, {f.load(kind, f.at(kind, row, node))}"))
            f.goto(last)
            f.start(last)
            f.lines.append(f"  {rest} = and i64 {mask}, {f.sub(mask, 1)}")
            f.goto(hits)
            f.start(done)

    def _compared(self, node: str, value: str, lasts: str) -> None:
        f, kind = self.f, self.kind
        last = f.load(kind, f.at(kind, lasts, node))
        with f.when(f.op(f"fcmp olt {kind} {value}, {last}")):
            self._offered(node, value)

    def _offered(self, node: str, value: str) -> None:
        self.f.invoke("offer", self.held, node=node, value=value, **self.given)
