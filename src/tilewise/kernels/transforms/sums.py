"""From sums to P: the types of both and conversions, as text; and for split-K, whose parts leave their sums in scratch
memory, the launch that adds them up and makes P."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import lru_cache

from tilewise.algebra.dtypes import DTYPES, DType
from tilewise.algebra.expression import is_plain
from tilewise.algebra.semiring import Algebra
from tilewise.algebra.to_cuda import c_name, prelude
from tilewise.core.epilogue import PLAIN, Epilogue
from tilewise.core.problem import Problem
from tilewise.core.recipe import Address, Argument, Launch, Value, structure
from tilewise.kernels.keys import KeyedRenderer
from tilewise.kernels.shared.epilogue import render_epilogue
from tilewise.kernels.shared.stacked import stacked
from tilewise.kernels.shared.text import assembled, with_half_conversions

MANY_PIECES = 16  # of a cell, beyond which eight warps add them up together; a block of `combine` has 8


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


def add_parts(
    p: Problem,
    sums: Address,
    lead: int,
    target: Address,
    ldp: int,
    parts: int,
    epilogue: Argument,
    members: tuple[int, int, int] | None = None,
) -> Launch:
    """Sums of parts of k, their rows `lead` apart, to P with the problem's epilogue. Of so many `members` of a stack,
    whose sums and whose P lie so far apart, two cells at a time: their `lead` is even."""
    shares, wide = 8 if parts >= 16 else 1, 1 if members is None else 2
    arguments = (
        sums,
        target,
        epilogue,
        *(ctypes.c_int(extent) for extent in (p.m, p.n, parts)),
        *(ctypes.c_longlong(x) for x in (lead, ldp)),
        ctypes.c_int(p.accumulate),
    )
    blocks = math.ceil(p.m * math.ceil(p.n / wide) * shares / 256)
    source = render_add_parts.key(p.dtype, p.result, shares, p.epilogue, wide)
    if members is None:
        return Launch.of(source, "add_parts", (blocks,), (256,), arguments)
    count, *steps = members
    more = map(ctypes.c_longlong, steps)
    return Launch.of(of_pairs(source), "add_parts", (blocks, count), (256,), (*arguments, *more))


def combine(
    algebra: Algebra,
    onto: bool,
    planes: Address,
    target: Address,
    cells: tuple[int, int],
    strides: tuple[int, int, int],
    pieces: int,
    *,
    where: Sequence[Value] = (),
    guard: tuple[Address | None, int] = (None, 0),
    members: tuple[int, int, int] = (1, 0, 0),
    overlap: bool = False,
) -> Launch:
    """The same over any semiring: rows and columns of `cells`, added `onto` P or not. `strides`: from row to row of the
    planes, and of P from row to row and column to column; `where`: planes of the k that won, and where they go;
    `guard`: a word on the card, and what it must be for this to run; `members`: as of `add_parts`."""
    share = 8 if pieces > MANY_PIECES else 1
    (address, value), (count, *steps) = guard, members
    arguments = (
        planes, target, *where, *map(ctypes.c_int, cells), *map(ctypes.c_longlong, strides), ctypes.c_int(pieces),
        address, ctypes.c_uint(value), ctypes.c_int(onto), *map(ctypes.c_longlong, steps),
    )  # fmt: skip
    blocks, source = math.ceil(cells[0] * cells[1] * share / 256), combine_text(algebra, share, bool(where))
    return Launch.of(source, "combine", (blocks, count), (256,), arguments, overlap=overlap)


def of_pairs(source: str) -> str:
    """The text of `add_parts` for members of a stack."""
    return stacked.key(source, ("sums", "P"))


def epilogue_argument(epilogue: Epilogue, sums: str, bias: Address | None) -> Argument:
    """The kernels' `Epilogue` for sums of a dtype."""
    return structure(_epilogue(sums), 1 if sums == "int32" else epilogue.alpha, bias)


@lru_cache(maxsize=8)
def _epilogue(sums: str) -> type[ctypes.Structure]:
    alpha: type = {"float64": ctypes.c_double, "int32": ctypes.c_int}.get(sums, ctypes.c_float)
    return type("Epilogue", (ctypes.Structure,), {"_fields_": (("alpha", alpha), ("bias", ctypes.c_void_p))})
