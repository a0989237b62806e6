"""Temporary replacement of torch's functions.

torch builds tables of its functions by identity on first use, which must not contain ours. The compiler's tables are
built before replacing, because it would not trace into ours; others that are built in between are cleared afterwards.

Replacing a method invalidates Python's type caches of the class and its subclasses, which costs 0.5 ms of an 18 ms
training step on an H200's host. So after PATIENCE blocks the methods stay replaced, and call torch's between blocks.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

PATIENCE = 3  # blocks after which methods stay replaced


class OpenBlocks(threading.local):
    """The open blocks of a thread, the innermost last; `inside`: while one routes a call, nested calls are torch's."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.inside = False


class Replacements:
    """Attributes of torch's modules and classes, replaced and restored; as a context manager it locks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before: list[tuple[Any, str, Any]] = []
        self._built: set[Any] = set()
        self._registered = False
        self._installed = 0  # times
        self._staying: set[tuple[Any, str]] = set()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: Any) -> None:
        self._lock.release()

    def install(self, functions: Sequence[tuple[Any, str, Any]]) -> None:
        """Replace attributes by functions of ours: (owner, name, function)."""
        self._register_with_jit(functions)
        for table in _tables_of_the_compiler():
            table()
        self._built = {table for table in _tables("torch._dynamo.trace_rules" in sys.modules) if _is_built(table)}
        self._installed += 1
        if self._installed == PATIENCE:
            self._keep_methods(functions)
        for owner, name, ours in functions:
            if (owner, name) not in self._staying:
                self._before.append((owner, name, vars(owner).get(name)))  # None: inherited
                setattr(owner, name, ours)

    def _keep_methods(self, functions: Sequence[tuple[Any, str, Any]]) -> None:
        """Replace methods permanently, after building torch's tables of them."""
        for table in _tables("torch._dynamo.trace_rules" in sys.modules):
            table()
        for owner, name, ours in functions:
            if isinstance(owner, type):
                setattr(owner, name, ours)
                self._staying.add((owner, name))

    def restore(self) -> None:
        """Restore torch's own."""
        while self._before:
            owner, name, was = self._before.pop()
            if was is None:
                delattr(owner, name)
            else:
                setattr(owner, name, was)
        for table in _tables("torch._dynamo.trace_rules" in sys.modules):
            if table not in self._built:
                table.cache_clear()

    def _register_with_jit(self, functions: Sequence[tuple[Any, str, Any]]) -> None:
        """Let torch.jit.script treat ours as the functions that they replace."""
        if self._registered:
            return
        from torch.jit import _builtins

        for owner, name, ours in functions:
            operator = _builtins._find_builtin(getattr(owner, name))
            if operator is not None:
                _builtins._register_builtin(ours, operator)
        self._registered = True


def _is_built(table: Any) -> bool:
    return bool(table.cache_info().currsize)


@cache
def _tables(traces: bool) -> tuple[Any, ...]:
    """torch's cached tables of its functions. `traces`: also the compiler's, if it is imported."""
    names = "get_ignored_functions", "get_testing_overrides", "_get_overridable_functions", "_get_tensor_methods"
    found = [getattr(torch.overrides, name, None) for name in names]
    found += _tables_of_the_compiler() if traces else ()
    return tuple(table for table in found if hasattr(table, "cache_info"))


def _tables_of_the_compiler() -> list[Any]:
    """The compiler's tables of functions that it does not trace into; empty if it is not imported."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    return [getattr(rules, name) for name in ("get_torch_obj_rule_map", "get_tensor_method") if hasattr(rules, name)]


OPEN, REPLACED = OpenBlocks(), Replacements()
