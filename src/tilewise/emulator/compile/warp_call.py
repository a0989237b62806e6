"""Calls by which the threads of a warp or block tell each other something: shuffles, votes, reductions."""

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
    """`_sync` forms take the mask of lanes first; who is there is what the machine knows anyway."""
    arguments = list(node.arguments)
    bare = name.removesuffix("_sync")
    if name.endswith("_sync") and arguments:
        arguments = arguments[1:]
    span = node.span
    if bare == "__activemask":
        return Operand(types.UINT, lambda c: warp.ballot(c, np.bool_(True)), pure=False)
    if not arguments:
        raise compiler.refuse(f"{name} needs more arguments", node)
    value = compiler.expr(arguments[0])
    if not isinstance(value.type, Scalar):
        raise compiler.refuse(f"{name} on {value.type} is not supported", node)
    fn = value.fn
    if bare in warp.SHUFFLES:
        if len(arguments) not in (2, 3):
            raise compiler.refuse(f"{name} takes a value, a lane and perhaps a width", node)
        which = compiler.converted(compiler.expr(arguments[1]), types.INT, arguments[1]).fn
        width: Any = lambda c: np.int32(warp.WARP)  # noqa: E731
        if len(arguments) == 3:
            width = compiler.converted(compiler.expr(arguments[2]), types.INT, arguments[2]).fn
        return Operand.of(value.type, lambda c: warp.shuffle(c, bare, fn(c), which(c), width(c)), value, pure=False)
    if bare in ("__any", "__all"):
        return Operand(types.INT, lambda c: warp.vote(c, bare == "__all", fn(c)), pure=False)
    if bare == "__ballot":
        return Operand(types.UINT, lambda c: warp.ballot(c, fn(c)), pure=False)
    kind = bare.rpartition("_")[2]
    if bare.startswith("__reduce_") and kind in warp.REDUCTIONS and not value.type.floating:
        return Operand(value.type, lambda c: warp.reduce(c, kind, fn(c)), pure=False)
    if bare.startswith("__syncthreads_") and kind in ("count", "and", "or"):

        def block_vote(c: Context) -> Any:
            barrier(c, span)
            return warp.block_vote(c, kind, fn(c))

        return Operand(types.INT, block_vote, pure=False)
    raise compiler.refuse(f"the function {name} is not known", node)
