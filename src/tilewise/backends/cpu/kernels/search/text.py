"""The best paths from one source as LLVM IR: one relaxation, and two orders in which nodes are taken.

    heap     the best node first (Dijkstra): each is taken once, where no edge improves on the path it continues
    queue    first in, first out (Bellman–Ford–Moore): a node whose value improves is taken again

The heap has four children to a node, side by side on a line of the cache, and each node of the graph at most once:
its place is kept, and a value that gets better moves it up. A node has a place in the heap from its first value on, so
places need no first value; entries behind the end are zero: there are always four to compare. The queue looks for a
circle among the predecessors after every n improvements: there is one where a cycle improves without end.
"""

from __future__ import annotations

from tilewise.algebra.expression import Number, is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_llvm import Renderer, constant, scalar_kind
from tilewise.backends.cpu.kernels.shared.job import TASK_PARAMS, JobReader
from tilewise.system.llvm_text import IRFunction, module

ENTRIES = 48  # bytes of a worker's counters; entries follow, the second one, a first child, on a line of its own
EVERYWHERE = -1  # a source: all nodes at once, as from a new node with an edge of weight one to each
DONE = -1  # what `take` returns behind the last node; −2 − v where v is on a cycle that improves
TAKE = "ptr space, ptr places, ptr before, i64 n"

# the entry of a node that is new or has improved, at its place or above
HEAP_PUT = """
  %size = load i64, ptr %space
  %own = getelementptr i32, ptr %places, i64 %node
  %place.narrow = load i32, ptr %own
  %place = zext i32 %place.narrow to i64
  %from = select i1 %new, i64 %size, i64 %place
  %one = zext i1 %new to i64
  %grown = add i64 %size, %one
  store i64 %grown, ptr %space
  %heap = getelementptr i8, ptr %space, i64 ENTRIES
  br label %up
up:
  %at = phi i64 [%from, %entry], [%above, %move]
  %top = icmp eq i64 %at, 0
  br i1 %top, label %put, label %look
look:
  %before = sub i64 %at, 1
  %above = lshr i64 %before, 2
  %held.at = getelementptr ENTRY, ptr %heap, i64 %above
  %held = load KIND, ptr %held.at
  %better = BETTER %value, %held
  br i1 %better, label %move, label %put
move:
  %other.at = getelementptr ENTRY, ptr %held.at, i64 0, i32 1
  %other = load i64, ptr %other.at
  %to = getelementptr ENTRY, ptr %heap, i64 %at
  store KIND %held, ptr %to
  %to.node = getelementptr ENTRY, ptr %to, i64 0, i32 1
  store i64 %other, ptr %to.node
  %other.place = getelementptr i32, ptr %places, i64 %other
  %at.narrow = trunc i64 %at to i32
  store i32 %at.narrow, ptr %other.place
  br label %up
put:
  %here = getelementptr ENTRY, ptr %heap, i64 %at
  store KIND %value, ptr %here
  %beside = getelementptr ENTRY, ptr %here, i64 0, i32 1
  store i64 %node, ptr %beside
  %own.narrow = trunc i64 %at to i32
  store i32 %own.narrow, ptr %own"""

# the node at the top; the last entry goes there and down again
HEAP_TAKE = """
  %held = load i64, ptr %space
  %none = icmp eq i64 %held, 0
  br i1 %none, label %nothing, label %some
nothing:
  ret i64 DONE
some:
  %heap = getelementptr i8, ptr %space, i64 ENTRIES
  %top.node = getelementptr ENTRY, ptr %heap, i64 0, i32 1
  %taken = load i64, ptr %top.node
  %size = sub i64 %held, 1
  store i64 %size, ptr %space
  %last = getelementptr ENTRY, ptr %heap, i64 %size
  %value = load KIND, ptr %last
  %beside = getelementptr ENTRY, ptr %last, i64 0, i32 1
  %node = load i64, ptr %beside
  store KIND ZERO, ptr %last
  %empty = icmp eq i64 %size, 0
  br i1 %empty, label %done, label %down
down:
  %at = phi i64 [0, %some], [%child, %move]
  %four = shl i64 %at, 2
  %first = add i64 %four, 1
  %leaf = icmp sge i64 %first, %size
  br i1 %leaf, label %put, label %look
look:
  %c0.at = getelementptr ENTRY, ptr %heap, i64 %first
  %c1.at = getelementptr ENTRY, ptr %c0.at, i64 1
  %c2.at = getelementptr ENTRY, ptr %c0.at, i64 2
  %c3.at = getelementptr ENTRY, ptr %c0.at, i64 3
  %c0 = load KIND, ptr %c0.at
  %c1 = load KIND, ptr %c1.at
  %c2 = load KIND, ptr %c2.at
  %c3 = load KIND, ptr %c3.at
  %i1 = add i64 %first, 1
  %i2 = add i64 %first, 2
  %i3 = add i64 %first, 3
  %better1 = BETTER %c1, %c0
  %a = select i1 %better1, KIND %c1, KIND %c0
  %ia = select i1 %better1, i64 %i1, i64 %first
  %better3 = BETTER %c3, %c2
  %b = select i1 %better3, KIND %c3, KIND %c2
  %ib = select i1 %better3, i64 %i3, i64 %i2
  %better = BETTER %b, %a
  %best = select i1 %better, KIND %b, KIND %a
  %child = select i1 %better, i64 %ib, i64 %ia
  %rises = BETTER %best, %value
  br i1 %rises, label %move, label %put
move:
  %from.node = getelementptr ENTRY, ptr %heap, i64 %child, i32 1
  %moved = load i64, ptr %from.node
  %to = getelementptr ENTRY, ptr %heap, i64 %at
  store KIND %best, ptr %to
  %to.node = getelementptr ENTRY, ptr %to, i64 0, i32 1
  store i64 %moved, ptr %to.node
  %moved.place = getelementptr i32, ptr %places, i64 %moved
  %at.narrow = trunc i64 %at to i32
  store i32 %at.narrow, ptr %moved.place
  br label %down
put:
  %here = getelementptr ENTRY, ptr %heap, i64 %at
  store KIND %value, ptr %here
  %here.node = getelementptr ENTRY, ptr %here, i64 0, i32 1
  store i64 %node, ptr %here.node
  %own = getelementptr i32, ptr %places, i64 %node
  %own.narrow = trunc i64 %at to i32
  store i32 %own.narrow, ptr %own
  br label %done
done:
  ret i64 %taken"""

# a ring of n nodes behind the counters (how many wait, the first, improvements); a place is 1 while its node waits
QUEUE_PUT = """
  %made.at = getelementptr i64, ptr %space, i64 2
  %made = load i64, ptr %made.at
  %counted = add i64 %made, 1
  store i64 %counted, ptr %made.at
  %own = getelementptr i32, ptr %places, i64 %node
  %waits = load i32, ptr %own
  %already = icmp ne i32 %waits, 0
  br i1 %already, label %done, label %append
append:
  store i32 1, ptr %own
  %size = load i64, ptr %space
  %head.at = getelementptr i64, ptr %space, i64 1
  %head = load i64, ptr %head.at
  %end = add i64 %head, %size
  %wraps = icmp sge i64 %end, %n
  %around = sub i64 %end, %n
  %at = select i1 %wraps, i64 %around, i64 %end
  %ring = getelementptr i8, ptr %space, i64 ENTRIES
  %to = getelementptr i32, ptr %ring, i64 %at
  %narrow = trunc i64 %node to i32
  store i32 %narrow, ptr %to
  %grown = add i64 %size, 1
  store i64 %grown, ptr %space
  br label %done
done:"""

QUEUE_TAKE = """
  %ring = getelementptr i8, ptr %space, i64 ENTRIES
  %marks = getelementptr i32, ptr %ring, i64 %n
  %made.at = getelementptr i64, ptr %space, i64 2
  %made = load i64, ptr %made.at
  %often = icmp sge i64 %made, %n
  br i1 %often, label %clear, label %first
clear:
  store i64 0, ptr %made.at
  %bytes = shl i64 %n, 2
  call void @llvm.memset.p0.i64(ptr %marks, i8 0, i64 %bytes, i1 false)
  br label %starts
starts:
  %start = phi i64 [0, %clear], [%start.next, %walked]
  %more = icmp slt i64 %start, %n
  br i1 %more, label %begin, label %first
begin:
  %start.next = add i64 %start, 1
  %mark = trunc i64 %start.next to i32
  br label %walk
walk:
  %v = phi i64 [%start, %begin], [%up, %marked]
  %ends = icmp slt i64 %v, 0
  br i1 %ends, label %walked, label %look
look:
  %mark.at = getelementptr i32, ptr %marks, i64 %v
  %seen = load i32, ptr %mark.at
  %new = icmp eq i32 %seen, 0
  br i1 %new, label %marked, label %met
marked:
  store i32 %mark, ptr %mark.at
  %up.at = getelementptr i64, ptr %before, i64 %v
  %up = load i64, ptr %up.at
  br label %walk
met:
  %circle = icmp eq i32 %seen, %mark
  br i1 %circle, label %improves, label %walked
improves:
  %named = sub i64 -2, %v
  ret i64 %named
walked:
  br label %starts
first:
  %size = load i64, ptr %space
  %none = icmp eq i64 %size, 0
  br i1 %none, label %nothing, label %some
nothing:
  ret i64 DONE
some:
  %left = sub i64 %size, 1
  store i64 %left, ptr %space
  %head.at = getelementptr i64, ptr %space, i64 1
  %head = load i64, ptr %head.at
  %node.at = getelementptr i32, ptr %ring, i64 %head
  %narrow = load i32, ptr %node.at
  %node = zext i32 %narrow to i64
  %behind = add i64 %head, 1
  %wraps = icmp eq i64 %behind, %n
  %next = select i1 %wraps, i64 0, i64 %behind
  store i64 %next, ptr %head.at
  %place = getelementptr i32, ptr %places, i64 %node
  store i32 0, ptr %place
  ret i64 %node"""


def search_module(algebra: Algebra, one: Number, tracks: bool, ordered: bool) -> str:
    """`search`, a task; `tracks`: the node before each target is kept too; `ordered`: by the heap, else by the queue,
    which needs the nodes before.

    Fields of the job: M the rows' starts, N the columns (int32), P the weights, at_m the sources, arg the values, at_a
    the nodes before, at_p what `take` returned last, n the nodes; a worker's workspace has counters and entries, and
    from `sums_at` on the places.
    """
    kind, (zero,) = scalar_kind(algebra.partial), constant(algebra.zero, algebra.partial, 1)
    meant = {"ENTRIES": str(ENTRIES), "DONE": str(DONE), "ENTRY": f"{{ {kind}, i64 }}", "ZERO": zero, "KIND": kind}
    if ordered:
        meant["BETTER"] = comparison(algebra)
    put = IRFunction("put", f"ptr space, ptr places, i64 n, i64 node, {kind} value, i1 new")
    take = IRFunction("take", TAKE, result="i64")
    for f, text in ((put, HEAP_PUT if ordered else QUEUE_PUT), (take, HEAP_TAKE if ordered else QUEUE_TAKE)):
        for name, value in meant.items():
            text = text.replace(name, value)
        f.lines.append(text)
    take.declarations.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
    return module([put, take, _Search(algebra, one, tracks or not ordered, put).function(ordered)])


def comparison(algebra: Algebra) -> str:
    """The instruction that says whether a value is better than another, where add is min or max."""
    dtype, less = algebra.partial, is_plain(algebra.semiring.add, "min")
    if dtype.kind == "f":
        return f"fcmp {'olt' if less else 'ogt'} {scalar_kind(dtype)}"
    return f"icmp {'s' if dtype.kind == 'i' else 'u'}{'lt' if less else 'gt'} {scalar_kind(dtype)}"


class _Search:
    def __init__(self, algebra: Algebra, one: Number, tracks: bool, put: IRFunction) -> None:
        self.algebra, self.tracks, self.put = algebra, tracks, put
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
        """No node has a value, or (everywhere) each has one and waits in the queue."""
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
        """What the path through u and this edge improves."""
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
        signature = ", ".join(f"{kind} {name}" for kind, name in self.put.params)
        given = {"space": self.space, "places": self.places, "n": self.n, "node": node, "value": value, "new": new}
        self.f.invoke("put", signature, **given)
