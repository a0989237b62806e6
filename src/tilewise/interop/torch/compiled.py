"""torch.compile: a pass over the joint graph that puts our products where they win, before Inductor pads or fuses.

It hangs in Inductor's own hook (`joint_custom_pre_pass`), so forward and backward are seen together, padding does not
touch what we take, and the pointwise work around a product is fused as ever. A product that is not taken stays as it
was. Sizes may be symbols: the choice rests on the sizes of the traced call and adds no guard, so nothing is recompiled.
A second pass (`buffers.lay_out`) runs when forward and backward have been parted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from tilewise.interop.torch import lowering
from tilewise.interop.torch.buffers import is_view, lay_out, without_views
from tilewise.interop.torch.choice import ACCOUNTS, Account, Surroundings
from tilewise.interop.torch.constants import constant_in_traces
from tilewise.interop.torch.routed_loss import count_loss
from tilewise.system.version import __version__

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
        elif ACTIVE and node.target is torch.ops.tilewise.row_losses.default:
            count_loss(ACTIVE[-1], node.args[0].meta["val"], True)


def _settle(graph: Graph, node: Node) -> None:
    """A product of a layer of ours: whichever wins."""
    M, N, when = node.args
    chosen = ACCOUNTS[str(when)].choice(_name(M), M.meta["val"], N.meta["val"], within=_around(node))
    chosen.calls += 1
    summed = None if chosen.routed else _bias_of(node)
    theirs = aten.mm.default if M.meta["val"].dim() == 2 else aten.bmm.default
    with graph.inserting_before(node if summed is None else summed):
        if summed is not None:
            made = graph.call_function(aten.addmm.default, (summed.args[1], M, N))
        else:
            made = _ours(graph, M, N) if chosen.routed else graph.call_function(theirs, (M, N))
    _replace(graph, node if summed is None else summed, made)
    if summed is not None:
        graph.erase_node(node)


def _bias_of(node: Node) -> Node | None:
    """The sum with a bias that a product is made for: torch has one operator for both, and one kernel."""
    users = list(node.users)
    if len(users) != 1 or users[0].target is not aten.add.Tensor or users[0].kwargs or users[0].args[0] is not node:
        return None
    bias, made = getattr(users[0].args[1], "meta", {}).get("val"), node.meta["val"]
    if not isinstance(bias, torch.Tensor) or bias.dim() != 1 or made.dim() != 2 or bias.dtype != made.dtype:
        return None
    return users[0] if bias.shape[0] == made.shape[1] else None


def _take(graph: Graph, node: Node, account: Account) -> None:
    """A product of the program's own: ours if that wins; a bias is then added beside it, where Inductor fuses it."""
    M, N = node.args[-2:]
    chosen = account.choice(PRODUCTS[node.target], M.meta["val"], N.meta["val"], within=_around(node))
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


def _around(node: Node) -> Surroundings:
    """What may still be said of how a product's matrices lie: a graph's own values lie as it likes."""
    operands: Any = node.args[-2:] if node.target in PRODUCTS else node.args[:2]
    values = [x.meta["val"] for x in (node, *operands)]
    fixed = all(isinstance(number, int) for value in values for number in (*value.shape, *value.stride()))
    M, N = (without_views(x).op == "call_function" for x in operands)
    todo, leaves = [node], False
    while todo:
        users = list(todo.pop().users)
        leaves |= any(user.op == "output" for user in users)
        todo += [user for user in users if is_view(user)]
    return Surroundings(fixed, (M, N), not leaves)


def _replace(graph: Graph, node: Node, made: Node) -> None:
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _uuid() -> str:
    """For torch's caches of compiled graphs: what the pass does depends on nothing else."""
    told = ACTIVE[-1].when if ACTIVE else "marked"
    return f"tilewise {__version__} {told}"


def arrange() -> None:
    """Make Inductor know the operator and the passes; called while a graph is traced, when Inductor is there anyway."""
    if torch._guards.TracingContext.try_get() is not None:
        hang_in_inductor()


def hang_in_inductor() -> None:
    """The same wherever Inductor is there already. The package is, behind most of torch; its compiler takes seconds to
    import, and is not fetched for a program that compiles nothing."""
    if "torch._inductor" not in sys.modules:
        return
    config = import_module("torch._inductor.config")
    if "torch._inductor.lowering" in sys.modules:
        lowering.register()
    _hang_in(config, "joint_custom_pre_pass", take_products)
    _hang_in(config, "post_grad_custom_post_pass", lay_out)


def _hang_in(config: Any, hook: str, work: Callable[[Graph], None]) -> None:
    """One of our passes behind whatever pass was there."""
    before = getattr(config, hook)
    if getattr(before, "of_tilewise", False):  # as it is for all blocks of a process but the first
        return
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Pass(CustomGraphPass):
        of_tilewise = True

        def __call__(self, graph: Graph) -> None:
            lowering.register()
            if before is not None:
                before(graph)
            work(graph)

        def uuid(self) -> Any:
            lowering.register()  # code that torch finds on disk by this calls what is registered, and no pass runs
            theirs = before.uuid() if isinstance(before, CustomGraphPass) else "" if before is None else None
            return None if theirs is None else (_uuid(), theirs)

    setattr(config, hook, Pass())


@constant_in_traces
def arranged() -> bool:
    """The same from within a function that is being traced."""
    import torch._inductor  # noqa: F401  a compiler is at work: this is what it may be

    arrange()
    return True
