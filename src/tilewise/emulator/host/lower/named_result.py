"""Named return value optimisation: a returned variable becomes the result; it is neither copied nor destroyed.

Compilers do so even without optimisation if all returns of a function name the same variable; g++ up to 13 if that is
declared in the outermost block. Classes with a destructor and without a copy constructor depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewise.emulator.host.lower.builder import Builder, Scope
from tilewise.emulator.parse import tree

OUTERMOST = 2  # index of the scope of a function's body, behind the outer one and that of the parameters


def elided_variable(b: Builder, value: tree.Node) -> tuple[Scope, int] | None:
    """The scope and index of the returned variable among the objects to destroy; None if nothing is elided."""
    if not isinstance(value, tree.Name) or not _only_returned_variable(b.body, value.name):
        return None
    local, scope = b.find(value.name), b.scopes[OUTERMOST]
    for i, (_, address) in enumerate(scope.destroy):
        if local is not None and not local.reference and address == local.address:
            return scope, i
    return None


def may_be_moved(b: Builder, name: str) -> bool:
    """Whether a returned name is a local variable or a parameter, so that it is moved; references, static variables and
    captures are not."""
    local = b.find(name)
    here = any(name in scope.names for scope in b.scopes[1:])
    return local is not None and here and not (local.reference or local.const or local.static)


@contextmanager
def not_destroyed(found: tuple[Scope, int] | None) -> Iterator[None]:
    """Code emitted inside does not destroy it; other exits from its scope do."""
    if found is None:
        yield
        return
    scope, i = found
    entry = scope.destroy.pop(i)
    yield
    scope.destroy.insert(i, entry)


def _only_returned_variable(body: Any, name: str) -> bool:
    """Whether every return names it, and only one variable has that name."""
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
