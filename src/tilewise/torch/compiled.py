"""torch.compile: a pass over the joint graph that replaces products where ours are faster, before Inductor pads or
fuses.

It is Inductor's `joint_custom_pre_pass`: it runs on forward and backward together, Inductor does not pad our products,
and fuses pointwise operations around them as usual. Sizes may be symbolic: the choice uses the sizes of the traced call
and adds no guard, so nothing is recompiled. A second pass (`buffers.lay_out`) runs on the partitioned graphs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from tilewise.arrays.torch_graph import constant_in_traces
from tilewise.system.version import __version__
from tilewise.torch import lowering
from tilewise.torch.buffers import is_view, lay_out, without_views
from tilewise.torch.choice import ACCOUNTS, Account, GraphContext
from tilewise.torch.routed_loss import count_loss

if TYPE_CHECKING:
    from torch.fx import Graph, Node

aten = torch.ops.aten
ACTIVE: list[Account] = []  # of open `accelerate()` blocks, the innermost last

PRODUCTS = {
    aten.mm.default: "mm",
    aten.bmm.default: "bmm",
    aten.addmm.default: "addmm",
    aten.baddbmm.default: "baddbmm",
}


def choose_products(graph: Graph) -> None:
    """Choose our kernel or torch's for every product of a graph."""
    marker = torch.ops.tilewise.routed_matmul.default
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is marker:
            _resolve(graph, node)
        elif ACTIVE and node.target in PRODUCTS:
            _choose(graph, node, ACTIVE[-1])
        elif ACTIVE and node.target is torch.ops.tilewise.row_losses.default:
            count_loss(ACTIVE[-1], node.args[0].meta["val"], True)


def _resolve(graph: Graph, node: Node) -> None:
    """Replace a `routed_matmul`, of one of our layers, by the faster product."""
    M, N, when = node.args
    chosen = ACCOUNTS[str(when)].choice(_name(M), M.meta["val"], N.meta["val"], within=_context(node))
    chosen.calls += 1
    addition = None if chosen.routed else _bias_of(node)
    theirs = aten.mm.default if M.meta["val"].dim() == 2 else aten.bmm.default
    with graph.inserting_before(node if addition is None else addition):
        if addition is not None:
            made = graph.call_function(aten.addmm.default, (addition.args[1], M, N))
        else:
            made = _ours(graph, M, N) if chosen.routed else graph.call_function(theirs, (M, N))
    _replace(graph, node if addition is None else addition, made)
    if addition is not None:
        graph.erase_node(node)


def _bias_of(node: Node) -> Node | None:
    """The addition of a bias if it is the product's only user: torch has one kernel for both."""
    users = list(node.users)
    if len(users) != 1 or users[0].target is not aten.add.Tensor or users[0].kwargs or users[0].args[0] is not node:
        return None
    bias, made = getattr(users[0].args[1], "meta", {}).get("val"), node.meta["val"]
    if not isinstance(bias, torch.Tensor) or bias.dim() != 1 or made.dim() != 2 or bias.dtype != made.dtype:
        return None
    return users[0] if bias.shape[0] == made.shape[1] else None


def _choose(graph: Graph, node: Node, account: Account) -> None:
    """Replace a product of the program by ours if that is faster, and its bias by an addition, which Inductor fuses."""
    M, N = node.args[-2:]
    chosen = account.choice(PRODUCTS[node.target], M.meta["val"], N.meta["val"], within=_context(node))
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


def _context(node: Node) -> GraphContext:
    """The context of a product: which of its matrices the graph computes, and whether P is an output."""
    operands: Any = node.args[-2:] if node.target in PRODUCTS else node.args[:2]
    values = [x.meta["val"] for x in (node, *operands)]
    fixed = all(isinstance(number, int) for value in values for number in (*value.shape, *value.stride()))
    M, N = (without_views(x).op == "call_function" for x in operands)
    todo, leaves = [node], False
    while todo:
        users = list(todo.pop().users)
        leaves |= any(user.op == "output" for user in users)
        todo += [user for user in users if is_view(user)]
    return GraphContext(fixed, (M, N), not leaves)


def _replace(graph: Graph, node: Node, made: Node) -> None:
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _uuid() -> str:
    """The pass's part of the keys of torch's caches: its result depends on nothing else."""
    return f"tilewise {__version__} {ACTIVE[-1].when if ACTIVE else 'marked'}"


def install_while_tracing() -> None:
    """Install the passes and lowerings in Inductor if a graph is being traced: Inductor is imported then."""
    if torch._guards.TracingContext.try_get() is not None:
        install_passes()


def install_passes() -> None:
    """Install the passes, and the lowerings if their module is imported. Inductor is not imported here: that takes
    seconds, also in programs that compile nothing."""
    if "torch._inductor" not in sys.modules:
        return
    config = import_module("torch._inductor.config")
    if "torch._inductor.lowering" in sys.modules:
        lowering.register()
    _install(config, "joint_custom_pre_pass", choose_products)
    _install(config, "post_grad_custom_post_pass", lay_out)


def _install(config: Any, hook: str, work: Callable[[Graph], None]) -> None:
    """Install one of our passes, which first calls the pass that was installed before."""
    before = getattr(config, hook)
    if getattr(before, "of_tilewise", False):  # installed by an earlier block
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
            lowering.register()  # code from torch's cache calls the lowerings without running the passes
            theirs = before.uuid() if isinstance(before, CustomGraphPass) else "" if before is None else None
            return None if theirs is None else (_uuid(), theirs)

    setattr(config, hook, Pass())


@constant_in_traces
def when_in_trace() -> str:
    """`when` of the innermost open block, while a function is traced inside it; installs the passes."""
    import torch._inductor  # noqa: F401  a compiler runs, probably this one

    install_while_tracing()
    return ACTIVE[-1].when if ACTIVE else "never"
