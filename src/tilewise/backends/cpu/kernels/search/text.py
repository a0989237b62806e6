"""The best paths from one source as LLVM IR: one relaxation, with nodes taken by a heap or a queue (`orders`)."""

from __future__ import annotations

from tilewise.algebra.expression import Number, is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_llvm import Renderer, constant, scalar_kind
from tilewise.backends.cpu.kernels.search.orders import ENTRIES, PUT, heap, queue
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.system.llvm_text import IRFunction, module

EVERYWHERE = -1  # a source: all nodes at once, as from a new node with an edge of weight `one` to each


def search_module(algebra: Algebra, one: Number, tracks: bool, ordered: bool) -> str:
    """`search`, a task. `tracks`: predecessors are stored too; `ordered`: nodes are taken by the heap, else by the
    queue, which needs predecessors.

    Fields of the job: M the rows' starts, N the columns (int32), P the weights, at_m the sources, arg the values, at_a
    the predecessors, at_p the last result of `take`, n the nodes; a worker's workspace has counters and entries, and
    from `sums_at` on the places."""
    kind, (zero,) = scalar_kind(algebra.partial), constant(algebra.zero, algebra.partial, 1)
    order = heap(kind, zero, comparison(algebra)) if ordered else queue(kind)
    return module([*order, _Search(algebra, one, tracks or not ordered).function(ordered)])


def comparison(algebra: Algebra) -> str:
    """The instruction that tests whether a value is better than another, for an add of min or max."""
    dtype, less = algebra.partial, is_plain(algebra.semiring.add, "min")
    if dtype.kind == "f":
        return f"fcmp {'olt' if less else 'ogt'} {scalar_kind(dtype)}"
    return f"icmp {'s' if dtype.kind == 'i' else 'u'}{'lt' if less else 'gt'} {scalar_kind(dtype)}"


class _Search:
    def __init__(self, algebra: Algebra, one: Number, tracks: bool) -> None:
        self.algebra, self.tracks = algebra, tracks
        self.kind = scalar_kind(algebra.partial)
        ((self.zero,), (self.one,)) = (constant(x, algebra.partial, 1) for x in (algebra.zero, one))
        self.f = f = IRFunction("search", TASK_PARAMS, public=True)
        job = JobReader(f)
        self.n = job.field("n")
        self.starts, self.columns, self.weights = (job.pointer(x) for x in "MNP")
        self.source = f.load("i64", f.at("i64", job.pointer("at_m"), "%task"))
        row = f.mul("%task", self.n)
        self.values = f.at(self.kind, job.pointer("arg"), row)
        self.before = f.at("i64", job.pointer("at_a"), row) if tracks else "null"
        self.status = f.at("i64", job.pointer("at_p"), "%task")
        own = f.mul("%worker", job.field("workspace_bytes"))
        self.space = f.at("i8", job.pointer("workspace"), own)
        self.places = f.at("i8", self.space, job.field("sums_at"))

    def function(self, ordered: bool) -> IRFunction:
        f = self.f
        self._clear(ordered)
        with f.when(f.test("sge", self.source, 0)):
            f.store(self.kind, self.one, f.at(self.kind, self.values, self.source))
            self._put(self.source, self.one, "true")
        turn, done = f.label("turn"), f.label("done")
        f.goto(turn)
        f.start(turn)
        u = f.op(f"call i64 @take(ptr {self.space}, ptr {self.places}, ptr {self.before}, i64 {self.n})")
        f.branch(f.test("sge", u, 0), f.label("taken"), done)
        value = f.load(self.kind, f.at(self.kind, self.values, u))
        start = f.at("i64", self.starts, u)
        with f.loop(f.load("i64", start), f.load("i64", f.at("i64", start, 1))) as e:
            self._relax(u, value, e.index)
        f.goto(turn)
        f.start(done)
        f.store("i64", u, self.status)
        return f

    def _clear(self, ordered: bool) -> None:
        """No node has a value; from EVERYWHERE each has `one` and is queued."""
        f = self.f
        everywhere = f.test("slt", self.source, 0)
        first = f.select(everywhere, self.kind, self.one, self.zero)
        ring, waits = f.at("i8", self.space, ENTRIES), f.op(f"zext i1 {everywhere} to i32")
        with f.loop(0, self.n) as i:
            f.store(self.kind, first, f.at(self.kind, self.values, i.index))
            if self.tracks:
                f.store("i64", -1, f.at("i64", self.before, i.index))
            if not ordered:
                f.store("i32", waits, f.at("i32", self.places, i.index))
                f.store("i32", f.op(f"trunc i64 {i.index} to i32"), f.at("i32", ring, i.index))
        f.store("i64", f.select(everywhere, "i64", self.n, 0), self.space)
        for counter in (1, 2):
            f.store("i64", 0, f.at("i64", self.space, counter))

    def _relax(self, u: str, value: str, edge: str) -> None:
        """Relax one edge of u."""
        f, ring = self.f, self.algebra.semiring
        narrow = f.load("i32", f.at("i32", self.columns, edge))
        v = f.op(f"zext i32 {narrow} to i64")
        weight = f.load(self.kind, f.at(self.kind, self.weights, edge))
        render = Renderer(f, self.algebra.partial, 1)
        (made,) = render.value(ring.mul, (value,), (weight,))
        place = f.at(self.kind, self.values, v)
        known = f.load(self.kind, place)
        if is_plain(ring.add, "min") or is_plain(ring.add, "max"):
            better = f.op(f"{comparison(self.algebra)} {made}, {known}")
        else:
            (made,) = render.value(ring.add, (known,), (made,))
            better = f.op(f"{self._relation('ne')} {made}, {known}")
        with f.when(better):
            f.store(self.kind, made, place)
            if self.tracks:
                f.store("i64", u, f.at("i64", self.before, v))
            self._put(v, made, f.op(f"{self._relation('eq')} {known}, {self.zero}"))

    def _relation(self, name: str) -> str:
        return f"fcmp o{name} {self.kind}" if self.algebra.partial.kind == "f" else f"icmp {name} {self.kind}"

    def _put(self, node: str, value: str, new: str) -> None:
        given = {"space": self.space, "places": self.places, "n": self.n, "node": node, "value": value, "new": new}
        self.f.invoke("put", PUT.format(kind=self.kind), **given)
