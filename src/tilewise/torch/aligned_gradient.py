"""Copies a gradient with misaligned rows once to aligned rows, instead of in each of backward's two products."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from tilewise.algebra.dtypes import DTYPES
from tilewise.arrays.torch_library import dtype_name
from tilewise.core.problem import Layout
from tilewise.core.recipe import Address, Recipe
from tilewise.dispatch.execute import machine_of
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import recipe_launcher
from tilewise.torch.choice import Account, problem_of
from tilewise.torch.gradients import is_column_major
from tilewise.torch.row_alignment import aligned_layout, aligned_leading_dimension
from tilewise.torch.vendor import copy_seconds

LEAST_BYTES = 1 << 22  # of a gradient; for less, the launch costs the host more than it saves on the card


def aligned_for_both(account: Account, M: Tensor, N: Tensor, dP: Tensor, wanted: Any) -> Tensor:
    """dP for dP · Nᵀ and dPᵀ · M: itself, or an aligned copy if the products are expected to be faster with it."""
    both = wanted[0] and wanted[1] and dP.is_cuda and dP.dim() == 2
    if not both or dP.numel() * dP.element_size() < LEAST_BYTES or dP.data_ptr() & 15:
        return dP
    key = ("both", dP.shape, dP.stride(), M.shape, M.stride(), N.stride(), dP.dtype, M.dtype, N.dtype, dP.device)
    lead = account.cached.get(key)
    if lead is None:
        lead = account.cached[key] = lead_for_both(account, M, N, dP)
    return aligned_copy(dP, lead) if lead else dP


def lead_for_both(account: Account, M: Tensor, N: Tensor, dP: Tensor) -> int:
    """The leading dimension of the aligned copy; 0 for no copy."""
    dtype = dtype_name(dP.dtype)
    same = M.dtype == N.dtype == dP.dtype and dtype in ("bfloat16", "float16")
    if not same or dP.stride(1) != 1 or not is_column_major(N) or is_column_major(M):
        return 0
    rows, cols = dP.shape
    if aligned_layout(Layout(dP.stride(0), 1), rows, cols, 2) is None:
        return 0
    lead, machine = aligned_leading_dimension(cols, 2), machine_of(str(dP.device))
    if not (account.choice("mm", dP, N.mT).routed and account.choice("mm", dP.mT, M).routed):
        return 0

    def seconds(step: int) -> float:
        left = (tuple(dP.shape), tuple(N.mT.shape), (step, 1), N.mT.stride())
        right = (tuple(dP.mT.shape), tuple(M.shape), (1, step), M.stride())
        problems = [problem_of(layout, dtype, (0, 0)) for layout in (left, right)]
        return sum(make_plan(problem, machine).predicted for problem in problems if problem is not None)

    return lead if seconds(lead) + copy_seconds(4 * rows * cols, machine) < seconds(dP.stride(0)) else 0


def aligned_copy(x: Tensor, lead: int) -> Tensor:
    """A copy of a matrix with this leading dimension."""
    made = torch.empty_strided(x.shape, (lead, 1), dtype=x.dtype, device=x.device)
    launcher = _launcher(dtype_name(x.dtype), x.shape, x.stride(0), x.device)
    launcher(torch.cuda.current_stream(x.device).cuda_stream, M=x.data_ptr(), P=made.data_ptr())
    return made


@lru_cache(maxsize=256)
def _launcher(dtype: str, shape: torch.Size, lead: int, device: torch.device) -> Any:
    from tilewise.kernels.shared.placed import Placed
    from tilewise.kernels.transforms.realign import Realigned, realign_launches

    x = Placed(Address("M"), DTYPES[dtype], shape[0], shape[1], Layout(lead, 1))
    launches = realign_launches([Realigned(x, (), Address("P"))])
    return recipe_launcher(Recipe(tuple(launches)), f"cuda:{device.index or 0}")
