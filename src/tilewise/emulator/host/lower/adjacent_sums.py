"""Vectorises the inner sums of a loop nest over 64 adjacent columns; the following iterations read theirs from there.

A scalar sum is bound by the latency of its additions, so that 64 take hardly longer than one. Each adds its terms in
the program's order: the result is bit for bit that of the loop. A stored sum is used while its inputs are unchanged:
the variables in its subscripts, its first value, the pointers, and the arrays, to which no store of the nest (each
checks) and no runtime call (the epoch) may have written. If an input is unknown, overflows or is uninitialised, the
original loop runs, with its checks."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import store
from tilewise.emulator.host.lower.conversion import convert
from tilewise.emulator.host.lower.lanes.divergence import Divergence
from tilewise.emulator.host.lower.lanes.linear import broadcast, widen
from tilewise.emulator.host.lower.lanes.mask import Lanes, vector
from tilewise.emulator.host.lower.loop_nest import MAX_ARRAYS, Nest, hidden_variable
from tilewise.emulator.host.lower.loop_versions import check_initialised
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.subscripts import Access, Subscripts, integer_variable
from tilewise.emulator.host.lower.sum_term import Accumulator, Sums, Term, read_accumulator, read_term
from tilewise.emulator.host.lower.values import NotInLockstep, Value, Wide, WideLocal
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.symbol_table import Unknown

COLUMNS = 64
MIN_TERMS, MAX_TERMS = 32, 1 << 20


def reuse_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    """Code that jumps to `done` if this column's sum is stored or can be computed, and else falls through."""
    before, was_open, line, scopes = len(b.lines), b.open, b.line, len(b.scopes)
    try:
        _reuse_sum(b, nest, node, done)
        b.attributes = "#1"
    except (Unknown, NotInLockstep):
        del b.lines[before:], b.scopes[scopes:]
        b.open = was_open
    b.line, b.lanes, b.computed = line, None, {}


def _reuse_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    if any(integer_variable(b, counter.name) is None for counter in (nest.column, nest.term)):
        raise Unknown
    sums = Sums(b, nest)
    column, first = (sums.variable(name)[0] for name in sums.counters)
    if sums.counters_in(nest.term.bound) or sums.counters_in(nest.column.bound):
        raise Unknown
    column_end, end = _end(sums, nest.column), _end(sums, nest.term)
    terms = b.make(f"sub i64 {end}, {first}")
    sums.require(b.make(f"icmp sge i64 {first}, 0"))
    sums.require(b.make(f"icmp slt i64 {end}, {(1 << 31) - 1}"))
    sums.require(b.make(f"icmp ult i64 {b.make(f'sub i64 {terms}, {MIN_TERMS}')}, {MAX_TERMS}"))
    term, target = read_term(sums, node)
    accumulator = read_accumulator(sums, target, column)
    if not 0 < len(sums.accesses) <= MAX_ARRAYS:
        raise Unknown
    epoch = b.make(f"load i64, ptr inttoptr (i64 {b.program.memory.epoch_address} to ptr)")
    keys = {hidden_variable(b): key for key in (*sums.keys, first, end, sums.bits(accumulator.first), epoch)}
    plain, look_up, hit, miss = (b.label() for _ in range(4))
    b.branch(sums.holds, look_up, plain)
    b.begin(look_up)
    known = b.make(f"icmp ne i64 {b.make(f'load i64, ptr {nest.valid}')}, 0")
    offset = b.make(f"sub i64 {column}, {b.make(f'load i64, ptr {nest.begin}')}")
    known = b.make(f"and i1 {known}, {b.make(f'icmp ult i64 {offset}, {COLUMNS}')}")
    for where, key in keys.items():
        same = b.make(f"icmp eq i64 {key}, {b.make(f'load i64, ptr {where}')}")
        known = b.make(f"and i1 {known}, {same}")
    stored = b.alloca(f"[{COLUMNS} x {accumulator.place.type.llvm}]")
    b.branch(known, hit, miss)
    b.begin(miss)
    nest.invalidate(b)
    begin = b.make(f"sub i64 {column_end}, {COLUMNS}")  # the last block starts early, so that it is full
    begin = b.make(f"select i1 {b.make(f'icmp slt i64 {column}, {begin}')}, i64 {column}, i64 {begin}")
    sums.holds = b.make(f"icmp sge i64 {begin}, 0")
    box = {nest.column.name: (begin, COLUMNS), nest.term.name: (first, terms)}
    _compute_block(sums, term, accumulator.first, box, stored, plain)
    for where, key in {**keys, nest.begin: begin, nest.valid: "1"}.items():
        b.emit(f"store i64 {key}, ptr {where}")
    b.begin(hit)
    _store_sum(b, nest, accumulator, stored, column, plain)
    counter = b.find(nest.term.name)
    assert counter is not None
    narrow = end if counter.type.size == 8 else b.make(f"trunc i64 {end} to {counter.type.llvm}")
    b.emit(f"store {counter.type.llvm} {narrow}, ptr {counter.address}, align 1")
    b.jump(done)
    b.begin(plain)


def _end(subscripts: Subscripts, counter: Any) -> str:
    """The loop's exclusive upper bound."""
    text, _ = subscripts.value(counter.bound, {})
    return subscripts.b.make(f"add i64 {text}, 1") if counter.closed else text


def _compute_block(
    sums: Sums, term: Term, first: Value, box: dict[str, tuple[str, Any]], stored: str, plain: str
) -> None:
    """Store the sums of a block of columns to `stored`; jump to `plain` if an array is not initialised there. `box`:
    each counter's first value and number of values."""
    b, nest = sums.b, sums.nest
    begins = {name: begin for name, (begin, _) in box.items()}
    ends = {n: (x, b.make(f"sub i64 {b.make(f'add i64 {x}, {count}')}, 1")) for n, (x, count) in box.items()}
    ranges = [sums.byte_range(one, ends) for one in sums.accesses.values()]
    walks: dict[int, tuple[str, str]] = {}
    for node, one in sums.accesses.items():
        by_column, by_term = (sums.byte_step(one, name, begins) for name in sums.counters)
        walks[node] = sums.element_address(one, begins), by_term
        if nest.column.name in one.counters:  # columns must be contiguous
            sums.require(b.make(f"icmp eq i64 {by_column}, {one.type.size}"))
    fits = b.label()
    b.branch(sums.holds, fits, plain)
    b.begin(fits)
    for start, end in ranges:
        check_initialised(b, start, end, plain)
    _reduction_loop(sums, term, first, walks, box[nest.term.name][1], stored, plain)
    for slots, pair in zip(nest.ranges, ranges, strict=False):
        for where, text in zip(slots, pair, strict=True):
            b.emit(f"store i64 {text}, ptr {where}")


def _reduction_loop(
    sums: Sums, term: Term, first: Value, walks: dict[int, tuple[str, str]], terms: str, stored: str, plain: str
) -> None:
    """The loop over the terms, with a vector over the columns for each varying value."""
    b, type_ = sums.b, first.type
    assert isinstance(type_, Scalar)
    b.lanes = lanes = Lanes(COLUMNS, True, Divergence(b, [], tree.Block([]), True))
    kind, truths = lanes.vector(type_.llvm), lanes.vector("i1")
    total, counter, head, done = b.alloca(kind), hidden_variable(b), b.label(), b.label()
    b.emit(f"store {kind} {broadcast(b, type_.llvm, first.text)}, ptr {total}")
    b.emit(f"store i64 0, ptr {counter}")
    before = len(b.lines)
    b.begin(head)
    number = b.make(f"load i64, ptr {counter}")
    b.computed = {node: widen(b, value) for node, value in sums.scalars.items()}
    for node, one in sums.accesses.items():
        b.computed[node] = _element(sums, one, walks[node], number)
    b.computed[id(term.total)] = Wide(type_, b.make(f"load {kind}, ptr {total}"))
    with b.scope():
        for name, local, value in term.locals:
            b.declare(name, WideLocal(widen(b, convert(b, b.lower(value), local))))
        result = widen(b, convert(b, b.lower(term.result), type_))
    b.emit(f"store {kind} {result.vector}, ptr {total}")
    b.emit(f"store i64 {b.make(f'add i64 {number}, 1')}, ptr {counter}")
    b.branch(b.make(f"icmp ult i64 {b.make(f'load i64, ptr {counter}')}, {terms}"), head, done)
    b.begin(done)
    if lanes.overflow:
        b.lines.insert(before, f"  store {truths} zeroinitializer, ptr {lanes.overflow}")
        fine = b.label()
        b.branch(lanes.any(b, b.make(f"load {truths}, ptr {lanes.overflow}")), plain, fine)
        b.begin(fine)
    b.emit(f"store {kind} {b.make(f'load {kind}, ptr {total}')}, ptr {stored}, align 1")
    b.lanes, b.computed = None, {}


def _element(sums: Sums, one: Access, walk: tuple[str, str], number: str) -> Wide:
    """What one iteration reads of an array: one element, broadcast, or 64 contiguous ones."""
    b, (start, by_term) = sums.b, walk
    at = b.make(f"add i64 {start}, {b.make(f'mul i64 {number}, {by_term}')}")
    pointer = b.make(f"inttoptr i64 {at} to ptr")
    if sums.nest.column.name in one.counters:
        return Wide(one.type, b.make(f"load {vector(b, one.type)}, ptr {pointer}, align 1{OK}"))
    return widen(b, Value(one.type, b.make(f"load {one.type.llvm}, ptr {pointer}, align 1{OK}")))


def _store_sum(b: Builder, nest: Nest, accumulator: Accumulator, stored: str, column: str, plain: str) -> None:
    """Store the sum into the accumulator; jump to `plain` if that is an element of an array that the sums read."""
    type_ = accumulator.place.type
    if accumulator.address:
        disjoint = b.label()
        b.branch(nest.overlaps(b, accumulator.address, type_.size), plain, disjoint)
        b.begin(disjoint)
    number = b.make(f"sub i64 {column}, {b.make(f'load i64, ptr {nest.begin}')}")
    at = b.make(f"getelementptr {type_.llvm}, ptr {stored}, i64 {number}")
    store(b, accumulator.place, b.make(f"load {type_.llvm}, ptr {at}"))
