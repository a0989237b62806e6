"""A thread's variable that is handed on as it stands: `prev = curr;`, `tile[y][x] = next;` in a kernel.

Planes that march through a volume hand on what threads at its edges never loaded and never use. So a copy is no read:
the lack of a value goes with it to another variable, and to a block's array, which knows of none, it goes untold."""

from __future__ import annotations

from typing import Any

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import KNOWN, SHARED, Local
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array


def handed_on(b: Builder, node: tree.Assign) -> Any:
    """The local variable, perhaps without a value, that this assignment of a kernel copies; None for others."""
    if not b.program.device or node.op or not isinstance(node.value, tree.Name):
        return None
    source, target = b.find(node.value.name), node.target
    if source is None or not getattr(source, "flag", ""):
        return None
    while isinstance(target, tree.Index):
        target = target.base
    local = b.find(target.name) if isinstance(target, tree.Name) else None
    if target is not node.target:
        tile = isinstance(local, Local) and isinstance(local.type, Array) and local.check in (SHARED, KNOWN)
        return source if tile else None
    return source if type(local) is type(source) and local.flag and local.type is source.type else None
