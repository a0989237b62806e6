"""log(1 + exp(−d)) for d ≥ 0 as vector instructions: the term that logaddexp adds to its larger operand.

exp: −d is split into n·ln 2 + r with |r| ≤ ln 2 / 2 and ln 2 in two pieces, the series of exp(r) ends where its
remainder is below a quarter of the last bit, and n is added to the exponent bits. log: log(1 + u) = 2·atanh(s) with
s = u / (2 + u) ≤ 1/3, an odd polynomial whose coefficients were found in exact fractions (Chebyshev economisation of
the series over s² ≤ 1/9; error below 1e-17 for doubles, 1e-9 for floats). logaddexp stays within 5 units in the last
place of the larger operand (`test_logaddexp_is_right_to_a_few_units_in_the_last_place`); subnormal values of exp are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

LN2 = 0.6931471805599453


@dataclass(frozen=True)
class SoftplusConstants:
    """The constants of one precision."""

    bits: int  # of a number
    mantissa: int
    terms: int  # of exp's series
    ln2_high: float  # so few bits that n times it is exact
    ln2_low: float
    largest: float  # d from which exp(−d) is no longer a normal number
    atanh: tuple[float, ...]  # atanh(s) = s + s³·(a₀ + a₁·s² + …)


CONSTANTS = {
    "double": SoftplusConstants(64, 52, 13, 0.6931471803691238, 1.9082149292705877e-10, 708.0, (
        0.3333333333333333, 0.20000000000007456, 0.1428571428351453, 0.11111111362409382, 0.09090894546491375,
        0.07692789505129312, 0.06657003641335145, 0.060011469977136564, 0.04397433369474833, 0.08087903454072548,
    )),
    "float": SoftplusConstants(32, 23, 7, 0.693145751953125, 1.4286068203094173e-06, 87.0, (
        0.33333333668806814, 0.19999850678147366, 0.14296291707203718, 0.10851657504511722, 0.11619525266245728,
    )),
}  # fmt: skip


def softplus(
    kind: str,
    lanes: int,
    d: str,
    op: Callable[[str], str],
    fma: Callable[[str, str, str], str],
    number: Callable[[float], str],
) -> str:
    """`op` emits an instruction, `fma` a·b + c, `number` writes a constant of `kind` for every lane."""
    c, t = CONSTANTS[kind], kind if lanes == 1 else f"<{lanes} x {kind}>"
    ints = f"i{c.bits}" if lanes == 1 else f"<{lanes} x i{c.bits}>"
    shift = str(c.mantissa) if lanes == 1 else f"splat (i{c.bits} {c.mantissa})"
    mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
    magic = 1.5 * 2.0**c.mantissa  # adding it rounds to a whole number, which is then the sum's lowest bits
    rounded = fma(d, number(-1 / LN2), number(magic))
    n = op(f"fsub {t} {rounded}, {number(magic)}")
    r = fma(n, number(-c.ln2_high), op(f"fneg {t} {d}"))
    r = fma(n, number(-c.ln2_low), r)
    e = number(1 / math.factorial(c.terms))
    for power in range(c.terms - 1, -1, -1):
        e = fma(e, r, number(1 / math.factorial(power)))
    exponent = op(f"shl {ints} {op(f'bitcast {t} {rounded} to {ints}')}, {shift}")
    scaled = op(f"add {ints} {op(f'bitcast {t} {e} to {ints}')}, {exponent}")
    beyond = op(f"fcmp ogt {t} {d}, {number(c.largest)}")
    u = op(f"select {mask} {beyond}, {t} {number(0.0)}, {t} {op(f'bitcast {ints} {scaled} to {t}')}")
    s = op(f"fdiv {t} {u}, {op(f'fadd {t} {u}, {number(2.0)}')}")
    z = op(f"fmul {t} {s}, {s}")
    h = number(c.atanh[-1])
    for coefficient in reversed(c.atanh[:-1]):
        h = fma(h, z, number(coefficient))
    twice = op(f"fadd {t} {s}, {s}")
    return fma(op(f"fmul {t} {twice}, {z}"), h, twice)
