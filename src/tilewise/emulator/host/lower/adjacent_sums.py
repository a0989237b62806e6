"""The sums of a nest for 64 neighbouring columns side by side: the next columns take theirs from there.

A sum waits for each of its additions, so that many take hardly longer than one. Each adds its terms in the order of the
program and is what the loop itself would give. One is taken where everything it came from is as it was then: the
variables of its subscripts, its first value, the pointers, and the arrays, which no store has touched (each store
inside the nest looks) and no call into the runtime (the epoch). What cannot be known, overflows or has no value in the
arrays: the loop itself runs, with its checks."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import store
from tilewise.emulator.host.lower.lanes.divergence import Divergence
from tilewise.emulator.host.lower.lanes.linear import as_scalar, same_in_all, widen
from tilewise.emulator.host.lower.lanes.mask import Lanes, vector
from tilewise.emulator.host.lower.loop_nest import MOST_ARRAYS, Nest, in_registers, slot
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.scalars import scalars
from tilewise.emulator.host.lower.subscripts import Access, Subscripts
from tilewise.emulator.host.lower.sum_term import Holder, Sums, Term, read_holder, read_term
from tilewise.emulator.host.lower.trusted_loop import ask_whole
from tilewise.emulator.host.lower.values import Value, Wide
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.symbol_table import Unknown

COLUMNS = 64
LEAST, MOST = 32, 1 << 20  # terms


def take_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    """Where the sum of this column is known, or can be made: take it and go to `done`. Else go on behind."""
    before, was_open, line = len(b.lines), b.open, b.line
    try:
        _take_sum(b, nest, node, done)
        b.attributes = "#1"
    except Unknown:
        del b.lines[before:]
        b.open = was_open
    b.line, b.lanes = line, None


def _take_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    if not in_registers(b, nest):
        raise Unknown
    sums = Sums(b, nest)
    column, first = (sums.variable(name)[0] for name in sums.counters)
    if sums.used(nest.term.bound) or sums.used(nest.column.bound):
        raise Unknown
    column_end, end = _end(sums, nest.column), _end(sums, nest.term)
    terms = b.make(f"sub i64 {end}, {first}")
    sums.require(b.make(f"icmp sge i64 {first}, 0"))
    sums.require(b.make(f"icmp slt i64 {end}, {(1 << 31) - 1}"))
    sums.require(b.make(f"icmp ult i64 {b.make(f'sub i64 {terms}, {LEAST}')}, {MOST}"))
    term, target = read_term(sums, node)
    holder = read_holder(sums, target, column)
    if not 0 < len(sums.accesses) <= MOST_ARRAYS:
        raise Unknown
    epoch = b.make(f"load i64, ptr inttoptr (i64 {b.program.memory.epoch_address} to ptr)")
    keys = {slot(b): key for key in (*sums.keys, first, end, sums.bits(holder.first), epoch)}
    plain, look, hit, miss = (b.label() for _ in range(4))
    b.branch(sums.holds, look, plain)
    b.begin(look)
    known = b.make(f"icmp ne i64 {b.make(f'load i64, ptr {nest.held}')}, 0")
    apart = b.make(f"sub i64 {column}, {b.make(f'load i64, ptr {nest.begin}')}")
    known = b.make(f"and i1 {known}, {b.make(f'icmp ult i64 {apart}, {COLUMNS}')}")
    for where, key in keys.items():
        same = b.make(f"icmp eq i64 {key}, {b.make(f'load i64, ptr {where}')}")
        known = b.make(f"and i1 {known}, {same}")
    made = b.alloca(f"[{COLUMNS} x {holder.place.type.llvm}]")
    b.branch(known, hit, miss)
    b.begin(miss)
    nest.forget(b)
    begin = b.make(f"sub i64 {column_end}, {COLUMNS}")  # the last columns together with some before them
    begin = b.make(f"select i1 {b.make(f'icmp slt i64 {column}, {begin}')}, i64 {column}, i64 {begin}")
    sums.holds = b.make(f"icmp sge i64 {begin}, 0")
    _make(sums, term, holder, {nest.column.name: (begin, COLUMNS), nest.term.name: (first, terms)}, made, plain)
    for where, key in {**keys, nest.begin: begin, nest.held: "1"}.items():
        b.emit(f"store i64 {key}, ptr {where}")
    b.begin(hit)
    _hand_over(b, nest, holder, made, column, plain)
    counter = b.find(nest.term.name)
    assert counter is not None
    narrow = end if counter.type.size == 8 else b.make(f"trunc i64 {end} to {counter.type.llvm}")
    b.emit(f"store {counter.type.llvm} {narrow}, ptr {counter.address}, align 1")
    b.jump(done)
    b.begin(plain)


def _end(subscripts: Subscripts, counter: Any) -> str:
    """The first value that the counter does not have in the loop."""
    text, _ = subscripts.value(counter.bound, {})
    return subscripts.b.make(f"add i64 {text}, 1") if counter.closed else text


def _make(sums: Sums, term: Term, holder: Holder, box: dict[str, tuple[str, Any]], made: str, plain: str) -> None:
    """The sums of a block of columns to `made`, if its arrays have values everywhere. `box`: where each counter begins,
    and how many values it has."""
    b, nest = sums.b, sums.nest
    begins = {name: begin for name, (begin, _) in box.items()}
    ends = {n: (x, b.make(f"sub i64 {b.make(f'add i64 {x}, {count}')}, 1")) for n, (x, count) in box.items()}
    ranges = [sums.byte_range(one, ends) for one in sums.accesses.values()]
    walks: dict[int, tuple[str, str]] = {}
    for node, one in sums.accesses.items():
        by_column, by_term = (sums.byte_step(one, name, begins) for name in sums.counters)
        walks[node] = sums.element_address(one, begins), by_term
        if nest.column.name in one.counters:  # elements that lie apart would be loaded one by one
            sums.require(b.make(f"icmp eq i64 {by_column}, {one.type.size}"))
    fits = b.label()
    b.branch(sums.holds, fits, plain)
    b.begin(fits)
    for start, end in ranges:
        ask_whole(b, start, end, plain)
    b.lanes = Lanes(COLUMNS, True, Divergence([], tree.Block([]), True))
    _Columns(sums, term, holder.first).add_up(walks, box[nest.term.name][1], made, plain)
    b.lanes = None
    for slots, pair in zip(nest.ranges, ranges, strict=False):
        for where, text in zip(slots, pair, strict=True):
            b.emit(f"store i64 {text}, ptr {where}")


class _Columns:
    """The loop over the terms, with a vector for each value that columns may differ in."""

    def __init__(self, sums: Sums, term: Term, first: Value) -> None:
        assert isinstance(first.type, Scalar)
        self.b, self.sums, self.term, self.first, self.type = sums.b, sums, term, first, first.type
        self.known: dict[str, Wide] = {}
        self.loaded: dict[int, Wide] = {}
        self.total = self.b.alloca(vector(self.b, first.type))
        self.over = ""  # where it is noted that a sum left its type

    def add_up(self, walks: dict[int, tuple[str, str]], terms: str, made: str, plain: str) -> None:
        b, kind = self.b, vector(self.b, self.type)
        counter, head, done = slot(b), b.label(), b.label()
        b.emit(f"store {kind} {same_in_all(b, self.type.llvm, self.first.text)}, ptr {self.total}")
        b.emit(f"store i64 0, ptr {counter}")
        before = len(b.lines)
        b.begin(head)
        number = b.make(f"load i64, ptr {counter}")
        for node, made_by in self.sums.accesses.items():
            self.loaded[node] = self._load(made_by, walks[node], number)
        for name, type_, node in self.term.locals:
            self.known[name] = self._convert(self._expression(node), type_)
        b.emit(f"store {kind} {self._convert(self._expression(self.term.result), self.type).vector}, ptr {self.total}")
        b.emit(f"store i64 {b.make(f'add i64 {number}, 1')}, ptr {counter}")
        b.branch(b.make(f"icmp ult i64 {b.make(f'load i64, ptr {counter}')}, {terms}"), head, done)
        b.begin(done)
        if self.over:
            b.lines.insert(before, f"  store {b.lanes.vector('i1')} zeroinitializer, ptr {self.over}")
            fine, truths = b.label(), b.make(f"load {b.lanes.vector('i1')}, ptr {self.over}")
            b.branch(b.lanes.any(b, truths), plain, fine)
            b.begin(fine)
        b.emit(f"store {kind} {b.make(f'load {kind}, ptr {self.total}')}, ptr {made}, align 1")

    def _load(self, one: Access, walk: tuple[str, str], number: str) -> Wide:
        """What one iteration reads of an array: an element for all columns, or neighbours."""
        b, (start, by_term) = self.b, walk
        at = b.make(f"add i64 {start}, {b.make(f'mul i64 {number}, {by_term}')}")
        pointer = b.make(f"inttoptr i64 {at} to ptr")
        if self.sums.nest.column.name in one.counters:
            return Wide(one.type, b.make(f"load {vector(b, one.type)}, ptr {pointer}, align 1{OK}"))
        return widen(b, Value(one.type, b.make(f"load {one.type.llvm}, ptr {pointer}, align 1{OK}")))

    def _convert(self, value: Wide, type_: Scalar) -> Wide:
        assert isinstance(value.type, Scalar)
        if "bool" in (value.type.kind, type_.kind) or (value.type.floating and not type_.floating):
            raise Unknown
        return widen(self.b, as_scalar(self.b, value, type_))

    def _expression(self, node: Any) -> Wide:
        b = self.b
        if node is self.term.total:
            return Wide(self.type, b.make(f"load {vector(b, self.type)}, ptr {self.total}"))
        if id(node) in self.loaded:
            return self.loaded[id(node)]
        if id(node) in self.sums.scalars:
            return widen(b, self.sums.scalars[id(node)])
        if isinstance(node, tree.Name) and node.name in self.known:
            return self.known[node.name]
        if isinstance(node, tree.Cast):
            to = b.program.resolve(node.type, b.env)
            if isinstance(to, Scalar):
                return self._convert(self._expression(node.operand), to)
        if isinstance(node, tree.Unary) and node.op == "-":
            value = self._expression(node.operand)
            if isinstance(value.type, Scalar) and value.type.floating:
                return Wide(value.type, b.make(f"fneg {vector(b, value.type)} {value.vector}"))
        if isinstance(node, tree.Binary) and node.op in "+-*/":
            return self._binary(node.op, self._expression(node.left), self._expression(node.right))
        raise Unknown

    def _binary(self, op: str, left: Wide, right: Wide) -> Wide:
        b = self.b
        assert isinstance(left.type, Scalar)
        assert isinstance(right.type, Scalar)
        type_ = types.common(left.type, right.type)
        one, two = self._convert(left, type_), self._convert(right, type_)
        if type_.floating or (not type_.signed and op != "/"):
            return widen(b, scalars(b, op, one, two))
        if op == "/":
            raise Unknown
        kind, truths = vector(b, type_), b.lanes.vector("i1")
        word = {"+": "sadd", "-": "ssub", "*": "smul"}[op]
        name, pair = f"llvm.{word}.with.overflow.v{COLUMNS}{type_.llvm}", f"{{{kind}, {truths}}}"
        b.program.external(name, f"declare {pair} @{name}({kind}, {kind})")
        both = b.make(f"call {pair} @{name}({kind} {one.vector}, {kind} {two.vector})")
        self.over = self.over or b.alloca(truths)
        over = b.make(f"extractvalue {pair} {both}, 1")
        over = b.make(f"or {truths} {b.make(f'load {truths}, ptr {self.over}')}, {over}")
        b.emit(f"store {truths} {over}, ptr {self.over}")
        return Wide(type_, b.make(f"extractvalue {pair} {both}, 0"))


def _hand_over(b: Builder, nest: Nest, holder: Holder, made: str, column: str, plain: str) -> None:
    """The sum into what holds it; not where that lies in an array that the sums were made from."""
    type_ = holder.place.type
    if holder.address:
        apart = b.label()
        b.branch(nest.reads(b, holder.address, type_.size), plain, apart)
        b.begin(apart)
    number = b.make(f"sub i64 {column}, {b.make(f'load i64, ptr {nest.begin}')}")
    at = b.make(f"getelementptr {type_.llvm}, ptr {made}, i64 {number}")
    store(b, holder.place, b.make(f"load {type_.llvm}, ptr {at}"))
