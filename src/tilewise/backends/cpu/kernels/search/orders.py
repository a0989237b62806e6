"""The orders in which nodes are taken, as LLVM IR.

    heap     the best node first (Dijkstra): each is taken once, where no edge improves on the path it continues
    queue    first in, first out (Bellman–Ford–Moore): a node whose value improves is taken again

The heap is 4-ary, with siblings on one cache line, and holds each node of the graph at most once: the node's place is
stored, and a value that improves moves it up. Places need no initial value, because a node enters the heap with its
first value; entries past the end are zero, so that there are always four to compare. After every n improvements the
queue looks for a cycle among the predecessors: there is one if a cycle improves without end.
"""

from __future__ import annotations

from tilewise.system.llvm_text import IRFunction, Operand

ENTRIES = 48  # bytes of a worker's counters; the entries follow, so that each group of siblings is on a cache line
DONE = -1  # what `take` returns after the last node; −2 − v where v is on a cycle that improves
TAKE = "ptr space, ptr places, ptr before, i64 n"
PUT = "ptr space, ptr places, i64 n, i64 node, {kind} value, i1 new"
DEEPEST = 64  # levels of a heap


class _Heap:
    """The entries, each a value and its node, of the worker that a function runs for."""

    def __init__(self, f: IRFunction, kind: str) -> None:
        self.f, self.kind, self.entry = f, kind, f"{{ {kind}, i64 }}"
        self.entries = f.at("i8", "%space", ENTRIES)

    def place(self, at: Operand) -> str:
        return self.f.at(self.entry, self.entries, at)

    def node(self, at: Operand) -> str:
        return self.f.load("i64", self.f.op(f"getelementptr {self.entry}, ptr {self.entries}, i64 {at}, i32 1"))

    def keep(self, at: str, value: str, node: str) -> None:
        """Store an entry, and its place."""
        f, place = self.f, self.place(at)
        f.store(self.kind, value, place)
        f.store("i64", node, f.op(f"getelementptr {self.entry}, ptr {place}, i64 0, i32 1"))
        f.store("i32", f.op(f"trunc i64 {at} to i32"), f.at("i32", "%places", node))


def heap(kind: str, zero: str, better: str) -> list[IRFunction]:
    """`put` and `take`; `better`: the instruction that compares two values."""
    return [_put_on_heap(kind, better), _take_from_heap(kind, zero, better)]


def _put_on_heap(kind: str, better: str) -> IRFunction:
    """Insert a new node or move an improved one up."""
    f = IRFunction("put", PUT.format(kind=kind))
    size = f.load("i64", "%space")
    place = f.op(f"zext i32 {f.load('i32', f.at('i32', '%places', '%node'))} to i64")
    f.store("i64", f.add(size, f.op("zext i1 %new to i64")), "%space")
    entries, look, move, put = _Heap(f, kind), f.label("look"), f.label("move"), f.label("put")
    with f.loop(0, DEEPEST, 1, [("i64", f.select("%new", "i64", size, place))]) as up:
        (at,) = up.values
        f.branch(f.test("eq", at, 0), put, look, then=look)
        above = f.op(f"lshr i64 {f.sub(at, 1)}, 2")
        held = f.load(kind, entries.place(above))
        f.branch(f.op(f"{better} %value, {held}"), move, put)
        entries.keep(at, held, entries.node(above))
        up.next = [above]
    f.goto(put)
    f.start(put)
    entries.keep(at, "%value", "%node")
    return f


def _take_from_heap(kind: str, zero: str, better: str) -> IRFunction:
    """Remove the node at the top; the last entry replaces it and moves down."""
    f = IRFunction("take", TAKE, result="i64")
    held = f.load("i64", "%space")
    with f.when(f.test("eq", held, 0), returns=True):
        f.do(f"ret i64 {DONE}")
    entries = _Heap(f, kind)
    top, size = entries.node(0), f.sub(held, 1)
    f.store("i64", size, "%space")
    last = entries.place(size)
    value, node = f.load(kind, last), entries.node(size)
    f.store(kind, zero, last)

    def picked(x: tuple[str, str], y: tuple[str, str]) -> tuple[str, str]:
        """The better of two (value, place)."""
        wins = f.op(f"{better} {y[0]}, {x[0]}")
        return f.select(wins, kind, y[0], x[0]), f.select(wins, "i64", y[1], x[1])

    with f.when(f.test("ne", size, 0)):
        look, move, put = f.label("look"), f.label("move"), f.label("put")
        with f.loop(0, DEEPEST, 1, [("i64", "0")]) as down:
            (at,) = down.values
            first = f.add(f.op(f"shl i64 {at}, 2"), 1)
            f.branch(f.test("sge", first, size), put, look, then=look)
            first_child = entries.place(first)  # the others are addressed from it: one shift, not four
            values = [f.load(kind, f.at(entries.entry, first_child, more)) for more in range(4)]
            a, b, c, d = zip(values, [f.add(first, more) for more in range(4)], strict=True)
            best, child = picked(picked(a, b), picked(c, d))
            f.branch(f.op(f"{better} {best}, {value}"), move, put)
            entries.keep(at, best, entries.node(child))
            down.next = [child]
        f.goto(put)
        f.start(put)
        entries.keep(at, value, node)
    f.do(f"ret i64 {top}")
    return f


def queue(kind: str) -> list[IRFunction]:
    """`put` and `take` by a ring of n nodes after the counters (length, first, improvements); a node's place is 1 while
    it is queued."""
    return [_put_in_queue(kind), _take_from_queue()]


def _put_in_queue(kind: str) -> IRFunction:
    f = IRFunction("put", PUT.format(kind=kind))
    improved, own = f.at("i64", "%space", 2), f.at("i32", "%places", "%node")
    f.store("i64", f.add(f.load("i64", improved), 1), improved)
    with f.when(f.op(f"icmp eq i32 {f.load('i32', own)}, 0")):
        f.store("i32", 1, own)
        size = f.load("i64", "%space")
        end = f.add(f.load("i64", f.at("i64", "%space", 1)), size)
        at = f.select(f.test("sge", end, "%n"), "i64", f.sub(end, "%n"), end)
        f.store("i32", f.op("trunc i64 %node to i32"), f.at("i32", f.at("i8", "%space", ENTRIES), at))
        f.store("i64", f.add(size, 1), "%space")
    return f


def _take_from_queue() -> IRFunction:
    f = IRFunction("take", TAKE, result="i64")
    ring, improved, first = f.at("i8", "%space", ENTRIES), f.at("i64", "%space", 2), f.at("i64", "%space", 1)
    with f.when(f.test("sge", f.load("i64", improved), "%n")):
        f.store("i64", 0, improved)
        _find_cycle(f, f.at("i32", ring, "%n"))
    size = f.load("i64", "%space")
    with f.when(f.test("eq", size, 0), returns=True):
        f.do(f"ret i64 {DONE}")
    f.store("i64", f.sub(size, 1), "%space")
    head = f.load("i64", first)
    node = f.op(f"zext i32 {f.load('i32', f.at('i32', ring, head))} to i64")
    after = f.add(head, 1)
    f.store("i64", f.select(f.test("eq", after, "%n"), "i64", 0, after), first)
    f.store("i32", 0, f.at("i32", "%places", node))
    f.do(f"ret i64 {node}")
    return f


def _find_cycle(f: IRFunction, marks: str) -> None:
    """Return a node of a cycle of predecessors, if there is one: each walk marks its nodes by where it began."""
    size = f.op("shl i64 %n, 2")
    f.call("void", "llvm.memset.p0.i64", [("ptr", marks), ("i8", 0), ("i64", size), ("i1", "false")])
    with f.loop(0, "%n") as start:
        mark = f.op(f"trunc i64 {f.add(start.index, 1)} to i32")
        look, new, met, circle, walked = (f.label(x) for x in ("look", "new", "met", "circle", "walked"))
        with f.loop(0, f.add("%n", 1), 1, [("i64", start.index)]) as walk:
            (v,) = walk.values
            f.branch(f.test("slt", v, 0), walked, look, then=look)
            place = f.at("i32", marks, v)
            seen = f.load("i32", place)
            f.branch(f.op(f"icmp eq i32 {seen}, 0"), new, met, then=met)
            f.branch(f.op(f"icmp eq i32 {seen}, {mark}"), circle, walked)
            f.do(f"ret i64 {f.sub(-2, v)}")
            f.start(new)
            f.store("i32", mark, place)
            walk.next = [f.load("i64", f.at("i64", "%before", v))]
        f.goto(walked)
        f.start(walked)
