"""A variable that is what its function returns becomes the result itself: no copy is made, and it is not taken down.

The language allows it and every compiler does it, without optimisation too, where all of a function's returns name the
one variable; g++ up to 13 where it stands in the outermost block. Classes that free something in their destructor and
have no copy of their own rest on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewise.emulator.host.lower.builder import Builder, Scope
from tilewise.emulator.parse import tree

OUTERMOST = 2  # the scope of a function's body, behind those of what is outside and of its parameters


def becomes_the_result(b: Builder, value: Any) -> tuple[Scope, int] | None:
    """Where the variable that is returned stands among what its scope takes down; None for anything else."""
    if not isinstance(value, tree.Name) or not _only_one(b.body, value.name):
        return None
    local, scope = b.find(value.name), b.scopes[OUTERMOST]
    for i, (_, address) in enumerate(scope.destroy):
        if local is not None and not local.reference and address == local.address:
            return scope, i
    return None


def ends_here(b: Builder, name: str) -> bool:
    """Whether it is a variable or a parameter of this call, whose value nobody needs any more: it may be moved from.

    What a reference names, a static variable or what a lambda captured goes on."""
    local = b.find(name)
    here = any(name in scope.names for scope in b.scopes[1:])
    return local is not None and here and not (local.reference or local.const or local.static)


@contextmanager
def left_standing(found: tuple[Scope, int] | None) -> Iterator[None]:
    """What is taken down inside leaves it out; other ways out of its scope do not."""
    if found is None:
        yield
        return
    scope, i = found
    kept = scope.destroy.pop(i)
    yield
    scope.destroy.insert(i, kept)


def _only_one(body: Any, name: str) -> bool:
    """Whether every return names it, and one variable alone has that name."""
    declared, stack = 0, [body]
    while stack:
        item = stack.pop()
        if isinstance(item, tree.Return) and not (isinstance(item.value, tree.Name) and item.value.name == name):
            return False
        if isinstance(item, tree.Variable):
            declared += item.name == name
        if isinstance(item, tree.Node) and not isinstance(item, tree.Lambda):
            stack += [getattr(item, field) for field in item.__slots__]
        elif isinstance(item, (list, tuple)):
            stack += item
    return declared == 1
