"""torch.compile: a pass over the joint graph that puts our products where they win, before Inductor pads or fuses.

It is Inductor's own hook (`joint_custom_pre_pass`), so forward and backward are seen together, padding does not touch
what we take, and the pointwise work around a product is fused as ever. A product that is not taken stays as it was.
Sizes may be symbols: the choice rests on the sizes of the traced call and adds no guard, so nothing is recompiled.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

import tilewise
from tilewise.interop.torch import lowering
from tilewise.interop.torch.choice import ACCOUNTS, Account

if TYPE_CHECKING:
    from torch.fx import Graph, Node

aten = torch.ops.aten
ACTIVE: list[Account] = []  # of `accelerate()` blocks that are open, the innermost last

PRODUCTS = {
    aten.mm.default: "mm",
    aten.bmm.default: "bmm",
    aten.addmm.default: "addmm",
    aten.baddbmm.default: "baddbmm",
}


def take_products(graph: Graph) -> None:
    """Every product of a graph is settled: ours, or torch's."""
    marker = torch.ops.tilewise.routed_matmul.default
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is marker:
            _settle(graph, node)
        elif ACTIVE and node.target in PRODUCTS:
            _take(graph, node, ACTIVE[-1])


def _settle(graph: Graph, node: Node) -> None:
    """A product of a layer of ours: whichever wins."""
    M, N, when = node.args
    chosen = ACCOUNTS[str(when)].choice(_name(M), M.meta["val"], N.meta["val"], compiled=True)
    chosen.calls += 1
    theirs = aten.mm.default if M.meta["val"].dim() == 2 else aten.bmm.default
    with graph.inserting_before(node):
        made = _ours(graph, M, N) if chosen.routed else graph.call_function(theirs, (M, N))
    _replace(graph, node, made)


def _take(graph: Graph, node: Node, account: Account) -> None:
    """A product of the program's own: ours if that wins; a bias is then added beside it, where Inductor fuses it."""
    M, N = node.args[-2:]
    chosen = account.choice(PRODUCTS[node.target], M.meta["val"], N.meta["val"], compiled=True)
    chosen.calls += 1
    if not chosen.routed or node.kwargs:  # alpha and beta other than 1 stay with torch
        return
    with graph.inserting_before(node):
        made = _ours(graph, M, N)
        if len(node.args) == 3:
            made.meta["val"] = node.meta["val"]
            made = graph.call_function(aten.add.Tensor, (made, node.args[0]))
    _replace(graph, node, made)


def _ours(graph: Graph, M: Any, N: Any) -> Node:
    return graph.call_function(torch.ops.tilewise.matmul.default, (M, N, "plus_times", "high", False))


def _name(M: Any) -> str:
    return "mm" if M.meta["val"].dim() == 2 else "bmm"


def _replace(graph: Graph, node: Node, made: Node) -> None:
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _uuid() -> str:
    """For torch's caches of compiled graphs: what the pass does depends on nothing else."""
    told = ACTIVE[-1].when if ACTIVE else "marked"
    return f"tilewise {tilewise.__version__} {told}"


def arrange() -> None:
    """Make Inductor know the operator and the pass; called while a graph is traced, when Inductor is there anyway."""
    if torch._guards.TracingContext.try_get() is None or "torch._inductor" not in sys.modules:
        return
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomGraphPass

    lowering.register()
    before = config.joint_custom_pre_pass
    if getattr(before, "of_tilewise", False):
        return

    class Pass(CustomGraphPass):
        of_tilewise = True

        def __call__(self, graph: Graph) -> None:
            if before is not None:
                before(graph)
            take_products(graph)

        def uuid(self) -> Any:
            theirs = before.uuid() if isinstance(before, CustomGraphPass) else "" if before is None else None
            return None if theirs is None else (_uuid(), theirs)

    config.joint_custom_pre_pass = Pass()


@torch.compiler.assume_constant_result
def arranged() -> bool:
    """The same from within a function that is being traced."""
    import torch._inductor  # noqa: F401  a compiler is at work: this is what it may be

    arrange()
    return True
