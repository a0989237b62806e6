"""Where torch's own functions are looked up, and other functions standing there for a while.

Tables that torch makes of its functions, by their identity and on first use, must not be made of ours: the compiler's
are made before, once it is there, because it would take ours for functions that it need not look into; others that were
made while ours stood there are made anew afterwards.

When an attribute of a class changes, Python forgets what it knew of the class and of all that inherit from it, and a
step that opens a block pays for that in every line (0.5 ms of 18 on an H200's host). So in a program that opens block
after block those of classes stay, and hand on to torch's own between blocks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

PATIENCE = 3  # blocks until what stands in classes stays there


class Open(threading.local):
    """The blocks that a thread has open, the innermost last, and whether one is at work: what it calls is torch's."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.inside = False


class Places:
    """Attributes of torch's modules and classes, changed and given back. It is its own lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: list[tuple[Any, str, Any]] = []
        self._full: set[Any] = set()
        self._known_to_jit = False
        self._taken = 0  # how often
        self._staying: set[tuple[Any, str]] = set()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: Any) -> None:
        self._lock.release()

    def take(self, standing: Sequence[tuple[Any, str, Any]]) -> None:
        """Put functions of ours in their places: (owner, name, function)."""
        self._tell_jit(standing)
        for table in _tables_of_the_compiler():
            table()
        self._full = {table for table in _tables("torch._dynamo.trace_rules" in sys.modules) if _is_full(table)}
        self._taken += 1
        if self._taken == PATIENCE:
            self._stay(standing)
        for owner, name, ours in standing:
            if (owner, name) not in self._staying:
                self._before.append((owner, name, vars(owner).get(name)))  # None: inherited
                setattr(owner, name, ours)

    def _stay(self, standing: Sequence[tuple[Any, str, Any]]) -> None:
        """From here on what stands in classes stays; torch's tables of their methods are made before."""
        for table in _tables("torch._dynamo.trace_rules" in sys.modules):
            table()
        for owner, name, ours in standing:
            if isinstance(owner, type):
                setattr(owner, name, ours)
                self._staying.add((owner, name))

    def give_back(self) -> None:
        """Torch's own are in their places again."""
        while self._before:
            owner, name, was = self._before.pop()
            if was is None:
                delattr(owner, name)
            else:
                setattr(owner, name, was)
        for table in _tables("torch._dynamo.trace_rules" in sys.modules):
            if table not in self._full:
                table.cache_clear()

    def _tell_jit(self, standing: Sequence[tuple[Any, str, Any]]) -> None:
        """What torch.jit.script knows of the functions we stand for it knows of ours."""
        if self._known_to_jit:
            return
        from torch.jit import _builtins

        for owner, name, ours in standing:
            operator = _builtins._find_builtin(getattr(owner, name))
            if operator is not None:
                _builtins._register_builtin(ours, operator)
        self._known_to_jit = True


def _is_full(table: Any) -> bool:
    return bool(table.cache_info().currsize)


@cache
def _tables(traces: bool) -> tuple[Any, ...]:
    """Torch's tables of its functions: caches without arguments. `traces`: those of the compiler too, once it is
    there."""
    names = "get_ignored_functions", "get_testing_overrides", "_get_overridable_functions", "_get_tensor_methods"
    found = [getattr(torch.overrides, name, None) for name in names]
    found += _tables_of_the_compiler() if traces else ()
    return tuple(table for table in found if hasattr(table, "cache_info"))


def _tables_of_the_compiler() -> list[Any]:
    """Which of torch's functions stay calls in a graph; none where the compiler is not there."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    return [getattr(rules, name) for name in ("get_torch_obj_rule_map", "get_tensor_method") if hasattr(rules, name)]


OPEN, PLACES = Open(), Places()
