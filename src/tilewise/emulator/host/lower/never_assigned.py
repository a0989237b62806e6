"""__constant__ and __device__ variables that start as uninitialised, although CUDA sets them to zero: a forgotten
cudaMemcpyToSymbol is reported.

A __constant__ without initialiser can only be meant to be copied to. A __device__ variable may start at zero on
purpose, as counters do: it counts as uninitialised only if every use of it, in every function, is a read by device
code."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.declared import Entities
from tilewise.emulator.parse.packed_body import tokens_of
from tilewise.emulator.source.lexer import closing

MODIFIERS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--", ".", "->"})
BEFORE = frozenset({"&", "++", "--", "::", ".", "->"})  # address taken, modified, or another entity of that name


def never_assigned(entities: Entities, name: str, item: tree.Variable) -> bool:
    if item.init is not None or item.arguments is not None or item.specifiers & {"extern", "volatile"}:
        return False
    return "__constant__" in item.specifiers or _only_read(entities, name.rpartition("::")[2], _depth(item.type))


def _depth(type_: Any) -> int:
    return 1 + _depth(type_.of) if isinstance(type_, tree.TypeArray) else 0


def _only_read(entities: Entities, name: str, depth: int) -> bool:
    methods = [m for several in entities.classes.values() for c in several for m in c.methods]
    for function in (*(f for several in entities.functions.values() for f in several), *methods):
        if function.library or function.tokens is None:
            continue
        tokens = [t.text for t in tokens_of(function.tokens)]
        for i, text in enumerate(tokens):
            if text == name and not (function.on_device and _reads(tokens, i, depth, function.result)):
                return False
    return True


def _reads(tokens: list[str], i: int, depth: int, result: Any) -> bool:
    """Whether the name at i is a scalar, or an element of an array, that is certainly only read."""
    before, end = tokens[i - 1], i + 1
    for _ in range(depth):
        if tokens[end] != "[":
            return False  # the array decays to a pointer
        end = closing(tokens, end) + 1
    if before in BEFORE or tokens[end] in MODIFIERS or tokens[end] == "[":
        return False
    if before in ("(", ",") and tokens[end] in (",", ")"):
        return False  # perhaps by reference
    if before == "return" and isinstance(result, tree.TypeReference):
        return False
    return not (before == "=" and tokens[i - 3] == "&")  # float& x = name
