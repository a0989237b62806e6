"""Calls of warp shuffles, votes and reductions, and of block votes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tilewise.emulator.compile.operand import Operand
from tilewise.emulator.machine import warp
from tilewise.emulator.machine.barrier import barrier
from tilewise.emulator.machine.context import Context
from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar


class Compiling(Protocol):
    def expr(self, node: Any) -> Operand: ...

    def converted(self, value: Operand, target: Any, node: tree.Node) -> Operand: ...

    def refuse(self, message: str, node: tree.Node) -> Exception: ...


def warp_call(compiler: Compiling, node: tree.Call, name: str) -> Operand:
    """The mask argument of `_sync` forms is ignored: the active lanes take part."""
    arguments = list(node.arguments)
    operation = name.removesuffix("_sync")
    if name.endswith("_sync") and arguments:
        arguments = arguments[1:]
    span = node.span
    if operation == "__activemask":
        return Operand(types.UINT, lambda c: warp.ballot(c, np.bool_(True)), pure=False)
    if not arguments:
        raise compiler.refuse(f"{name} needs more arguments", node)
    value = compiler.expr(arguments[0])
    if not isinstance(value.type, Scalar):
        raise compiler.refuse(f"{name} on {value.type} is not supported", node)
    fn = value.fn
    if operation in warp.SHUFFLES:
        if len(arguments) not in (2, 3):
            raise compiler.refuse(f"{name} takes a value, a lane and perhaps a width", node)
        which = compiler.converted(compiler.expr(arguments[1]), types.INT, arguments[1]).fn
        width: Any = lambda c: np.int32(warp.WARP)  # noqa: E731
        if len(arguments) == 3:
            width = compiler.converted(compiler.expr(arguments[2]), types.INT, arguments[2]).fn
        return Operand.of(
            value.type, lambda c: warp.shuffle(c, operation, fn(c), which(c), width(c)), value, pure=False
        )
    if operation in ("__any", "__all"):
        return Operand(types.INT, lambda c: warp.vote(c, operation == "__all", fn(c)), pure=False)
    if operation == "__ballot":
        return Operand(types.UINT, lambda c: warp.ballot(c, fn(c)), pure=False)
    kind = operation.rpartition("_")[2]
    if operation.startswith("__reduce_") and kind in warp.REDUCTIONS and not value.type.floating:
        return Operand(value.type, lambda c: warp.reduce(c, kind, fn(c)), pure=False)
    if operation.startswith("__syncthreads_") and kind in ("count", "and", "or"):

        def block_vote(c: Context) -> Any:
            barrier(c, span)
            return warp.block_vote(c, kind, fn(c))

        return Operand(types.INT, block_vote, pure=False)
    raise compiler.refuse(f"the function {name} is not known", node)
