"""Keywords that machine code signs: those whose values are few and known, as numbers in the bytes of one word.

A value is known by its address: True, False, and the names that stand in programs as they stand here, because Python
keeps one of each (`sys.intern`). A name that a program puts together from pieces is another object: Python signs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewise.algebra.builtin import ALIASES, SEMIRINGS

OUT_BYTE, FIRST_BYTE = 0, 2  # the byte between them marks a gradient (`options.GRADIENT_BYTE`)
VALUES: dict[str, tuple[Any, ...]] = {
    "precision": tuple(map(sys.intern, ("ieee", "high", "tf32"))),
    "semiring": tuple(map(sys.intern, (*SEMIRINGS, *ALIASES))),
    "accumulate": (False, True),
    "nonnegative": (False, True),
}  # which no road takes elsewhere, and with which a prepared call differs from another only by its plan
UNKNOWN = -1


def words_text(held: Callable[[Any], int]) -> str:
    """`worded(keywords, given)`: the word of a call's keywords, its lowest byte 1 where `out` is among them; UNKNOWN
    where others are, or other values. `held`: the address of an object that stays."""
    out = held(sys.intern("out"))
    text = f"""
define private i64 @worded(ptr %keywords, i64 %given) {{
entry:
  %out = call ptr @PyDict_GetItem(ptr %keywords, ptr inttoptr (i64 {out} to ptr))
  %with.out = icmp ne ptr %out, null
  %word.0 = zext i1 %with.out to i64
  %found.0 = zext i1 %with.out to i64
  br label %name.0
"""
    for number, (name, values) in enumerate(VALUES.items()):
        text += _keyword(number, held(sys.intern(name)), [held(value) for value in values])
    last = len(VALUES)
    return f"""{text}name.{last}:
  %all = icmp eq i64 %found.{last}, %given
  %answer = select i1 %all, i64 %word.{last}, i64 {UNKNOWN}
  ret i64 %answer
}}
"""


def _keyword(number: int, name: int, values: list[int]) -> str:
    """One keyword: passed by where it is not given, and else the place of its value, from 1 on, in its own byte. A
    value that is none of them is not counted as found."""
    text = f"""name.{number}:
  %value.{number} = call ptr @PyDict_GetItem(ptr %keywords, ptr inttoptr (i64 {name} to ptr))
  %place.{number}.0 = add i64 0, 0
"""
    for place, value in enumerate(values):
        text += f"""  %is.{number}.{place} = icmp eq ptr %value.{number}, inttoptr (i64 {value} to ptr)
  %place.{number}.{place + 1} = select i1 %is.{number}.{place}, i64 {place + 1}, i64 %place.{number}.{place}
"""
    return f"""{text}  %known.{number} = icmp ne i64 %place.{number}.{len(values)}, 0
  %one.{number} = zext i1 %known.{number} to i64
  %found.{number + 1} = add i64 %found.{number}, %one.{number}
  %shifted.{number} = shl i64 %place.{number}.{len(values)}, {8 * (FIRST_BYTE + number)}
  %word.{number + 1} = or i64 %word.{number}, %shifted.{number}
  br label %name.{number + 1}
"""
