"""The plain kernels' texts: the semiring's step from its expressions, then the kernel for a tile.

A user's semiring is rendered from its expressions like the built-in ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.algebra.builtin import is_plus_times
from tilewise.algebra.dtypes import DType
from tilewise.algebra.expression import Number
from tilewise.algebra.no_edge import no_edge_of
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import FUNCTION, c_name, literal, prelude
from tilewise.core.reproducible import CHAIN
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.steps import binary
from tilewise.kernels.shared.text import assembled, with_half_conversions, without
from tilewise.kernels.shared.triangle import macros
from tilewise.kernels.simt_gemm.tiled.configs import BIT_OPERATIONS, Config
from tilewise.kernels.simt_gemm.tiled.tiles import PlainTile

GROUP = 8  # rows of tiles that are walked together
PLAIN_FILES = "shared/dependent_launch.cuh simt_gemm/tiled/walk.cuh simt_gemm/tiled/plain.cu"
SYMMETRIC_FILES = PLAIN_FILES.replace("simt_gemm/tiled/walk.cuh", "shared/triangle.cuh simt_gemm/tiled/mirrored.cuh")
PACK_LINES = 64  # of an operand, packed by one block


@dataclass(frozen=True)
class Form:
    """Everything a text depends on beside the algebra."""

    config: Config
    m_along_k: bool
    n_along_k: bool
    vector_m: int  # words of one copy
    vector_n: int
    p_aligned: bool
    accumulate: bool
    split: bool = False  # sums of a piece of k go to a plane of their own
    tail: bool = False  # the last tiles come in pieces of k, each to a plane of its own
    symmetric: bool = False  # tiles on and above the diagonal, stored twice
    ordered: bool = False  # sums have the order and P the bits of `core.reproducible`


@KeyedRenderer
def render_plain(algebra: Algebra, tile: PlainTile, form: Form) -> str:
    """The tiled kernel."""
    config, defines = form.config, macros_of(tile, form)
    if form.ordered:
        steps = ordered_step_text(algebra, config, form.accumulate)
        chain = CHAIN if is_plus_times(algebra.semiring) else 0
        text = without(assembled(steps, {**defines, "CHAIN": chain}, "", PLAIN_FILES), "SYMMETRIC")
        return text if chain else without(text, "CHAIN")
    steps = step_text(algebra, config, form.accumulate, form.split)
    if form.symmetric:
        return without(assembled(steps, defines, "", SYMMETRIC_FILES), "CHAIN")
    return without(without(assembled(steps, defines, "", PLAIN_FILES), "CHAIN"), "SYMMETRIC")


def macros_of(tile: PlainTile, form: Form) -> dict[str, object]:
    """The macros of `plain.cu`."""
    bounded = tile.registers and not (form.m_along_k or form.n_along_k)  # transposing copies take more registers
    return {
        **_blocks(tile), "TAIL": form.tail,
        "WARPS_M": tile.warps_m, "WARPS_N": tile.warps_n, "LANES_M": tile.lanes_m, "LANES_N": tile.lanes_n,
        "TM": tile.tm, "TN": tile.tn, "DEPTH": tile.depth, "UNROLL": tile.unroll, "STAGES": tile.stages,
        "RESIDENT": tile.resident, "M_ALONG_K": form.m_along_k, "N_ALONG_K": form.n_along_k,
        "VECTOR_M": form.vector_m, "VECTOR_N": form.vector_n, "P_ALIGNED": form.p_aligned,
        "ACCUMULATE": form.accumulate, "PAIRS": form.config.name == "three", "ARG": form.config.name == "where",
        **macros(tile.rows, tile.cols, form.symmetric),
        "ORDER(row, i)": "((row) % 2 ? TN - 1 - (i) : (i))" if tile.zigzag else "(i)",
        "BOUNDS": f"__maxnreg__({tile.registers})" if bounded else "__launch_bounds__(THREADS, RESIDENT)",
        "LANE_M": f"(lane / {tile.lanes_n})", "LANE_N": f"(lane % {tile.lanes_n})",
    }  # fmt: skip


def _blocks(tile: PlainTile) -> dict[str, object]:
    """The macros of `walk.cuh`."""
    return {"BLOCK_M": tile.rows, "BLOCK_N": tile.cols, "GROUP": GROUP}


JOINED = 2048  # cells of a tile that a block of `join` makes


@KeyedRenderer
def render_join(algebra: Algebra, config: Config, tile: PlainTile) -> str:
    """Adds up the pieces of k of P's last tiles."""
    return assembled(
        step_text(algebra, config, False, False),
        _blocks(tile),
        "",
        "shared/dependent_launch.cuh simt_gemm/tiled/walk.cuh simt_gemm/tiled/join.cu",
    )


def pack_text(algebra: Algebra, config: Config, side: str, along_k: bool, limit: int = 0) -> str:
    """The key of a packing text; one for both operands if their fills are equal."""
    side = "M" if algebra.pad_m == algebra.pad_n else side
    return stacked.key(render_pack_words.key(algebra, config, side, along_k, limit), ("operand", "words"), "z")


@KeyedRenderer
def render_pack_words(algebra: Algebra, config: Config, side: str, along_k: bool, limit: int = 0) -> str:
    """An operand (`side` M or N) of any strides into words; with a limit, it searches for words above it."""
    defines: dict[str, object] = {
        "PER_WORD": config.per_word, "BITS": config.name == "bits", "ALONG_K": along_k, "LINES": PACK_LINES,
        "SEEKS": limit > 0, "LIMIT": f"{limit:#x}u",
        "PAD": literal(algebra.pad_m if side == "M" else algebra.pad_n, algebra.partial),
    }  # fmt: skip
    text = assembled(
        prelude(algebra),
        f"typedef {word_type(algebra, config)} Word;",
        _as_words(algebra, config),
        defines,
        "",
        "shared/dependent_launch.cuh simt_gemm/tiled/pack_words.cu",
    )
    return with_half_conversions(text)


@KeyedRenderer
def render_limit(algebra: Algebra, config: Config, rows: int = 8, cols: int = 8) -> str:
    """The micro-benchmark of the step: the upper limit of a kernel with these instructions."""
    defines: dict[str, object] = {"TM": rows, "TN": cols, "PAIRS": config.name == "three"}
    return assembled(step_text(algebra, config, False, False), defines, "", "simt_gemm/tiled/limit.cu")


def word_type(algebra: Algebra, config: Config) -> str:
    """The C type of a word of M or N."""
    if config.per_word > 1:
        return "unsigned"
    if config.converts:
        kind = algebra.partial.kind
        return {"f": "float", "i": "int"}.get(kind, "unsigned")
    return c_name(algebra.element)


def _as_words(algebra: Algebra, config: Config) -> str:
    """ONE(x): an element as a word; or AS_BITS(value): its bits in a word of several, SHIFT bits each."""
    if config.name == "bits":
        return "#define AS_BITS(value) (Word)(value)\n#define SHIFT 1"
    if config.name in ("pairs", "shorts"):
        bits = {"float16": "float_to_half(value)", "bfloat16": "float_to_bfloat(value)"}.get(
            algebra.element.name, "(unsigned short)(value)"
        )
        return f"#define AS_BITS(value) (Word){bits}\n#define SHIFT 16"
    return f"#define ONE(x) {'(Word)widen(x)' if config.packs else 'x'}"


def step_text(algebra: Algebra, config: Config, accumulate: bool, split: bool) -> str:
    """The text before the kernel: the algebra, then Word, Sum, start, step and finish. With `split`, partial sums are
    stored; `combine` converts them to P's dtype and accumulates."""
    text = prelude(algebra, index="long long", accumulate=accumulate and not split)
    if split:
        text = _as_partial(text, algebra)
    text += f"typedef {word_type(algebra, config)} Word;  // {config.per_word} of k in each\n"
    return with_half_conversions(text + STEPS[config.name](algebra, config))


def ordered_step_text(algebra: Algebra, config: Config, accumulate: bool) -> str:
    """The same for sums of specified bits: a step of a sum of products is one fused multiply-add by name, and `kept`
    is how a finished cell is stored: NaN has one pattern, and the zeros of a min or max are +0."""
    text, partial = step_text(algebra, config, True, False), algebra.partial
    if is_plus_times(algebra.semiring) and partial.kind == "f":
        plain = "sum = add(sum, mul(value_of(x), value_of(y)));"
        assert plain in text, "the step of a sum of products has another text"
        text = text.replace(
            plain, f"sum = {'__fmaf_rn' if partial.itemsize == 4 else '__fma_rn'}(value_of(x), value_of(y), sum);"
        )
    text += f"{FUNCTION} Result kept(Partial x) {{ {_kept(algebra)} }}\n"
    onto = "add(resume(cell), value)" if accumulate else "value"
    return f"{text}#undef STORE\n#define STORE(cell, value) cell = kept({onto})\n"


def _kept(algebra: Algebra) -> str:
    partial, half = algebra.partial, {"float16": "0x7e00", "bfloat16": "0x7fc0"}.get(algebra.result.name)
    single = partial.itemsize == (8 if partial.kind == "c" else 4)
    if not is_plus_times(algebra.semiring):
        return f"return narrow({'__fadd_rn(x, 0.0f)' if single else '__dadd_rn(x, 0.0)'});"
    if half:
        return f"return x != x ? (Result){half} : narrow(x);"
    nan = "__uint_as_float(0x7fc00000u)" if single else "__longlong_as_double(0x7ff8000000000000ll)"
    if partial.kind == "c":
        return f"x.x = x.x != x.x ? {nan} : x.x; x.y = x.y != x.y ? {nan} : x.y; return x;"
    return f"return x != x ? {nan} : x;"


def _as_partial(text: str, algebra: Algebra) -> str:
    """The prelude with Partial as Result."""
    lines = []
    for line in text.splitlines():
        if line.startswith("typedef") and " Result;" in line:
            line = f"typedef {c_name(algebra.partial)} Result;  // {algebra.partial}: sums of a piece of k"
        elif " narrow(Partial x)" in line:
            line = f"{FUNCTION} Result narrow(Partial x) {{ return x; }}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _values(config: Config) -> str:
    """value_of: a word as Partial."""
    body = "(Partial)x" if config.packs else "widen(x)"
    return f"{FUNCTION} Partial value_of(Word x) {{ return {body}; }}\n"


def _sum(kind: str, start: str, step: str, finish: str) -> str:
    """An accumulator of one number: its initial value, a step, and its result."""
    return f"""typedef {kind} Sum;
{FUNCTION} Sum start() {{ return {start}; }}
{FUNCTION} void step(Sum& sum, Word x, Word y, int) {{ {step} }}
{FUNCTION} Partial finish(Sum sum) {{ return {finish}; }}
"""


def _each(algebra: Algebra, config: Config) -> str:
    add, mul, t = binary(algebra.semiring.add), binary(algebra.semiring.mul), algebra.partial
    step = "sum = add(sum, mul(value_of(x), value_of(y)));"
    if t.kind == "c" and (add, mul) == ("add", "mul"):
        fma = "fmaf" if t.name == "complex64" else "fma"
        step = (
            f"sum.x = {fma}(x.x, y.x, sum.x); sum.y = {fma}(x.x, y.y, sum.y); "
            f"sum.x = {fma}(-x.y, y.y, sum.x); sum.y = {fma}(x.y, y.x, sum.y);"
        )
    if t.name == "float64" and add in ("min", "max"):  # a running min holds no NaN, so one comparison skips it
        step = f"Partial z = mul(value_of(x), value_of(y)); sum = z {better(algebra)} sum ? z : sum;"
    return _values(config) + _sum("Partial", "ZERO", step, "sum")


def _fused(algebra: Algebra, config: Config) -> str:
    """DPX: add and min (or max) in one instruction."""
    which = f"__viadd{binary(algebra.semiring.add)}_{'s32' if algebra.element.kind == 'i' else 'u32'}"
    return _sum("Partial", "ZERO", f"sum = {which}(x, y, sum);", "sum")


def _three(algebra: Algebra, config: Config) -> str:
    """Floats from 0 up are ordered as their bits are as integers, and integers have a min and a max of three. Every NaN
    an operation makes is above ∞ so, and min skips it."""
    which = binary(algebra.semiring.add)
    one = _sum("int", "__float_as_int(ZERO)", f"sum = {which}(sum, __float_as_int(mul(x, y)));", "__int_as_float(sum)")
    return (
        one
        + f"""{FUNCTION} void step_pair(Sum& sum, Word x0, Word y0, Word x1, Word y1) {{
    sum = __vi{which}3_s32(sum, __float_as_int(mul(x0, y0)), __float_as_int(mul(x1, y1)));
}}
"""
    )


def _pairs(algebra: Algebra, config: Config) -> str:
    """Two elements of k a word: an accumulator has the best of the even and of the odd ones, combined at the end."""
    add, mul, element = binary(algebra.semiring.add), binary(algebra.semiring.mul), algebra.element
    start = f"0x{_bits(algebra.zero, element):04x}{_bits(algebra.zero, element):04x}u"
    if element.is_integer:
        kind = "s16x2" if element.kind == "i" else "u16x2"
        low, high = ("(Partial)(sum & 0xffffu)", "(Partial)(sum >> 16)")
        step, helpers = f"sum = __viadd{add}_{kind}(x, y, sum)", ""
    else:
        kind = "f16x2" if element.name == "float16" else "bf16x2"
        open_name = "half_to_float" if element.name == "float16" else "bfloat_to_float"
        low, high = (f"{open_name}((unsigned short)(sum & 0xffffu))", f"{open_name}((unsigned short)(sum >> 16))")
        helpers = "".join(_packed_function(op, kind) for op in dict.fromkeys((add, mul)))
        step = f"sum = pair_{add}(sum, pair_{mul}(x, y))"
    return helpers + _sum("unsigned", start, f"{step};", f"add({low}, {high})")


def _packed_function(op: str | None, kind: str) -> str:
    """Both halves of a word in one instruction; where there is none, one after the other."""
    opened, closed = ("half_to_float", "float_to_half") if kind == "f16x2" else ("bfloat_to_float", "float_to_bfloat")
    x, y = (f"{opened}((unsigned short)({v} >> shift))" for v in "xy")
    plain = {"add": f"{x} + {y}", "mul": f"{x} * {y}", "min": f"fminf({x}, {y})", "max": f"fmaxf({x}, {y})"}[op or ""]
    return f"""{FUNCTION} unsigned pair_{op}(unsigned x, unsigned y) {{
    unsigned z = 0;
#ifdef __CUDACC_RTC__
    asm("{op}{".rn" if op in ("add", "mul") else ""}.{kind} %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y));
#else
    for (int shift = 0; shift < 32; shift += 16) z |= (unsigned){closed}({plain}) << shift;
#endif
    return z;
}}
"""


def _bits(value: Number, dtype: DType) -> int:
    assert not isinstance(value, complex)
    return int(np.asarray(value).astype(dtype.numpy).view(np.uint16))


def _bit_words(algebra: Algebra, config: Config) -> str:
    add, mul = binary(algebra.semiring.add), binary(algebra.semiring.mul)
    assert add is not None
    assert mul is not None
    over, under, start = BIT_OPERATIONS[add, mul]
    finish = "sum != 0u" if start == "0u" else "sum == 0xffffffffu"
    return _sum("unsigned", start, f"sum = sum {over} (x {under} y);", finish)


EXP2 = f"""{FUNCTION} float exp2_of(float x) {{
#ifdef __CUDACC_RTC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}}
"""


def _online(algebra: Algebra, config: Config) -> str:
    """log Σ exp without overflow and with one exp a step."""
    t = algebra.partial
    f = "f" if t.itemsize == 4 else ""
    exp = "exp2_of(-fabsf(above) * 1.44269504f)" if t.itemsize == 4 else "exp(-fabs(above))"
    return (
        _values(config)
        + (EXP2 if t.itemsize == 4 else "")
        + f"""// log of a sum of exp(product): the largest product so far, and the sum of exp(product - largest), which
// is between 1 and k. A larger product rescales the sum. So nothing overflows, nothing that counts underflows, and a
// step has one exp, of a number that is not above 0. Equal products (both may be infinite) count 1, with no difference.
struct Sum {{ Partial largest, sum; }};
{FUNCTION} Sum start() {{ return Sum{{ZERO, {literal(0, t)}}}; }}
{FUNCTION} void step(Sum& s, Word x, Word y, int) {{
    Partial product = mul(value_of(x), value_of(y)), above = product - s.largest;
    Partial part = product == s.largest ? {literal(1, t)} : {exp};
    s.sum = above > 0 ? fma{f}(s.sum, part, {literal(1, t)}) : s.sum + part;
    s.largest = above > 0 ? product : s.largest;
}}
{FUNCTION} Partial finish(Sum s) {{ return s.sum == 0 ? s.largest : s.largest + log{f}(s.sum); }}
"""
    )


def better(algebra: Algebra) -> str:
    return "<" if binary(algebra.semiring.add) == "min" else ">"


def _where(algebra: Algebra, config: Config) -> str:
    sign, edges = better(algebra), no_edge_of(algebra)
    nothing = "ZERO" if edges is None else literal(edges.farthest + (1 if sign == "<" else -1), algebra.partial)
    return (
        _values(config)
        + f"""typedef long long Where;
// the best product so far and its k: the lowest on a tie, -1 where none beat ZERO, or what is no edge
struct Sum {{ Partial value; int where; }};
#define BETTER(x, y) ((x) {sign} (y))
#define AHEAD_OF(x, at_x, y, at_y) (BETTER(x, y) || ((x) == (y) && (at_x) >= 0 && (at_x) < (at_y)))
{FUNCTION} Sum start() {{ return Sum{{{nothing}, -1}}; }}
{FUNCTION} void step(Sum& s, Word x, Word y, int at) {{
    Partial product = mul(value_of(x), value_of(y));
    bool wins = BETTER(product, s.value);
    s.value = wins ? product : s.value;
    s.where = wins ? at : s.where;
}}
{FUNCTION} Partial finish(Sum s) {{ return s.value; }}
"""
    )


STEPS = {
    "each": _each, "fused": _fused, "three": _three, "pairs": _pairs, "shorts": _pairs, "bits": _bit_words,
    "online": _online, "where": _where,
}  # fmt: skip
