"""// % << >> and ~ of integers as LLVM IR, defined wherever NumPy defines them.

LLVM leaves a division by 0, MIN // −1 and a shift by the width or more undefined, and rounds quotients towards 0, where
Python rounds them down. Where the divisor or the shift is a constant, LLVM folds the checks away.
"""

from __future__ import annotations

from typing import Any


def whole_numbers(r: Any, name: str, args: list[str]) -> str:
    """One of these operations on the registers of a `Renderer`."""
    op, t, mask = r.writer.op, r.type, r.mask

    def number(value: int) -> str:
        return str(value) if r.lanes == 1 else f"splat ({r.kind} {value})"

    def either(condition: str, a: str, b: str) -> str:
        return str(op(f"select {mask} {condition}, {t} {a}, {t} {b}"))

    signed = r.dtype.kind == "i"
    if name == "invert":
        return str(op(f"xor {t} {args[0]}, {number(-1)}"))
    a, b = args
    if name in ("shl", "shr"):
        bits = 8 * r.dtype.itemsize
        inside = op(f"icmp ult {t} {b}, {number(bits)}")
        if name == "shr" and signed:
            return str(op(f"ashr {t} {a}, {either(inside, b, number(bits - 1))}"))
        moved = op(f"{'shl' if name == 'shl' else 'lshr'} {t} {a}, {either(inside, b, number(0))}")
        return either(inside, moved, number(0))
    by_zero = op(f"icmp eq {t} {b}, {number(0)}")
    if not signed:
        over = either(by_zero, number(1), b)
        made = op(f"{'urem' if name == 'mod' else 'udiv'} {t} {a}, {over}")
        return either(by_zero, number(0), made)
    by_minus_one = op(f"icmp eq {t} {b}, {number(-1)}")
    over = either(op(f"or {mask} {by_zero}, {by_minus_one}"), number(1), b)
    rest = op(f"srem {t} {a}, {over}")
    apart = op(f"icmp slt {t} {op(f'xor {t} {rest}, {over}')}, {number(0)}")
    down = op(f"and {mask} {op(f'icmp ne {t} {rest}, {number(0)}')}, {apart}")
    if name == "mod":
        return either(down, op(f"add {t} {rest}, {over}"), rest)
    whole = op(f"sdiv {t} {a}, {over}")
    whole = either(down, op(f"sub {t} {whole}, {number(1)}"), whole)
    whole = either(by_minus_one, op(f"sub {t} {number(0)}, {a}"), whole)
    return either(by_zero, number(0), whole)
