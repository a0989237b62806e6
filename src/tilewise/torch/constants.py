"""Functions whose result a trace takes as a constant.

The attribute is that of `torch.compiler.assume_constant_result`, which imports all of torch's compiler to set it: that
takes as long as importing torch itself, also in programs that compile nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def constant_in_traces(function: Function) -> Function:
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function
