"""What torch.compile records of our functions: some results as constants, whole functions as one call in its graph.

A function in the graph is executed with fake tensors, not traced line by line: its Python needs no guards, and the
operators that it calls are compiled. Importing torch's compiler takes seconds, so nothing here does before a trace
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilewise.system.imported import imported

Function = TypeVar("Function", bound=Callable[..., Any])
IN_GRAPH: dict[str, Callable[..., Any]] = {}


def constant_in_traces(function: Function) -> Function:
    """A trace takes its result as a constant: the attribute of `torch.compiler.assume_constant_result`."""
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


def whole_in_graph(function: Function) -> Function:
    """A function of tensors, texts and numbers for `in_graph`."""
    IN_GRAPH[function.__qualname__] = function
    return function


def in_graph(name: str, *given: Any) -> Any:
    """The function of this name as one call of the graph that is being traced."""
    _allow(name)  # before it is looked up: the compiler decides then
    return IN_GRAPH[name](*given)


@constant_in_traces
def _allow(name: str) -> bool:
    imported("torch").compiler.allow_in_graph(IN_GRAPH[name])
    return True
