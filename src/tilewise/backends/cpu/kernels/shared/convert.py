"""Loads of elements from memory as registers of the accumulator's dtype, and stores back.

Half precision is widened here, complex numbers are split into real and imaginary registers, any non-zero is true.
"""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.to_llvm import Renderer, Value, constant, part, scalar_kind, vector
from tilewise.backends.cpu.runtime.target import Target
from tilewise.system.llvm_text import IRFunction

HALVES = ("float16", "bfloat16")


def load(f: IRFunction, target: Target, source: DType, partial: DType, address: str, lanes: int) -> Value:
    """`lanes` contiguous elements of dtype `source`, as `partial`."""
    kind, align = scalar_kind(source), part(source).itemsize
    if source.kind == "c":
        both = f.load(vector(kind, 2 * lanes), address, align)
        parts = every_other(f, both, kind, lanes)
        if partial.kind == "b":
            return as_number(f, Renderer(f, source, lanes).nonzero(tuple(parts)), partial, lanes)
        return tuple(widen(f, target, part(source), part(partial), register, lanes)[0] for register in parts)
    raw = f.load(vector(kind, lanes), address, align)
    return widen(f, target, source, partial, raw, lanes)


def every_other(f: IRFunction, both: str, kind: str, lanes: int) -> Value:
    """The real and the imaginary parts of a register of complex numbers."""
    pair = vector(kind, 2 * lanes)
    if lanes == 1:
        return tuple(f.op(f"extractelement {pair} {both}, i32 {start}") for start in (0, 1))
    return tuple(f.shuffle(pair, both, "poison", range(start, 2 * lanes, 2)) for start in (0, 1))


def alternating(lanes: int) -> list[int]:
    """The shuffle that interleaves two vectors."""
    return [number for lane in range(lanes) for number in (lane, lane + lanes)]


def widen(f: IRFunction, target: Target, source: DType, partial: DType, raw: str, lanes: int) -> Value:
    """A register of `source` as `partial`: NumPy's conversions, and only those that promotion needs."""
    if source == partial and source.kind != "b":
        return (raw,)
    kind, inner = vector(scalar_kind(source), lanes), part(partial)
    if partial.kind == "b" or source.kind == "b":
        if source.name in HALVES:
            raw = f.op(f"and {kind} {raw}, {constant(0x7FFF, DTYPES['int16'], lanes)[0]}")  # −0 is not true
            source = DTYPES["uint16"]
        truth = Renderer(f, source, lanes).nonzero((raw,))
        return as_number(f, truth, partial, lanes)
    if source.name in HALVES:
        raw, source = _half_to_float(f, target, source, raw, lanes), DTYPES["float32"]
    kind, want = vector(scalar_kind(source), lanes), vector(scalar_kind(inner), lanes)
    if source.kind == "f":
        real = raw if source.itemsize == inner.itemsize else f.op(f"fpext {kind} {raw} to {want}")
    elif inner.kind == "f":
        real = f.op(f"{'sitofp' if source.kind == 'i' else 'uitofp'} {kind} {raw} to {want}")
    elif source.itemsize == inner.itemsize:
        real = raw
    else:
        real = f.op(f"{'sext' if source.kind == 'i' else 'zext'} {kind} {raw} to {want}")
    return (real, constant(0, inner, lanes)[0]) if partial.kind == "c" else (real,)


def as_number(f: IRFunction, truth: str, dtype: DType, lanes: int) -> Value:
    """A mask as 0 or 1 of a dtype."""
    mask, inner = vector("i1", lanes), part(dtype)
    how = "uitofp" if inner.kind == "f" else "zext"
    real = f.op(f"{how} {mask} {truth} to {vector(scalar_kind(inner), lanes)}")
    return (real, constant(0, inner, lanes)[0]) if dtype.kind == "c" else (real,)


def store(
    f: IRFunction, target: Target, partial: DType, result: DType, value: Value, address: str, lanes: int, *,
    clear: bool = False,
) -> None:  # fmt: skip
    """Store registers of `partial` as `lanes` contiguous elements of dtype `result`; `clear` as in `narrow`."""
    kind, align = scalar_kind(result), part(result).itemsize
    if result.kind == "c":
        pair = vector(kind, 2 * lanes)
        if lanes == 1:
            both = f.op(f"insertelement {pair} poison, {kind} {value[0]}, i32 0")
            both = f.op(f"insertelement {pair} {both}, {kind} {value[1]}, i32 1")
        else:
            both = f.shuffle(vector(kind, lanes), value[0], value[1], alternating(lanes))
        f.store(pair, both, address, align)
        return
    raw = narrow(f, target, partial, result, value[0], lanes, clear=clear)
    f.store(vector(kind, lanes), raw, address, align)


def narrow(
    f: IRFunction, target: Target, partial: DType, result: DType, raw: str, lanes: int, *, clear: bool = False
) -> str:
    """A register of `partial` as elements of `result`, which is not complex. `clear`: the low bits of any NaN are zero
    (as in sums of widened operands), so rounding keeps it a NaN."""
    if result.kind in "iu" and result.itemsize < partial.itemsize:  # it wraps
        return f.op(f"trunc {vector(scalar_kind(partial), lanes)} {raw} to {vector(scalar_kind(result), lanes)}")
    return _float_to_half(f, target, result, raw, lanes, clear) if result.name in HALVES else raw


def _half_to_float(f: IRFunction, target: Target, source: DType, raw: str, lanes: int) -> str:
    i16, i32, f32 = (vector(kind, lanes) for kind in ("i16", "i32", "float"))

    def number(value: int) -> str:
        return constant(value, DTYPES["int32"], lanes)[0]

    if source.name == "bfloat16" and target.by_lane and lanes > 1:  # zip can use two ports of Neoverse-N1, a shift one
        wide = f.shuffle(i16, "zeroinitializer", raw, alternating(lanes))
        return f.op(f"bitcast <{2 * lanes} x i16> {wide} to {f32}")
    if source.name == "bfloat16":
        wide = f.op(f"shl {i32} {f.op(f'zext {i16} {raw} to {i32}')}, {number(16)}")
        return f.op(f"bitcast {i32} {wide} to {f32}")
    if target.converts_half:
        half = vector("half", lanes)
        return f.op(f"fpext {half} {f.op(f'bitcast {i16} {raw} to {half}')} to {f32}")
    # shift exponent and mantissa left; × 2¹¹² corrects the exponent bias, for subnormals too; ∞ and NaN are handled
    # separately
    wide = f.op(f"zext {i16} {raw} to {i32}")
    magnitude = f.op(f"shl {i32} {f.op(f'and {i32} {wide}, {number(0x7FFF)}')}, {number(13)}")
    scale = constant(2.0**112, DTYPES["float32"], lanes)[0]
    scaled = f.op(f"fmul {f32} {f.op(f'bitcast {i32} {magnitude} to {f32}')}, {scale}")
    special = f.op(f"or {i32} {magnitude}, {number(0x7F800000)}")
    is_special = f.op(f"icmp uge {i32} {magnitude}, {number(0x0F800000)}")
    scaled_bits = f.op(f"bitcast {f32} {scaled} to {i32}")
    bits = f.op(f"select {vector('i1', lanes)} {is_special}, {i32} {special}, {i32} {scaled_bits}")
    sign = f.op(f"shl {i32} {f.op(f'and {i32} {wide}, {number(0x8000)}')}, {number(16)}")
    return f.op(f"bitcast {i32} {f.op(f'or {i32} {bits}, {sign}')} to {f32}")


def _float_to_half(f: IRFunction, target: Target, result: DType, raw: str, lanes: int, clear: bool) -> str:
    """To nearest, ties to even; NaN stays NaN."""
    i1, i16, i32, f32 = (vector(kind, lanes) for kind in ("i1", "i16", "i32", "float"))

    def number(value: int) -> str:
        return constant(value, DTYPES["int32"], lanes)[0]

    if result.name == "float16" and target.converts_half:
        half = vector("half", lanes)
        return f.op(f"bitcast {half} {f.op(f'fptrunc {f32} {raw} to {half}')} to {i16}")
    bits = f.op(f"bitcast {f32} {raw} to {i32}")
    is_nan = f.op(f"fcmp uno {f32} {raw}, {raw}")
    if result.name == "bfloat16":
        if clear and target.by_lane and lanes > 1:
            # cmtst, sub and addhn can use both ports of Neoverse-N1; shifts only one
            high = f.op(f"and {i32} {bits}, {number(0x10000)}")
            odd = f.op(f"sext {i1} {f.op(f'icmp ne {i32} {high}, zeroinitializer')} to {i32}")
            up = f.op(f"add {i32} {f.op(f'sub {i32} {bits}, {odd}')}, {number(0x7FFF)}")
            return f.op(f"trunc {i32} {f.op(f'lshr {i32} {up}, {number(16)}')} to {i16}")
        odd = f.op(f"and {i32} {f.op(f'lshr {i32} {bits}, {number(16)}')}, {number(1)}")
        up = f.op(f"add {i32} {bits}, {f.op(f'add {i32} {odd}, {number(0x7FFF)}')}")
        rounded = f.op(f"lshr {i32} {up}, {number(16)}")
        if clear:
            return f.op(f"trunc {i32} {rounded} to {i16}")
        kept = f.op(f"select {i1} {is_nan}, {i32} {number(0x7FFF)}, {i32} {rounded}")
        return f.op(f"trunc {i32} {kept} to {i16}")
    magnitude = f.op(f"and {i32} {bits}, {number(0x7FFFFFFF)}")
    # normal: rebias and round in integers; subnormal: adding 0.5 lets the float adder round; too large: ∞
    odd = f.op(f"and {i32} {f.op(f'lshr {i32} {magnitude}, {number(13)}')}, {number(1)}")
    biased = f.op(f"add {i32} {magnitude}, {f.op(f'add {i32} {odd}, {number(0x0FFF - (112 << 23))}')}")
    normal = f.op(f"lshr {i32} {biased}, {number(13)}")
    one_half = constant(0.5, DTYPES["float32"], lanes)[0]
    tiny = f.op(f"fadd {f32} {f.op(f'bitcast {i32} {magnitude} to {f32}')}, {one_half}")
    subnormal = f.op(f"sub {i32} {f.op(f'bitcast {f32} {tiny} to {i32}')}, {number(0x3F000000)}")
    is_small = f.op(f"icmp ult {i32} {magnitude}, {number(113 << 23)}")
    body = f.op(f"select {i1} {is_small}, {i32} {subnormal}, {i32} {normal}")
    is_large = f.op(f"icmp uge {i32} {magnitude}, {number(143 << 23)}")
    body = f.op(f"select {i1} {is_large}, {i32} {number(0x7C00)}, {i32} {body}")
    body = f.op(f"select {i1} {is_nan}, {i32} {number(0x7E00)}, {i32} {body}")
    sign = f.op(f"and {i32} {f.op(f'lshr {i32} {bits}, {number(16)}')}, {number(0x8000)}")
    return f.op(f"trunc {i32} {f.op(f'or {i32} {body}, {sign}')} to {i16}")
