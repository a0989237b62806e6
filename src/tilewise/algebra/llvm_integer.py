"""// % << >> and ~ of integers as LLVM IR, defined wherever NumPy defines them.

LLVM leaves a division by 0, MIN // −1 and a shift by the width or more undefined, and rounds quotients towards 0, where
Python rounds them down. Where the divisor or the shift is a constant, LLVM folds the checks away.
"""

from __future__ import annotations

from typing import Any


def integer_operation(r: Any, name: str, args: list[str]) -> str:
    """One of these operations on the registers of a `Renderer`."""
    op, t, mask = r.writer.op, r.type, r.mask

    def number(value: int) -> str:
        return str(value) if r.lanes == 1 else f"splat ({r.kind} {value})"

    def select(condition: str, a: str, b: str) -> str:
        return str(op(f"select {mask} {condition}, {t} {a}, {t} {b}"))

    signed = r.dtype.kind == "i"
    if name == "invert":
        return str(op(f"xor {t} {args[0]}, {number(-1)}"))
    a, b = args
    if name in ("shl", "shr"):
        bits = 8 * r.dtype.itemsize
        in_range = op(f"icmp ult {t} {b}, {number(bits)}")
        if name == "shr" and signed:
            return str(op(f"ashr {t} {a}, {select(in_range, b, number(bits - 1))}"))
        shifted = op(f"{'shl' if name == 'shl' else 'lshr'} {t} {a}, {select(in_range, b, number(0))}")
        return select(in_range, shifted, number(0))
    by_zero = op(f"icmp eq {t} {b}, {number(0)}")
    if not signed:
        divisor = select(by_zero, number(1), b)
        quotient = op(f"{'urem' if name == 'mod' else 'udiv'} {t} {a}, {divisor}")
        return select(by_zero, number(0), quotient)
    by_minus_one = op(f"icmp eq {t} {b}, {number(-1)}")
    divisor = select(op(f"or {mask} {by_zero}, {by_minus_one}"), number(1), b)
    remainder = op(f"srem {t} {a}, {divisor}")
    signs_differ = op(f"icmp slt {t} {op(f'xor {t} {remainder}, {divisor}')}, {number(0)}")
    rounds_down = op(f"and {mask} {op(f'icmp ne {t} {remainder}, {number(0)}')}, {signs_differ}")
    if name == "mod":
        return select(rounds_down, op(f"add {t} {remainder}, {divisor}"), remainder)
    quotient = op(f"sdiv {t} {a}, {divisor}")
    quotient = select(rounds_down, op(f"sub {t} {quotient}, {number(1)}"), quotient)
    quotient = select(by_minus_one, op(f"sub {t} {number(0)}, {a}"), quotient)
    return select(by_zero, number(0), quotient)
