"""Structured values on a card: fields copied into structures, one launch of the plain kernel, and back to fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewise.algebra.program_cuda import offsets
from tilewise.algebra.structured import StructuredAlgebra
from tilewise.arrays.operand import Operand
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.scratch import scratch
from tilewise.core.problem import Layout
from tilewise.core.shapes import ProductShape
from tilewise.kernels.simt_gemm.tiled.structured import StructuredPlan, structured_plan
from tilewise.kernels.transforms.pack import copy_recipe
from tilewise.planning.launchers import recipe_launcher


def multiply_on_card(
    algebra: StructuredAlgebra, M: Sequence[Operand], N: Sequence[Operand], shape: ProductShape
) -> Any:
    """P as a tuple of arrays of the fields' library."""
    library, device = M[0].library, M[0].device
    whole = (*shape.stack, shape.m, shape.n)
    P = [library.empty(whole, dtype, device) for dtype in algebra.dtypes]
    stream = library.stream(device)
    if shape.m and shape.n and shape.stack.count(0) == 0:
        left = [x.with_axis(-2) if shape.vector_m else x for x in M]
        right = [x.with_axis(-1) if shape.vector_n else x for x in N]
        plan = structured_plan(algebra, describe(device), shape.m, shape.k, shape.n)
        with scratch(plan.places[3], library.name, device, stream) as held:
            for member in np.ndindex(shape.stack):
                sides = ([_part(x, member, shape.stack) for x in side] for side in (left, right, P))
                _member(plan, device, stream, held, *sides)
    made = (library.deliver(x) for x in P)
    return tuple(made) if whole == shape.product else tuple(x.reshape(shape.product) for x in made)


Part = tuple[int, Operand, Layout]  # the address of a matrix, its operand, its layout


def _part(x: Operand, member: tuple[int, ...], stack: tuple[int, ...]) -> Part:
    """The address and layout of one matrix of a stack."""
    layout = x.layout(stack)
    at = x.pointer + sum(i * s for i, s in zip(member, layout.stack, strict=True)) * x.dtype.itemsize
    return at, x, Layout(layout.row, layout.col, (), at % 16)


def _member(
    plan: StructuredPlan, device: str, stream: int, workspace: int, M: list[Part], N: list[Part], P: list[Part]
) -> None:
    """One product: fields into structures, the kernel, structures into fields."""
    at_m, at_n, at_p, _ = plan.places
    fields = offsets(plan.algebra.dtypes)
    for base, side, rows, cols, transposed in (
        (at_m, M, plan.m, plan.k, True),
        (at_n, N, plan.k, plan.n, False),
    ):
        for (pointer, x, layout), offset, dtype in zip(side, fields, plan.algebra.dtypes, strict=True):
            each, lead = plan.word // dtype.itemsize, plan.lead(rows if transposed else cols)
            to = workspace + base + offset
            inside = Layout(each, lead * each, (), to % 16) if transposed else Layout(lead * each, each, (), to % 16)
            recipe = copy_recipe(rows, cols, (), x.dtype, layout, dtype, inside)
            recipe_launcher(recipe, device)(stream, M=pointer, P=to)
    recipe_launcher(plan.recipe, device)(stream, P=workspace)
    for (pointer, _, layout), offset, dtype in zip(P, fields, plan.algebra.dtypes, strict=True):
        each, start = plan.word // dtype.itemsize, workspace + at_p + offset
        inside = Layout(plan.lead(plan.n) * each, each, (), start % 16)
        recipe = copy_recipe(plan.m, plan.n, (), dtype, inside, dtype, layout)
        recipe_launcher(recipe, device)(stream, M=start, P=pointer)
