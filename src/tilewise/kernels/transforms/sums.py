"""From sums to P, as text: the types of both, conversions, and the kernel that adds up the parts of a split k."""

from __future__ import annotations

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import c_name, prelude
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.text import assembled, with_half_conversions


def sum_of(dtype: DType) -> DType:
    """What products of a dtype are added up in."""
    return DTYPES["int32"] if dtype.is_integer else DTYPES["float32"] if dtype.itemsize == 1 else dtype.partial


@KeyedRenderer
def render_add_parts(dtype: DType, result: DType, shares: int, epilogue: Epilogue = PLAIN, wide: int = 1) -> str:
    """`shares`: how many threads add up the parts of k together; `wide`: cells of a row that each of them makes."""
    sums = sum_of(dtype)
    return assembled(
        f"// add_parts: sums in {sums}, P in {result}",
        {"SHARES": shares, "WIDE": wide},
        render_numbers(sums, result, True),
        render_epilogue(epilogue, sums),
        "shared/dependent_launch.cuh transforms/add_parts.cu",
    )


@KeyedRenderer
def render_combine(algebra: Algebra, share: int = 8, arg: bool = False) -> str:
    """Planes of sums over any semiring into P, `share` warps to 32 cells of it: a block makes 256 / share. `arg`: with
    planes of the k that won."""
    sign = "<" if is_plain(algebra.semiring.add, "min") else ">"
    where = f"typedef long long Where;\n#define BETTER(x, y) ((x) {sign} (y))\n" if arg else ""
    return assembled(
        with_half_conversions(prelude(algebra, index="long long", accumulate=None) + where),
        {"ARG": arg, "SHARE": share},
        "",
        "shared/dependent_launch.cuh transforms/combine.cu",
    )


def combine_text(algebra: Algebra, share: int, arg: bool = False) -> str:
    """The key of `combine` for members of a stack, each with planes of its own."""
    return stacked.key(render_combine.key(algebra, share, arg), ("planes", "P"))


def render_numbers(sums: DType, result: DType, accumulate: bool, paired: bool = True) -> str:
    """Sum and Result, from one to the other, and two at a time; `paired`: the card converts two at a time (Ampere)."""
    kind = {"bfloat16": "bf16", "float16": "f16"}.get(result.name)
    narrow, pair = "return (Result)x;", "to[0] = narrow(x); to[1] = narrow(y);"
    widen = "return (Sum)x;"
    if kind:
        narrow = f'Result y; asm("cvt.rn.{kind}.f32 %0, %1;" : "=h"(y) : "f"(x)); return y;'
        if paired:
            pair = (
                f'unsigned z; asm("cvt.rn.{kind}x2.f32 %0, %1, %2;" : "=r"(z) : "f"(y), "f"(x)); '
                "*reinterpret_cast<unsigned*>(to) = z;"
            )
        widen = (
            "return __uint_as_float((unsigned)x << 16);"
            if kind == "bf16"
            else 'float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y;'
        )
    elif result == sums and result.itemsize in (4, 8):
        pair = f"*reinterpret_cast<{c_name(result)}2*>(to) = make_{c_name(result)}2(x, y);"
    function = "static __device__ __forceinline__"
    bits = f"{function} unsigned bits_of(Result x) {{ return (unsigned)(x & {(1 << 8 * result.itemsize) - 1:#x}); }}"
    return "\n".join(
        (
            f"#define ACCUMULATE {int(accumulate)}",
            f"typedef {c_name(sums)} Sum;",
            f"typedef {c_name(result)} Result;",
            f"{function} Result narrow(Sum x) {{ {narrow} }}",
            f"{function} Sum widen(Result x) {{ {widen} }}",
            f"{function} void put_pair(Result* to, Sum x, Sum y) {{ {pair} }}",
            bits if result.itemsize < 4 else "",
            "",
        )
    )
