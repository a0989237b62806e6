"""Shorthand for LLVM IR that reads objects: a line becomes its two or three instructions.

%x = load ptr, ptr %object + 16            a field, by its offset in bytes
%x = load i64, ptr %slots[3]               an element of an array of 64-bit words; the same for store
require icmp eq ptr %x, %y else slowly     go on only if it holds; or a branch to a label
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

_AT = re.compile(r"^(?P<head>.*(?:load|store) .*), ptr (?P<base>%[\w.]+)(?: \+ (?P<offset>\d+)|\[(?P<index>[^]]+)\])$")
_REQUIRE = re.compile(r"^\s*require (?P<condition>.*) else (?P<label>[\w.]+)$")


def expand(text: str) -> str:
    """IR with the shorthand above as plain IR."""
    number = count()
    return "\n".join(_expanded(line, f"m.{next(number)}") for line in text.split("\n"))


def _expanded(line: str, name: str) -> str:
    found = _REQUIRE.match(line)
    if found:
        condition, label = found["condition"], found["label"]
        return f"  %{name} = {condition}\n  br i1 %{name}, label %{name}.on, label %{label}\n{name}.on:"
    found = _AT.match(line)
    if not found:
        return line
    kind, at = ("i8", found["offset"]) if found["offset"] else ("i64", found["index"])
    return f"  %{name} = getelementptr {kind}, ptr {found['base']}, i64 {at}\n{found['head']}, ptr %{name}"


def constant(thing: Any) -> str:
    """The address of an object that lives as long as the process, as a constant pointer."""
    return f"inttoptr (i64 {id(thing)} to ptr)"
