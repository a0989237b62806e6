"""exp(−d), log(1 + exp(−d)), the logistic function and erfc as vector instructions.

exp: −d is split into n·ln 2 + r with |r| ≤ ln 2 / 2 and ln 2 in two pieces, the series of exp(r) ends where its
remainder is below a quarter of the last bit, and n is added to the exponent bits. log: log(1 + u) = 2·atanh(s) with
s = u / (2 + u) ≤ 1/3, an odd polynomial whose coefficients were found in exact fractions (Chebyshev economisation of
the series over s² ≤ 1/9; error below 1e-17 for doubles, 1e-9 for floats). logaddexp stays within 5 units in the last
place of the larger operand (`test_logaddexp_is_right_to_a_few_units_in_the_last_place`); subnormal values of exp are 0.
erfc(z) = t·exp(−z² + p(2t − 1)) with t = 2 / (2 + z), where p interpolates log(erfc(z)·exp(z²) / t) at Chebyshev's
nodes (in 60 digits; error below 4e-17 for doubles, 7e-9 for floats).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

LN2 = 0.6931471805599453


@dataclass(frozen=True)
class Constants:
    """The constants of one precision."""

    bits: int  # of a number
    mantissa: int
    terms: int  # of exp's series
    ln2_high: float  # so few bits that n times it is exact
    ln2_low: float
    largest: float  # d from which exp(−d) is no longer a normal number
    atanh: tuple[float, ...]  # atanh(s) = s + s³·(a₀ + a₁·s² + …)
    erfc: tuple[float, ...]  # p, from its constant on


CONSTANTS = {
    "double": Constants(64, 52, 13, 0.6931471803691238, 1.9082149292705877e-10, 708.0, (
        0.3333333333333333, 0.20000000000007456, 0.1428571428351453, 0.11111111362409382, 0.09090894546491375,
        0.07692789505129312, 0.06657003641335145, 0.060011469977136564, 0.04397433369474833, 0.08087903454072548,
    ), (
        -0.6717940840566923, 0.6726432239776559, 0.04734330684190415, -0.04689561023107716,
        -0.009872689366376865, 0.008824938553557172, 0.0017589335575530585, -0.002345812442194841,
        -0.00014624686098279685, 0.0006736782487619259, -9.373504499208804e-05, -0.00017429974539128116,
        7.140106496969276e-05, 3.1732769210255435e-05, -3.0188008635174027e-05, 1.7065643682608049e-07,
        8.562827807038024e-06, -3.0087258428155394e-06, -1.2725384918465064e-06, 1.3278447814608566e-06,
        -1.6833321758830403e-07, -3.175036568175422e-07, 1.532694522477242e-07, 3.996584549064402e-08,
        -3.9153823681150644e-08, -1.6257634004200004e-09, 4.059203416871319e-09,
    )),
    "float": Constants(32, 23, 7, 0.693145751953125, 1.4286068203094173e-06, 87.0, (
        0.33333333668806814, 0.19999850678147366, 0.14296291707203718, 0.10851657504511722, 0.11619525266245728,
    ), (
        -0.6717940840566923, 0.6726431522588268, 0.04734334109347023, -0.046893590304725064,
        -0.009873662468445727, 0.008808544323316852, 0.0017670032525904623, -0.0022881236566899177,
        -0.0001758054723287054, 0.0005731254989469202, -3.825410526006034e-05, -8.70509883316567e-05,
        1.5401817283772113e-05,
    )),
}  # fmt: skip


@dataclass(frozen=True)
class Exponentials:
    """Emits them for `lanes` numbers of `kind`: "float" or "double"."""

    kind: str
    lanes: int
    op: Callable[[str], str]  # emits an instruction
    fma: Callable[[str, str, str], str]  # a·b + c
    number: Callable[[float], str]  # a constant of `kind` for every lane

    @property
    def type(self) -> str:
        return self._vector(self.kind)

    def _vector(self, kind: str) -> str:
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def polynomial(self, x: str, coefficients: tuple[float, ...]) -> str:
        """From the constant on."""
        made = self.number(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            made = self.fma(made, x, self.number(coefficient))
        return made

    def balanced(self, x: str, coefficients: tuple[float, ...]) -> str:
        """The same in fewer steps that wait for one another (Estrin): other roundings."""
        terms, t = [self.number(c) for c in coefficients], self.type
        while len(terms) > 1:
            last = [terms.pop()] if len(terms) % 2 else []
            terms = [self.fma(high, x, low) for low, high in zip(terms[::2], terms[1::2], strict=True)] + last
            x = self.op(f"fmul {t} {x}, {x}")
        return terms[0]

    def select(self, condition: str, yes: str, no: str) -> str:
        return self.op(f"select {self._vector('i1')} {condition}, {self.type} {yes}, {self.type} {no}")

    def exp_of_minus(self, d: str) -> str:
        """exp(−d) for d ≥ 0, up to rounding."""
        c, t, op, number = CONSTANTS[self.kind], self.type, self.op, self.number
        ints, shift = self._vector(f"i{c.bits}"), str(c.mantissa)
        if self.lanes > 1:
            shift = f"splat (i{c.bits} {shift})"
        magic = 1.5 * 2.0**c.mantissa  # adding it rounds to a whole number, which is then the sum's lowest bits
        rounded = self.fma(d, number(-1 / LN2), number(magic))
        n = op(f"fsub {t} {rounded}, {number(magic)}")
        r = self.fma(n, number(-c.ln2_high), op(f"fneg {t} {d}"))
        r = self.fma(n, number(-c.ln2_low), r)
        e = self.polynomial(r, tuple(1 / math.factorial(power) for power in range(c.terms + 1)))
        exponent = op(f"shl {ints} {op(f'bitcast {t} {rounded} to {ints}')}, {shift}")
        scaled = op(f"add {ints} {op(f'bitcast {t} {e} to {ints}')}, {exponent}")
        beyond = op(f"fcmp ogt {t} {d}, {number(c.largest)}")
        return self.select(beyond, number(0.0), op(f"bitcast {ints} {scaled} to {t}"))

    def softplus(self, d: str) -> str:
        """log(1 + exp(−d)) for d ≥ 0: the term that logaddexp adds to its larger operand."""
        t, op = self.type, self.op
        u = self.exp_of_minus(d)
        s = op(f"fdiv {t} {u}, {op(f'fadd {t} {u}, {self.number(2.0)}')}")
        z = op(f"fmul {t} {s}, {s}")
        twice = op(f"fadd {t} {s}, {s}")
        return self.fma(op(f"fmul {t} {twice}, {z}"), self.polynomial(z, CONSTANTS[self.kind].atanh), twice)

    def logistic(self, y: str, size: str) -> str:
        """1 / (1 + exp(−y)); `size` is |y|."""
        t, op, one = self.type, self.op, self.number(1.0)
        e = self.exp_of_minus(size)
        above = self.select(op(f"fcmp olt {t} {y}, {self.number(0.0)}"), e, one)
        return op(f"fdiv {t} {above}, {op(f'fadd {t} {e}, {one}')}")

    def erfc(self, z: str) -> str:
        """For z ≥ 0."""
        t, op, number = self.type, self.op, self.number
        fraction = op(f"fdiv {t} {number(2.0)}, {op(f'fadd {t} {z}, {number(2.0)}')}")
        p = self.balanced(self.fma(fraction, number(2.0), number(-1.0)), CONSTANTS[self.kind].erfc)
        d = self.fma(z, z, op(f"fneg {t} {p}"))
        return op(f"fmul {t} {fraction}, {self.exp_of_minus(d)}")
