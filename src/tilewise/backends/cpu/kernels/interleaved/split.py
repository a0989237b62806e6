"""Packing float32 for AMX: each element is the sum of three bfloat16, in three planes of a panel, one after the other.

A panel is gathered first, in the layout that `Interleave` or `pack_rows` gives to words of 32 bits. Its elements are
then scaled by a power of two, so that the largest is near 2^TOP, and split: hi is x rounded to bfloat16, mid the rest
rounded, lo what is left, exactly. A panel begins with the lowest exponent after scaling and that power. Where the
elements span too many powers of two, or one is Inf or NaN, the lowest exponent is SUBNORMAL and the planes hold the
elements' bits: the upper and the lower halves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewise.algebra.dtypes import DTYPES
from tilewise.backends.cpu.kernels.interleaved.pack import interleave_function
from tilewise.backends.cpu.kernels.interleaved.pack_rows import pack_rows_function
from tilewise.backends.cpu.kernels.shared.amx_split_tile import DEPTH, FLOATS, WORDS
from tilewise.backends.cpu.kernels.shared.amx_tile import SIDE, SUBNORMAL
from tilewise.backends.cpu.kernels.shared.arithmetic import Arithmetic
from tilewise.backends.cpu.kernels.shared.pack import PACK
from tilewise.system.llvm_text import IRFunction

TOP = 183  # biased: sums of 2^14 products of elements below 2^57 are finite
LEAST = 27  # biased: lo of an element from 2^-100 on is a normal number
WIDTH = 2 * SIDE  # lanes of a panel
SPLIT = "ptr gathered, i64 words, ptr dst"


def split_functions(a: Arithmetic) -> list[IRFunction]:
    """`pack_m` and `pack_n`, and what they call."""
    word = replace(a, k_pack=1, source_m=DTYPES["int32"], source_n=DTYPES["int32"], partial=DTYPES["int32"])
    gather_m = pack_rows_function(word, "gather_m")
    gather_n = interleave_function(word, "gather_n", WIDTH, word.source_n)
    return [gather_m, gather_n, *(function for of in "mn" for function in (_split(of), _pack(a, of)))]


def _pack(a: Arithmetic, of: str) -> IRFunction:
    """Panel by panel: gathered, with zeros where the matrix ends, then split."""
    f = IRFunction(f"pack_{of}", PACK)
    gathered = f.op(f"alloca [{WIDTH * DEPTH} x i32], align 64")
    words = a.emit_groups(f, "%kc")
    size, size_gathered = f.mul(a.emit_rows_n(f, words), WIDTH), f.mul(words, 8 * WIDTH)
    padded, panels = f.test("ne", f.mul(words, 2), "%kc"), f.div(f.add("%lanes", WIDTH - 1), WIDTH)
    with f.loop(0, panels) as p:
        first = f.mul(p.index, WIDTH)
        left, src = f.sub("%lanes", first), f.at("float", "%src", f.mul(first, "%lane"))
        with f.when(f.op(f"or i1 {padded}, {f.test('slt', left, WIDTH)}")):
            f.call(
                "void", "llvm.memset.p0.i64", [("ptr", gathered), ("i8", 0), ("i64", size_gathered), ("i1", "false")]
            )
        f.invoke(f"gather_{of}", PACK, src=src, lanes=f.lower(left, WIDTH), dst=gathered)
        f.invoke(f"split_{of}", SPLIT, gathered=gathered, words=words, dst=f.at("i32", "%dst", f.mul(p.index, size)))
    return f


def _split(of: str) -> IRFunction:
    """A gathered panel into its head and planes; words of k, two elements each."""
    f = IRFunction(f"split_{of}", SPLIT)
    vectors = f.mul("%words", 2 * WIDTH // SIDE)
    highest, lowest = _exponents(f, vectors)
    empty, highest = f.test("eq", highest, 0), f.op(f"lshr i64 {highest}, 23")
    power = f.select(empty, "i64", 0, f.lower(f.sub(TOP, highest), 126))
    least = f.add(lowest, power)
    safe = f.both(f.test("slt", highest, 255), f.op(f"or i1 {empty}, {f.test('sge', least, LEAST)}"))
    power = f.select(safe, "i64", power, 0)
    least = f.select(safe, "i64", f.select(empty, "i64", TOP, least), SUBNORMAL)
    for i, number in enumerate((least, power)):
        f.store("i32", f.op(f"trunc i64 {number} to i32"), f.at("i32", "%dst", i), 4)
    bits = f.op(f"trunc i64 {f.op(f'shl i64 {f.add(power, 127)}, 23')} to i32")
    factor = f.op(f"bitcast i32 {bits} to float")
    scale = f.splat("float", factor, SIDE)
    planes = [f.at("i32", "%dst", WIDTH)]
    planes += [f.at("i32", planes[0], f.mul(f.mul("%words", WIDTH), plane)) for plane in (1, 2)]

    def parts(vector: str) -> list[str]:
        """The upper halves of 16 words hold the bfloat16 of each plane."""
        left, made = f.op(f"fmul {FLOATS} {f.op(f'bitcast {WORDS} {vector} to {FLOATS}')}, {scale}"), []
        for _ in range(2):
            short = f.call(f"<{SIDE} x bfloat>", "llvm.x86.avx512bf16.cvtneps2bf16.512", [(FLOATS, left)])
            short = f.op(f"bitcast <{SIDE} x bfloat> {short} to <{SIDE} x i16>")
            wide = f.op(f"zext <{SIDE} x i16> {short} to {WORDS}")
            made.append(f.op(f"shl {WORDS} {wide}, splat (i32 16)"))
            left = f.op(f"fsub {FLOATS} {left}, {f.op(f'bitcast {WORDS} {made[-1]} to {FLOATS}')}")
        return [*made, f.op(f"bitcast {FLOATS} {left} to {WORDS}")]

    def halves(vector: str) -> list[str]:
        return [vector, f.op(f"shl {WORDS} {vector}, splat (i32 16)"), "zeroinitializer"]

    with f.loop(0, vectors, 2) as v:
        to = f.div(v.index, 2)
        even, odd = (f.load(WORDS, f.at(WORDS, "%gathered", at), 4) for at in _pair(f, of, to))

        def store(split: Callable[[str], list[str]], even: str = even, odd: str = odd, to: str = to) -> None:
            for x, y, plane in zip(split(even), split(odd), planes, strict=True):
                f.store(WORDS, _joined(f, of, x, y), f.at(WORDS, plane, to), 4)

        f.either(safe, lambda: store(parts), lambda: store(halves))
    return f


def _pair(f: IRFunction, of: str, at: str) -> tuple[str, str]:
    """The two gathered vectors of the words of vector `at`: of N, 16 lanes of two k; of M, 32 k of a lane."""
    apart = 2 if of == "n" else WIDTH
    first = f.add(f.mul(f.div(at, apart), 2 * apart), f.rem(at, apart))
    return first, f.add(first, apart)


def _exponents(f: IRFunction, vectors: str) -> tuple[str, str]:
    """The largest magnitude as bits, and the lowest biased exponent of a nonzero element, or a bound of it."""
    with f.loop(0, vectors, 1, [(WORDS, "zeroinitializer"), (WORDS, "splat (i32 -1)")]) as v:
        bits = f.load(WORDS, f.at(WORDS, "%gathered", v.index), 4)
        magnitude = f.op(f"and {WORDS} {bits}, splat (i32 2147483647)")
        below = f.op(f"add {WORDS} {magnitude}, splat (i32 -1)")  # which makes zero the largest
        for i, (name, number) in enumerate((("umax", magnitude), ("umin", below))):
            v.next[i] = f.call(WORDS, f"llvm.{name}.v16i32", [(WORDS, v.values[i]), (WORDS, number)])
    highest, lowest = (
        f.op(f"zext i32 {f.call('i32', f'llvm.vector.reduce.{name}.v16i32', [(WORDS, value)])} to i64")
        for name, value in zip(("umax", "umin"), v.values, strict=True)
    )
    exponent = f.op(f"lshr i64 {f.add(lowest, 1)}, 23")
    return highest, f.select(f.test("eq", exponent, 0), "i64", -23, exponent)


def _joined(f: IRFunction, of: str, first: str, second: str) -> str:
    """Words of the upper halves of two vectors: lane by lane, or the first vector's, then the second's."""
    if of == "n":
        low = f.op(f"lshr {WORDS} {first}, splat (i32 16)")
        return f.op(f"or {WORDS} {low}, {f.op(f'and {WORDS} {second}, splat (i32 -65536)')}")
    halves = f"<{2 * SIDE} x i16>"
    low, high = (f.op(f"bitcast {WORDS} {x} to {halves}") for x in (first, second))
    upper = f.shuffle(halves, low, high, [2 * i + 1 for i in range(2 * SIDE)])
    return f.op(f"bitcast {halves} {upper} to {WORDS}")
