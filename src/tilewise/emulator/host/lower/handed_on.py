"""A thread's variable that is handed on as it stands: `prev = curr;`, `tile[y][x] = next;` in a kernel.

Planes that march through a volume hand on what threads at its edges never loaded and never use. So a copy is no read:
the lack of a value goes with it to another variable, and to a block's array, which knows of none, it goes untold."""

from __future__ import annotations

from tilewise.emulator.host.lower.builder import Builder
from tilewise.emulator.host.lower.values import KNOWN, SHARED
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.types import Array


def handed_on(b: Builder, node: tree.Assign) -> bool:
    """Whether this assignment of a kernel copies a local variable, perhaps without a value."""
    if not b.program.device or node.op or not isinstance(node.value, tree.Name):
        return False
    source, target = b.find(node.value.name), node.target
    if source is None or not source.flag:
        return False
    while isinstance(target, tree.Index):
        target = target.base
    local = b.find(target.name) if isinstance(target, tree.Name) else None
    if local is None:
        return False
    if target is not node.target:
        return isinstance(local.type, Array) and local.check in (SHARED, KNOWN)
    return bool(local.flag) and type(local) is type(source) and local.type is source.type
