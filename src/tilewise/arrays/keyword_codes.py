"""Keywords that native code encodes in a key: those with few known values, as numbers in the bytes of one 64-bit slot.

A value is recognised by its address: True, False, and names that are literals in programs, because Python interns those
(`sys.intern`). A name that a program builds at run time is another object: then Python makes the key.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tilewise.algebra.builtin import ALIASES, SEMIRINGS

FIRST_BYTE = 2  # byte 0 is 1 with `out`, byte 1 marks a gradient (`options.GRADIENT_BYTE`)
VALUES: dict[str, tuple[Any, ...]] = {
    "precision": tuple(map(sys.intern, ("ieee", "high", "tf32"))),
    "semiring": tuple(map(sys.intern, (*SEMIRINGS, *ALIASES))),
    "accumulate": (False, True),
    "nonnegative": (False, True),
    "reproducible": tuple(map(sys.intern, ("batch", "everywhere"))),
}  # none changes the route of a call: prepared calls that differ in them have another plan
UNKNOWN = -1


def keyword_code_text(held: Callable[[Any], int]) -> str:
    """`coded(keywords, given)`: the slot of a call's keywords; UNKNOWN if there are others, or other values. `held`:
    the address of an object that is kept alive."""
    out = held(sys.intern("out"))
    text = f"""
define private i64 @coded(ptr %keywords, i64 %given) {{
entry:
  %out = call ptr @PyDict_GetItem(ptr %keywords, ptr inttoptr (i64 {out} to ptr))
  %with.out = icmp ne ptr %out, null
  %code.0 = zext i1 %with.out to i64
  %found.0 = zext i1 %with.out to i64
"""
    for number, (name, values) in enumerate(VALUES.items()):
        text += _keyword(number, held(sys.intern(name)), [held(value) for value in values])
    last = len(VALUES)
    return f"""{text}
  %all = icmp eq i64 %found.{last}, %given
  %answer = select i1 %all, i64 %code.{last}, i64 {UNKNOWN}
  ret i64 %answer
}}
"""


def _keyword(number: int, name: int, values: list[int]) -> str:
    """One keyword: 0 in its byte if it is not given, else the position of its value, from 1 on. A value that is none of
    them is not counted as found."""
    text = f"""
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
  %code.{number + 1} = or i64 %code.{number}, %shifted.{number}
"""
