"""Functions with auto parameters as templates."""

from __future__ import annotations

from tilewise.emulator.parse import tree
from tilewise.emulator.parse.type_nodes import TypeAuto
from tilewise.emulator.sema.overload import with_auto


def test_a_function_is_never_mistaken_for_a_freed_one_at_the_same_address() -> None:
    """Templates are cached by the identity of the node, which Python reuses once the node is freed."""
    for i in range(50):
        node = tree.Function(f"f{i}", None, [tree.Parameter("x", TypeAuto())], frozenset())
        assert with_auto(node).name == f"f{i}"
        assert with_auto(node) is with_auto(node)
        del node
