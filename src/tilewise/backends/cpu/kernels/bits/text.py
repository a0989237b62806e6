"""`bits`: booleans, eight columns of P to a byte: an `or` and an `and` then compute 512 cells.

The loops and the tile are those of `packed`, with a byte per lane. Only this differs: N is packed into bits, an element
of M into all ones or zeros, and P's bits are expanded to bytes when they are stored.
"""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.packed.text import WRITE, module_around
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.convert import load
from tilewise.backends.cpu.kernels.shared.pack import PACK, pack_m_function
from tilewise.system.llvm_text import IRFunction

BOOL = DTYPES["bool"]
WORD = 64  # columns packed at a time


def bits_module(a: Arithmetic) -> str:
    return module_around(a, [pack_m_function(a, a.MR), pack_bits_function(a)], write_bits_function(a))


def pack_bits_function(a: Arithmetic) -> IRFunction:
    """N's strip as panels of bytes: bit c of byte b is column 8·b + c. Columns past the edge are false."""
    f = IRFunction("pack_n", PACK)
    panel = f.mul("%kc", a.width)
    row_bits = a.width * 8
    rounded = f.mul(f.div(f.add("%lanes", a.lanes * 8 - 1), a.lanes * 8), a.lanes * 8)
    size = f"[{a.source_n.itemsize} x i8]"
    side_by_side = f.test("eq", "%lane", 1)
    with f.loop(0, "%kc") as k:
        src = f.at(size, "%src", f.mul(k.index, "%step"))
        with f.loop(0, rounded, WORD) as c:
            to = f.at("i8", "%dst", f.mul(f.div(c.index, row_bits), panel), f.mul(k.index, a.width))
            to = f.at("i8", to, f.div(f.rem(c.index, row_bits), 8))
            left = f.lower(f.sub("%lanes", c.index), WORD)
            whole = f.both(side_by_side, f.test("eq", left, WORD))

            def by_words(c: str = c.index, src: str = src, to: str = to) -> None:
                truth = load(f, a.target, a.source_n, BOOL, f.at(size, src, c), WORD)[0]
                mask = f.op(f"trunc <{WORD} x i8> {truth} to <{WORD} x i1>")
                f.store("i64", f.op(f"bitcast <{WORD} x i1> {mask} to i64"), to, 8)

            def one_by_one(c: str = c.index, src: str = src, to: str = to, left: str = left) -> None:
                with f.loop(0, left, 1, [("i64", "0")]) as b:
                    place = f.at(size, src, f.mul(f.add(c, b.index), "%lane"))
                    bit = f.op(f"zext i8 {load(f, a.target, a.source_n, BOOL, place, 1)[0]} to i64")
                    b.next = [f.op(f"or i64 {b.values[0]}, {f.op(f'shl i64 {bit}, {b.index}')}")]
                f.store("i64", b.values[0], to, 8)

            f.either(whole, by_words, one_by_one)
    return f


def write_bits_function(a: Arithmetic) -> IRFunction:
    """From a block of bits to P's bools with any strides, added to P with `onto`. The signature of `write`."""
    f = IRFunction("write", WRITE)
    many = f"<{WORD} x i8>"
    bulk = f.select(f.test("eq", "%col_p", 1), "i64", f.mul(f.div("%cols", WORD), WORD), 0)
    mask = f.op(f"trunc i64 {f.sub(0, '%onto')} to i8")  # all ones when P is added onto
    wide_mask = f.splat("i8", mask, WORD)
    with f.loop(0, "%rows") as row:
        bits = f.at("i8", "%block", f.mul(row.index, "%row_b"))
        cells = f.at("i8", "%P", f.mul(row.index, "%row_p"))
        with f.loop(0, bulk, WORD) as col:
            word = f.load("i64", f.at("i8", bits, f.div(col.index, 8)), 1)
            new = f.op(f"zext <{WORD} x i1> {f.op(f'bitcast i64 {word} to <{WORD} x i1>')} to {many}")
            place = f.at("i8", cells, col.index)
            with f.when(f.test("eq", "%onto", 0)):
                f.store(many, new, place, 1)
            with f.when(f.test("ne", "%onto", 0)):
                old = f.op(f"and {many} {f.load(many, place, 1)}, {wide_mask}")
                f.store(many, f.op(f"or {many} {old}, {new}"), place, 1)
        with f.loop(bulk, "%cols") as col:
            byte = f.load("i8", f.at("i8", bits, f.div(col.index, 8)), 1)
            shift = f.op(f"trunc i64 {f.rem(col.index, 8)} to i8")
            new = f.op(f"and i8 {f.op(f'lshr i8 {byte}, {shift}')}, 1")
            place = f.at("i8", cells, f.mul(col.index, "%col_p"))
            old = f.op(f"and i8 {f.load('i8', place, 1)}, {mask}")
            f.store("i8", f.op(f"or i8 {old}, {new}"), place, 1)
    return f
