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
from tilewise.emulator.host.lower.conversion import convert
from tilewise.emulator.host.lower.expression import lower
from tilewise.emulator.host.lower.lanes.divergence import Divergence
from tilewise.emulator.host.lower.lanes.linear import same_in_all, widen
from tilewise.emulator.host.lower.lanes.mask import Lanes, vector
from tilewise.emulator.host.lower.loop_nest import MOST_ARRAYS, Nest, in_registers, slot
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.subscripts import Access, Subscripts
from tilewise.emulator.host.lower.sum_term import Holder, Sums, Term, read_holder, read_term
from tilewise.emulator.host.lower.trusted_loop import ask_whole
from tilewise.emulator.host.lower.values import NotInLockstep, Value, Wide, WideLocal
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.symbol_table import Unknown

COLUMNS = 64
LEAST, MOST = 32, 1 << 20  # terms


def take_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    """Where the sum of this column is known, or can be made: take it and go to `done`. Else go on behind."""
    before, was_open, line, scopes = len(b.lines), b.open, b.line, len(b.scopes)
    try:
        _take_sum(b, nest, node, done)
        b.attributes = "#1"
    except (Unknown, NotInLockstep):
        del b.lines[before:], b.scopes[scopes:]
        b.open = was_open
    b.line, b.lanes, b.known = line, None, {}


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
    _add_up(sums, term, holder.first, walks, box[nest.term.name][1], made, plain)
    for slots, pair in zip(nest.ranges, ranges, strict=False):
        for where, text in zip(slots, pair, strict=True):
            b.emit(f"store i64 {text}, ptr {where}")


def _add_up(
    sums: Sums, term: Term, first: Value, walks: dict[int, tuple[str, str]], terms: str, made: str, plain: str
) -> None:
    """The loop over the terms, with a vector for each value that columns may differ in."""
    b, type_ = sums.b, first.type
    assert isinstance(type_, Scalar)
    b.lanes = lanes = Lanes(COLUMNS, True, Divergence([], tree.Block([]), True))
    kind, truths = lanes.vector(type_.llvm), lanes.vector("i1")
    total, counter, head, done = b.alloca(kind), slot(b), b.label(), b.label()
    b.emit(f"store {kind} {same_in_all(b, type_.llvm, first.text)}, ptr {total}")
    b.emit(f"store i64 0, ptr {counter}")
    before = len(b.lines)
    b.begin(head)
    number = b.make(f"load i64, ptr {counter}")
    b.known = {node: widen(b, value) for node, value in sums.scalars.items()}
    for node, one in sums.accesses.items():
        b.known[node] = _element(sums, one, walks[node], number)
    b.known[id(term.total)] = Wide(type_, b.make(f"load {kind}, ptr {total}"))
    with b.scope():
        for name, local, value in term.locals:
            b.declare(name, WideLocal(widen(b, convert(b, lower(b, value), local))))
        result = widen(b, convert(b, lower(b, term.result), type_))
    b.emit(f"store {kind} {result.vector}, ptr {total}")
    b.emit(f"store i64 {b.make(f'add i64 {number}, 1')}, ptr {counter}")
    b.branch(b.make(f"icmp ult i64 {b.make(f'load i64, ptr {counter}')}, {terms}"), head, done)
    b.begin(done)
    if lanes.over:
        b.lines.insert(before, f"  store {truths} zeroinitializer, ptr {lanes.over}")
        fine = b.label()
        b.branch(lanes.any(b, b.make(f"load {truths}, ptr {lanes.over}")), plain, fine)
        b.begin(fine)
    b.emit(f"store {kind} {b.make(f'load {kind}, ptr {total}')}, ptr {made}, align 1")
    b.lanes, b.known = None, {}


def _element(sums: Sums, one: Access, walk: tuple[str, str], number: str) -> Wide:
    """What one iteration reads of an array: an element for all columns, or neighbours."""
    b, (start, by_term) = sums.b, walk
    at = b.make(f"add i64 {start}, {b.make(f'mul i64 {number}, {by_term}')}")
    pointer = b.make(f"inttoptr i64 {at} to ptr")
    if sums.nest.column.name in one.counters:
        return Wide(one.type, b.make(f"load {vector(b, one.type)}, ptr {pointer}, align 1{OK}"))
    return widen(b, Value(one.type, b.make(f"load {one.type.llvm}, ptr {pointer}, align 1{OK}")))


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
