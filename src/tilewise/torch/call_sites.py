"""Products into given memory: called by compiled code with buffers that Inductor has planned, and by our own functions.

A call site with constant sizes (`run_at`) reuses its launch and reads only addresses: guards have checked the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tilewise.arrays.torch_library import DIRECT, dtype_name
from tilewise.arrays.torch_signature import TorchCard
from tilewise.core.problem import Layout
from tilewise.dispatch import product as dispatch
from tilewise.dispatch.execute import machine_of
from tilewise.dispatch.prepared import PREPARED, SIGNATURES
from tilewise.errors import TilewiseError
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import launcher_of
from tilewise.torch.choice import problem_of
from tilewise.torch.semiring_names import semiring_of

LIMIT = 16384  # cached launches
Launch = Callable[[Tensor, Tensor, Tensor], bool]
SITES: dict[str, Launch] = {}
INTO: dict[Any, Launch] = {}


def run(M: Tensor, N: Tensor, *, out: Tensor) -> Tensor:
    """P = M · N in memory that Inductor has planned."""
    keywords = {"out": out}
    sign = SIGNATURES.get(Tensor)
    key = None if sign is None else sign(M, N, keywords)
    prepared = None if key is None else PREPARED.get(key)
    if prepared is None or prepared(M, N, keywords) is None:
        _multiply(M, N, out=out)
    return out


def run_at(M: Tensor, N: Tensor, *, site: str, spare: bool, out: Tensor) -> Tensor:
    """`run` at one call site; `spare`: the padding of P's rows may be overwritten."""
    launch = SITES.get(site)
    if launch is None:
        launch = _launch_for(M, N, out, spare)
        if len(SITES) >= LIMIT:
            SITES.clear()
        SITES[site] = launch
    return out if launch(M, N, out) else run(M, N, out=out)


def run_over(M: Tensor, N: Tensor, *, semiring: str, precision: str, nonnegative: bool, out: Tensor) -> Tensor:
    """`run` over any semiring."""
    _multiply(M, N, semiring=semiring_of(semiring), precision=precision, nonnegative=nonnegative, out=out)
    return out


def _multiply(M: Tensor, N: Tensor, **how: Any) -> None:
    with DIRECT, torch.no_grad():
        dispatch.matmul(M.detach(), N.detach(), **how)


def into(M: Tensor, N: Tensor, out: Tensor, spare: bool = False, sums: str = "") -> bool:
    """P = M · N in `out` on a card; False if no kernel can, and nothing was done.

    spare: as in `run_at`. sums: "first" stores and "more" adds unrounded float32 sums; "onto" adds the product to `out`
    in its dtype.
    """
    key = (M.shape, N.shape, M.stride(), N.stride(), M.dtype, N.dtype, out.shape, out.stride(), M.device, spare, sums)
    launch = INTO.get(key)
    if launch is None:
        if len(INTO) >= LIMIT:
            INTO.clear()
        launch = INTO[key] = _launch_for(M, N, out, spare, sums)
    return launch(M, N, out)


def _never(M: Tensor, N: Tensor, out: Tensor) -> bool:
    return False


def _launch_for(M: Tensor, N: Tensor, out: Tensor, spare: bool, sums: str = "") -> Launch:
    """A launch planned for tensors of these layouts on 16-byte boundaries; it returns False for misaligned ones."""
    alike = M.dim() == N.dim() and M.shape[:-2] == N.shape[:-2] and M.dtype == N.dtype
    if not (M.is_cuda and alike and M.dim() > 1 and out.numel()):
        return _never
    layout = (tuple(M.shape), tuple(N.shape), M.stride(), N.stride())
    P = Layout(out.stride(-2), out.stride(-1), tuple(out.stride()[:-2]), 0, spare)
    problem, device = problem_of(layout, dtype_name(M.dtype), (0, 0), P), str(M.device)
    if problem is None or not problem.k:
        return _never
    problem = replace(problem, unrounded=sums in ("first", "more"), accumulate=sums in ("more", "onto"))
    if dtype_name(out.dtype) != problem.result.name:
        return _never
    try:
        launcher = launcher_of(make_plan(problem, machine_of(device)), device)
    except TilewiseError:
        return _never
    return _bound_launch(launcher, TorchCard(M.get_device()))


def _bound_launch(launcher: Any, card: TorchCard) -> Launch:
    """A launch of which only addresses, stream and workspace are not bound yet."""
    address, stream_now, take, give_back = card.address, card.stream, card.take, card.give_back
    header, at_once, scratch_bytes = launcher.header, launcher.launch, launcher.scratch_bytes

    def launch(M: Tensor, N: Tensor, out: Tensor) -> bool:
        m, n, p = address(M), address(N), address(out)
        if (m | n | p) & 15 or not (m and n and p):
            return False
        stream = stream_now()
        held = take(scratch_bytes, stream) if scratch_bytes else 0
        try:
            done = header and not at_once(header, m, n, p, held, stream)
            return bool(done or launcher(stream, M=m, N=n, P=p, scratch=held))
        finally:
            if held:
                give_back(held)

    return launch
