"""The innermost sums of a nest, a block of rows at a time: each is looked up where the loop would add it up.

The sums of 64 rows are computed ahead by `sum_kernel`. One is taken where everything it came from is as it was then:
the variables of its subscripts, its first value, the pointers, and the arrays, which no store has touched (each store
inside the nest looks) and no call into the runtime (the epoch). What cannot be known, overflows or has no value in the
arrays: the loop itself runs, with its checks. After blocks of which little was taken it is not tried for a while."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.checked_memory import store
from tilewise.emulator.host.lower.loop_nest import MOST_ARRAYS, RANGES, Nest, in_registers
from tilewise.emulator.host.lower.marks import OK
from tilewise.emulator.host.lower.subscripts import Subscripts
from tilewise.emulator.host.lower.sum_kernel import HEADS, SumKernel
from tilewise.emulator.host.lower.sum_term import (
    Holder,
    Sums,
    byte_range,
    byte_step,
    element_address,
    read_holder,
    read_term,
)
from tilewise.emulator.host.lower.trusted_loop import ask_whole
from tilewise.emulator.parse import tree
from tilewise.emulator.sema.symbol_table import Unknown

BLOCK = 64  # rows
LEAST, MOST = 32, 1 << 20  # terms
FEWEST = 16  # columns
HOLDS, EPOCH, WAIT, FAILS, TAKEN, MADE, ROW, ROW_END, COLUMN, COLUMN_END, OUT, LENGTH = range(12)
KEYS, MOST_KEYS = RANGES + 2 * MOST_ARRAYS, 24
ARGUMENTS = KEYS + MOST_KEYS


def take_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    """Where the sum of this row and column is known, or can be made: take it and go to `done`. Else go on behind."""
    before, was_open, line = len(b.lines), b.open, b.line
    try:
        _take_sum(b, nest, node, done)
    except Unknown:
        del b.lines[before:]
        b.open = was_open
    b.line = line


def _take_sum(b: Builder, nest: Nest, node: tree.For, done: str) -> None:
    if not in_registers(b, nest):
        raise Unknown
    plain, try_, wait = b.label(), b.label(), b.label()
    left = b.make(f"load i64, ptr {nest.cell(WAIT)}")
    b.branch(b.make(f"icmp sgt i64 {left}, 0"), wait, try_)
    b.begin(wait)
    b.emit(f"store i64 {b.make(f'sub i64 {left}, 1')}, ptr {nest.cell(WAIT)}")
    b.jump(plain)
    b.begin(try_)
    sums = Sums(b, nest)
    asked = sums.subscripts
    row, column, first = (asked.variable(name)[0] for name in sums.counters)
    for bound in (nest.term.bound, nest.row.bound, nest.column.bound):
        if sums.used(bound):
            raise Unknown
    end, row_end, column_end = (_end(asked, c) for c in (nest.term, nest.row, nest.column))
    terms = b.make(f"sub i64 {end}, {first}")
    asked.require(b.make(f"icmp sge i64 {first}, 0"))
    asked.require(b.make(f"icmp slt i64 {end}, {(1 << 31) - 1}"))
    asked.require(b.make(f"icmp ult i64 {b.make(f'sub i64 {terms}, {LEAST}')}, {MOST}"))
    term, target = read_term(sums, node)
    holder = read_holder(sums, target, row, column)
    term.type = holder.place.type  # type: ignore[assignment]
    sums.keys += [first, end, holder.bits]
    if not sums.sources or len(sums.sources) > MOST_ARRAYS or len(sums.keys) > MOST_KEYS:
        raise Unknown
    kernel = SumKernel(f"@sums_{nest.cells}", term, lambda t: b.program.resolve(t, b.env))
    b.program.sum_kernels[nest.cells] = kernel.text()
    look, hit, miss = b.label(), b.label(), b.label()
    b.branch(asked.holds, look, plain)
    b.begin(look)
    b.branch(_known(b, nest, sums, row, column), hit, miss)
    b.begin(miss)
    _make(sums, kernel, (row, column, first), (row_end, column_end, end), holder, plain)
    b.begin(hit)
    _hand_over(b, nest, holder, row, column, plain)
    counter = b.find(nest.term.name)
    assert counter is not None
    narrow = end if counter.type.size == 8 else b.make(f"trunc i64 {end} to {counter.type.llvm}")
    b.emit(f"store {counter.type.llvm} {narrow}, ptr {counter.address}, align 1")
    b.jump(done)
    b.begin(plain)


def _end(asked: Subscripts, counter: Any) -> str:
    """The first value that the counter does not have in the loop."""
    text, _ = asked.value(counter.bound, {})
    return asked.b.make(f"add i64 {text}, 1") if counter.closed else text


def _known(b: Builder, nest: Nest, sums: Sums, row: str, column: str) -> str:
    """Whether the block holds the sum of this row and column."""

    def cell(number: int) -> str:
        return b.make(f"load i64, ptr {nest.cell(number)}")

    known = b.make(f"icmp ne i64 {cell(HOLDS)}, 0")
    epoch = b.make(f"load i64, ptr inttoptr (i64 {b.program.memory.epoch_address} to ptr)")
    asked = [("eq", epoch, EPOCH), ("sge", row, ROW), ("slt", row, ROW_END), ("sge", column, COLUMN),
             ("slt", column, COLUMN_END)]  # fmt: skip
    asked += [("eq", key, KEYS + number) for number, key in enumerate(sums.keys)]
    for how, text, number in asked:
        known = b.make(f"and i1 {known}, {b.make(f'icmp {how} i64 {text}, {cell(number)}')}")
    return known


def _make(sums: Sums, kernel: SumKernel, begins: tuple[str, str, str], ends: tuple[str, str, str], holder: Holder,
          plain: str) -> None:  # fmt: skip
    """A new block from this row on: its arrays have values everywhere, then its sums."""
    b, nest, asked = sums.b, sums.nest, sums.subscripts
    _worth_it(b, nest, begins[1], plain)
    asked.holds = "true"
    last = b.make(f"add i64 {begins[0]}, {BLOCK}")
    fewer = b.make(f"icmp slt i64 {last}, {ends[0]}")
    ends = (b.make(f"select i1 {fewer}, i64 {last}, i64 {ends[0]}"), *ends[1:])
    counts = [b.make(f"sub i64 {end}, {begin}") for begin, end in zip(begins, ends, strict=True)]
    asked.require(b.make(f"icmp sgt i64 {counts[0]}, 0"))
    asked.require(b.make(f"icmp ult i64 {b.make(f'sub i64 {counts[1]}, {FEWEST}')}, {MOST}"))
    ranges: list[tuple[str, str]] = []
    words: list[str] = []
    at = dict(zip(sums.counters, begins, strict=True))
    box = {n: (x, b.make(f"sub i64 {y}, 1")) for n, x, y in zip(sums.counters, begins, ends, strict=True)}
    for made in sums.accesses:
        ranges.append(byte_range(sums, made, box))
        words += [element_address(sums, made, at), *(byte_step(sums, made, name, at) for name in sums.counters)]
    fits, there, fail, good = b.label(), b.label(), b.label(), b.label()
    b.branch(asked.holds, fits, plain)
    b.begin(fits)
    for start, end in ranges:
        ask_whole(b, start, end, plain)
    b.program.external("rt_scratch")
    length = b.make(f"and i64 {b.make(f'add i64 {counts[1]}, 31')}, -16")
    out = b.make(f"mul i64 {length}, {BLOCK * holder.place.type.size}")
    panel = b.make(f"mul i64 {counts[2]}, {kernel.slot * max(1, len(kernel.columns))}")
    memory = b.make(f"call i64 @rt_scratch(i64 {b.make(f'add i64 {out}, {panel}')}, i64 {nest.cells}) cold")
    b.branch(b.make(f"icmp ne i64 {memory}, 0"), there, fail)
    b.begin(there)
    words = [*counts, memory, length, b.make(f"add i64 {memory}, {out}"), holder.bits, *words, *sums.scalar_bits]
    assert len(words) == HEADS + 4 * len(sums.accesses) + len(sums.scalar_bits)
    for number, word in enumerate(words):
        b.emit(f"store i64 {word}, ptr {nest.cell(ARGUMENTS + number)}")
    fine = b.make(f"call i32 {kernel.name}(ptr {nest.cell(ARGUMENTS)})")
    b.branch(b.make(f"icmp ne i32 {fine}, 0"), good, fail)
    b.begin(fail)
    _not_for_a_while(b, nest)
    b.jump(plain)
    b.begin(good)
    epoch = b.make(f"load i64, ptr inttoptr (i64 {b.program.memory.epoch_address} to ptr)")
    kept = {HOLDS: "1", EPOCH: epoch, TAKEN: "0", MADE: b.make(f"mul i64 {counts[0]}, {counts[1]}"), ROW: begins[0],
            ROW_END: ends[0], COLUMN: begins[1], COLUMN_END: ends[1], OUT: memory, LENGTH: length}  # fmt: skip
    kept |= {RANGES + number: text for number, text in enumerate(x for pair in ranges for x in pair)}
    kept |= {KEYS + number: key for number, key in enumerate(sums.keys)}
    for number, text in kept.items():
        b.emit(f"store i64 {text}, ptr {nest.cell(number)}")


def _worth_it(b: Builder, nest: Nest, column: str, plain: str) -> None:
    """Of the block before a quarter was taken; else none is made for a while.

    Forgiven once: a block that begins further right, in the middle of a row. Arrays without values have them from their
    first read on, since it is told once, so that such a nest's first block begins behind its first sums."""
    taken, made = b.make(f"load i64, ptr {nest.cell(TAKEN)}"), b.make(f"load i64, ptr {nest.cell(MADE)}")
    fails = b.make(f"load i64, ptr {nest.cell(FAILS)}")
    right = b.make(f"icmp slt i64 {column}, {b.make(f'load i64, ptr {nest.cell(COLUMN)}')}")
    forgiven = b.make(f"and i1 {right}, {b.make(f'icmp eq i64 {fails}, 0')}")
    b.emit(f"store i64 {b.make(f'select i1 {forgiven}, i64 1, i64 {fails}')}, ptr {nest.cell(FAILS)}")
    made = b.make(f"select i1 {forgiven}, i64 0, i64 {made}")
    b.emit(f"store i64 0, ptr {nest.cell(HOLDS)}")
    b.emit(f"store i64 0, ptr {nest.cell(MADE)}")
    few, enough = b.label(), b.label()
    b.branch(b.make(f"icmp slt i64 {b.make(f'mul i64 {taken}, 4')}, {made}"), few, enough)
    b.begin(few)
    _not_for_a_while(b, nest)
    b.jump(plain)
    b.begin(enough)


def _not_for_a_while(b: Builder, nest: Nest) -> None:
    fails = b.make(f"load i64, ptr {nest.cell(FAILS)}")
    most = b.make(f"select i1 {b.make(f'icmp ult i64 {fails}, 20')}, i64 {fails}, i64 20")
    b.emit(f"store i64 {b.make(f'add i64 {most}, 1')}, ptr {nest.cell(FAILS)}")
    b.emit(f"store i64 {b.make(f'shl i64 1024, {most}')}, ptr {nest.cell(WAIT)}")


def _hand_over(b: Builder, nest: Nest, holder: Holder, row: str, column: str, plain: str) -> None:
    """The sum into what holds it; not where that lies in an array that the sums were made from."""

    def cell(number: int) -> str:
        return b.make(f"load i64, ptr {nest.cell(number)}")

    type_ = holder.place.type
    if holder.address:
        clear, apart = "true", b.label()
        for number in range(MOST_ARRAYS):
            low, high = cell(RANGES + 2 * number), cell(RANGES + 2 * number + 1)
            above = b.make(f"icmp uge i64 {holder.address}, {high}")
            below = b.make(f"icmp ule i64 {b.make(f'add i64 {holder.address}, {type_.size}')}, {low}")
            clear = b.make(f"and i1 {clear}, {b.make(f'or i1 {above}, {below}')}")
        b.branch(clear, apart, plain)
        b.begin(apart)
    b.emit(f"store i64 {b.make(f'add i64 {cell(TAKEN)}, 1')}, ptr {nest.cell(TAKEN)}")
    at = b.make(f"mul i64 {b.make(f'sub i64 {row}, {cell(ROW)}')}, {cell(LENGTH)}")
    at = b.make(f"add i64 {at}, {b.make(f'sub i64 {column}, {cell(COLUMN)}')}")
    at = b.make(f"add i64 {cell(OUT)}, {b.make(f'mul i64 {at}, {type_.size}')}")
    text = b.make(f"load {type_.llvm}, ptr {b.make(f'inttoptr i64 {at} to ptr')}{OK}")  # of the runtime's, in its ends
    store(b, holder.place, text)
