"""Layouts of a product's matrices as Inductor buffers, with aligned rows if `row_alignment.py` finds that faster.

`lay_out` runs over a graph before code generation. It inserts `tilewise::aligned_rows(Tensor x, int lead) -> Tensor`
after values that the graph computes; that launches nothing: its lowering fixes the strides of a flexible buffer. Inputs
of the graph are copied if that is faster. P's rows are padded if only the graph reads it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tilewise.arrays.torch_library import dtype_name
from tilewise.dispatch.execute import machine_of
from tilewise.errors import TilewiseError
from tilewise.torch.choice import problem_of
from tilewise.torch.row_alignment import Arrangement, best_arrangement

PLAIN = ("plus_times", "high"), ("plus_times", "high", False), ("plus_times", "high", False, False)
_LIBRARY = torch.library.Library("tilewise", "FRAGMENT")
_LIBRARY.define("aligned_rows(Tensor x, int lead) -> Tensor")
_LIBRARY.impl("aligned_rows", lambda x, lead: x.clone(), "CompositeExplicitAutograd")


@torch.library.register_fake("tilewise::aligned_rows", lib=_LIBRARY)
def _(x: Tensor, lead: int) -> Tensor:
    return torch.empty_like(x)


def keeps_launches(node: Any) -> bool:
    """Whether a product is on a card with constant sizes and strides, so that its launch can be reused."""
    values = [x.meta["val"] for x in (node, *node.args[:2])]
    fixed = all(isinstance(number, int) for x in values for number in (*x.shape, *x.stride()))
    return fixed and is_on_card(values[0])


def is_on_card(value: Tensor) -> bool:
    return value.is_cuda


def lay_out(graph: Any) -> None:
    """Align the rows of computed values that products read."""
    seen = _seen_outputs(graph)
    for node in list(graph.nodes):
        plain = node.target is torch.ops.tilewise.matmul.default and node.args[2:] in PLAIN
        if not plain or not keeps_launches(node):
            continue
        bases = [without_views(x) for x in node.args[:2]]
        here = [_layout_is_free(base, x, seen) for base, x in zip(bases, node.args[:2], strict=True)]
        values = [x.meta["val"] for x in node.args[:2]]
        found = _arrangement(node, [x.stride() for x in values], (0, 0), (here[0], here[1]), not _is_output(node, seen))
        if found is None:
            continue
        for base, computed, moved, layout in zip(bases, here, found.moved, found.layouts, strict=True):
            if computed and moved:
                _mark(graph, base, max(layout.row, layout.col))


def _mark(graph: Any, base: Any, lead: int) -> None:
    target = torch.ops.tilewise.aligned_rows.default
    if any(user.target is target for user in base.users):
        return
    with graph.inserting_after(base):
        made = graph.call_function(target, (base, lead))
    made.meta = dict(base.meta)
    base.replace_all_uses_with(made, delete_user_cb=lambda user: user is not made)


def _layout_is_free(base: Any, operand: Any, seen: Any) -> bool:
    """Whether the value under an operand's views is computed by the graph, not returned, and has rows as long as the
    operand's."""
    if base.op != "call_function" or base.target is torch.ops.tilewise.matmul.default or _is_output(base, seen):
        return False
    made, value = base.meta.get("val"), operand.meta["val"]
    if not isinstance(made, Tensor) or not all(isinstance(x, int) for x in (*made.shape, *made.stride())):
        return False
    length = value.shape[-1] if value.stride(-1) == 1 else value.shape[-2]
    return _extents_by_stride(made.shape, made.stride())[:1] == [length] and made.numel() == value.numel()


def _extents_by_stride(shape: Any, strides: Any) -> list[int]:
    """Extents by increasing stride."""
    return [shape[i] for i in sorted(range(len(shape)), key=lambda i: (strides[i], -i)) if shape[i] > 1]


def _seen_outputs(graph: Any) -> list[Any]:
    """Outputs that are returned to the program; the others are passed from forward to backward."""
    output = next(node for node in reversed(graph.nodes) if node.op == "output")
    listed = output.args[0] if isinstance(output.args[0], (tuple, list)) else output.args
    which = output.meta.get("user_visible_output_idxs")
    return [x for i, x in enumerate(listed) if hasattr(x, "meta") and (which is None or i in which)]


def _is_output(node: Any, seen: Any) -> bool:
    """Whether a value, or a view of it, is among the outputs `seen`."""
    todo = [node]
    while todo:
        x = todo.pop()
        if x in seen:
            return True
        todo += [user for user in x.users if is_view(user)]
    return False


def without_views(node: Any) -> Any:
    """The node under all views."""
    while node.op == "call_function" and is_view(node):
        node = node.args[0]
    return node


def is_view(node: Any) -> bool:
    """Whether a node is a view of its first argument."""
    from torch.fx.passes.reinplace import _is_view_op

    return bool(_is_view_op(node.target))


def _arrangement(
    node: Any, strides: Any, offsets: tuple[int, int], computed: tuple[bool, bool], pads_p: bool
) -> Arrangement | None:
    """The best layouts of a product's matrices; None if there is no plan."""
    made, (left, right) = node.meta["val"], (x.meta["val"] for x in node.args[:2])
    if made.dim() != 2 or left.dim() != 2 or right.dim() != 2 or left.dtype != right.dtype:
        return None
    layout = (tuple(left.shape), tuple(right.shape), *(tuple(int(s) for s in x) for x in strides))
    problem = problem_of(layout, dtype_name(made.dtype), offsets)
    try:
        return None if problem is None else best_arrangement(problem, machine_of(str(made.device)), computed, pads_p)
    except TilewiseError:  # no kernel computes this; the call raises the error
        return None


def freeze_leading_dimension(x: Any, lead: int) -> Any:
    """The lowering of `aligned_rows`: fixes the leading dimension of an Inductor buffer if its layout is flexible."""
    from torch._inductor import ir

    box = x.data if isinstance(x, ir.TensorBox) else x
    if isinstance(box, ir.StorageBox):
        box.realize()
        if isinstance(box.data, ir.ComputedBuffer) and isinstance(box.data.layout, ir.FlexibleLayout):
            box.data.freeze_layout_with_exact_strides(_widened(box.data.get_size(), box.data.layout.stride, lead))
    return x


def _widened(size: Any, strides: Any, lead: int) -> list[int]:
    """Strides in the same order with another leading dimension."""
    inner, *outer = sorted(range(len(size)), key=lambda i: (int(size[i]) == 1, int(strides[i]), -i))
    made, step = [1] * len(size), lead
    for i in outer:
        made[i] = step
        step *= int(size[i])
    made[inner] = 1
    return made


def arrange_operands(M: Any, N: Any, node: Any) -> tuple[Any, Any, Any, bool]:
    """M and N realised in the chosen layouts, P's layout, and whether P's rows are padded."""
    from torch._inductor import ir
    from torch._inductor.virtualized import V

    made, operands = node.meta["val"], [ir.ExternKernel.realize_input(x) for x in (M, N)]
    known = all(_known(s) for x in operands for s in (*x.get_stride(), x.get_layout().offset))
    found, size = None, ir.convert_shape_to_inductor(made.shape)
    if known:
        offsets = [int(x.get_layout().offset) * made.dtype.itemsize % 16 for x in operands]
        seen = V.graph.user_visible_output_strides
        strides = [x.get_stride() for x in operands]
        found = _arrangement(node, strides, (offsets[0], offsets[1]), (False, False), not _is_output(node, seen))
    if found is None:
        return *operands, ir.FlexibleLayout(M.get_device(), made.dtype, size), False
    for i, layout in enumerate(found.layouts):
        if found.moved[i]:
            copy = ir.ExternKernel.copy_input(operands[i])
            copy.data.data.freeze_layout_with_exact_strides([layout.row, layout.col])
            operands[i] = ir.ExternKernel.realize_input(copy)
    P = found.problem.layout_p
    if P.spare:
        # if it were traced as dense, Inductor would copy it to dense memory for backward
        node.meta["val"] = made.new_empty_strided(made.shape, (P.row, 1))
        return *operands, ir.FixedLayout(M.get_device(), made.dtype, size, [P.row, 1]), True
    return *operands, ir.FlexibleLayout(M.get_device(), made.dtype, size), False


def _known(number: Any) -> bool:
    return isinstance(number, int) or bool(getattr(number, "is_Integer", False))
